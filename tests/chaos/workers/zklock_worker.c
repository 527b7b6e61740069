/* zklock's C face under chaos: see ../README.md for its arguments and its lines. */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zklock.h>

#define LINGER "2s"
#define PATIENCE_MS 10000
/* How often it says that it still holds: ten times more rarely for slow locks. */
#define STEP_NS INT64_C(2000000)
#define IS_SLOW(word) (strstr(word, ":/slow/") != NULL)
/* Locks that are held for a millisecond at most, so that they are granted often. */
#define IS_SWIFT(word) (strstr(word, ":/swift-") != NULL)
#define SWIFT_STEP_NS INT64_C(200000)
#define MS_IN_NS INT64_C(1000000)

/* The connection to the register, and whether it has ended. The end of a turn is still reported then, as long as that
 * works. */
static int line = -1, is_broken = 0;
static uint64_t dice;

static void ok(zklock_status status) {
    if (status == ZKLOCK_OK) return;
    fprintf(stderr, "%d: %s\n", status, zklock_last_error());
    exit(1);
}

static void usage(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(2);
}

/* The clock that all processes of a machine share. */
static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void rest(int64_t ns) {
    const struct timespec time = {ns / 1000000000, ns % 1000000000};
    nanosleep(&time, NULL);
}

/* From 0 to below the limit: splitmix64. */
static uint64_t below(uint64_t limit) {
    uint64_t mixed = dice += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (mixed ^ (mixed >> 31)) % limit;
}

static int64_t up_to_ms(int64_t ms) {
    return (int64_t)below((uint64_t)(ms * MS_IN_NS + 1));
}

static void line_open(char *address) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int yes = 1;
    char *colon = strrchr(address, ':');
    if (!colon) usage("HOST:PORT");
    *colon = 0;
    if (getaddrinfo(address, colon + 1, &hints, &found) != 0) usage("no such register");
    line = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0);
    if (line < 0 || connect(line, found->ai_addr, found->ai_addrlen) != 0) {
        perror("the register");
        exit(1);
    }
    setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    freeaddrinfo(found);
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    char text[1024];
    va_list words;
    int length, sent = 0;
    va_start(words, format);
    length = vsnprintf(text, sizeof text - 1, format, words);
    va_end(words);
    if (length < 0 || length >= (int)sizeof text - 1) usage("a line that is too long");
    text[length++] = '\n';
    while (sent < length && !is_broken) {
        const ssize_t part = send(line, text + sent, (size_t)(length - sent), MSG_NOSIGNAL);
        if (part > 0) sent += (int)part;
        if (part < 0 && errno != EINTR) is_broken = 1;
    }
}

static int is_over(void) {
    char nothing;
    const ssize_t got = recv(line, &nothing, 1, MSG_DONTWAIT);
    return is_broken || got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* The lock of a word such as semaphore=2:/a. */
static zklock_lock *lock_of(zklock_client *client, const char *word) {
    const char *path = strchr(word, ':');
    const size_t length = path ? (size_t)(path++ - word) : 0;
    zklock_options *options;
    zklock_lock *lock = NULL;
    unsigned permits;
    ok(zklock_options_new(&options));
#define IS(kind) (length == strlen(kind) && strncmp(word, kind, length) == 0)
    if (IS("mutex")) {
        ok(zklock_mutex_new(client, path, options, &lock));
    } else if (IS("lingering")) {
        ok(zklock_options_set(options, "linger", LINGER));
        ok(zklock_mutex_new(client, path, options, &lock));
    } else if (IS("read")) {
        ok(zklock_read_lock_new(client, path, options, &lock));
    } else if (IS("write")) {
        ok(zklock_write_lock_new(client, path, options, &lock));
    } else if (IS("exclusive")) {
        ok(zklock_single_node_new(client, path, options, &lock));
    } else if (path && sscanf(word, "semaphore=%u:", &permits) == 1) {
        ok(zklock_semaphore_new(client, path, permits, options, &lock));
    } else {
        usage("no such kind");
    }
#undef IS
    zklock_options_free(options);
    return lock;
}

static const char *word_of(zklock_status status) {
    static const char *const words[] = {
        "Ok", "InvalidArgument", "InvalidHandle", "Unreachable", "timeout", "Deadlock", "NotOwner", "NotHeld", "Lost",
        "ForeignContender", "Refused", "Closed", "Interrupted", "Uncertain", "Conflict", "Forked", "Pending", "Internal"};
    const size_t number = (size_t)status;
    return number < sizeof words / sizeof *words ? words[number] : "Unknown";
}

/* A hold may be at risk first: its lease is over, but the servers have not yet said what became of it. */
static void say_lost(const zklock_hold *hold, uint64_t turn) {
    static const char *const words[] = {"AtRisk",       "SessionExpired", "NodeDeleted",      "LeaseLapsed",
                                        "ClientClosed", "Other",          "ForeignContender", "SessionClosed"};
    zklock_reason reason;
    size_t number;
    (void)!zklock_hold_state(hold, &reason);
    number = (size_t)reason;
    say("lost %" PRIu64 " %" PRId64 " %s", turn, now(), number < sizeof words / sizeof *words ? words[number] : "Unknown");
}

/* Milliseconds. */
static int64_t valid_for(const zklock_hold *hold) {
    return zklock_hold_valid_for(hold);
}

/* Relies on what was named to its end, as a program does that looks once and then works. Only an operator may end it sooner. */
static void rely(const zklock_hold *hold, uint64_t turn, int64_t named) {
    zklock_reason reason;
    int64_t seen;
    (void)!zklock_hold_state(hold, &reason);
    if (reason == ZKLOCK_REASON_NODE_DELETED || reason == ZKLOCK_REASON_SESSION_EXPIRED) return;
    while ((seen = now()) < named && !is_over()) rest(MS_IN_NS);
    say("still %" PRIu64 " %" PRId64, turn, named < seen ? named : seen);
}

/* Claims the lock, as far as that is certain, until the turn is over. */
static void claim(const zklock_hold *hold, uint64_t turn, int64_t time, int64_t step) {
    const char *node;
    uint64_t token;
    int64_t end, named = 0;
    int is_last = 0;
    node = zklock_hold_node(hold);
    token = zklock_hold_token(hold);
    if (valid_for(hold) <= 0) {
        say_lost(hold, turn);
        return;
    }
    /* Here the clock is read after the check, so that the claim does not begin before the hold. */
    say("have %" PRIu64 " %" PRIu64 " %s %" PRId64, turn, token, node, now());
    end = now() + time;
    while (!is_last) {
        /* And here before the check, so that the claim does not last longer than the hold. */
        const int64_t seen = now(), valid = valid_for(hold);
        if (valid <= 0) {
            rely(hold, turn, named);
            say_lost(hold, turn);
            return;
        }
        if (named < seen + valid * MS_IN_NS) named = seen + valid * MS_IN_NS;
        is_last = seen >= end || is_over();
        say("%s %" PRIu64 " %" PRId64, is_last ? "done" : "still", turn, seen);
        if (!is_last) rest(step);
    }
}

static void take(zklock_lock *lock, const char *word, uint64_t turn, int tries, int64_t time) {
    zklock_hold *hold;
    zklock_status status;
    say("want %" PRIu64 " %s %" PRId64, turn, word, now());
    status = zklock_acquire(lock, tries ? 0 : PATIENCE_MS, &hold);
    if (status != ZKLOCK_OK) {
        const int is_busy = tries && status == ZKLOCK_TIMEOUT;
        say("gave %" PRIu64 " %" PRId64 " %s", turn, now(), is_busy ? "busy" : word_of(status));
        if (status != ZKLOCK_TIMEOUT) rest(100 * MS_IN_NS);
        return;
    }
    claim(hold, turn, time, IS_SLOW(word) ? STEP_NS * 10 : IS_SWIFT(word) ? SWIFT_STEP_NS : STEP_NS);
    /* The answer does not matter here: the claim is over. */
    zklock_release(hold);
    zklock_hold_free(hold);
    say("free %" PRIu64 " %" PRId64, turn, now());
}

/* Mostly short. Below some paths long, so that much goes wrong meanwhile. */
static int64_t time_to_hold(const char *word, int64_t session_ms) {
    if (IS_SLOW(word)) return up_to_ms(3 * session_ms);
    if (IS_SWIFT(word)) return up_to_ms(1);
    return up_to_ms(below(10) == 0 ? 200 : 5);
}

int main(int count, char **words) {
    zklock_options *options;
    zklock_client *client;
    zklock_lock **locks;
    const int first = 6, kinds = count - first;
    uint64_t turn;
    char timeout[32];
    int at;
    if (kinds < 1) usage("HOSTS SESSION_MS REGISTER NAME SEED LOCK...");
    dice = strtoull(words[5], NULL, 10);
    ok(zklock_options_new(&options));
    snprintf(timeout, sizeof timeout, "%sms", words[2]);
    ok(zklock_options_set(options, "session-timeout", timeout));
    ok(zklock_options_set(options, "identity", words[4]));
    /* It connects on first use, and tries as often as that takes. */
    ok(zklock_client_new_lazy(words[1], options, &client));
    zklock_options_free(options);
    locks = calloc((size_t)kinds, sizeof(zklock_lock *));
    if (!locks) abort();
    for (at = 0; at < kinds; at++) locks[at] = lock_of(client, words[first + at]);
    line_open(words[3]);
    say("hello %s %d", words[4], (int)getpid());
    for (turn = 1; !is_over(); turn++) {
        const int which = (int)below((uint64_t)kinds), tries = below(5) == 0;
        take(locks[which], words[first + which], turn, tries, time_to_hold(words[first + which], atoll(words[2])));
        if (below(3) == 0) rest(up_to_ms(20));
    }
    zklock_client_close(client);
    for (at = 0; at < kinds; at++) zklock_lock_free(locks[at]);
    zklock_client_free(client);
    free(locks);
    close(line);
    return 0;
}
