/* A peer with zklock's C face: CONNECT KIND PATH SESSION_MS REGISTER NAME [OPTIONS] */

#include <time.h>
#include <zklock.h>

#include "line.h"

static zklock_lock *locks[2];
static const char *modes[2];
static int count = 0;
/* The longest rest between two turns, in seconds. Without a rest somebody always waits. */
static double rest = 0;

static void ok(zklock_status status) {
    if (status == ZKLOCK_OK) return;
    fprintf(stderr, "%d: %s\n", status, zklock_last_error());
    exit(1);
}

/* The place for the next lock of this kind, and how its holder enters. */
static zklock_lock **next(const char *mode) {
    modes[count] = mode;
    return &locks[count++];
}

/* --dialect=kazoo, --dialect=writelock, --foreign=go-ahead, --linger=SECONDS, --rest=SECONDS */
static zklock_lock_options *options_of(char **words, int words_count) {
    zklock_lock_options *options;
    double seconds;
    int word;
    ok(zklock_lock_options_new(&options));
    for (word = 0; word < words_count; word++) {
        if (strcmp(words[word], "--dialect=kazoo") == 0) {
            ok(zklock_lock_options_set_dialect(options, ZKLOCK_DIALECT_KAZOO));
        } else if (strcmp(words[word], "--dialect=writelock") == 0) {
            ok(zklock_lock_options_set_dialect(options, ZKLOCK_DIALECT_WRITELOCK));
        } else if (strcmp(words[word], "--foreign=go-ahead") == 0) {
            ok(zklock_lock_options_set_flags(options, ZKLOCK_ALLOW_FOREIGN));
        } else if (sscanf(words[word], "--linger=%lf", &seconds) == 1) {
            ok(zklock_lock_options_set_linger(options, (int64_t)(seconds * 1000)));
        } else if (sscanf(words[word], "--rest=%lf", &rest) == 1) {
            continue;
        } else {
            fprintf(stderr, "no option: %s\n", words[word]);
            exit(1);
        }
    }
    return options;
}

static void make(zklock_client *client, const char *kind, const char *path, zklock_lock_options *how) {
    static char mode[24];
    unsigned limit, permits = 1;
    if (strcmp(kind, "mutex") == 0) ok(zklock_mutex_new(client, path, how, next("x")));
    if (strcmp(kind, "election") == 0) ok(zklock_election_new(client, path, how, next("x")));
    if (strcmp(kind, "semaphore-mutex") == 0) ok(zklock_semaphore_new(client, path, 1, how, next("x")));
    if (sscanf(kind, "semaphore:%u:%u", &limit, &permits) >= 1) {
        snprintf(mode, sizeof mode, "s:%u", permits);
        ok(zklock_lock_options_set_permits(how, permits));
        ok(zklock_semaphore_new(client, path, limit, how, next(mode)));
    }
    if (strcmp(kind, "rw") == 0) {
        ok(zklock_rwlock_write_new(client, path, how, next("x")));
        ok(zklock_rwlock_read_new(client, path, how, next("r")));
    }
    if (count == 0) {
        fprintf(stderr, "no kind: %s\n", kind);
        exit(1);
    }
}

static int turn(zklock_lock *lock, const char *mode) {
    zklock_hold *hold;
    const char *node;
    uint64_t token;
    int64_t valid_for = 0;
    int goes_on = 1;
    const zklock_status status = zklock_acquire(lock, ZKLOCK_FOREVER, &hold);
    if (status == ZKLOCK_FOREIGN_CONTENDER) ok(status);
    if (status != ZKLOCK_OK) {
        const struct timespec pause = {0, 50 * 1000 * 1000};
        line_tell("note", zklock_last_error());
        nanosleep(&pause, NULL);
        return goes_on;
    }
    ok(zklock_hold_node(hold, &node));
    ok(zklock_hold_token(hold, &token));
    line_enter(mode, node, token);
    ok(zklock_hold_valid_for(hold, &valid_for));
    goes_on = valid_for > 0 ? line_ask("leave", "") : line_ask("lost", "lease");
    if (zklock_release(hold) != ZKLOCK_OK) line_tell("note", zklock_last_error());
    zklock_hold_free(hold);
    return goes_on;
}

int main(int words_count, char **words) {
    zklock_options *options;
    zklock_lock_options *how;
    zklock_client *client;
    int goes_on;
    if (words_count < 7) return 2;
    line_open(words[5], words[6]);
    srand((unsigned)getpid());
    ok(zklock_options_new(&options));
    ok(zklock_options_set_session_timeout(options, atoi(words[4])));
    ok(zklock_options_set_identity(options, words[6]));
    ok(zklock_client_new(words[1], options, &client));
    how = options_of(words + 7, words_count - 7);
    make(client, words[2], words[3], how);
    goes_on = line_ask("hello", "");
    while (goes_on) {
        /* The write side is the first of two, and is chosen once in four times. */
        const int which = count == 2 && rand() % 4 != 0;
        goes_on = turn(locks[which], modes[which]);
        nanosleep(&(struct timespec){0, (long)(rest * 1e9 * rand() / RAND_MAX)}, NULL);
    }
    ok(zklock_client_close(client));
    zklock_lock_options_free(how);
    zklock_options_free(options);
    return 0;
}
