/* Promise 8: callbacks that make calls, that take long, and that do not come when they must not. */

#define _GNU_SOURCE
#include "guest.h"

static void lose(const zklock_hold *hold) {
    ground("delete %s", zklock_hold_node(hold));
}

/* The context of a callback: how often it was called, and whether it is running. */
typedef struct {
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
    OK(zklock_hold_on_lost(acquire(new_mutex(client, fresh_path(), 0), SOON_MS), counts, &last));
    OK(zklock_client_close(client));
    EVENTUALLY(called(&last) > before);
}

/* ---- Calling back. ---- */

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
        zklock_hold *hold = acquire(new_mutex(client, fresh_path(), 0), SOON_MS);
        OK(zklock_hold_on_lost(hold, frees_its_hold, &of));
        OK(zklock_hold_on_lost(hold, frees_its_hold, &of));
        lose(hold);
        EVENTUALLY(called(&of) == round + 1);
    }
    after_all_callbacks();
    /* The second of each was not called, because the first had freed the hold. */
    CHECK(called(&of) == 20);
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
    zklock_hold *hold = acquire(new_mutex(new_client(), fresh_path(), 0), SOON_MS);
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
        const void *before = last_kept();
        zklock_client *client = new_client();
        zklock_hold *holds[HOLDS];
        zklock_call *waiting[HOLDS];
        for (int at = 0; at < HOLDS; at++) waiting[at] = start_acquire(new_mutex(client, fresh_path(), 0), SOON_MS);
        for (int at = 0; at < HOLDS; at++) {
            holds[at] = hold_of(waiting[at]);
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
        free_kept(before);
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
    while (!__atomic_load_n(&storm_ends, __ATOMIC_ACQUIRE)) give_back(acquire(given, SOON_MS));
    return NULL;
}

TEST(no_line_comes_after_its_log_is_replaced) {
    static short_lived contexts[1000];
    int heard = 0;
    zklock_lock *lock = new_mutex(new_client(), fresh_path(), 0);
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
}

TEST(a_slow_callback_stops_nothing_and_one_that_comes_late_is_called_unless_the_hold_was_released) {
    told of = {0}, late = {0}, never = {0};
    zklock_client *client = new_client(), *closed = new_client();
    zklock_lock *lost = new_mutex(client, fresh_path(), 0);
    zklock_hold *gone = acquire(lost, SOON_MS), *hold = acquire(new_mutex(client, fresh_path(), 0), SOON_MS);
    zklock_hold *released = acquire(new_mutex(closed, fresh_path(), 0), SOON_MS);
    OK(zklock_hold_on_lost(gone, waits_to_go, &of));
    lose(gone);
    EVENTUALLY(__atomic_load_n(&of.running, __ATOMIC_ACQUIRE));
    /* For longer than a session would live without heartbeats. */
    for (int64_t until = now_ms() + SESSION_MS * 5 / 4; now_ms() < until; sleep_ms(10)) {
        becomes_valid(hold);
        give_back(acquire(lost, SOON_MS));
    }
    CHECK(called(&of) == 0);
    __atomic_store_n(&of.go, 1, __ATOMIC_RELEASE);
    EVENTUALLY(called(&of) == 1);
    OK(zklock_hold_on_lost(released, counts, &never));
    OK(zklock_release(released));
    OK(zklock_client_close(closed));
    OK(zklock_hold_on_lost(gone, counts, &late));
    after_all_callbacks();
    CHECK(called(&late) == 1 && late.reason == ZKLOCK_REASON_NODE_DELETED && called(&never) == 0);
}

TEST_MAIN("standalone max-session=4000")
