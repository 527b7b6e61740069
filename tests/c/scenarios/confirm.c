/* Promise 6: a caller that asks whether the lock is still held learns that it is, or how the hold ended, even if the answer
 * comes just when the hold is released, freed or lost. */

#include "test.h"

#include <time.h>

#define ROUNDS 200

/* A thread that asks or writes until it learns that the lock is no longer held. */
typedef struct {
    zklock_hold *hold;
    zklock_status (*asks)(zklock_hold *);
    zklock_status told;
    char sentence[256];
    thread *thread;
} asker;

static zklock_status confirms(zklock_hold *hold) {
    int64_t milliseconds = -1;
    zklock_status status = zklock_hold_confirm(hold, &milliseconds);
    if (status == ZKLOCK_OK) CHECK(milliseconds >= 0);
    return status;
}

static zklock_status writes_nothing(zklock_hold *hold) { return zklock_hold_commit(hold, NULL, 0, NULL); }

static void *asks(void *argument) {
    asker *asker = argument;
    do asker->told = asker->asks(asker->hold);
    while (asker->told == ZKLOCK_OK);
    snprintf(asker->sentence, sizeof asker->sentence, "%s", zklock_last_error());
    return NULL;
}

enum { ASKERS = 2 };

static void start_asking(asker *askers, zklock_hold *hold) {
    for (int at = 0; at < ASKERS; at++) {
        askers[at] = (asker){.hold = hold, .asks = at ? writes_nothing : confirms};
        askers[at].thread = start_thread(asks, &askers[at]);
    }
}

static void are_told(asker *askers, int round, zklock_status status, zklock_status or_this) {
    for (int at = 0; at < ASKERS; at++) {
        join_thread(askers[at].thread);
        if (askers[at].told != status && askers[at].told != or_this) {
            failed(__FILE__, __LINE__, "round %d: %s: %s", round, zklock_status_name(askers[at].told),
                   askers[at].sentence);
        }
    }
}

/* Waits for a time that differs in each round. */
static void in_the_middle(int round) {
    struct timespec time = {.tv_nsec = round * 37 % 1500 * 1000L};
    nanosleep(&time, NULL);
}

TEST(what_races_with_a_release_is_done_or_told_of_the_release) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    for (int round = 0; round < ROUNDS; round++) {
        zklock_hold *hold = acquire(lock, SOON_MS);
        asker askers[ASKERS];
        start_asking(askers, hold);
        in_the_middle(round);
        OK(zklock_release(hold));
        are_told(askers, round, ZKLOCK_NOT_HELD, ZKLOCK_NOT_HELD);
        zklock_hold_free(hold);
    }
    free_all(NULL, lock, client);
}

TEST(what_races_with_a_free_is_done_or_told_of_the_release_or_of_the_handle) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    for (int round = 0; round < ROUNDS; round++) {
        zklock_hold *hold = acquire(lock, SOON_MS);
        asker askers[ASKERS];
        start_asking(askers, hold);
        in_the_middle(round);
        zklock_hold_free(hold);
        are_told(askers, round, ZKLOCK_NOT_HELD, ZKLOCK_INVALID_HANDLE);
    }
    free_all(NULL, lock, client);
}

TEST(what_races_with_an_eviction_is_done_or_told_of_the_loss) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    for (int round = 0; round < ROUNDS / 4; round++) {
        zklock_hold *hold = acquire(lock, SOON_MS);
        asker askers[ASKERS];
        int evicted;
        start_asking(askers, hold);
        in_the_middle(round);
        OK(zklock_evict(lock, node_of(hold), &evicted));
        CHECK(evicted);
        are_told(askers, round, ZKLOCK_LOST, ZKLOCK_LOST);
        zklock_hold_free(hold);
    }
    free_all(NULL, lock, client);
}

TEST_MAIN("standalone tick=200 max-session=4000", LISTED(what_races_with_a_release_is_done_or_told_of_the_release),
          LISTED(what_races_with_a_free_is_done_or_told_of_the_release_or_of_the_handle),
          LISTED(what_races_with_an_eviction_is_done_or_told_of_the_loss))
