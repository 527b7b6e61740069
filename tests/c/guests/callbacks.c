/* Promise 8: callbacks that make calls, that take long, and that do not come when they must not. */

#define _GNU_SOURCE
#include "guest.h"

#include "calls.h"

static void lose(const zklock_hold *hold) {
    ground("delete %s", zklock_hold_node(hold));
}

/* The context of a callback: how often it was called, and whether it is running. */
typedef struct {
    handles on;
    int called, running, go, reason;
} told;

static int called(told *of) { return __atomic_load_n(&of->called, __ATOMIC_ACQUIRE); }

static void has_been_called(told *of) {
    __atomic_store_n(&of->running, 0, __ATOMIC_RELEASE);
    __atomic_add_fetch(&of->called, 1, __ATOMIC_RELEASE);
}

static void counts(zklock_hold *hold, zklock_reason reason, void *context) {
    (void)hold;
    ((told *)context)->reason = reason;
    has_been_called(context);
}

/* Callbacks come one after the other. When this returns, all that were due before have run. */
static void after_all_callbacks(void) {
    static told last;
    int before = called(&last);
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    OK(zklock_hold_on_lost(hold, counts, &last));
    OK(zklock_client_close(client));
    EVENTUALLY(called(&last) > before);
    free_all(hold, lock, client);
}

/* ---- Calling back. ---- */

static void makes_every_call(zklock_hold *hold, zklock_reason reason, void *context) {
    told *of = context;
    CHECK(hold == of->on.hold && reason == ZKLOCK_REASON_NODE_DELETED);
    for (size_t at = 0; at < COUNT(calls); at++) {
        zklock_status wanted = calls[at].blocks ? ZKLOCK_DEADLOCK : calls[at].live;
        int64_t least = INT64_MAX;
        for (int time = 0; time < 3 || (least >= AT_ONCE_MS && time < 20); time++) {
            int64_t begun = now_ms();
            zklock_status status = calls[at].run(&of->on);
            int64_t took = now_ms() - begun;
            least = took < least ? took : least;
            /* The lock is free, so the call may have been granted by now. A result can only be fetched once. */
            if (calls[at].run == call_call_hold && (status == ZKLOCK_OK || status == ZKLOCK_NOT_HELD)) continue;
            /* A report that was found in the background meanwhile needs no wait. */
            if (calls[at].run == call_observer_next && status == ZKLOCK_OK) continue;
            check_status(__FILE__, __LINE__, calls[at].name, status, wanted);
        }
        if (least >= AT_ONCE_MS) failed(__FILE__, __LINE__, "%s took %lld ms", calls[at].name, (long long)least);
    }
    has_been_called(of);
}

TEST(a_callback_may_make_every_call_that_does_not_block) {
    told of = {.on = new_handles(servers(), fresh_path())};
    of.on.hold = acquire(of.on.lock, SOON_MS);
    OK(zklock_hold_on_lost(of.on.hold, makes_every_call, &of));
    lose(of.on.hold);
    EVENTUALLY(called(&of) == 1);
    free_handles(&of.on);
}

static void frees_its_hold(zklock_hold *hold, zklock_reason reason, void *context) {
    (void)reason;
    LOOKS(zklock_hold_token(hold));
    zklock_hold_free(hold);
    IS(LOOKED(zklock_hold_token(hold)), ZKLOCK_INVALID_HANDLE);
    zklock_hold_free(hold);
    has_been_called(context);
}

TEST(a_callback_may_free_its_hold) {
    told of = {0};
    zklock_client *client = new_client();
    for (int round = 0; round < 20; round++) {
        zklock_lock *lock = new_mutex(client, fresh_path(), 0);
        zklock_hold *hold = acquire(lock, SOON_MS);
        OK(zklock_hold_on_lost(hold, frees_its_hold, &of));
        OK(zklock_hold_on_lost(hold, frees_its_hold, &of));
        lose(hold);
        EVENTUALLY(called(&of) == round + 1);
        free_all(NULL, lock, NULL);
    }
    after_all_callbacks();
    /* The second of each was not called, because the first had freed the hold. */
    CHECK(called(&of) == 20);
    free_all(NULL, NULL, client);
}

static int lines;

static void sets_log(zklock_hold *hold, zklock_reason reason, void *context) {
    (void)hold, (void)reason;
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, count_line, &lines));
    has_been_called(context);
}

static void replaces_itself(int32_t level, const char *line, void *context) {
    (void)level, (void)line;
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, count_line, &lines));
    has_been_called(context);
}

TEST(a_callback_may_set_the_log) {
    told of = {0}, log = {0};
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    OK(zklock_hold_on_lost(hold, sets_log, &of));
    lose(hold);
    EVENTUALLY(called(&of) == 1);
    make_every_call(servers(), fresh_path()); /* which switches it off */
    CHECK(lines > 0);
    lines = 0;
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, replaces_itself, &log));
    OK(zklock_client_close(client));
    EVENTUALLY(__atomic_load_n(&lines, __ATOMIC_RELAXED) > 0);
    CHECK(called(&log) == 1);
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    free_all(hold, lock, client);
}

static void calls_within(const zklock_contender *contender, void *context) {
    CHECK(contender->token > 0);
    make_every_call(servers(), fresh_path());
    has_been_called(context);
}

TEST(a_visitor_may_make_every_call) {
    told of = {0};
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    OK(zklock_contenders(lock, calls_within, &of));
    CHECK(called(&of) == 1);
    free_all(hold, lock, client);
}

/* ---- Coming no more. ---- */

static void waits_to_go(zklock_hold *hold, zklock_reason reason, void *context) {
    told *of = context;
    (void)hold, (void)reason;
    __atomic_store_n(&of->running, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&of->go, __ATOMIC_ACQUIRE)) sleep_ms(1);
    has_been_called(of);
}

static void *frees(void *hold) {
    zklock_hold_free(hold);
    return NULL;
}

TEST(to_free_a_hold_waits_for_its_callback) {
    told of = {0};
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    OK(zklock_hold_on_lost(hold, waits_to_go, &of));
    lose(hold);
    EVENTUALLY(__atomic_load_n(&of.running, __ATOMIC_ACQUIRE));
    pthread_t freeing = start_thread(frees, hold);
    EVENTUALLY(!zklock_hold_token(hold));
    sleep_ms(100);
    CHECK(pthread_tryjoin_np(freeing, NULL) == EBUSY);
    __atomic_store_n(&of.go, 1, __ATOMIC_RELEASE);
    join_thread(freeing);
    CHECK(called(&of) == 1);
    free_all(NULL, lock, client);
}

#define HOLDS 20
#define ROUNDS 200

/* The context that a callback may use until zklock_hold_free has returned. */
typedef struct {
    int alive, called;
} short_lived;

static void looks(zklock_hold *hold, zklock_reason reason, void *context) {
    short_lived *of = context;
    (void)hold, (void)reason;
    for (int time = 0; time < 200; time++) CHECK(__atomic_load_n(&of->alive, __ATOMIC_ACQUIRE));
    __atomic_add_fetch(&of->called, 1, __ATOMIC_RELEASE);
}

static void *closes(void *client) {
    OK(zklock_client_close(client));
    return NULL;
}

TEST(no_callback_comes_after_its_hold_is_freed) {
    static short_lived contexts[ROUNDS][HOLDS];
    int were_called = 0, were_not = 0, pause = 100;
    for (int round = 0; round < ROUNDS; round++) {
        int of_these = 0;
        zklock_client *client = new_client();
        zklock_lock *locks[HOLDS];
        zklock_hold *holds[HOLDS];
        zklock_call *waiting[HOLDS];
        for (int at = 0; at < HOLDS; at++) {
            locks[at] = new_mutex(client, fresh_path(), 0);
            OK(zklock_acquire_start(locks[at], SOON_MS, &waiting[at]));
        }
        for (int at = 0; at < HOLDS; at++) {
            await_call(waiting[at]);
            OK(zklock_call_hold(waiting[at], &holds[at]));
            zklock_call_free(waiting[at]);
            contexts[round][at].alive = 1;
            OK(zklock_hold_on_lost(holds[at], looks, &contexts[round][at]));
        }
        pthread_t closing = start_thread(closes, client);
        /* Free the holds in the order in which they are lost, or in the opposite order. */
        usleep((unsigned)pause);
        for (int at = 0; at < HOLDS; at++) {
            int which = round % 2 ? at : HOLDS - 1 - at;
            zklock_hold_free(holds[which]);
            __atomic_store_n(&contexts[round][which].alive, 0, __ATOMIC_RELEASE);
            of_these += __atomic_load_n(&contexts[round][which].called, __ATOMIC_ACQUIRE);
        }
        /* Approach the pause with which half of the callbacks run, however fast the machine is now. */
        pause += of_these < HOLDS / 2 ? 20 + pause / 4 : -pause / 4;
        join_thread(closing);
        for (int at = 0; at < HOLDS; at++) free_all(NULL, locks[at], NULL);
        free_all(NULL, NULL, client);
    }
    after_all_callbacks();
    for (int round = 0; round < ROUNDS; round++) {
        for (int at = 0; at < HOLDS; at++) {
            CHECK(contexts[round][at].called <= 1);
            were_called += contexts[round][at].called, were_not += !contexts[round][at].called;
        }
    }
    printf("  %d were called, %d were freed before\n", were_called, were_not);
    /* Otherwise there was no race. */
    CHECK(were_called > ROUNDS / 4 && were_not > ROUNDS / 4);
}

static void looks_at_line(int32_t level, const char *line, void *context) {
    short_lived *of = context;
    CHECK(level >= ZKLOCK_LOG_ERROR && level <= ZKLOCK_LOG_TRACE && *line);
    for (int time = 0; time < 50; time++) CHECK(__atomic_load_n(&of->alive, __ATOMIC_ACQUIRE));
    __atomic_add_fetch(&of->called, 1, __ATOMIC_RELEASE);
}

static int storm_ends;

static void *is_busy(void *given) {
    while (!__atomic_load_n(&storm_ends, __ATOMIC_ACQUIRE)) {
        zklock_hold *hold = acquire(given, SOON_MS);
        give_back(hold);
    }
    return NULL;
}

TEST(no_line_comes_after_its_log_is_replaced) {
    static short_lived contexts[1000];
    int heard = 0;
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    pthread_t busy[2] = {start_thread(is_busy, lock), start_thread(is_busy, lock)};
    for (size_t at = 0; at < COUNT(contexts); at++) {
        contexts[at].alive = 1;
        OK(zklock_set_log(ZKLOCK_LOG_TRACE, looks_at_line, &contexts[at]));
        if (at) __atomic_store_n(&contexts[at - 1].alive, 0, __ATOMIC_RELEASE);
        if (at % 10 == 0) EVENTUALLY(__atomic_load_n(&contexts[at].called, __ATOMIC_ACQUIRE));
    }
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    contexts[COUNT(contexts) - 1].alive = 0;
    storm_ends = 1;
    for (size_t at = 0; at < COUNT(busy); at++) join_thread(busy[at]);
    after_all_callbacks();
    for (size_t at = 0; at < COUNT(contexts); at++) heard += contexts[at].called;
    printf("  %d lines for %zu logs\n", heard, COUNT(contexts));
    free_all(NULL, lock, client);
}

TEST(a_released_hold_tells_nobody) {
    told of = {0}, late = {0};
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    OK(zklock_hold_on_lost(hold, counts, &of));
    OK(zklock_release(hold));
    OK(zklock_client_close(client));
    after_all_callbacks();
    CHECK(called(&of) == 0);
    free_all(hold, lock, client);

    /* If the hold is already lost, the callback runs at once. */
    client = new_client();
    lock = new_mutex(client, fresh_path(), 0);
    hold = acquire(lock, SOON_MS);
    OK(zklock_client_close(client));
    CHECK(state_of(hold) == ZKLOCK_STATE_LOST);
    OK(zklock_hold_on_lost(hold, counts, &late));
    EVENTUALLY(called(&late) == 1);
    CHECK(late.reason == ZKLOCK_REASON_CLIENT_CLOSED);
    free_all(hold, lock, client);
}

/* ---- Taking time. ---- */

static void logs_slowly(int32_t level, const char *line, void *context) {
    (void)level, (void)line;
    waits_to_go(NULL, ZKLOCK_REASON_NONE, context);
}

/* Checks that everything goes on for longer than a session would live without heartbeats. */
static void check_that_all_goes_on(zklock_hold *hold, zklock_lock *lock) {
    int64_t until = now_ms() + SESSION_MS * 5 / 4;
    int count = 0;
    while (now_ms() < until) {
        becomes_valid(hold);
        zklock_hold *another = acquire(lock, SOON_MS);
        give_back(another);
        count++;
        sleep_ms(10);
    }
    printf("  %d locks meanwhile\n", count);
}

TEST(a_slow_callback_stops_nothing) {
    told of = {0}, log = {0};
    zklock_client *client = new_client();
    zklock_lock *lost = new_mutex(client, fresh_path(), 0), *kept = new_mutex(client, fresh_path(), 0),
                *used = new_mutex(client, fresh_path(), 0);
    zklock_hold *gone = acquire(lost, SOON_MS), *hold = acquire(kept, SOON_MS);
    OK(zklock_hold_on_lost(gone, waits_to_go, &of));
    lose(gone);
    EVENTUALLY(__atomic_load_n(&of.running, __ATOMIC_ACQUIRE));
    check_that_all_goes_on(hold, used);
    CHECK(called(&of) == 0);
    __atomic_store_n(&of.go, 1, __ATOMIC_RELEASE);
    EVENTUALLY(called(&of) == 1);

    OK(zklock_set_log(ZKLOCK_LOG_TRACE, logs_slowly, &log));
    EVENTUALLY(__atomic_load_n(&log.running, __ATOMIC_ACQUIRE));
    check_that_all_goes_on(hold, used);
    CHECK(called(&log) == 0);
    __atomic_store_n(&log.go, 1, __ATOMIC_RELEASE);
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    becomes_valid(hold);
    free_all(gone, lost, NULL);
    free_all(NULL, used, NULL);
    free_all(hold, kept, client);
}

TEST_MAIN("standalone max-session=4000")
