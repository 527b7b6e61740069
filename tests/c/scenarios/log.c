/* The library's log only goes where the program wants it. */

#include "test.h"

/* What a callback was given. */
typedef struct {
    int lines[ZKLOCK_LOG_TRACE + 1], losses, grants, inside;
} book;

static void add(int *number) { __atomic_add_fetch(number, 1, __ATOMIC_RELEASE); }

static int number_of(const int *number) { return __atomic_load_n(number, __ATOMIC_ACQUIRE); }

static void writes(int32_t level, const char *message, void *context) {
    book *book = context;
    /* One line at a time. */
    CHECK(__atomic_fetch_add(&book->inside, 1, __ATOMIC_ACQ_REL) == 0);
    CHECK(level >= ZKLOCK_LOG_ERROR && level <= ZKLOCK_LOG_TRACE);
    CHECK(message && message[0]);
    add(&book->lines[level]);
    /* Sessions of earlier tests, which end in the background, may log as well. */
    if (strstr(message, "hold lost") && strstr(message, "/c/")) {
        CHECK(level == ZKLOCK_LOG_WARN);
        add(&book->losses);
    }
    if (strstr(message, "lock granted") && strstr(message, "/c/") && strstr(message, "token=")) {
        CHECK(level == ZKLOCK_LOG_DEBUG);
        add(&book->grants);
    }
    __atomic_fetch_sub(&book->inside, 1, __ATOMIC_ACQ_REL);
}

static int losses(const book *book) { return number_of(&book->losses); }

static int lines(const book *book, int from, int to) {
    int count = 0;
    for (int level = from; level <= to; level++) count += number_of(&book->lines[level]);
    return count;
}

/* When this is called, every earlier line has been handed over, because callbacks come one after the other. */
static void passed(zklock_hold *hold, zklock_reason reason, void *context) {
    (void)hold;
    (void)reason;
    add(context);
}

/* Opens a session, holds a lock, loses it, releases it, and closes the session. */
static void makes_news(void) {
    zklock_client *client = new_client();
    zklock_hold *hold = acquire(new_mutex(client, fresh_path(), 0), SOON_MS);
    int told = 0;
    OK(zklock_hold_on_lost(hold, passed, &told));
    ground("delete %s", node_of(hold));
    EVENTUALLY(number_of(&told));
    IS(zklock_release(hold), ZKLOCK_LOST);
    OK(zklock_client_close(client));
}

TEST(each_level_includes_those_before_it) {
    for (int level = ZKLOCK_LOG_OFF; level <= ZKLOCK_LOG_TRACE; level++) {
        book book = {0};
        OK(zklock_set_log(level, writes, &book));
        makes_news();
        if (level >= ZKLOCK_LOG_WARN) EVENTUALLY(losses(&book) == 1);
        if (level >= ZKLOCK_LOG_INFO) EVENTUALLY(lines(&book, ZKLOCK_LOG_INFO, ZKLOCK_LOG_INFO) >= 2);
        if (level >= ZKLOCK_LOG_DEBUG) EVENTUALLY(number_of(&book.grants) == 1);
        OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
        CHECK(lines(&book, level + 1, ZKLOCK_LOG_TRACE) == 0);
        CHECK(lines(&book, ZKLOCK_LOG_ERROR, ZKLOCK_LOG_ERROR) == 0);
    }
}

TEST(the_latest_counts) {
    book first = {0}, second = {0};
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, writes, &first));
    OK(zklock_set_log(ZKLOCK_LOG_WARN, writes, &second));
    makes_news();
    EVENTUALLY(losses(&second) == 1);
    CHECK(lines(&first, 1, ZKLOCK_LOG_TRACE) == 0);
    /* An invalid level changes nothing. */
    FAILS(zklock_set_log(6, NULL, NULL), ZKLOCK_INVALID_ARGUMENT, "no zklock_log_level with the number 6");
    makes_news();
    EVENTUALLY(losses(&second) == 2);
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, NULL, NULL));
    makes_news();
    CHECK(losses(&second) == 2);
}

static void is_slow(int32_t level, const char *message, void *context) {
    (void)level;
    (void)message;
    add(context);
    sleep_ms(5);
}

/* However many lines wait for a callback, the call that replaces it waits for one of them at most. */
TEST(a_replacement_does_not_wait_for_the_lines_that_wait) {
    int called = 0;
    zklock_lock *lock = new_mutex(new_client(), fresh_path(), 0);
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, is_slow, &called));
    for (int round = 0; round < 100; round++) give_back(acquire(lock, SOON_MS));
    EVENTUALLY(number_of(&called) > 10);
    on_time();
    int64_t begun = now_ms();
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    NOT_LATER(now_ms() - begun, allowance_ms());
}

TEST_MAIN(STANDALONE)
