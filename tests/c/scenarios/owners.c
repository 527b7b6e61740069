/* A reentrant lock belongs to the thread that acquired it, which may acquire it again. Others may not release it. */

#include "test.h"

/* The result of a release on another thread. */
static void *releases(void *hold) { return (void *)(intptr_t)zklock_release(hold); }

static zklock_status released_elsewhere(zklock_hold *hold) {
    return (zklock_status)(intptr_t)join_thread(start_thread(releases, hold));
}

TEST(an_inner_acquire_asks_nobody_and_only_the_last_release_frees) {
    enum { INNER = 9 };
    const int64_t timeouts[] = {ZKLOCK_FOREVER, 1, 0};
    const char *path = fresh_path(), *node, *other;
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, path, ZKLOCK_REENTRANT), *again;
    zklock_hold *outer = acquire(lock, SOON_MS), *inner[INNER], *next;
    uint64_t token = token_of(outer);
    OK(zklock_hold_node(outer, &node));
    ground("record %d", proxy);
    again = new_mutex(client, path, ZKLOCK_REENTRANT);
    for (int at = 0; at < INNER; at++) {
        /* Another handle of the same lock works as well. */
        inner[at] = acquire(at % 2 ? lock : again, timeouts[at % 3]);
        OK(zklock_hold_node(inner[at], &other));
        CHECK(inner[at] != outer && token_of(inner[at]) == token && !strcmp(node, other));
        CHECK(state_of(inner[at]) != ZKLOCK_STATE_LOST && valid_for(inner[at]) > 0);
    }
    /* Any order is allowed, here the outer hold first. */
    OK(zklock_release(outer));
    CHECK(state_of(outer) == ZKLOCK_STATE_RELEASED && valid_for(outer) == 0);
    IS(zklock_release(outer), ZKLOCK_NOT_HELD);
    for (int at = 0; at < INNER - 1; at++) {
        /* Freeing works as well as releasing. */
        if (at % 2) OK(zklock_release(inner[at]));
        zklock_hold_free(inner[at]);
        CHECK(valid_for(inner[INNER - 1]) > 0);
    }
    CHECK(asked(proxy) == 0);
    CHECK(contenders_at(path) == 1);
    OK(zklock_release(inner[INNER - 1]));
    if (asked(proxy) != 1) failed(__FILE__, __LINE__, "it asked for %s", ground("messages %d", proxy));
    CHECK(contenders_at(path) == 0);

    next = acquire(lock, SOON_MS);
    CHECK(token_of(next) > token);
    OK(zklock_release(next));
    zklock_hold_free(inner[INNER - 1]);
    zklock_hold_free(outer);
    zklock_lock_free(again);
    free_all(next, lock, client);
}

TEST(an_inner_acquire_needs_no_server) {
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, fresh_path(), ZKLOCK_REENTRANT);
    zklock_hold *outer = acquire(lock, SOON_MS), *inner;
    int64_t begun;
    on_time();
    ground("freeze %d both", proxy);
    begun = now_ms();
    inner = acquire(lock, ZKLOCK_FOREVER);
    OK(zklock_release(inner));
    NOT_LATER(now_ms() - begun, grace_ms());
    ground("thaw %d", proxy);
    OK(zklock_release(outer));
    zklock_hold_free(inner);
    free_all(outer, lock, client);
}

TEST(another_thread_waits_for_a_reentrant_lock_like_anybody) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, ZKLOCK_REENTRANT);
    zklock_hold *outer = acquire(lock, SOON_MS), *inner;
    attempt *other;
    char sentence[512];
    uint64_t token;
    CHECK(refused(start_acquire(lock, 0), sentence, sizeof sentence) == ZKLOCK_TIMEOUT);
    check_sentence(__FILE__, __LINE__, sentence, path);
    other = start_acquire(lock, ZKLOCK_FOREVER);
    wait_for_contenders(path, 2);
    inner = acquire(lock, SOON_MS);
    token = token_of(outer);
    CHECK(token_of(inner) == token);
    OK(zklock_release(inner));
    CHECK(!is_over(other));
    OK(zklock_release(outer));
    zklock_hold_free(inner);
    zklock_hold_free(outer);
    outer = granted(other);
    CHECK(token_of(outer) > token);
    /* The owner's thread has ended. A new thread does not become the owner, even if the system gives it the same number. */
    for (int round = 0; round < 20; round++) {
        CHECK(released_elsewhere(outer) == ZKLOCK_NOT_OWNER);
        CHECK(refused(start_acquire(lock, 0), NULL, 0) == ZKLOCK_TIMEOUT);
    }
    zklock_hold_free(outer);
    wait_for_contenders(path, 0);
    free_all(NULL, lock, client);
}

TEST(a_release_by_another_thread_is_refused_and_changes_nothing) {
    const char *path = fresh_path();
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, path, ZKLOCK_REENTRANT);
    zklock_hold *hold = acquire(lock, SOON_MS);
    ground("record %d", proxy);
    for (int round = 0; round < 2; round++) {
        CHECK(released_elsewhere(hold) == ZKLOCK_NOT_OWNER);
        CHECK(state_of(hold) == ZKLOCK_STATE_HELD && valid_for(hold) > 0);
    }
    CHECK(asked(proxy) == 0);
    CHECK(contenders_at(path) == 1);
    OK(zklock_release(hold));
    CHECK(contenders_at(path) == 0);
    free_all(hold, lock, client);
}

TEST(a_second_acquire_by_the_same_thread_waits_as_that_of_any_thread) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0), *again = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *none = NULL;
    IS(zklock_acquire(lock, 100, &none), ZKLOCK_TIMEOUT);
    SAYS("this thread or task holds it itself");
    IS(zklock_acquire(again, 100, &none), ZKLOCK_TIMEOUT);
    IS(zklock_acquire(lock, 0, &none), ZKLOCK_TIMEOUT);
    SAYS("is held by this thread or task itself");
    settled(client);
    CHECK(!none && contenders_at(path) == 1);
    /* Nothing has changed. */
    CHECK(state_of(hold) == ZKLOCK_STATE_HELD);
    give_back(hold);
    give_back(acquire(again, SOON_MS));
    zklock_lock_free(again);
    free_all(NULL, lock, client);
}

TEST(what_only_this_thread_can_release_it_does_not_wait_for) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *reentrant = new_mutex(client, path, ZKLOCK_REENTRANT), *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(reentrant, SOON_MS), *none = NULL;
    IS(zklock_acquire(lock, ZKLOCK_FOREVER, &none), ZKLOCK_DEADLOCK);
    SAYS(path);
    SAYS("release that first");
    IS(zklock_acquire(lock, SOON_MS, &none), ZKLOCK_DEADLOCK);
    IS(zklock_acquire(lock, 0, &none), ZKLOCK_TIMEOUT);
    CHECK(!none && contenders_at(path) == 1);
    give_back(hold);
    zklock_lock_free(reentrant);
    free_all(NULL, lock, client);
}

TEST(a_lock_that_is_not_reentrant_is_released_from_anywhere_but_once) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *next;
    CHECK(released_elsewhere(hold) == ZKLOCK_OK);
    CHECK(contenders_at(path) == 0);
    next = acquire(lock, SOON_MS);
    IS(zklock_release(hold), ZKLOCK_NOT_HELD);
    SAYS("has been released before");
    CHECK(released_elsewhere(hold) == ZKLOCK_NOT_HELD);
    /* The next hold is not affected. */
    CHECK(state_of(next) == ZKLOCK_STATE_HELD);
    CHECK(contenders_at(path) == 1);
    OK(zklock_release(next));
    IS(zklock_release(next), ZKLOCK_NOT_HELD);
    IS(zklock_hold_confirm(next, NULL), ZKLOCK_NOT_HELD);
    zklock_hold_free(next);
    free_all(hold, lock, client);
}

TEST(of_many_threads_that_release_one_hold_one_succeeds) {
    enum { THREADS = 8 };
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    for (int round = 0; round < 20; round++) {
        zklock_hold *hold = acquire(lock, SOON_MS);
        thread *threads[THREADS];
        int succeeded = 0;
        for (int at = 0; at < THREADS; at++) threads[at] = start_thread(releases, hold);
        for (int at = 0; at < THREADS; at++) {
            zklock_status status = (zklock_status)(intptr_t)join_thread(threads[at]);
            CHECK(status == ZKLOCK_OK || status == ZKLOCK_NOT_HELD);
            succeeded += status == ZKLOCK_OK;
        }
        CHECK(succeeded == 1);
        zklock_hold_free(hold);
    }
    free_all(NULL, lock, client);
}

TEST(an_inner_section_is_not_entered_when_the_outer_hold_is_lost) {
    const char *path = fresh_path(), *node;
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, ZKLOCK_REENTRANT);
    zklock_hold *outer = acquire(lock, SOON_MS), *inner = acquire(lock, SOON_MS), *none = NULL;
    zklock_status status;
    zklock_reason reason;
    int64_t until;
    OK(zklock_hold_node(outer, &node));
    ground("delete %s", node);
    OK(zklock_hold_wait_lost(outer, SOON_MS, &reason));
    /* The same when the nodes have been cleaned up, and only the thread's holds are left. */
    EVENTUALLY(stats_of(client).losses == 1);
    settled(client);
    sleep_ms(20);
    IS(zklock_acquire(lock, ZKLOCK_FOREVER, &none), ZKLOCK_LOST);
    SAYS(path);
    IS(zklock_acquire(lock, SESSION_MS, &none), ZKLOCK_LOST);
    IS(zklock_acquire(lock, 0, &none), ZKLOCK_LOST);
    CHECK(!none);
    CHECK(state_of(inner) == ZKLOCK_STATE_LOST);
    IS(zklock_release(inner), ZKLOCK_LOST);
    IS(zklock_release(outer), ZKLOCK_LOST);
    wait_for_contenders(path, 0);
    /* The lost one is cleared away in the background. */
    until = now_ms() + SOON_MS;
    while ((status = zklock_acquire(lock, SOON_MS, &none)) == ZKLOCK_LOST) {
        CHECK(now_ms() < until);
        sleep_ms(1);
    }
    CHECK(status == ZKLOCK_OK && token_of(none) > token_of(outer));
    OK(zklock_release(none));
    zklock_hold_free(inner);
    zklock_hold_free(outer);
    free_all(none, lock, client);
}

static void *frees(void *hold) {
    zklock_hold_free(hold);
    return NULL;
}

TEST(dropping_the_last_hold_releases) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, ZKLOCK_REENTRANT);
    zklock_hold *outer = acquire(lock, SOON_MS), *inner = acquire(lock, SOON_MS);
    zklock_hold_free(outer);
    CHECK(state_of(inner) == ZKLOCK_STATE_HELD && valid_for(inner) > 0);
    CHECK(contenders_at(path) == 1);
    /* Even another thread may free it, although it could not release it. */
    join_thread(start_thread(frees, inner));
    wait_for_contenders(path, 0);
    outer = acquire(lock, SOON_MS);
    OK(zklock_release(outer));
    free_all(outer, lock, client);
}

TEST(what_a_started_acquire_gets_belongs_to_no_thread) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, ZKLOCK_REENTRANT);
    zklock_hold *own = acquire(lock, SOON_MS), *hold, *none;
    zklock_call *waiting;
    int descriptor;
    /* This thread holds the lock, and starts another wait: that is neither a deadlock nor an inner hold. */
    OK(zklock_acquire_start(lock, SOON_MS, &waiting));
    OK(zklock_call_fd(waiting, &descriptor));
    wait_for_contenders(path, 2);
    CHECK(!readable(descriptor, 0));
    OK(zklock_release(own));
    CHECK(readable(descriptor, SOON_MS));
    OK(zklock_call_hold(waiting, &hold));
    CHECK(token_of(hold) > token_of(own));
    /* The hold does not belong to the thread that fetched it. */
    IS(zklock_acquire(lock, 0, &none), ZKLOCK_TIMEOUT);
    CHECK(released_elsewhere(hold) == ZKLOCK_OK);
    CHECK(contenders_at(path) == 0);
    zklock_call_free(waiting);
    zklock_hold_free(own);
    free_all(hold, lock, client);
}

TEST_MAIN("standalone max-session=4000", LISTED(an_inner_acquire_asks_nobody_and_only_the_last_release_frees),
          LISTED(an_inner_acquire_needs_no_server),
          LISTED(another_thread_waits_for_a_reentrant_lock_like_anybody),
          LISTED(a_release_by_another_thread_is_refused_and_changes_nothing),
          LISTED(a_second_acquire_by_the_same_thread_waits_as_that_of_any_thread),
          LISTED(what_only_this_thread_can_release_it_does_not_wait_for),
          LISTED(a_lock_that_is_not_reentrant_is_released_from_anywhere_but_once),
          LISTED(of_many_threads_that_release_one_hold_one_succeeds),
          LISTED(dropping_the_last_hold_releases), LISTED(what_a_started_acquire_gets_belongs_to_no_thread),
          LISTED(an_inner_section_is_not_entered_when_the_outer_hold_is_lost))
