/* The election: one candidate leads until it resigns or is lost, and observers learn who leads. */

#include "events.h"

static zklock_client *named_client(const char *hosts, const char *identity) {
    zklock_options *options;
    zklock_client *client;
    OK(zklock_options_new(&options));
    OK(zklock_options_set_session_timeout(options, SESSION_MS));
    OK(zklock_options_set_identity(options, identity));
    OK(zklock_client_new(hosts, options, &client));
    zklock_options_free(options);
    return client;
}

static zklock_lock *stands(zklock_client *client, const char *path) {
    return new_lock(zklock_election_new, client, path);
}

static zklock_observer *observes(zklock_lock *lock) {
    zklock_observer *observer;
    OK(zklock_observe(lock, &observer));
    return observer;
}

/* Checks the next report: this leader, or NULL for nobody. */
static void tells(zklock_observer *observer, const char *identity) {
    const zklock_contender *leader;
    OK(zklock_observer_next(observer, SOON_MS, &leader));
    if (identity) {
        CHECK(leader && !strcmp(leader->identity, identity) && leader->holds == 1);
        CHECK(leader->role == ZKLOCK_ROLE_EXCLUSIVE && !strcmp(leader->dialect, "curator"));
    } else {
        CHECK(!leader);
    }
}

static void tells_nothing(zklock_observer *observer, int64_t timeout) {
    const zklock_contender *leader;
    int64_t begun = now_ms();
    IS(zklock_observer_next(observer, timeout, &leader), ZKLOCK_TIMEOUT);
    CHECK(now_ms() - begun >= timeout);
}

TEST(one_leads_until_it_resigns_or_is_lost) {
    const char *path = fresh_path();
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    zklock_client *client = named_client(servers(), "first"), *other = named_client(hosts, "second"),
                  *third = named_client(servers(), "third"), *audience = new_client();
    zklock_lock *first = stands(client, path), *second = stands(other, path), *last = stands(third, path),
                *seen = stands(audience, path);
    zklock_observer *observer = observes(seen);
    tells(observer, NULL);
    zklock_hold *lead = acquire(first, SOON_MS), *lost;
    CHECK(strstr(node_of(lead), "-latch-"));
    tells(observer, "first");
    attempt *waiting = start_acquire(second, SOON_MS), *behind;
    wait_for_contenders(path, 2);
    behind = start_acquire(last, SOON_MS);
    wait_for_contenders(path, 3);
    /* A new candidate is not reported. */
    tells_nothing(observer, 50);
    give_back(lead);
    tells(observer, "second");
    lost = granted(waiting);
    expire_session(proxy);
    tells(observer, "third");
    give_back(granted(behind));
    tells(observer, NULL);
    zklock_reason reason;
    OK(zklock_hold_wait_lost(lost, SOON_MS, &reason));
    zklock_observer_free(observer);
    free_all(NULL, first, client);
    free_all(lost, second, other);
    free_all(NULL, last, third);
    free_all(NULL, seen, audience);
}

TEST(an_observer_serves_an_event_loop) {
    const char *path = fresh_path();
    zklock_client *client = named_client(servers(), "first"), *other = follow(named_client(servers(), "second"));
    zklock_lock *first = stands(client, path), *second = stands(other, path);
    zklock_observer *observer = observes(second);
    const zklock_contender *leader;
    CHECK(expect(other, ZKLOCK_EVENT_LEADER).observer == observer);
    is_quiet(other, 0);
    OK(zklock_observer_next(observer, 0, &leader));
    CHECK(!leader);
    tells_nothing(observer, 0);
    is_quiet(other, 20);
    for (int round = 0; round < 10; round++) {
        zklock_hold *lead = acquire(round % 2 ? first : second, SOON_MS);
        CHECK(expect(other, ZKLOCK_EVENT_LEADER).observer == observer);
        OK(zklock_observer_next(observer, 0, &leader));
        CHECK(leader && !strcmp(leader->identity, round % 2 ? "first" : "second"));
        CHECK(!strcmp(leader->node, node_of(lead)) && leader->token == token_of(lead));
        is_quiet(other, 0);
        give_back(lead);
        CHECK(readable(descriptor_of(other), SOON_MS));
        /* A wait also takes a report that has already come, and its event. */
        tells(observer, NULL);
        is_quiet(other, 0);
    }
    OK(zklock_client_close(other));
    for (int seen = 0; seen < 2; seen++) {
        zklock_event event = next(other);
        CHECK(event.kind == ZKLOCK_EVENT_CLOSED || event.observer == observer);
    }
    /* An error is reported on every call, but has one event: a loop that takes all events would never end. */
    IS(zklock_observer_next(observer, 0, &leader), ZKLOCK_CLOSED);
    is_quiet(other, 20);
    IS(zklock_observer_next(observer, ZKLOCK_FOREVER, &leader), ZKLOCK_CLOSED);
    zklock_observer_free(observer);
    is_quiet(other, 20);
    free_all(NULL, first, client);
    free_all(NULL, second, other);
}

TEST(who_asks_without_waiting_is_told_in_the_end) {
    zklock_client *client = new_client();
    zklock_lock *lock = stands(client, fresh_path());
    zklock_observer *observer = observes(lock);
    const zklock_contender *leader;
    zklock_status status;
    EVENTUALLY((status = zklock_observer_next(observer, 0, &leader)) == ZKLOCK_OK);
    CHECK(!leader);
    tells_nothing(observer, 0);
    /* A program that only asks for events now must not miss a change that is on its way. */
    follow(client);
    zklock_hold *lead = acquire(lock, SOON_MS);
    CHECK(expect(client, ZKLOCK_EVENT_LEADER).observer == observer);
    OK(zklock_observer_next(observer, 0, &leader));
    CHECK(leader && leader->token == token_of(lead));
    is_quiet(client, 20);
    /* What is freed has no event. */
    give_back(lead);
    CHECK(readable(descriptor_of(client), SOON_MS));
    zklock_observer_free(observer);
    is_quiet(client, 20);
    free_all(NULL, lock, client);
}

TEST(a_bad_timeout_takes_no_news_away) {
    zklock_client *client = follow(new_client());
    zklock_lock *lock = stands(client, fresh_path());
    zklock_observer *observer = observes(lock);
    const zklock_contender *leader;
    tells(observer, NULL);
    IS(zklock_observer_next(observer, -5, &leader), ZKLOCK_INVALID_ARGUMENT);
    zklock_hold *lead = acquire(lock, SOON_MS);
    expect(client, ZKLOCK_EVENT_LEADER);
    OK(zklock_observer_next(observer, 0, &leader));
    CHECK(leader && leader->token == token_of(lead));
    /* Nor those that have come by then. */
    give_back(lead);
    CHECK(readable(descriptor_of(client), SOON_MS));
    IS(zklock_observer_next(observer, -5, &leader), ZKLOCK_INVALID_ARGUMENT);
    expect(client, ZKLOCK_EVENT_LEADER);
    OK(zklock_observer_next(observer, 0, &leader));
    CHECK(!leader);
    zklock_observer_free(observer);
    free_all(NULL, lock, client);
}

typedef struct {
    zklock_observer *observer;
    zklock_status status;
} wait;

static void *waits(void *given) {
    wait *wait = given;
    const zklock_contender *leader;
    wait->status = zklock_observer_next(wait->observer, ZKLOCK_FOREVER, &leader);
    return NULL;
}

TEST(several_may_wait_with_one_observer_and_all_end_with_the_client) {
    zklock_client *client = new_client();
    zklock_lock *lock = stands(client, fresh_path());
    zklock_observer *observer = observes(lock);
    wait all[3];
    thread *threads[3];
    tells(observer, NULL);
    for (int at = 0; at < 3; at++) {
        all[at] = (wait){observer, ZKLOCK_INTERNAL};
        threads[at] = start_thread(waits, &all[at]);
    }
    tells_nothing(observer, 30);
    OK(zklock_client_close(client));
    for (int at = 0; at < 3; at++) {
        join_thread(threads[at]);
        IS(all[at].status, ZKLOCK_CLOSED);
    }
    zklock_observer_free(observer);
    free_all(NULL, lock, client);
}

TEST(an_observer_outlives_a_session_and_costs_nobody_a_wake_up) {
    const char *path = fresh_path();
    int proxy;
    zklock_client *client = new_client(), *audience = proxied_client(&proxy);
    zklock_lock *lock = stands(client, path), *seen = stands(audience, path);
    zklock_observer *observer = observes(seen);
    zklock_hold *lead;
    zklock_lock_free(seen);
    tells(observer, NULL);
    expire_session(proxy);
    lead = acquire(lock, SOON_MS);
    const zklock_contender *leader;
    OK(zklock_observer_next(observer, SOON_MS, &leader));
    CHECK(leader && leader->token == token_of(lead) && leader->session == stats_of(client).session_id);
    CHECK(stats_of(audience).sessions == 2);
    give_back(lead);
    tells(observer, NULL);
    zklock_observer_free(observer);
    zklock_client_free(audience);
    free_all(NULL, lock, client);
}

TEST_MAIN("standalone max-session=4000", LISTED(one_leads_until_it_resigns_or_is_lost),
          LISTED(an_observer_serves_an_event_loop), LISTED(who_asks_without_waiting_is_told_in_the_end),
          LISTED(a_bad_timeout_takes_no_news_away),
          LISTED(several_may_wait_with_one_observer_and_all_end_with_the_client),
          LISTED(an_observer_outlives_a_session_and_costs_nobody_a_wake_up))
