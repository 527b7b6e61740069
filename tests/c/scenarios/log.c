/* The library's log only goes where the program wants it. */

#include "test.h"

#include <pthread.h>
#include <unistd.h>

/* The arguments of a callback. */
typedef struct {
    pthread_mutex_t mutex;
    int lines[ZKLOCK_LOG_TRACE + 1], losses, grants, inside;
} book;

#define EMPTY {.mutex = PTHREAD_MUTEX_INITIALIZER}

static void writes(int32_t level, const char *message, void *context) {
    book *book = context;
    /* One line at a time. */
    CHECK(__atomic_fetch_add(&book->inside, 1, __ATOMIC_ACQ_REL) == 0);
    CHECK(level >= ZKLOCK_LOG_ERROR && level <= ZKLOCK_LOG_TRACE);
    CHECK(message && message[0]);
    pthread_mutex_lock(&book->mutex);
    book->lines[level]++;
    /* Sessions of earlier tests, which end in the background, may log as well. */
    if (strstr(message, "hold lost") && strstr(message, "/c/")) {
        CHECK(level == ZKLOCK_LOG_WARN);
        book->losses++;
    }
    if (strstr(message, "lock granted") && strstr(message, "/c/") && strstr(message, "token=")) {
        CHECK(level == ZKLOCK_LOG_DEBUG);
        book->grants++;
    }
    pthread_mutex_unlock(&book->mutex);
    __atomic_fetch_sub(&book->inside, 1, __ATOMIC_ACQ_REL);
}

static int lines(book *book, int from, int to) {
    int count = 0;
    pthread_mutex_lock(&book->mutex);
    for (int level = from; level <= to; level++) count += book->lines[level];
    pthread_mutex_unlock(&book->mutex);
    return count;
}

static int losses(book *book) {
    pthread_mutex_lock(&book->mutex);
    int count = book->losses;
    pthread_mutex_unlock(&book->mutex);
    return count;
}

static int grants(book *book) {
    pthread_mutex_lock(&book->mutex);
    int count = book->grants;
    pthread_mutex_unlock(&book->mutex);
    return count;
}

/* When this is called, every earlier line has been handed over, because callbacks come one after the other. */
static void passed(zklock_hold *hold, zklock_reason reason, void *context) {
    (void)hold;
    (void)reason;
    __atomic_store_n((int *)context, 1, __ATOMIC_RELEASE);
}

/* Opens a session, holds a lock, loses it, releases it, and closes the session. */
static void makes_news(void) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    const char *node;
    int told = 0;
    OK(zklock_hold_node(hold, &node));
    OK(zklock_hold_on_lost(hold, passed, &told));
    ground("delete %s", node);
    EVENTUALLY(__atomic_load_n(&told, __ATOMIC_ACQUIRE));
    IS(zklock_release(hold), ZKLOCK_LOST);
    OK(zklock_client_close(client));
    free_all(hold, lock, client);
}

TEST(each_level_includes_those_before_it) {
    for (int level = ZKLOCK_LOG_OFF; level <= ZKLOCK_LOG_TRACE; level++) {
        book book = EMPTY;
        OK(zklock_set_log(level, writes, &book));
        makes_news();
        if (level >= ZKLOCK_LOG_WARN) {
            EVENTUALLY(losses(&book) == 1);
        }
        if (level >= ZKLOCK_LOG_INFO) {
            EVENTUALLY(lines(&book, ZKLOCK_LOG_INFO, ZKLOCK_LOG_INFO) >= 2);
        }
        if (level >= ZKLOCK_LOG_DEBUG) {
            EVENTUALLY(grants(&book) >= 1);
        }
        OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
        CHECK(lines(&book, level + 1, ZKLOCK_LOG_TRACE) == 0);
        CHECK(lines(&book, ZKLOCK_LOG_ERROR, ZKLOCK_LOG_ERROR) == 0);
    }
}

/* The lines about one path, without their fields. */
typedef struct {
    pthread_mutex_t mutex;
    const char *path;
    char text[2048];
} story;

static void tells(int32_t level, const char *message, void *context) {
    story *story = context;
    const char *fields = strstr(message, " path=");
    /* Requests have such a field, too, but are not part of the story. */
    if (level != ZKLOCK_LOG_DEBUG || !fields || !strstr(fields, story->path)) return;
    pthread_mutex_lock(&story->mutex);
    size_t used = strlen(story->text);
    snprintf(story->text + used, sizeof story->text - used, "%.*s\n", (int)(fields - message), message);
    pthread_mutex_unlock(&story->mutex);
}

static int is_told(story *story, const char *line) {
    pthread_mutex_lock(&story->mutex);
    int found = strstr(story->text, line) != NULL;
    pthread_mutex_unlock(&story->mutex);
    return found;
}

/* The core logs the same events as in Python's test of the same name, and in Rust's span. */
TEST(an_acquire_is_told_from_its_call_to_its_release) {
    char path[64];
    zklock_client *other = new_client(), *client = new_client();
    snprintf(path, sizeof path, "%s", fresh_path());
    zklock_lock *theirs = new_mutex(other, path, 0), *ours = new_mutex(client, path, 0);
    zklock_hold *hers = acquire(theirs, SOON_MS), *hold;
    story story = {.mutex = PTHREAD_MUTEX_INITIALIZER, .path = path};
    OK(zklock_set_log(ZKLOCK_LOG_DEBUG, tells, &story));
    IS(zklock_acquire(ours, 200, &hold), ZKLOCK_TIMEOUT);
    EVENTUALLY(is_told(&story, "lock not acquired\n"));
    settled(client);
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    give_back(hers);
    settled(other);
    CHECK(!strcmp(story.text, "acquire begins\nnode created\nwaits behind another\nlock not acquired\n"));
    story.text[0] = '\0';
    OK(zklock_set_log(ZKLOCK_LOG_DEBUG, tells, &story));
    hold = acquire(ours, SOON_MS);
    OK(zklock_release(hold));
    EVENTUALLY(is_told(&story, "lock released\n"));
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    CHECK(!strcmp(story.text, "acquire begins\nnode created\nlock granted\nlock released\n"));
    free_all(hold, ours, client);
    zklock_lock_free(theirs);
    zklock_client_free(other);
}

/* Even if it wants less or more than the one before. */
TEST(the_latest_counts) {
    book first = EMPTY, second = EMPTY;
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, writes, &first));
    OK(zklock_set_log(ZKLOCK_LOG_WARN, writes, &second));
    makes_news();
    EVENTUALLY(losses(&second) == 1);
    CHECK(lines(&first, 1, ZKLOCK_LOG_TRACE) == 0 && lines(&second, ZKLOCK_LOG_INFO, ZKLOCK_LOG_TRACE) == 0);
    OK(zklock_set_log(ZKLOCK_LOG_INFO, writes, &first));
    makes_news();
    EVENTUALLY(losses(&first) == 1);
    EVENTUALLY(lines(&first, ZKLOCK_LOG_INFO, ZKLOCK_LOG_INFO) >= 2);
    /* An invalid level changes nothing. */
    IS(zklock_set_log(6, NULL, NULL), ZKLOCK_INVALID_ARGUMENT);
    makes_news();
    EVENTUALLY(losses(&first) == 2);
    CHECK(losses(&second) == 1);
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, NULL, NULL));
    makes_news();
    CHECK(losses(&first) == 2);
}

typedef struct {
    int begun, go_on, ended, called;
} visit;

static void takes_its_time(int32_t level, const char *message, void *context) {
    visit *visit = context;
    (void)level;
    __atomic_add_fetch(&visit->called, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&visit->begun, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&visit->go_on, __ATOMIC_ACQUIRE)) sleep_ms(1);
    /* The message lives to the end of the call. */
    CHECK(strlen(message) > 0);
    __atomic_store_n(&visit->ended, 1, __ATOMIC_RELEASE);
}

static void *silences(void *argument) {
    visit *visit = argument;
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    return (void *)(intptr_t)__atomic_load_n(&visit->ended, __ATOMIC_ACQUIRE);
}

TEST(a_replacement_waits_for_the_callback_that_runs_and_it_is_never_called_again) {
    visit visit = {0};
    zklock_client *client;
    thread *silencing;
    int called;
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, takes_its_time, &visit));
    client = new_client();
    EVENTUALLY(__atomic_load_n(&visit.begun, __ATOMIC_ACQUIRE));
    /* More lines wait behind the first. */
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    OK(zklock_release(hold));
    silencing = start_thread(silences, &visit);
    sleep_ms(50);
    CHECK(!__atomic_load_n(&visit.ended, __ATOMIC_ACQUIRE));
    __atomic_store_n(&visit.go_on, 1, __ATOMIC_RELEASE);
    CHECK(join_thread(silencing));
    called = __atomic_load_n(&visit.called, __ATOMIC_ACQUIRE);
    makes_news();
    CHECK(__atomic_load_n(&visit.called, __ATOMIC_ACQUIRE) == called);
    free_all(hold, lock, client);
}

static void is_slow(int32_t level, const char *message, void *context) {
    (void)level;
    (void)message;
    __atomic_add_fetch((int *)context, 1, __ATOMIC_RELEASE);
    sleep_ms(5);
}

/* However many lines wait for a callback, the call that replaces it waits for one of them at most. */
TEST(a_replacement_does_not_wait_for_the_lines_that_wait) {
    int called = 0;
    int64_t begun;
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, is_slow, &called));
    for (int round = 0; round < 100; round++) {
        zklock_hold *hold = acquire(lock, SOON_MS);
        OK(zklock_release(hold));
        zklock_hold_free(hold);
    }
    EVENTUALLY(__atomic_load_n(&called, __ATOMIC_ACQUIRE) > 10);
    on_time();
    begun = now_ms();
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    NOT_LATER(now_ms() - begun, allowance_ms());
    free_all(NULL, lock, client);
}

/* The state of a callback that makes calls itself. */
typedef struct {
    zklock_client *client;
    zklock_lock *lock;
    zklock_hold *hold;
    book next;
    int done;
} turn;

static void replaces_itself(int32_t level, const char *message, void *context) {
    turn *turn = context;
    zklock_hold *none = NULL;
    zklock_client *client = NULL;
    (void)level;
    CHECK(message[0]);
    /* Its first call has replaced it, so this comes only once. */
    CHECK(!__atomic_load_n(&turn->done, __ATOMIC_ACQUIRE));
    IS(zklock_acquire(turn->lock, 0, &none), ZKLOCK_DEADLOCK);
    SAYS("a callback must not make calls that block");
    IS(zklock_release(turn->hold), ZKLOCK_DEADLOCK);
    IS(zklock_client_close(turn->client), ZKLOCK_DEADLOCK);
    IS(zklock_client_new(servers(), NULL, &client), ZKLOCK_DEADLOCK);
    CHECK(!none && !client && state_of(turn->hold) == ZKLOCK_STATE_HELD);
    OK(zklock_set_log(ZKLOCK_LOG_WARN, writes, &turn->next));
    __atomic_store_n(&turn->done, 1, __ATOMIC_RELEASE);
}

TEST(a_callback_may_replace_itself_and_must_not_block) {
    turn turn = {.next = EMPTY};
    turn.client = new_client();
    turn.lock = new_mutex(turn.client, fresh_path(), 0);
    turn.hold = acquire(turn.lock, SOON_MS);
    OK(zklock_set_log(ZKLOCK_LOG_INFO, replaces_itself, &turn));
    makes_news();
    EVENTUALLY(__atomic_load_n(&turn.done, __ATOMIC_ACQUIRE));
    makes_news();
    EVENTUALLY(losses(&turn.next) >= 1);
    CHECK(lines(&turn.next, ZKLOCK_LOG_INFO, ZKLOCK_LOG_TRACE) == 0);
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    OK(zklock_release(turn.hold));
    free_all(turn.hold, turn.lock, turn.client);
}

static void *replaces(void *argument) {
    book *book = argument;
    for (int round = 0; round < 200; round++) OK(zklock_set_log(ZKLOCK_LOG_TRACE, writes, book));
    return NULL;
}

/* Many threads replace the callback while much is logged. */
TEST(threads_may_replace_it_at_any_time) {
    enum { THREADS = 4 };
    static book books[THREADS] = {EMPTY, EMPTY, EMPTY, EMPTY};
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    thread *threads[THREADS];
    int total = 0, before;
    for (int at = 0; at < THREADS; at++) threads[at] = start_thread(replaces, &books[at]);
    for (int round = 0; round < 100; round++) {
        zklock_hold *hold = acquire(lock, SOON_MS);
        OK(zklock_release(hold));
        zklock_hold_free(hold);
    }
    for (int at = 0; at < THREADS; at++) join_thread(threads[at]);
    makes_news();
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    for (int at = 0; at < THREADS; at++) total += lines(&books[at], 1, ZKLOCK_LOG_TRACE);
    CHECK(total > 0);
    before = total;
    makes_news();
    for (int at = 0; at < THREADS; at++) before -= lines(&books[at], 1, ZKLOCK_LOG_TRACE);
    CHECK(before == 0);
    free_all(NULL, lock, client);
}

/* First in its program. Unless the program asks for it, nothing is logged; and nothing is printed even then. */
TEST(nothing_is_ever_printed) {
    char printed[256];
    int streams[2] = {dup(1), dup(2)}, proxy;
    FILE *file = tmpfile();
    zklock_client *client;
    zklock_lock *lock;
    zklock_hold *hold, *none;
    book book = EMPTY;
    size_t size;
    CHECK(file && streams[0] >= 0 && streams[1] >= 0);
    fflush(stdout);
    CHECK(dup2(fileno(file), 1) == 1 && dup2(fileno(file), 2) == 2);
    makes_news();
    for (int level = 0; level < 2; level++) {
        client = proxied_client(&proxy);
        lock = new_mutex(client, fresh_path(), 0);
        hold = acquire(lock, SOON_MS);
        expire_session(proxy);
        EVENTUALLY(stats_of(client).losses == 1);
        ground("refuse %d on", proxy);
        ground("reset %d", proxy);
        IS(zklock_acquire(lock, 300, &none), ZKLOCK_UNREACHABLE);
        IS(zklock_acquire(NULL, 300, &none), ZKLOCK_INVALID_ARGUMENT);
        IS(zklock_client_new("no-such-host.invalid", NULL, &client), ZKLOCK_UNREACHABLE);
        OK(zklock_client_close(client));
        free_all(hold, lock, client);
        OK(zklock_set_log(ZKLOCK_LOG_TRACE, writes, &book));
    }
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    CHECK(lines(&book, 1, ZKLOCK_LOG_TRACE) > 0);
    fflush(stdout);
    dup2(streams[0], 1);
    dup2(streams[1], 2);
    close(streams[0]);
    close(streams[1]);
    rewind(file);
    size = fread(printed, 1, sizeof printed - 1, file);
    printed[size] = 0;
    fclose(file);
    if (size) failed(__FILE__, __LINE__, "printed: %s", printed);
}

TEST_MAIN("standalone tick=200 max-session=4000", LISTED(nothing_is_ever_printed), LISTED(an_acquire_is_told_from_its_call_to_its_release),
          LISTED(each_level_includes_those_before_it), LISTED(the_latest_counts),
          LISTED(a_replacement_waits_for_the_callback_that_runs_and_it_is_never_called_again),
          LISTED(a_callback_may_replace_itself_and_must_not_block), LISTED(threads_may_replace_it_at_any_time),
          LISTED(a_replacement_does_not_wait_for_the_lines_that_wait))
