/* Observers, which learn who leads an election. */

#include "events.h"

static zklock_lock *stands(zklock_client *client, const char *path) { return new_lock(zklock_election_new, client, path); }

static zklock_observer *observes(zklock_lock *lock) {
    zklock_observer *observer;
    OK(zklock_observe(lock, &observer));
    return observer;
}

/* Checks the next report: the leader with this hold, or nobody. */
static void tells(zklock_observer *observer, const zklock_hold *lead, int64_t timeout) {
    const zklock_contender *leader;
    OK(zklock_observer_next(observer, timeout, &leader));
    CHECK(!leader == !lead);
    if (!lead) return;
    CHECK(!strcmp(leader->node, node_of(lead)) && leader->token == token_of(lead) && leader->holds == 1);
    CHECK(leader->role == ZKLOCK_ROLE_EXCLUSIVE && !strcmp(leader->naming, "curator") && strchr(leader->identity, '/'));
}

static void tells_nothing(zklock_observer *observer, int64_t timeout) {
    const zklock_contender *leader;
    int64_t begun = now_ms();
    IS(zklock_observer_next(observer, timeout, &leader), ZKLOCK_TIMEOUT);
    CHECK(now_ms() - begun >= timeout);
}

TEST(an_observer_serves_an_event_loop) {
    rivals all = new_rivals();
    zklock_client *client = follow(all.client);
    zklock_lock *first = stands(client, all.path), *second = stands(all.other, all.path);
    zklock_observer *observer = observes(first);
    const zklock_contender *leader;
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
        IS(zklock_observer_next(observer, -5, &leader), ZKLOCK_INVALID_ARGUMENT);
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
    IS(zklock_observer_next(observer, 0, &leader), ZKLOCK_CLOSED);
    is_quiet(client, 20);
    IS(zklock_observer_next(observer, ZKLOCK_FOREVER, &leader), ZKLOCK_CLOSED);
    zklock_observer_free(observer);
    zklock_lock_free(first);
    zklock_lock_free(second);
    free_rivals(&all);
}

TEST(who_asks_without_waiting_is_told_in_the_end) {
    zklock_client *client = new_client();
    zklock_lock *lock = stands(client, fresh_path());
    zklock_observer *observer = observes(lock);
    const zklock_contender *leader;
    EVENTUALLY(zklock_observer_next(observer, 0, &leader) == ZKLOCK_OK);
    CHECK(!leader);
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
    const zklock_contender *leader;
    return (void *)(intptr_t)zklock_observer_next(observer, ZKLOCK_FOREVER, &leader);
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
