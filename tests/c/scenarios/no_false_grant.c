/* Promise 7: a grant is delivered only with a live lease, checked at the moment of delivery. `granted` checks the lease before
 * anything else can run. */

#include "test.h"

/* The session timeout T of the waiters. */
#define WAITER_MS 2000
#define HEARTBEAT_MS (WAITER_MS / 10)
/* Longer than the lease that a write proves if only one write went before it (T/4), and shorter than the time for which
 * the client library waits for a sign of life (2/5 T). */
#define BEYOND_A_LEASE_MS (WAITER_MS * 3 / 10)

/* Checks that a hold that was just delivered is valid and has its node. */
static void is_live(const zklock_hold *hold, const zklock_client *client) {
    const char *node, *stat;
    unsigned long long czxid, owner;
    CHECK(state_of(hold) == ZKLOCK_STATE_HELD && valid_for(hold) > 0);
    OK(zklock_hold_node(hold, &node));
    stat = ground("stat %s", node);
    CHECK(sscanf(stat, "czxid=%llx", &czxid) == 1 && sscanf(strstr(stat, "owner="), "owner=%llx", &owner) == 1);
    CHECK(owner == stats_of(client).session_id);
    CHECK(token_of(hold) == czxid);
}

/* A holder, and a waiter behind a proxy, with its node. */
typedef struct {
    char path[64], node[160];
    int proxy;
    zklock_client *holder, *waiter;
    zklock_lock *holders, *waiters;
    zklock_hold *first;
    attempt *attempt;
} pair;

static void one_waits(pair *pair) {
    char names[512], hosts[128];
    const char *first;
    int watched;
    snprintf(pair->path, sizeof pair->path, "%s", fresh_path());
    pair->holder = new_client();
    pair->proxy = new_proxy(hosts, sizeof hosts);
    pair->waiter = client_with(hosts, WAITER_MS, 0);
    pair->holders = new_mutex(pair->holder, pair->path, 0);
    pair->waiters = new_mutex(pair->waiter, pair->path, 0);
    pair->first = acquire(pair->holders, SOON_MS);
    watched = new_hook("see-reply", pair->proxy, "get-data", 1, pair->path);
    pair->attempt = start_acquire(pair->waiters, 2 * SOON_MS);
    await_hook(watched);
    OK(zklock_hold_node(pair->first, &first));
    snprintf(names, sizeof names, "%s", ground("children %s", pair->path));
    for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
        if (strcmp(first + strlen(pair->path) + 1, name)) {
            snprintf(pair->node, sizeof pair->node, "%s/%.90s", pair->path, name);
        }
    }
    CHECK(pair->node[0]);
}

/* Checks that the waiter is granted the lock, with its old node or a new one. */
static void ends(pair *pair, int same_node, uint64_t sessions) {
    zklock_hold *hold = granted(pair->attempt);
    const char *node;
    is_live(hold, pair->waiter);
    OK(zklock_hold_node(hold, &node));
    CHECK((strcmp(node, pair->node) == 0) == same_node);
    CHECK(token_of(hold) > token_of(pair->first));
    CHECK(stats_of(pair->waiter).sessions == sessions);
    /* No dead hold was delivered. */
    CHECK(stats_of(pair->waiter).losses == 0);
    OK(zklock_release(hold));
    free_all(pair->first, pair->holders, pair->holder);
    free_all(hold, pair->waiters, pair->waiter);
}

TEST(a_watch_event_or_check_that_comes_after_the_lease_grants_no_dead_hold) {
    pair pair = {.proxy = 0};
    int hooks[3];
    one_waits(&pair);
    /* After this the opening of the session proves nothing any more. */
    sleep_ms(WAITER_MS);
    hooks[0] = new_hook("hold-reply", pair.proxy, "event", 1, pair.path);
    /* The check of its own node. After a long silence it also asks about the node ahead. */
    hooks[1] = new_hook("hold-reply", pair.proxy, "multi", 1, pair.node);
    hooks[2] = new_hook("hold-reply", pair.proxy, "multi", 2, pair.node);
    /* Otherwise it might reconnect in the middle of a late answer. */
    await_hook(new_hook("see-reply", pair.proxy, "ping", 1, ""));
    OK(zklock_release(pair.first));
    for (int at = 0; at < 3; at++) {
        await_hook(hooks[at]);
        sleep_ms(BEYOND_A_LEASE_MS);
        /* Nothing proves that the session is alive. */
        CHECK(!is_over(pair.attempt));
        ground("open %d", hooks[at]);
    }
    ends(&pair, 1, 1);
}

TEST(a_waiter_whose_node_was_deleted_long_ago_gets_no_hold_without_a_node) {
    pair pair = {.proxy = 0};
    one_waits(&pair);
    ground("delete %s", pair.node);
    sleep_ms(HEARTBEAT_MS + 50);
    OK(zklock_release(pair.first));
    ends(&pair, 0, 1);
}

TEST(a_waiter_whose_session_expires_queues_again_in_the_next) {
    pair pair = {.proxy = 0};
    one_waits(&pair);
    expire_session(pair.proxy);
    EVENTUALLY(!strcmp(ground("exists %s", pair.node), "false"));
    wait_for_contenders(pair.path, 2);
    /* It is back in the queue, and not granted before its turn. */
    CHECK(!is_over(pair.attempt));
    CHECK(state_of(pair.first) == ZKLOCK_STATE_HELD);
    OK(zklock_release(pair.first));
    ends(&pair, 0, 2);
}

TEST(a_waiter_whose_session_expires_with_the_lock_free_meanwhile_gets_no_dead_hold) {
    /* The event that makes it the next to hold reaches the client after the end of its session. */
    pair pair = {.proxy = 0};
    zklock_client *other = new_client();
    zklock_hold *second;
    zklock_lock *lock;
    int gate;
    one_waits(&pair);
    gate = new_hook("hold-reply", pair.proxy, "event", 1, pair.path);
    OK(zklock_release(pair.first));
    await_hook(gate);
    expire_session(pair.proxy);
    lock = new_mutex(other, pair.path, 0);
    second = acquire(lock, SOON_MS);
    sleep_ms(BEYOND_A_LEASE_MS);
    ground("open %d", gate);
    wait_for_contenders(pair.path, 2);
    CHECK(!is_over(pair.attempt));
    CHECK(state_of(second) == ZKLOCK_STATE_HELD);
    OK(zklock_release(second));
    ends(&pair, 0, 2);
    free_all(second, lock, other);
}

/* The grant comes while the whole process is stopped, for longer than a lease or a session. */
static void slept_through(int64_t stop) {
    const char *path = fresh_path(), *node;
    char before[128];
    zklock_client *client = client_with(servers(), 1000, 0);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *fetched;
    zklock_call *waiting;
    zklock_status status;
    attempt *attempt;
    int descriptor;
    /* A persistent node is ahead of both of them. */
    snprintf(before, sizeof before, "%s/_c_01234567-89ab-4cde-8f01-23456789abcd-lock-0000000000", path);
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    ground("create %s", before);
    attempt = start_acquire(lock, SOON_MS);
    wait_for_contenders(path, 2);
    OK(zklock_acquire_start(lock, SOON_MS, &waiting));
    OK(zklock_call_fd(waiting, &descriptor));

    while_stopped(stop, "delete %s", before);
    hold = granted(attempt);
    OK(zklock_hold_node(hold, &node));
    CHECK(!strcmp(ground("exists %s", node), "true"));
    CHECK(state_of(hold) == ZKLOCK_STATE_HELD);
    CHECK(!readable(descriptor, 0));
    OK(zklock_release(hold));
    zklock_hold_free(hold);

    /* The call has its grant, but the process is stopped before it is fetched. */
    CHECK(readable(descriptor, SOON_MS));
    while_stopped(stop, "exists %s", path);
    status = zklock_call_hold(waiting, &fetched);
    if (status == ZKLOCK_OK) {
        CHECK(valid_for(fetched) > 0);
        OK(zklock_hold_node(fetched, &node));
        CHECK(!strcmp(ground("exists %s", node), "true"));
        OK(zklock_release(fetched));
        zklock_hold_free(fetched);
    } else {
        CHECK(status == ZKLOCK_LOST);
        SAYS(path);
    }
    zklock_call_free(waiting);
    settled(client);
    wait_for_contenders(path, 0);
    free_all(NULL, lock, client);
}

TEST(a_grant_that_the_process_slept_through_is_not_delivered) {
    /* Past the lease, and past the session. */
    slept_through(690);
    slept_through(1750);
}

TEST(a_wait_longer_than_several_leases_ends_in_a_live_hold) {
    const char *path = fresh_path();
    zklock_client *holder = new_client(), *waiter = client_with(servers(), 400, 0);
    zklock_lock *holders = new_mutex(holder, path, 0), *lock = new_mutex(waiter, path, 0);
    zklock_hold *first = acquire(holders, SOON_MS), *hold;
    attempt *attempt = start_acquire(lock, SOON_MS);
    sleep_ms(1200);
    CHECK(!is_over(attempt));
    OK(zklock_release(first));
    hold = granted(attempt);
    CHECK(token_of(hold) > token_of(first));
    free_all(first, holders, holder);
    free_all(hold, lock, waiter);
}

TEST_MAIN("standalone tick=200 max-session=4000",
          LISTED(a_watch_event_or_check_that_comes_after_the_lease_grants_no_dead_hold),
          LISTED(a_waiter_whose_node_was_deleted_long_ago_gets_no_hold_without_a_node),
          LISTED(a_waiter_whose_session_expires_queues_again_in_the_next),
          LISTED(a_waiter_whose_session_expires_with_the_lock_free_meanwhile_gets_no_dead_hold),
          LISTED(a_grant_that_the_process_slept_through_is_not_delivered),
          LISTED(a_wait_longer_than_several_leases_ends_in_a_live_hold))
