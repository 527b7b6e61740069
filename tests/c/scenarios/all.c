/* The set of locks: all of them, or none. */

#include "test.h"

#include <stdatomic.h>

static zklock_lock *all_of(zklock_client *client, zklock_lock *one, zklock_lock *two) {
    zklock_lock *const locks[] = {one, two};
    zklock_lock *set;
    OK(zklock_all_new(client, locks, 2, NULL, &set));
    return set;
}

/* Two paths, and a client with the two mutexes and their set. */
typedef struct {
    zklock_client *client;
    zklock_lock *one, *two, *set;
} pair;

static pair new_pair(const char *one, const char *two) {
    zklock_client *client = new_client();
    zklock_lock *first = new_mutex(client, one, 0), *second = new_mutex(client, two, 0);
    return (pair){client, first, second, all_of(client, first, second)};
}

static void free_pair(pair *of) {
    zklock_lock_free(of->one);
    zklock_lock_free(of->two);
    free_all(NULL, of->set, of->client);
}

/* The paths of the test. */
static char one[64], two[64];

static void fresh_paths(void) {
    snprintf(one, sizeof one, "%s", fresh_path());
    snprintf(two, sizeof two, "%s", fresh_path());
}

TEST(all_are_held_or_none_and_released_together) {
    const char *path;
    fresh_paths();
    pair ours = new_pair(one, two), theirs = new_pair(two, one);
    zklock_hold *set = acquire(ours.set, SOON_MS), *single;
    CHECK(valid_for(set) > 0 && token_of(set) > 0);
    CHECK(contenders_at(one) == 1 && contenders_at(two) == 1);
    CHECK(!can_be_had(theirs.one) && !can_be_had(theirs.two) && !can_be_had(theirs.set));
    OK(zklock_hold_confirm(set, NULL));
    OK(zklock_lock_path(ours.set, &path));
    CHECK(strstr(path, one) && strstr(path, two));
    give_back(set);
    CHECK(contenders_at(one) == 0 && contenders_at(two) == 0);
    CHECK(can_be_had(theirs.set));
    /* If another client holds one of the locks, the set holds none of them, not even after a wait. */
    single = acquire(theirs.one, SOON_MS);
    CHECK(!can_be_had(ours.set));
    on_time();
    int64_t begun = now_ms();
    zklock_hold *none = NULL;
    IS(zklock_acquire(ours.set, 100, &none), ZKLOCK_TIMEOUT);
    CHECK(now_ms() - begun >= 100 && !none);
    NOT_LATER(now_ms() - begun, 100 + grace_ms());
    settled(ours.client);
    CHECK(contenders_at(one) + contenders_at(two) == 1);
    attempt *waiting = start_acquire(ours.set, SOON_MS);
    wait_for_contenders(two, 2);
    wait_for_contenders(one, 1);
    CHECK(!is_over(waiting));
    give_back(single);
    give_back(granted(waiting));
    free_pair(&ours);
    free_pair(&theirs);
}

TEST(one_that_is_lost_loses_the_set) {
    fresh_paths();
    const char *const paths[] = {one, two};
    for (int at = 0; at < 2; at++) {
        pair ours = new_pair(one, two), theirs = new_pair(one, two);
        zklock_hold *set = acquire(ours.set, SOON_MS);
        attempt *waiting = start_acquire(theirs.set, SOON_MS);
        zklock_reason reason;
        wait_for_contenders(one, 2);
        wait_for_contenders(two, 2);
        /* The first of the children is the holder's. */
        zklock_lock *lock = at ? ours.two : ours.one;
        const zklock_contender *holder;
        zklock_observer *observer;
        OK(zklock_observe(lock, &observer));
        OK(zklock_observer_next(observer, SOON_MS, &holder));
        CHECK(holder && strstr(holder->node, paths[at]) == holder->node);
        ground("delete %s", holder->node);
        OK(zklock_hold_wait_lost(set, SOON_MS, &reason));
        CHECK(reason == ZKLOCK_REASON_NODE_DELETED && valid_for(set) == 0);
        /* Its remains are cleared away, so the next client gets both. */
        give_back(granted(waiting));
        IS(zklock_release(set), ZKLOCK_LOST);
        zklock_observer_free(observer);
        zklock_hold_free(set);
        settled(ours.client);
        CHECK(contenders_at(one) + contenders_at(two) == 0);
        free_pair(&ours);
        free_pair(&theirs);
    }
}

static atomic_int inside, rounds;

static void *works(void *set) {
    for (int round = 0; round < 15; round++) {
        zklock_hold *hold = acquire(set, SOON_MS);
        CHECK(++inside == 1);
        rounds++;
        inside--;
        give_back(hold);
    }
    return NULL;
}

TEST(sets_in_any_order_do_not_wait_for_each_other) {
    enum { THREADS = 6 };
    pair pairs[THREADS];
    thread *threads[THREADS];
    fresh_paths();
    for (int at = 0; at < THREADS; at++) pairs[at] = at % 2 ? new_pair(one, two) : new_pair(two, one);
    for (int at = 0; at < THREADS; at++) threads[at] = start_thread(works, pairs[at].set);
    for (int at = 0; at < THREADS; at++) join_thread(threads[at]);
    CHECK(rounds == 15 * THREADS);
    for (int at = 0; at < THREADS; at++) {
        settled(pairs[at].client);
        free_pair(&pairs[at]);
    }
    CHECK(contenders_at(one) + contenders_at(two) == 0);
}

TEST(locks_of_several_kinds_make_a_set_that_outlives_them) {
    fresh_paths();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *reader = new_lock(zklock_rwlock_read_new, client, one), *permit = new_semaphore(client, two, 2, 1),
                *leader = new_lock(zklock_election_new, client, fresh_path());
    zklock_lock *const locks[] = {reader, permit, leader};
    zklock_lock *set, *writer = new_lock(zklock_rwlock_write_new, other, one), *others = new_semaphore(other, two, 2, 1);
    OK(zklock_all_new(client, locks, 3, NULL, &set));
    for (int at = 0; at < 3; at++) zklock_lock_free(locks[at]);
    zklock_client_free(client);
    zklock_hold *held = acquire(set, SOON_MS), *second;
    CHECK(!can_be_had(writer));
    /* There is one more permit. */
    second = acquire(others, SOON_MS);
    CHECK(!can_be_had(others));
    give_back(held);
    CHECK(can_be_had(writer) && can_be_had(others));
    give_back(second);
    zklock_lock_free(others);
    zklock_lock_free(writer);
    free_all(NULL, set, other);
}

TEST(what_is_no_set_is_refused) {
    fresh_paths();
    pair ours = new_pair(one, two), theirs = new_pair(one, two);
    zklock_lock *exclusive = new_lock(zklock_exclusive_new, ours.client, fresh_path()), *none = NULL;
    zklock_lock *reader = new_lock(zklock_rwlock_read_new, ours.client, one);
    zklock_lock *const twice[] = {ours.one, reader}, *const foreign[] = {ours.one, theirs.two},
                *const null[] = {ours.one, NULL}, *const queueless[] = {ours.one, exclusive},
                *const nested[] = {ours.set, ours.one};
    zklock_lock_options *options;
    IS(zklock_all_new(ours.client, NULL, 0, NULL, &none), ZKLOCK_INVALID_ARGUMENT);
    SAYS("one lock at least");
    IS(zklock_all_new(ours.client, twice, 2, NULL, &none), ZKLOCK_INVALID_ARGUMENT);
    SAYS("two of them are of one path");
    IS(zklock_all_new(ours.client, nested, 2, NULL, &none), ZKLOCK_INVALID_ARGUMENT);
    IS(zklock_all_new(ours.client, foreign, 2, NULL, &none), ZKLOCK_INVALID_ARGUMENT);
    SAYS("must come from the client");
    IS(zklock_all_new(ours.client, queueless, 2, NULL, &none), ZKLOCK_INVALID_ARGUMENT);
    SAYS("has no queue");
    IS(zklock_all_new(ours.client, null, 2, NULL, &none), ZKLOCK_INVALID_ARGUMENT);
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_permits(options, 2));
    IS(zklock_all_new(ours.client, &ours.one, 1, options, &none), ZKLOCK_INVALID_ARGUMENT);
    CHECK(!none);
    zklock_lock_options_free(options);
    zklock_lock_free(reader);
    zklock_lock_free(exclusive);
    free_pair(&ours);
    free_pair(&theirs);
}

TEST(a_set_is_reentrant_if_it_is_said_so) {
    zklock_lock_options *options;
    zklock_lock *set;
    zklock_hold *none = NULL;
    fresh_paths();
    pair ours = new_pair(one, two);
    zklock_lock *const locks[] = {ours.two, ours.one};
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_flags(options, ZKLOCK_REENTRANT));
    OK(zklock_all_new(ours.client, locks, 2, options, &set));
    zklock_lock_options_free(options);
    zklock_hold *outer = acquire(set, SOON_MS), *inner = acquire(set, 0);
    give_back(outer);
    CHECK(contenders_at(one) == 1 && contenders_at(two) == 1);
    give_back(inner);
    CHECK(contenders_at(one) == 0 && contenders_at(two) == 0);
    outer = acquire(ours.set, SOON_MS);
    IS(zklock_acquire(ours.set, 100, &none), ZKLOCK_TIMEOUT);
    IS(zklock_acquire(ours.one, 100, &none), ZKLOCK_TIMEOUT);
    give_back(outer);
    outer = acquire(set, SOON_MS);
    IS(zklock_acquire(ours.set, SOON_MS, &none), ZKLOCK_DEADLOCK);
    IS(zklock_acquire(ours.one, SOON_MS, &none), ZKLOCK_DEADLOCK);
    give_back(outer);
    zklock_lock_free(set);
    free_pair(&ours);
}

TEST_MAIN("standalone max-session=4000", LISTED(all_are_held_or_none_and_released_together),
          LISTED(one_that_is_lost_loses_the_set), LISTED(sets_in_any_order_do_not_wait_for_each_other),
          LISTED(locks_of_several_kinds_make_a_set_that_outlives_them), LISTED(what_is_no_set_is_refused),
          LISTED(a_set_is_reentrant_if_it_is_said_so))
