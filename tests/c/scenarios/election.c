/* Observers, which learn who leads an election. */

#include "events.h"

static zklock_lock *stands(zklock_client *client, const char *path) { return new_lock(zklock_election_new, client, path); }

static zklock_observer *observes(zklock_lock *lock) { return MADE(zklock_observer, zklock_observe(lock, &made)); }

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

TEST(an_observer_serves_an_event_loop) {
    rivals all = new_rivals();
    zklock_client *client = follow(all.client);
    zklock_lock *first = stands(client, all.path), *second = stands(all.other, all.path);
    zklock_observer *observer = observes(first);
    CHECK(expect(client, ZKLOCK_EVENT_LEADER).observer == observer);
    tells(observer, NULL, 0);
    is_quiet(client, 0);
    IS(next_of(observer, 50), ZKLOCK_TIMEOUT);
    for (int round = 0; round < 2; round++) {
        zklock_hold *lead = acquire(round ? first : second, SOON_MS);
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
}

static void *waits(void *observer) { return (void *)(intptr_t)next_of(observer, ZKLOCK_FOREVER); }

TEST(what_was_asked_without_events_is_told_in_the_end_and_what_is_freed_has_none) {
    zklock_client *client = new_client();
    zklock_lock *lock = stands(client, fresh_path());
    zklock_observer *observer = observes(lock);
    thread threads[3];
    EVENTUALLY(next_of(observer, 0) == ZKLOCK_OK);
    IS(next_of(observer, 0), ZKLOCK_TIMEOUT);
    /* A program that only asks for events now must not miss a change that is on its way. */
    follow(client);
    zklock_hold *lead = acquire(lock, SOON_MS);
    CHECK(expect(client, ZKLOCK_EVENT_LEADER).observer == observer);
    tells(observer, lead, 0);
    give_back(lead);
    CHECK(readable(descriptor_of(client), SOON_MS));
    zklock_observer_free(observer);
    is_quiet(client, 20);
    /* Several may wait with one, and all end with the client. */
    zklock_observer *other = observes(lock);
    tells(other, NULL, SOON_MS);
    for (int at = 0; at < 3; at++) threads[at] = start_thread(waits, other);
    OK(zklock_client_close(client));
    for (int at = 0; at < 3; at++) IS(join_status(threads[at]), ZKLOCK_CLOSED);
}

TEST_MAIN(STANDALONE)
