/* A reentrant lock belongs to the thread that acquired it, which may acquire it again. Others may not release it. */

#include "test.h"

/* The result of a release on another thread. */
static void *releases(void *hold) { return (void *)(intptr_t)zklock_release(hold); }

static zklock_status released_elsewhere(zklock_hold *hold) { return join_status(start_thread(releases, hold)); }

TEST(another_thread_waits_for_a_reentrant_lock_like_anybody_and_does_not_release_it) {
    rivals all = new_rivals();
    zklock_lock *lock = new_mutex(all.client, all.path, IS_REENTRANT);
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
    /* Its owner's thread has ended, but any thread may free the hold, which releases it. */
    zklock_hold_free(next);
    wait_for_contenders(all.path, 0);
    free_all(outer, lock, NULL);
    free_rivals(&all);
}

TEST(what_a_started_acquire_gets_belongs_to_no_thread) {
    rivals all = new_rivals();
    zklock_lock *lock = new_mutex(all.client, all.path, IS_REENTRANT);
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
