/* A reentrant lock belongs to the thread that acquired it, which may acquire it again. Others may not release it. */

#include "test.h"

/* The result of a release on another thread. */
static void *releases(void *hold) { return (void *)(intptr_t)zklock_release(hold); }

static zklock_status result_of(thread thread) { return (zklock_status)(intptr_t)join_thread(thread); }

static zklock_status released_elsewhere(zklock_hold *hold) { return result_of(start_thread(releases, hold)); }

TEST(an_inner_acquire_asks_nobody_and_only_the_last_release_frees) {
    enum { INNER = 9 };
    const int64_t timeouts[] = {ZKLOCK_FOREVER, 1, 0};
    rivals all = new_rivals();
    zklock_lock *lock = new_mutex(all.client, all.path, ZKLOCK_REENTRANT), *again = new_mutex(all.client, all.path, ZKLOCK_REENTRANT);
    zklock_hold *outer = acquire(lock, SOON_MS), *inner[INNER], *next;
    ground("record %d", all.proxy);
    for (int at = 0; at < INNER; at++) {
        /* Another handle of the same lock works as well. */
        inner[at] = acquire(at % 2 ? lock : again, timeouts[at % 3]);
        CHECK(inner[at] != outer && token_of(inner[at]) == token_of(outer) && !strcmp(node_of(inner[at]), node_of(outer)));
        becomes_valid(inner[at]);
    }
    /* Any order is allowed, here the outer hold first. */
    OK(zklock_release(outer));
    CHECK(state_of(outer) == ZKLOCK_STATE_RELEASED && valid_for(outer) == 0);
    IS(zklock_release(outer), ZKLOCK_NOT_HELD);
    SAYS("has been released before");
    for (int at = 0; at < INNER - 1; at++) {
        /* Freeing works as well as releasing. */
        if (at % 2) OK(zklock_release(inner[at]));
        zklock_hold_free(inner[at]);
        becomes_valid(inner[INNER - 1]);
    }
    CHECK(asked(all.proxy) == 0 && contenders_at(all.path) == 1);
    OK(zklock_release(inner[INNER - 1]));
    if (asked(all.proxy) != 1) failed(__FILE__, __LINE__, "it asked for %s", ground("messages %d", all.proxy));
    CHECK(contenders_at(all.path) == 0);
    next = acquire(lock, SOON_MS);
    CHECK(token_of(next) > token_of(outer));
    give_back(next);
    zklock_hold_free(inner[INNER - 1]);
    zklock_lock_free(again);
    free_all(outer, lock, NULL);
    free_rivals(&all);
}

TEST(another_thread_waits_for_a_reentrant_lock_like_anybody_and_does_not_release_it) {
    rivals all = new_rivals();
    zklock_lock *lock = new_mutex(all.client, all.path, ZKLOCK_REENTRANT);
    zklock_hold *outer = acquire(lock, SOON_MS), *next;
    CHECK(refused(start_acquire(lock, 0), NULL, 0) == ZKLOCK_TIMEOUT);
    attempt *other = start_acquire(lock, ZKLOCK_FOREVER);
    wait_for_contenders(all.path, 2);
    give_back(acquire(lock, SOON_MS));
    CHECK(released_elsewhere(outer) == ZKLOCK_NOT_OWNER && !is_over(other));
    becomes_valid(outer);
    OK(zklock_release(outer));
    next = granted(other);
    CHECK(token_of(next) > token_of(outer));
    /* The owner's thread has ended. A new thread does not become the owner, even if the system gives it the same number. */
    for (int round = 0; round < 20; round++) {
        CHECK(released_elsewhere(next) == ZKLOCK_NOT_OWNER);
        CHECK(refused(start_acquire(lock, 0), NULL, 0) == ZKLOCK_TIMEOUT);
    }
    /* Any thread may free the hold, which releases it. */
    zklock_hold_free(next);
    wait_for_contenders(all.path, 0);
    free_all(outer, lock, NULL);
    free_rivals(&all);
}

TEST(what_only_this_thread_can_release_it_does_not_wait_for) {
    rivals all = new_rivals();
    zklock_lock *reentrant = new_mutex(all.client, all.path, ZKLOCK_REENTRANT);
    zklock_hold *hold = acquire(reentrant, SOON_MS), *none = NULL;
    IS(zklock_acquire(all.lock, ZKLOCK_FOREVER, &none), ZKLOCK_DEADLOCK);
    SAYS(all.path);
    SAYS("release that first");
    IS(zklock_acquire(all.lock, 0, &none), ZKLOCK_TIMEOUT);
    SAYS("is held by this thread or task itself");
    CHECK(!none && contenders_at(all.path) == 1);
    give_back(hold);
    /* What anybody may release it waits for. */
    hold = acquire(all.lock, SOON_MS);
    IS(zklock_acquire(all.lock, 100, &none), ZKLOCK_TIMEOUT);
    SAYS("this thread or task holds it itself");
    CHECK(released_elsewhere(hold) == ZKLOCK_OK && !none);
    zklock_hold_free(hold);
    zklock_lock_free(reentrant);
    free_rivals(&all);
}

TEST(of_many_threads_that_release_one_hold_one_succeeds) {
    enum { THREADS = 8 };
    rivals all = new_rivals();
    for (int round = 0; round < 20; round++) {
        zklock_hold *hold = acquire(all.others, SOON_MS);
        thread threads[THREADS];
        int succeeded = 0;
        for (int at = 0; at < THREADS; at++) threads[at] = start_thread(releases, hold);
        for (int at = 0; at < THREADS; at++) {
            zklock_status status = result_of(threads[at]);
            CHECK(status == ZKLOCK_OK || status == ZKLOCK_NOT_HELD);
            succeeded += status == ZKLOCK_OK;
        }
        CHECK(succeeded == 1);
        zklock_hold_free(hold);
    }
    free_rivals(&all);
}

TEST(what_a_started_acquire_gets_belongs_to_no_thread) {
    rivals all = new_rivals();
    zklock_lock *lock = new_mutex(all.client, all.path, ZKLOCK_REENTRANT);
    zklock_hold *own = acquire(lock, SOON_MS), *hold, *none;
    zklock_call *call;
    /* This thread holds the lock, and starts another wait: that is neither a deadlock nor an inner hold. */
    OK(zklock_acquire_start(lock, SOON_MS, &call));
    wait_for_contenders(all.path, 2);
    IS(zklock_call_hold(call, &hold), ZKLOCK_PENDING);
    OK(zklock_release(own));
    hold = hold_of(call);
    CHECK(token_of(hold) > token_of(own));
    /* The hold does not belong to the thread that fetched it. */
    IS(zklock_acquire(lock, 0, &none), ZKLOCK_TIMEOUT);
    CHECK(released_elsewhere(hold) == ZKLOCK_OK);
    zklock_hold_free(own);
    free_all(hold, lock, NULL);
    free_rivals(&all);
}

TEST_MAIN(STANDALONE)
