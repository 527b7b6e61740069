/* The semaphore: as many can hold it as it has permits, in the order of arrival. */

#include "test.h"

#include <stdatomic.h>

/* The number of permit nodes: those of holders, and of the head of the queue, which creates its own before they are free. */
static int permits_at(const char *path) {
    char leases[128];
    snprintf(leases, sizeof leases, "%s/leases", path);
    return contenders_at(leases);
}

static void wait_for_waiters(const char *path, int count) {
    char locks[128];
    snprintf(locks, sizeof locks, "%s/locks", path);
    wait_for_contenders(locks, count);
}

TEST(as_many_hold_it_as_it_has_permits_in_the_order_of_arrival) {
    enum { LIMIT = 3 };
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *lock = new_semaphore(client, path, LIMIT, 1), *others = new_semaphore(other, path, LIMIT, 1);
    zklock_hold *holds[LIMIT], *next;
    attempt *first, *second;
    /* A permit belongs to nobody: one thread may have several. */
    for (int at = 0; at < LIMIT; at++) {
        holds[at] = acquire(at % 2 ? lock : others, SOON_MS);
        CHECK(strstr(node_of(holds[at]), "/leases/_c_") && valid_for(holds[at]) > 0);
        CHECK(!at || token_of(holds[at]) > token_of(holds[at - 1]));
    }
    CHECK(permits_at(path) == LIMIT && !can_be_had(lock) && !can_be_had(others));
    settled(client);
    settled(other);
    first = start_acquire(lock, SOON_MS);
    wait_for_waiters(path, 1);
    second = start_acquire(others, SOON_MS);
    wait_for_waiters(path, 2);
    give_back(holds[1]);
    next = granted(first);
    CHECK(!is_over(second));
    give_back(holds[0]);
    give_back(granted(second));
    give_back(holds[2]);
    give_back(next);
    CHECK(permits_at(path) == 0);
    free_all(NULL, lock, client);
    free_all(NULL, others, other);
}

TEST(several_permits_are_acquired_at_once_and_nobody_overtakes) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *three = new_semaphore(client, path, 4, 3), *one = new_semaphore(other, path, 4, 1);
    zklock_hold *held = acquire(three, SOON_MS), *single = acquire(one, SOON_MS), *again;
    CHECK(permits_at(path) == 4);
    attempt *waiting = start_acquire(three, SOON_MS), *behind;
    wait_for_waiters(path, 1);
    give_back(single);
    /* The next in the queue already has its permits there, beyond the limit. */
    CHECK(permits_at(path) == 3 + 3);
    /* One permit is free, but a contender ahead needs it. */
    behind = start_acquire(one, SOON_MS);
    wait_for_waiters(path, 2);
    CHECK(!is_over(waiting) && !is_over(behind));
    give_back(held);
    again = granted(waiting);
    single = granted(behind);
    CHECK(permits_at(path) == 4);
    /* All permits of a hold go at once, and the loss of one is the loss of the hold. */
    ground("delete %s", node_of(again));
    zklock_reason reason;
    OK(zklock_hold_wait_lost(again, SOON_MS, &reason));
    CHECK(reason == ZKLOCK_REASON_NODE_DELETED);
    zklock_hold_free(again);
    EVENTUALLY(permits_at(path) == 1);
    give_back(single);
    free_all(NULL, three, client);
    free_all(NULL, one, other);
}

static void *releases(void *hold) {
    give_back(hold);
    return NULL;
}

TEST(any_thread_may_give_a_permit_back_and_so_does_the_end_of_a_session) {
    const char *path = fresh_path();
    int proxy;
    zklock_client *client = new_client(), *lost = proxied_client(&proxy);
    zklock_lock *lock = new_semaphore(client, path, 1, 1), *gone = new_semaphore(lost, path, 1, 1);
    join_thread(start_thread(releases, acquire(lock, SOON_MS)));
    zklock_hold *hold = acquire(gone, SOON_MS);
    CHECK(!can_be_had(lock));
    attempt *waiting = start_acquire(lock, SOON_MS);
    wait_for_waiters(path, 1);
    expire_session(proxy);
    give_back(granted(waiting));
    zklock_reason reason;
    OK(zklock_hold_wait_lost(hold, SOON_MS, &reason));
    free_all(hold, gone, lost);
    free_all(NULL, lock, client);
}

TEST(the_limit_can_be_changed_while_some_wait) {
    const char *path = fresh_path();
    char limit[128];
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock_options *options;
    zklock_lock *lock;
    snprintf(limit, sizeof limit, "%s-limits/licences", path);
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_limit_at(options, limit));
    OK(zklock_semaphore_new(client, path, 1, options, &lock));
    zklock_lock_options_free(options);
    /* The node does not exist, so the constructor's limit counts. */
    zklock_hold *first = acquire(lock, SOON_MS), *second, *third;
    CHECK(!can_be_had(lock));
    attempt *waiting = start_acquire(lock, SOON_MS), *another = start_acquire(lock, SOON_MS);
    /* The other one is behind it in the local queue of this process. */
    wait_for_waiters(path, 1);
    OK(zklock_set_limit(other, limit, 2));
    EVENTUALLY(is_over(waiting) || is_over(another));
    CHECK(!(is_over(waiting) && is_over(another)));
    OK(zklock_set_limit(other, limit, 3));
    second = granted(waiting);
    third = granted(another);
    /* Holders stay, although there are fewer permits. */
    OK(zklock_set_limit(other, limit, 1));
    CHECK(state_of(first) == ZKLOCK_STATE_HELD && permits_at(path) == 3);
    give_back(first);
    give_back(second);
    CHECK(!can_be_had(lock));
    give_back(third);
    CHECK(can_be_had(lock));
    OK(zklock_set_limit(other, limit, 0));
    CHECK(!can_be_had(lock));
    free_all(NULL, lock, client);
    zklock_client_free(other);
}

TEST(what_could_never_be_had_is_refused) {
    zklock_client *client = new_client();
    zklock_lock_options *options;
    zklock_lock *lock = NULL, *most;
    zklock_observer *observer = NULL;
    OK(zklock_lock_options_new(&options));
    IS(zklock_semaphore_new(client, "/bad", 0, NULL, &lock), ZKLOCK_INVALID_ARGUMENT);
    IS(zklock_lock_options_set_permits(options, 0), ZKLOCK_INVALID_ARGUMENT);
    IS(zklock_lock_options_set_permits(options, 257), ZKLOCK_INVALID_ARGUMENT);
    OK(zklock_lock_options_set_permits(options, 5));
    IS(zklock_semaphore_new(client, "/bad", 4, options, &lock), ZKLOCK_INVALID_ARGUMENT);
    SAYS("5 permits of 4 would never be there");
    IS(zklock_mutex_new(client, "/bad", options, &lock), ZKLOCK_INVALID_ARGUMENT);
    SAYS("only a semaphore has permits");
    OK(zklock_lock_options_set_permits(options, 1));
    OK(zklock_lock_options_set_flags(options, ZKLOCK_REENTRANT));
    IS(zklock_semaphore_new(client, "/bad", 4, options, &lock), ZKLOCK_INVALID_ARGUMENT);
    OK(zklock_lock_options_set_flags(options, 0));
    OK(zklock_lock_options_set_dialect(options, ZKLOCK_DIALECT_KAZOO));
    IS(zklock_semaphore_new(client, "/bad", 4, options, &lock), ZKLOCK_INVALID_ARGUMENT);
    CHECK(!lock);
    /* The most that the setter takes is the most that the constructor takes. */
    most = new_semaphore(client, fresh_path(), 256, 256);
    CHECK(can_be_had(most));
    IS(zklock_observe(most, &observer), ZKLOCK_INVALID_ARGUMENT);
    CHECK(!observer);
    zklock_lock_options_free(options);
    free_all(NULL, most, client);
}

TEST(a_wait_in_vain_leaves_nothing_behind) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *lock = new_semaphore(client, path, 2, 2), *one = new_semaphore(other, path, 2, 1);
    zklock_hold *held = acquire(one, SOON_MS), *none = NULL;
    zklock_call *waiting;
    on_time();
    int64_t begun = now_ms();
    IS(zklock_acquire(lock, 100, &none), ZKLOCK_TIMEOUT);
    CHECK(now_ms() - begun >= 100);
    NOT_LATER(now_ms() - begun, 100 + grace_ms());
    OK(zklock_acquire_start(lock, ZKLOCK_FOREVER, &waiting));
    wait_for_waiters(path, 1);
    EVENTUALLY(permits_at(path) == 3);
    OK(zklock_call_cancel(waiting));
    zklock_call_free(waiting);
    settled(client);
    CHECK(!none && permits_at(path) == 1);
    wait_for_waiters(path, 0);
    give_back(held);
    free_all(NULL, lock, client);
    free_all(NULL, one, other);
}

enum { STRESS_LIMIT = 3 };
static atomic_int inside, most_inside;

static void *works(void *lock) {
    for (int round = 0; round < 10; round++) {
        zklock_hold *hold = acquire(lock, SOON_MS);
        int now = ++inside, most = most_inside;
        CHECK(now <= STRESS_LIMIT);
        while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now)) {
        }
        sleep_ms(10);
        inside--;
        give_back(hold);
    }
    return NULL;
}

TEST(never_more_hold_it_than_it_has_permits) {
    enum { THREADS = 9 };
    const char *path = fresh_path();
    zklock_client *clients[3];
    zklock_lock *locks[3];
    thread *threads[THREADS];
    for (int at = 0; at < 3; at++) {
        clients[at] = new_client();
        locks[at] = new_semaphore(clients[at], path, STRESS_LIMIT, 1);
    }
    for (int at = 0; at < THREADS; at++) threads[at] = start_thread(works, locks[at % 3]);
    for (int at = 0; at < THREADS; at++) join_thread(threads[at]);
    CHECK(most_inside > 1 && inside == 0);
    for (int at = 0; at < 3; at++) {
        settled(clients[at]);
        free_all(NULL, locks[at], clients[at]);
    }
    CHECK(permits_at(path) == 0);
}

TEST_MAIN("standalone max-session=4000", LISTED(as_many_hold_it_as_it_has_permits_in_the_order_of_arrival),
          LISTED(several_permits_are_acquired_at_once_and_nobody_overtakes),
          LISTED(any_thread_may_give_a_permit_back_and_so_does_the_end_of_a_session),
          LISTED(the_limit_can_be_changed_while_some_wait), LISTED(what_could_never_be_had_is_refused),
          LISTED(a_wait_in_vain_leaves_nothing_behind), LISTED(never_more_hold_it_than_it_has_permits))
