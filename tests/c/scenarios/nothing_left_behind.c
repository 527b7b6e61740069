/* Promise 5: an attempt that fails, and a release whose reply is lost, leave no node. */

#include "test.h"

static uint64_t czxid_of(const zklock_hold *hold, uint64_t *owner) {
    const char *node;
    unsigned long long czxid = 0, own = 0;
    OK(zklock_hold_node(hold, &node));
    const char *stat = ground("stat %s", node);
    CHECK(sscanf(stat, "czxid=%llx", &czxid) == 1 && sscanf(strstr(stat, "owner="), "owner=%llx", &own) == 1);
    if (owner) *owner = own;
    return czxid;
}

TEST(a_node_whose_reply_was_lost_is_adopted) {
    const char *path = fresh_path();
    int proxy, lost;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    unsigned long sequence = sequence_of(hold);
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    lost = new_hook("drop-reply", proxy, "create", 1, path);
    hold = acquire(lock, SOON_MS);
    CHECK(hook_fired(lost) && contenders_at(path) == 1);
    /* The hold has the node whose reply was lost: nothing was created since. */
    CHECK(sequence_of(hold) == sequence + 1);
    CHECK(token_of(hold) == czxid_of(hold, NULL));
    OK(zklock_release(hold));
    CHECK(contenders_at(path) == 0);
    free_all(hold, lock, client);
}

TEST(a_request_that_was_lost_is_sent_again_and_no_second_node_comes_of_it) {
    const char *path = fresh_path();
    int proxy, lost;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    lost = new_hook("drop-request", proxy, "create", 1, path);
    hold = acquire(lock, SOON_MS);
    CHECK(hook_fired(lost) && contenders_at(path) == 1);
    OK(zklock_release(hold));
    CHECK(contenders_at(path) == 0);
    free_all(hold, lock, client);
}

TEST(a_node_lost_with_its_session_is_followed_by_one_of_the_next_session) {
    const char *path = fresh_path();
    int proxy, lost;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    uint64_t first = stats_of(client).session_id, owner;
    attempt *attempt;
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    ground("refuse %d on", proxy);
    lost = new_hook("drop-reply", proxy, "create", 1, path);
    attempt = start_acquire(lock, ZKLOCK_FOREVER);
    await_hook(lost);
    CHECK(contenders_at(path) == 1);
    expire_session(proxy);
    hold = granted(attempt);
    CHECK(contenders_at(path) == 1);
    CHECK(token_of(hold) == czxid_of(hold, &owner));
    CHECK(owner == stats_of(client).session_id && owner != first);
    CHECK(stats_of(client).sessions == 2);
    OK(zklock_release(hold));
    CHECK(contenders_at(path) == 0);
    free_all(hold, lock, client);
}

TEST(a_release_whose_request_or_reply_is_lost_is_done_all_the_same) {
    const char *path = fresh_path(), *const lose[] = {"drop-request", "drop-reply"};
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, path, 0);
    for (int side = 0; side < 2; side++) {
        zklock_hold *hold = acquire(lock, SOON_MS);
        int lost = new_hook(lose[side], proxy, "delete", 1, path);
        OK(zklock_release(hold));
        CHECK(hook_fired(lost) && state_of(hold) == ZKLOCK_STATE_RELEASED);
        CHECK(contenders_at(path) == 0);
        CHECK(stats_of(client).owed == 0);
        zklock_hold_free(hold);
    }
    free_all(NULL, lock, client);
}

/* A holder, and a second client, which comes behind it through a proxy. */
typedef struct {
    const char *path;
    zklock_client *holder, *client;
    zklock_lock *holders, *lock;
    zklock_hold *hold;
    int proxy;
} two;

static void meet(two *two) {
    static __thread char path[64];
    snprintf(path, sizeof path, "%s", fresh_path());
    two->path = path;
    two->holder = new_client();
    two->client = proxied_client(&two->proxy);
    two->holders = new_mutex(two->holder, path, 0);
    two->lock = new_mutex(two->client, path, 0);
    two->hold = acquire(two->holders, SOON_MS);
}

/* Checks that only the holder's node is left, and then nothing at all. */
static void part(two *two) {
    const char *node;
    wait_for_contenders(two->path, 1);
    settled(two->client);
    OK(zklock_hold_node(two->hold, &node));
    CHECK(!strcmp(ground("exists %s", node), "true"));
    OK(zklock_release(two->hold));
    CHECK(contenders_at(two->path) == 0);
    free_all(two->hold, two->holders, two->holder);
    free_all(NULL, two->lock, two->client);
}

TEST(an_acquire_that_timed_out_or_was_not_to_wait_leaves_no_node) {
    two two;
    zklock_hold *none;
    zklock_call *waiting;
    meet(&two);
    for (int64_t timeout = 0; timeout <= 100; timeout += 50) {
        int descriptor;
        IS(zklock_acquire(two.lock, timeout, &none), ZKLOCK_TIMEOUT);
        wait_for_contenders(two.path, 1);
        OK(zklock_acquire_start(two.lock, timeout, &waiting));
        OK(zklock_call_fd(waiting, &descriptor));
        CHECK(readable(descriptor, SOON_MS));
        IS(zklock_call_hold(waiting, &none), ZKLOCK_TIMEOUT);
        wait_for_contenders(two.path, 1);
        zklock_call_free(waiting);
    }
    part(&two);
}

/* An attempt that is given up at every step, by a cancel or by freeing its call, leaves nothing. */
TEST(a_started_acquire_that_is_cancelled_or_freed_at_any_step_leaves_no_node) {
    static const char *const steps[][2] = {{"hold-request", "create"},       {"hold-reply", "create"},
                                           {"hold-request", "get-children"}, {"hold-reply", "get-children"},
                                           {"hold-request", "get-data"},     {"hold-reply", "get-data"}};
    two two;
    meet(&two);
    for (size_t step = 0; step < sizeof steps / sizeof *steps; step++) {
        for (int frees = 0; frees < 2; frees++) {
            zklock_call *waiting;
            zklock_hold *none;
            int gate = new_hook(steps[step][0], two.proxy, steps[step][1], 1, two.path);
            OK(zklock_acquire_start(two.lock, ZKLOCK_FOREVER, &waiting));
            await_hook(gate);
            if (!frees) {
                OK(zklock_call_cancel(waiting));
                IS(zklock_call_hold(waiting, &none), ZKLOCK_INTERRUPTED);
            }
            zklock_call_free(waiting);
            EVENTUALLY(stats_of(two.client).owed == 1);
            ground("open %d", gate);
            settled(two.client);
            CHECK(contenders_at(two.path) == 1);
        }
    }
    part(&two);
}

TEST(what_is_owed_is_counted_until_it_is_paid) {
    two two;
    zklock_call *waiting;
    meet(&two);
    OK(zklock_acquire_start(two.lock, ZKLOCK_FOREVER, &waiting));
    wait_for_contenders(two.path, 2);
    /* The caller is still there. */
    CHECK(stats_of(two.client).owed == 0);
    ground("freeze %d both", two.proxy);
    zklock_call_free(waiting);
    EVENTUALLY(stats_of(two.client).owed == 1);
    CHECK(contenders_at(two.path) == 2);
    CHECK(stats_of(two.client).owed == 1);
    ground("thaw %d", two.proxy);
    settled(two.client);
    /* Once nothing is owed, the node is gone. */
    CHECK(contenders_at(two.path) == 1);
    part(&two);
}

TEST(what_is_owed_is_counted_from_the_moment_that_the_caller_has_its_answer) {
    two two;
    meet(&two);
    for (int round = 0; round < 20; round++) {
        zklock_hold *none;
        int gate = new_hook("hold-request", two.proxy, "delete", 1, two.path);
        IS(zklock_acquire(two.lock, 10, &none), ZKLOCK_TIMEOUT);
        /* A program that ends its process when nothing is owed relies on this. */
        CHECK(stats_of(two.client).owed == 1 || hook_fired(gate));
        await_hook(gate);
        CHECK(stats_of(two.client).owed == 1);
        ground("open %d", gate);
        settled(two.client);
        CHECK(contenders_at(two.path) == 1);
    }
    part(&two);
}

TEST(what_is_owed_is_counted_from_the_moment_that_a_hold_is_freed) {
    const char *path = fresh_path();
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, path, 0);
    for (int round = 0; round < 40; round++) {
        int gate = new_hook("hold-request", proxy, "delete", 1, path), descriptor;
        zklock_hold *hold = acquire(lock, SOON_MS);
        if (round % 2) OK(zklock_hold_fd(hold, &descriptor));
        zklock_hold_free(hold);
        uint64_t owed = stats_of(client).owed;
        if (owed != 1) failed(__FILE__, __LINE__, "round %d: the node is there, and %d owed", round, (int)owed);
        await_hook(gate);
        ground("open %d", gate);
        settled(client);
        CHECK(contenders_at(path) == 0);
    }
    free_all(NULL, lock, client);
}

TEST(what_is_owed_is_counted_from_the_moment_that_a_started_acquire_is_cancelled_or_freed) {
    two two;
    meet(&two);
    for (int round = 0; round < 40; round++) {
        zklock_call *waiting;
        zklock_hold *none;
        uint64_t owed;
        int gate = new_hook("hold-request", two.proxy, "delete", 1, two.path);
        OK(zklock_acquire_start(two.lock, ZKLOCK_FOREVER, &waiting));
        wait_for_contenders(two.path, 2);
        if (round % 2) {
            OK(zklock_call_cancel(waiting));
            IS(zklock_call_hold(waiting, &none), ZKLOCK_INTERRUPTED);
        } else {
            zklock_call_free(waiting);
        }
        owed = stats_of(two.client).owed;
        if (owed != 1) failed(__FILE__, __LINE__, "round %d: the node is there, and %d owed", round, (int)owed);
        await_hook(gate);
        ground("open %d", gate);
        if (round % 2) zklock_call_free(waiting);
        settled(two.client);
        CHECK(contenders_at(two.path) == 1);
    }
    part(&two);
}

TEST(a_hold_that_is_freed_is_released_and_so_is_one_on_a_sick_network) {
    const char *path = fresh_path();
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold;
    zklock_hold_free(acquire(lock, SOON_MS));
    wait_for_contenders(path, 0);
    hold = acquire(lock, SOON_MS);
    ground("reset %d", proxy);
    zklock_hold_free(hold);
    wait_for_contenders(path, 0);
    settled(client);
    /* Even a thread that does not own the hold, and so could not release it, may free it. */
    zklock_lock *reentrant = new_mutex(client, path, ZKLOCK_REENTRANT);
    hold = granted(start_acquire(reentrant, SOON_MS));
    zklock_hold_free(hold);
    wait_for_contenders(path, 0);
    zklock_lock_free(reentrant);
    free_all(NULL, lock, client);
}

TEST(a_client_that_is_freed_without_close_takes_its_nodes_and_its_session_along) {
    const char *path = fresh_path();
    int proxy, closed;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    zklock_call *waiting;
    closed = new_hook("see-request", proxy, "close", 1, "");
    OK(zklock_acquire_start(lock, ZKLOCK_FOREVER, &waiting));
    wait_for_contenders(path, 2);
    zklock_client_free(client);
    zklock_lock_free(lock);
    /* A hold keeps the client that it needs. */
    OK(zklock_hold_confirm(hold, NULL));
    CHECK(!hook_fired(closed));
    zklock_call_free(waiting);
    wait_for_contenders(path, 1);
    zklock_hold_free(hold);
    wait_for_contenders(path, 0);
    /* The session is closed, not left to time out. */
    await_hook(closed);
    EVENTUALLY(!strcmp(ground("connections %d", proxy), "0"));
}

TEST(what_was_asked_for_in_vain_while_disconnected_is_never_sent) {
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    const char *online = fresh_path();
    char offline[64];
    zklock_lock *other = new_mutex(client, online, 0), *lock;
    zklock_hold *hold;
    snprintf(offline, sizeof offline, "%s-offline", online);
    lock = new_mutex(client, offline, 0);
    ground("refuse %d on", proxy);
    ground("reset %d", proxy);
    do {
        CHECK(zklock_acquire(other, 30, &hold) != ZKLOCK_OK);
    } while (!strstr(zklock_last_error(), "no server answers"));
    ground("record %d", proxy);
    IS(zklock_acquire(lock, 100, &hold), ZKLOCK_UNREACHABLE);
    ground("refuse %d off", proxy);
    hold = acquire(other, SOON_MS);
    OK(zklock_release(hold));
    CHECK(!strstr(ground("messages %d", proxy), offline));
    CHECK(strstr(ground("messages %d", proxy), online));
    zklock_lock_free(lock);
    free_all(hold, other, client);
}

TEST_MAIN("standalone max-session=4000", LISTED(a_node_whose_reply_was_lost_is_adopted),
          LISTED(a_request_that_was_lost_is_sent_again_and_no_second_node_comes_of_it),
          LISTED(a_node_lost_with_its_session_is_followed_by_one_of_the_next_session),
          LISTED(a_release_whose_request_or_reply_is_lost_is_done_all_the_same),
          LISTED(an_acquire_that_timed_out_or_was_not_to_wait_leaves_no_node),
          LISTED(a_started_acquire_that_is_cancelled_or_freed_at_any_step_leaves_no_node),
          LISTED(what_is_owed_is_counted_until_it_is_paid),
          LISTED(what_is_owed_is_counted_from_the_moment_that_the_caller_has_its_answer),
          LISTED(a_hold_that_is_freed_is_released_and_so_is_one_on_a_sick_network),
          LISTED(a_client_that_is_freed_without_close_takes_its_nodes_and_its_session_along),
          LISTED(what_was_asked_for_in_vain_while_disconnected_is_never_sent),
          LISTED(what_is_owed_is_counted_from_the_moment_that_a_hold_is_freed),
          LISTED(what_is_owed_is_counted_from_the_moment_that_a_started_acquire_is_cancelled_or_freed))
