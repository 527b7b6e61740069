/* The barrier, at which all wait, and the double barrier, whose members begin and end together. */

#include "test.h"

#include <stdatomic.h>

/* A wait, an entry or a leave in a separate thread. */
typedef struct {
    zklock_barrier *barrier;
    zklock_double_barrier *double_barrier;
    zklock_member *member;
    int64_t timeout;
    zklock_status status;
    atomic_int over;
    thread *thread;
} visit;

static void *waits(void *given) {
    visit *visit = given;
    visit->status = zklock_barrier_wait(visit->barrier, visit->timeout);
    visit->over = 1;
    return NULL;
}

static void *enters(void *given) {
    visit *visit = given;
    visit->status = zklock_double_barrier_enter(visit->double_barrier, visit->timeout, &visit->member);
    visit->over = 1;
    return NULL;
}

static void *leaves(void *given) {
    visit *visit = given;
    visit->status = zklock_member_leave(visit->member, visit->timeout);
    visit->over = 1;
    return NULL;
}

static void start(visit *visit, void *(*run)(void *)) {
    visit->over = 0;
    visit->thread = start_thread(run, visit);
}

static void ends(visit *visit, zklock_status status) {
    join_thread(visit->thread);
    IS(visit->status, status);
}

TEST(all_wait_until_the_barrier_is_removed) {
    enum { WAITERS = 5 };
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_barrier *barrier = new_barrier(client, path), *others = new_barrier(other, path);
    visit waiters[WAITERS];
    int changed = -1, is_set = -1;
    OK(zklock_barrier_wait(others, 0));
    OK(zklock_barrier_is_set(others, &is_set));
    CHECK(!is_set);
    OK(zklock_barrier_set(barrier, &changed));
    CHECK(changed == 1 && !strcmp(ground("exists %s", path), "true"));
    OK(zklock_barrier_set(others, &changed));
    CHECK(changed == 0);
    OK(zklock_barrier_is_set(others, &is_set));
    CHECK(is_set == 1);
    IS(zklock_barrier_wait(others, 0), ZKLOCK_TIMEOUT);
    on_time();
    int64_t begun = now_ms();
    IS(zklock_barrier_wait(others, 100), ZKLOCK_TIMEOUT);
    CHECK(now_ms() - begun >= 100);
    NOT_LATER(now_ms() - begun, 100 + grace_ms());
    for (int at = 0; at < WAITERS; at++) {
        waiters[at] = (visit){.barrier = at % 2 ? barrier : others, .timeout = at == 0 ? ZKLOCK_FOREVER : SOON_MS};
        start(&waiters[at], waits);
    }
    sleep_ms(30);
    for (int at = 0; at < WAITERS; at++) CHECK(!waiters[at].over);
    /* Anyone may remove it. */
    OK(zklock_barrier_remove(others, &changed));
    CHECK(changed == 1);
    for (int at = 0; at < WAITERS; at++) ends(&waiters[at], ZKLOCK_OK);
    OK(zklock_barrier_remove(barrier, &changed));
    CHECK(changed == 0 && !strcmp(ground("exists %s", path), "false"));
    zklock_barrier_free(others);
    zklock_barrier_free(barrier);
    zklock_client_free(client);
    zklock_client_free(other);
}

TEST(a_barrier_outlives_who_set_it_and_a_wait_ends_with_its_client) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_barrier *barrier = new_barrier(client, path), *others = new_barrier(other, path);
    OK(zklock_barrier_set(barrier, NULL));
    zklock_barrier_free(barrier);
    OK(zklock_client_close(client));
    zklock_client_free(client);
    visit waiter = {.barrier = others, .timeout = ZKLOCK_FOREVER};
    start(&waiter, waits);
    sleep_ms(30);
    CHECK(!waiter.over);
    OK(zklock_client_close(other));
    ends(&waiter, ZKLOCK_CLOSED);
    IS(zklock_barrier_set(others, NULL), ZKLOCK_CLOSED);
    zklock_barrier_free(others);
    zklock_client_free(other);
}

TEST(members_begin_together_and_end_together) {
    enum { MEMBERS = 4, ROUNDS = 5 };
    const char *path = fresh_path();
    zklock_client *clients[MEMBERS];
    visit members[MEMBERS];
    for (int at = 0; at < MEMBERS; at++) {
        clients[at] = new_client();
        members[at] = (visit){.double_barrier = new_double_barrier(clients[at], path, MEMBERS), .timeout = SOON_MS};
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int at = 1; at < MEMBERS; at++) start(&members[at], enters);
        wait_for_contenders(path, MEMBERS - 1);
        for (int at = 1; at < MEMBERS; at++) CHECK(!members[at].over);
        start(&members[0], enters);
        for (int at = 0; at < MEMBERS; at++) {
            const char *node;
            zklock_reason reason;
            ends(&members[at], ZKLOCK_OK);
            OK(zklock_member_node(members[at].member, &node));
            CHECK(!strncmp(node, path, strlen(path)) && !strcmp(ground("exists %s", node), "true"));
            OK(zklock_member_loss(members[at].member, &reason));
            CHECK(reason == ZKLOCK_REASON_NONE);
        }
        for (int at = 1; at < MEMBERS; at++) start(&members[at], leaves);
        sleep_ms(20);
        for (int at = 1; at < MEMBERS; at++) CHECK(!members[at].over);
        start(&members[0], leaves);
        for (int at = 0; at < MEMBERS; at++) {
            ends(&members[at], ZKLOCK_OK);
            IS(zklock_member_leave(members[at].member, 0), ZKLOCK_NOT_HELD);
            zklock_member_free(members[at].member);
        }
    }
    for (int at = 0; at < MEMBERS; at++) {
        settled(clients[at]);
        zklock_double_barrier_free(members[at].double_barrier);
        zklock_client_free(clients[at]);
    }
    /* Nothing of the rounds is left. */
    EVENTUALLY(contenders_at(path) == 0);
}

TEST(who_comes_in_vain_leaves_nothing_behind) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_double_barrier *barrier = new_double_barrier(client, path, 2);
    zklock_member *none = NULL;
    IS(zklock_double_barrier_enter(barrier, 0, &none), ZKLOCK_TIMEOUT);
    /* The call ends before its node is gone. */
    wait_for_contenders(path, 0);
    on_time();
    int64_t begun = now_ms();
    IS(zklock_double_barrier_enter(barrier, 100, &none), ZKLOCK_TIMEOUT);
    CHECK(now_ms() - begun >= 100 && !none);
    NOT_LATER(now_ms() - begun, 100 + grace_ms());
    settled(client);
    wait_for_contenders(path, 0);
    visit waiter = {.double_barrier = barrier, .timeout = ZKLOCK_FOREVER};
    start(&waiter, enters);
    wait_for_contenders(path, 1);
    OK(zklock_client_close(client));
    ends(&waiter, ZKLOCK_CLOSED);
    wait_for_contenders(path, 0);
    zklock_double_barrier_free(barrier);
    zklock_client_free(client);
}

TEST(nobody_waits_for_a_member_that_is_freed_or_crashes) {
    const char *path = fresh_path();
    int proxy;
    zklock_client *client = new_client(), *crashes = proxied_client(&proxy), *third = new_client();
    zklock_client *const clients[] = {client, crashes, third};
    visit members[3];
    for (int at = 0; at < 3; at++) {
        members[at] = (visit){.double_barrier = new_double_barrier(clients[at], path, 3), .timeout = SOON_MS};
        start(&members[at], enters);
    }
    for (int at = 0; at < 3; at++) ends(&members[at], ZKLOCK_OK);
    /* The barrier is open, and two are within besides the one that leaves. */
    IS(zklock_member_leave(members[0].member, 50), ZKLOCK_TIMEOUT);
    zklock_member_free(members[0].member);
    zklock_member *late;
    OK(zklock_double_barrier_enter(members[0].double_barrier, SOON_MS, &late));
    members[0].member = late;
    start(&members[0], leaves);
    zklock_member_free(members[2].member);
    sleep_ms(30);
    CHECK(!members[0].over);
    expire_session(proxy);
    ends(&members[0], ZKLOCK_OK);
    zklock_reason reason = ZKLOCK_REASON_NONE;
    EVENTUALLY(!zklock_member_loss(members[1].member, &reason) && reason == ZKLOCK_REASON_SESSION_EXPIRED);
    IS(zklock_member_leave(members[1].member, SOON_MS), ZKLOCK_LOST);
    zklock_member_free(late);
    zklock_member_free(members[1].member);
    for (int at = 0; at < 3; at++) {
        zklock_double_barrier_free(members[at].double_barrier);
        settled(clients[at]);
        zklock_client_free(clients[at]);
    }
}

TEST(what_is_no_barrier_is_refused) {
    zklock_client *client = new_client();
    zklock_barrier *barrier = NULL;
    zklock_double_barrier *double_barrier = NULL;
    IS(zklock_barrier_new(client, "/", &barrier), ZKLOCK_INVALID_ARGUMENT);
    SAYS("is the root");
    IS(zklock_double_barrier_new(client, "/bad", 0, &double_barrier), ZKLOCK_INVALID_ARGUMENT);
    SAYS("without members");
    CHECK(!barrier && !double_barrier);
    zklock_client_free(client);
}

TEST_MAIN("standalone max-session=4000", LISTED(all_wait_until_the_barrier_is_removed),
          LISTED(a_barrier_outlives_who_set_it_and_a_wait_ends_with_its_client),
          LISTED(members_begin_together_and_end_together), LISTED(who_comes_in_vain_leaves_nothing_behind),
          LISTED(nobody_waits_for_a_member_that_is_freed_or_crashes), LISTED(what_is_no_barrier_is_refused))
