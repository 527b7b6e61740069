/* The barrier, at which all wait, and the double barrier, whose members begin and end together: the calls that block. */

#include "test.h"

/* A wait, an entry or a leave in a separate thread. */
typedef struct {
    zklock_barrier *barrier;
    zklock_double_barrier *doors;
    zklock_member *member;
    zklock_status status;
    int over;
    thread *thread;
} visit;

static void *waits(void *given) {
    visit *visit = given;
    if (visit->barrier) visit->status = zklock_barrier_wait(visit->barrier, ZKLOCK_FOREVER);
    if (visit->doors) visit->status = zklock_double_barrier_enter(visit->doors, ZKLOCK_FOREVER, &visit->member);
    if (!visit->barrier && !visit->doors) visit->status = zklock_member_leave(visit->member, ZKLOCK_FOREVER);
    __atomic_store_n(&visit->over, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void start(visit *visit) {
    visit->thread = start_thread(waits, visit);
    sleep_ms(30);
    CHECK(!__atomic_load_n(&visit->over, __ATOMIC_ACQUIRE));
}

static void ends(visit *visit, zklock_status status) {
    join_thread(visit->thread);
    IS(visit->status, status);
}

TEST(all_wait_until_the_barrier_is_removed_or_their_client_is_closed) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_barrier *barrier = new_barrier(client, path), *others = new_barrier(other, path);
    int changed = -1, is_set = -1;
    OK(zklock_barrier_wait(others, 0));
    OK(zklock_barrier_is_set(others, &is_set));
    CHECK(!is_set);
    OK(zklock_barrier_set(barrier, &changed));
    CHECK(changed == 1 && !strcmp(ground("exists %s", path), "true"));
    OK(zklock_barrier_set(others, &changed));
    OK(zklock_barrier_is_set(others, &is_set));
    CHECK(changed == 0 && is_set == 1);
    on_time();
    int64_t begun = now_ms();
    IS(zklock_barrier_wait(others, 100), ZKLOCK_TIMEOUT);
    CHECK(now_ms() - begun >= 100);
    NOT_LATER(now_ms() - begun, 100 + grace_ms());
    visit waiter = {.barrier = others};
    start(&waiter);
    /* Anyone may remove it. */
    OK(zklock_barrier_remove(barrier, &changed));
    CHECK(changed == 1);
    ends(&waiter, ZKLOCK_OK);
    OK(zklock_barrier_remove(barrier, &changed));
    CHECK(changed == 0);
    OK(zklock_barrier_set(barrier, NULL));
    waiter = (visit){.barrier = others};
    start(&waiter);
    OK(zklock_client_close(other));
    ends(&waiter, ZKLOCK_CLOSED);
    IS(zklock_barrier_set(others, NULL), ZKLOCK_CLOSED);
    OK(zklock_barrier_remove(barrier, NULL));
    zklock_barrier_free(others);
    zklock_barrier_free(barrier);
    zklock_client_free(client);
    zklock_client_free(other);
}

TEST(members_begin_and_end_together_and_a_member_is_told_of_its_loss) {
    rivals all = new_rivals();
    zklock_double_barrier *doors = new_double_barrier(all.client, all.path, 2), *others = new_double_barrier(all.other, all.path, 2);
    zklock_member *member = NULL;
    zklock_reason reason;
    const char *node;
    IS(zklock_double_barrier_enter(doors, 50, &member), ZKLOCK_TIMEOUT);
    CHECK(!member && contenders_at(all.path) == 0);
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        visit enters = {.doors = doors};
        start(&enters);
        OK(zklock_double_barrier_enter(others, SOON_MS, &member));
        ends(&enters, ZKLOCK_OK);
        OK(zklock_member_node(enters.member, &node));
        CHECK(!strncmp(node, all.path, strlen(all.path)) && !strcmp(ground("exists %s", node), "true"));
        OK(zklock_member_loss(enters.member, &reason));
        CHECK(reason == ZKLOCK_REASON_NONE);
        visit leaves = {.member = member};
        start(&leaves);
        if (is_lost) {
            expire_session(all.proxy);
            EVENTUALLY(!zklock_member_loss(enters.member, &reason) && reason == ZKLOCK_REASON_SESSION_EXPIRED);
            IS(zklock_member_leave(enters.member, SOON_MS), ZKLOCK_LOST);
        } else {
            OK(zklock_member_leave(enters.member, SOON_MS));
        }
        /* Nobody waits for a member that is gone. */
        ends(&leaves, ZKLOCK_OK);
        IS(zklock_member_leave(member, 0), ZKLOCK_NOT_HELD);
        zklock_member_free(enters.member);
        zklock_member_free(member);
    }
    /* Nor for one that is freed. */
    visit enters = {.doors = doors};
    start(&enters);
    OK(zklock_double_barrier_enter(others, SOON_MS, &member));
    ends(&enters, ZKLOCK_OK);
    IS(zklock_member_leave(member, 50), ZKLOCK_TIMEOUT);
    zklock_member_free(member);
    zklock_member_free(enters.member);
    zklock_double_barrier_free(doors);
    zklock_double_barrier_free(others);
    free_rivals(&all);
}

TEST(what_is_no_barrier_is_refused) {
    zklock_client *client = new_client();
    zklock_barrier *barrier = NULL;
    zklock_double_barrier *doors = NULL;
    IS(zklock_barrier_new(client, "/", &barrier), ZKLOCK_INVALID_ARGUMENT);
    SAYS("is the root");
    IS(zklock_double_barrier_new(client, "/bad", 0, &doors), ZKLOCK_INVALID_ARGUMENT);
    SAYS("without members");
    CHECK(!barrier && !doors);
    zklock_client_free(client);
}

TEST_MAIN(STANDALONE, LISTED(all_wait_until_the_barrier_is_removed_or_their_client_is_closed),
          LISTED(members_begin_and_end_together_and_a_member_is_told_of_its_loss), LISTED(what_is_no_barrier_is_refused))
