/* A lock that nobody else wants costs nothing, and a holder learns when others want it. */

#include "events.h"

/* A mutex whose node stays for this long, with this number of turns of its client in a row. */
static zklock_lock *passed_on(zklock_client *client, const char *path, int64_t linger, uint32_t turns) {
    zklock_lock_options *options;
    zklock_lock *lock;
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_linger(options, linger));
    OK(zklock_lock_options_set_local_turns(options, turns));
    OK(zklock_mutex_new(client, path, options, &lock));
    zklock_lock_options_free(options);
    return lock;
}

static int is_wanted(zklock_hold *hold) {
    int answer = -7;
    OK(zklock_hold_is_wanted(hold, &answer));
    CHECK(answer == 0 || answer == 1);
    return answer;
}

/* The reports of a hold. */
typedef struct {
    zklock_hold *hold;
    zklock_status status;
} news;

static void *waits(void *argument) {
    news *news = argument;
    news->status = zklock_hold_wait_wanted(news->hold, ZKLOCK_FOREVER);
    return NULL;
}

TEST(a_lingering_lock_is_taken_again_without_a_request_until_another_wants_it) {
    enum { ROUNDS = 100 };
    int proxy;
    zklock_client *client = proxied_client(&proxy), *other = new_client();
    const char *path = fresh_path();
    /* The longest time never ends. */
    zklock_lock *lock = passed_on(client, path, INT64_MAX, 1), *others = new_mutex(other, path, 0);
    ground("record %d", proxy);
    zklock_hold *hold = acquire(lock, SOON_MS), *next;
    uint64_t token = token_of(hold);
    for (int round = 0; round < ROUNDS; round++) {
        OK(zklock_release(hold));
        CHECK(state_of(hold) == ZKLOCK_STATE_RELEASED && contenders_at(path) == 1);
        zklock_hold_free(hold);
        hold = acquire(lock, SOON_MS);
        CHECK(token_of(hold) == token);
    }
    /* Only the requests of the first grant, of the watches for others, and of heartbeats if this takes long. Otherwise each
     * round would take three. */
    CHECK(asked(proxy) < ROUNDS / 2);

    /* If the lock is held, the client gives its node up with the release. If nobody holds it, it does so at once. */
    attempt *attempt = start_acquire(others, SOON_MS);
    wait_for_contenders(path, 2);
    CHECK(state_of(hold) == ZKLOCK_STATE_HELD && !is_over(attempt));
    give_back(hold);
    next = granted(attempt);
    CHECK(token_of(next) > token);
    token = token_of(next);
    give_back(next);
    give_back(acquire(lock, SOON_MS));
    next = acquire(others, SOON_MS);
    CHECK(token_of(next) > token && contenders_at(path) == 1);
    OK(zklock_release(next));
    zklock_lock_free(lock);
    zklock_client_free(client);
    free_all(next, others, other);
}

TEST(threads_pass_a_lock_on_if_their_client_has_several_turns) {
    zklock_client *client = new_client();
    for (uint32_t turns = 1; turns <= 2; turns++) {
        zklock_lock *lock = passed_on(client, fresh_path(), 0, turns);
        zklock_hold *first = acquire(lock, SOON_MS), *second;
        attempt *attempt = start_acquire(lock, SOON_MS);
        /* Other threads of the same client also count as others. */
        OK(zklock_hold_wait_wanted(first, SOON_MS));
        OK(zklock_release(first));
        second = granted(attempt);
        CHECK((token_of(second) == token_of(first)) == (turns > 1));
        zklock_hold_free(first);
        OK(zklock_release(second));
        free_all(second, lock, NULL);
    }
    zklock_client_free(client);
}

TEST(a_holder_is_told_in_every_way_that_others_wait) {
    zklock_client *client = follow(new_client()), *other = new_client();
    const char *path = fresh_path();
    zklock_lock *lock = new_mutex(client, path, 0), *others = new_mutex(other, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *next;
    news waited = {.hold = hold, .status = ZKLOCK_INTERNAL};
    OK(zklock_hold_set_context(hold, &waited));
    CHECK(!is_wanted(hold));
    thread *waiter = start_thread(waits, &waited);
    IS(zklock_hold_wait_wanted(hold, 20), ZKLOCK_TIMEOUT);
    is_quiet(client, 0);

    attempt *attempt = start_acquire(others, SOON_MS);
    join_thread(waiter);
    IS(waited.status, ZKLOCK_OK);
    zklock_event event = expect(client, ZKLOCK_EVENT_WANTED);
    CHECK(event.hold == hold && event.context == &waited);
    /* From now on both calls report it at once. */
    CHECK(is_wanted(hold));
    OK(zklock_hold_wait_wanted(hold, 0));
    CHECK(state_of(hold) == ZKLOCK_STATE_HELD && !is_over(attempt));

    OK(zklock_release(hold));
    next = granted(attempt);
    IS(zklock_hold_wait_wanted(hold, SOON_MS), ZKLOCK_NOT_HELD);
    CHECK(!is_wanted(hold) && !is_wanted(next));
    is_quiet(client, 0);
    zklock_hold_free(hold);
    OK(zklock_release(next));
    zklock_lock_free(lock);
    zklock_client_free(client);
    free_all(next, others, other);
}

TEST(a_hold_that_ends_before_is_not_wanted) {
    zklock_client *client = follow(new_client()), *other = new_client();
    const char *path = fresh_path();
    zklock_lock *lock = new_mutex(client, path, 0), *others = new_mutex(other, path, 0);
    zklock_hold *lost = acquire(lock, SOON_MS), *freed, *next;
    news waited = {.hold = lost};
    CHECK(!is_wanted(lost));
    thread *waiter = start_thread(waits, &waited);
    ground("delete %s", node_of(lost));
    join_thread(waiter);
    IS(waited.status, ZKLOCK_LOST);
    expect(client, ZKLOCK_EVENT_LOST);

    freed = acquire(lock, SOON_MS);
    CHECK(!is_wanted(freed));
    zklock_hold_free(freed);
    give_back(acquire(others, SOON_MS));

    /* Both would have been told by now. */
    next = acquire(lock, SOON_MS);
    CHECK(!is_wanted(next));
    attempt *attempt = start_acquire(others, SOON_MS);
    CHECK(expect(client, ZKLOCK_EVENT_WANTED).hold == next);
    IS(zklock_hold_wait_wanted(lost, SOON_MS), ZKLOCK_LOST);
    SAYS("deleted");
    CHECK(!is_wanted(lost));
    is_quiet(client, 0);
    give_back(next);
    give_back(granted(attempt));
    zklock_lock_free(lock);
    zklock_lock_free(others);
    zklock_client_free(other);
    free_all(lost, NULL, client);
}

TEST(what_cannot_be_passed_on_is_refused) {
    constructor *const makers[] = {zklock_election_new, zklock_exclusive_new};
    zklock_client *client = new_client();
    const char *path = fresh_path();
    zklock_lock_options *options;
    zklock_lock *lock, *plain = new_mutex(client, path, 0);
    OK(zklock_lock_options_new(&options));
    IS(zklock_lock_options_set_linger(options, -1), ZKLOCK_INVALID_ARGUMENT);
    SAYS("a time to linger of -1 ms: it must not be negative");
    IS(zklock_lock_options_set_local_turns(options, 0), ZKLOCK_INVALID_ARGUMENT);
    SAYS("the least is 1");
    OK(zklock_lock_options_set_linger(options, 1));
    for (size_t at = 0; at < sizeof makers / sizeof *makers; at++) {
        IS(makers[at](client, path, options, &lock), ZKLOCK_INVALID_ARGUMENT);
        SAYS("only mutexes and read/write locks have linger");
    }
    IS(zklock_semaphore_new(client, path, 2, options, &lock), ZKLOCK_INVALID_ARGUMENT);
    IS(zklock_all_new(client, &plain, 1, options, &lock), ZKLOCK_INVALID_ARGUMENT);
    OK(zklock_rwlock_read_new(client, path, options, &lock));
    zklock_lock_free(lock);
    OK(zklock_rwlock_write_new(client, path, options, &lock));
    zklock_lock_free(lock);
    zklock_lock_options_free(options);
    free_all(NULL, plain, client);
}

TEST_MAIN("standalone max-session=4000", LISTED(a_lingering_lock_is_taken_again_without_a_request_until_another_wants_it),
          LISTED(threads_pass_a_lock_on_if_their_client_has_several_turns),
          LISTED(a_holder_is_told_in_every_way_that_others_wait), LISTED(a_hold_that_ends_before_is_not_wanted),
          LISTED(what_cannot_be_passed_on_is_refused))
