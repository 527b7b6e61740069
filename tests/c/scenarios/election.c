/* Observers, which learn who leads an election. */

#include "events.h"

static zklock_lock *stands(zklock_client *client, const char *path) { return new_lock(zklock_election_new, client, path); }

static zklock_observer *observes(zklock_lock *lock) {
    zklock_observer *observer;
    OK(zklock_observe(lock, &observer));
    return observer;
}

/* How often an observer has shown a leader, who must have this hold. */
typedef struct {
    int count;
    const zklock_hold *lead;
} seen;

static void see(const zklock_contender *leader, void *context) {
    seen *seen = context;
    seen->count++;
    if (!seen->lead) return;
    CHECK(!strcmp(leader->node, node_of(seen->lead)) && leader->token == token_of(seen->lead) && leader->holds == 1);
    CHECK(leader->role == ZKLOCK_ROLE_EXCLUSIVE && !strcmp(leader->naming, "curator") && strchr(leader->identity, '/'));
}

static zklock_status next_of(zklock_observer *observer, int64_t timeout) {
    seen nobody = {0};
    zklock_status status = zklock_observer_next(observer, timeout, see, &nobody);
    CHECK(!nobody.count);
    return status;
}

/* Checks the next report: the leader with this hold, or nobody. */
static void tells(zklock_observer *observer, const zklock_hold *lead, int64_t timeout) {
    seen seen = {.lead = lead};
    OK(zklock_observer_next(observer, timeout, see, &seen));
    CHECK(seen.count == (lead != NULL));
}

static void tells_nothing(zklock_observer *observer, int64_t timeout) {
    int64_t begun = now_ms();
    IS(next_of(observer, timeout), ZKLOCK_TIMEOUT);
    CHECK(now_ms() - begun >= timeout);
}

TEST(an_observer_serves_an_event_loop) {
    rivals all = new_rivals();
    zklock_client *client = follow(all.client);
    zklock_lock *first = stands(client, all.path), *second = stands(all.other, all.path);
    zklock_observer *observer = observes(first);
    CHECK(expect(client, ZKLOCK_EVENT_LEADER).observer == observer);
    is_quiet(client, 0);
    tells(observer, NULL, 0);
    tells_nothing(observer, 0);
    tells_nothing(observer, 50);
    for (int round = 0; round < 10; round++) {
        zklock_hold *lead = acquire(round % 2 ? first : second, SOON_MS);
        CHECK(expect(client, ZKLOCK_EVENT_LEADER).observer == observer);
        tells(observer, lead, 0);
        is_quiet(client, 0);
        give_back(lead);
        CHECK(readable(descriptor_of(client), SOON_MS));
        /* A bad timeout takes no report away. */
        IS(next_of(observer, -5), ZKLOCK_INVALID_ARGUMENT);
        /* A wait also takes a report that has already come, and its event. */
        tells(observer, NULL, SOON_MS);
        is_quiet(client, 0);
    }
    expire_session(all.proxy);
    zklock_hold *lead = acquire(second, SOON_MS);
    /* It outlives its session. */
    tells(observer, lead, SOON_MS);
    give_back(lead);
    tells(observer, NULL, SOON_MS);
    OK(zklock_client_close(client));
    for (int closed = 0, told = 0; !closed || !told;) {
        zklock_event event = next(client);
        closed += event.kind == ZKLOCK_EVENT_CLOSED;
        told += event.observer == observer;
    }
    /* An error is reported on every call, but has one event: a loop that takes all events would never end. */
    IS(next_of(observer, 0), ZKLOCK_CLOSED);
    is_quiet(client, 20);
    IS(next_of(observer, ZKLOCK_FOREVER), ZKLOCK_CLOSED);
    zklock_observer_free(observer);
    zklock_lock_free(first);
    zklock_lock_free(second);
    free_rivals(&all);
}

TEST(who_asks_without_waiting_is_told_in_the_end) {
    zklock_client *client = new_client();
    zklock_lock *lock = stands(client, fresh_path());
    zklock_observer *observer = observes(lock);
    EVENTUALLY(next_of(observer, 0) == ZKLOCK_OK);
    tells_nothing(observer, 0);
    /* A program that only asks for events now must not miss a change that is on its way. */
    follow(client);
    zklock_hold *lead = acquire(lock, SOON_MS);
    CHECK(expect(client, ZKLOCK_EVENT_LEADER).observer == observer);
    tells(observer, lead, 0);
    is_quiet(client, 20);
    /* What is freed has no event. */
    give_back(lead);
    CHECK(readable(descriptor_of(client), SOON_MS));
    zklock_observer_free(observer);
    is_quiet(client, 20);
    free_all(NULL, lock, client);
}

static void *waits(void *observer) {
    return (void *)(intptr_t)next_of(observer, ZKLOCK_FOREVER);
}

TEST(several_may_wait_with_one_observer_and_all_end_with_the_client) {
    zklock_client *client = new_client();
    zklock_lock *lock = stands(client, fresh_path());
    zklock_observer *observer = observes(lock);
    thread threads[3];
    tells(observer, NULL, SOON_MS);
    for (int at = 0; at < 3; at++) threads[at] = start_thread(waits, observer);
    tells_nothing(observer, 30);
    OK(zklock_client_close(client));
    for (int at = 0; at < 3; at++) IS(join_status(threads[at]), ZKLOCK_CLOSED);
    zklock_observer_free(observer);
    free_all(NULL, lock, client);
}

TEST_MAIN(STANDALONE)
