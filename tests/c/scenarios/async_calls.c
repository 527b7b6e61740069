/* Calls that run in the background: their results, their ends, and objects that go on without them. */

#include "test.h"

enum { AT_ONCE_MS = 200, MANY = 200 };

static int descriptor_of(zklock_call *call) {
    int descriptor;
    OK(zklock_call_fd(call, &descriptor));
    return descriptor;
}

static void await_call(zklock_call *call) { CHECK(readable(descriptor_of(call), SOON_MS)); }

/* Waits for the result, which is a number, and frees the call. */
static int64_t number_of(zklock_call *call) {
    int64_t number = -1;
    await_call(call);
    OK(zklock_call_finish(call, &number));
    /* The result may be fetched again, and the descriptor stays readable. */
    OK(zklock_call_finish(call, NULL));
    CHECK(readable(descriptor_of(call), 0));
    zklock_call_free(call);
    return number;
}

/* Waits for a failure, and frees the call. */
static void fails_with(zklock_call *call, zklock_status status) {
    int64_t number = -1;
    await_call(call);
    IS(zklock_call_finish(call, &number), status);
    CHECK(number == -1);
    zklock_call_free(call);
}

/* Checks that a call has no result yet. */
static void goes_on(zklock_call *call) {
    CHECK(!readable(descriptor_of(call), 30));
    IS(zklock_call_finish(call, NULL), ZKLOCK_PENDING);
}

static zklock_client *connected(void) {
    zklock_call *call;
    zklock_client *client;
    OK(zklock_client_new_start(servers(), NULL, &call));
    await_call(call);
    OK(zklock_call_client(call, &client));
    IS(zklock_call_client(call, &client), ZKLOCK_NOT_HELD);
    zklock_call_free(call);
    return client;
}

static void count(const zklock_contender *contender, void *context) { *(int *)context += contender->holds ? 100 : 1; }

TEST(each_gives_what_the_call_that_waits_gives) {
    const char *path = fresh_path();
    char written[96];
    zklock_client *client = connected();
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    zklock_call *waiter;
    zklock_call *call;
    OK(zklock_acquire_start(lock, ZKLOCK_FOREVER, &waiter));
    wait_for_contenders(path, 2);

    int seen = 0;
    OK(zklock_contenders_start(lock, &call));
    await_call(call);
    OK(zklock_call_contenders(call, count, &seen));
    CHECK(seen == 101);
    CHECK(number_of(call) == 2);

    OK(zklock_hold_confirm_start(hold, &call));
    CHECK(number_of(call) > 0);

    snprintf(written, sizeof written, "%s-written", path);
    int32_t versions[] = {-1, -1};
    zklock_write writes[] = {{.kind = ZKLOCK_WRITE_CREATE, .path = written, .data = "1", .length = 1},
                             {.kind = ZKLOCK_WRITE_SET, .path = written, .data = "2", .length = 1, .version = 0}};
    OK(zklock_hold_commit_start(hold, writes, 2, &call));
    /* The call has copied the writes. */
    memset(writes, 0xFF, sizeof writes);
    await_call(call);
    OK(zklock_call_versions(call, versions));
    CHECK(versions[0] == 0 && versions[1] == 1);
    CHECK(number_of(call) == 2);

    OK(zklock_release_start(hold, &call));
    CHECK(number_of(call) == 0);
    IS(zklock_release(hold), ZKLOCK_NOT_HELD);
    zklock_call_free(waiter);
    zklock_hold_free(hold);

    OK(zklock_client_close_start(client, &call));
    CHECK(number_of(call) == 0);
    zklock_hold *none;
    IS(zklock_acquire(lock, 0, &none), ZKLOCK_CLOSED);
    free_all(NULL, lock, client);
}

TEST(barriers_are_set_waited_for_and_entered) {
    zklock_client *client = new_client();
    zklock_barrier *barrier = new_barrier(client, fresh_path());
    zklock_call *call, *waits;
    OK(zklock_barrier_set_start(barrier, &call));
    CHECK(number_of(call) == 1);
    OK(zklock_barrier_set_start(barrier, &call));
    CHECK(number_of(call) == 0);
    OK(zklock_barrier_is_set_start(barrier, &call));
    CHECK(number_of(call) == 1);
    OK(zklock_barrier_wait_start(barrier, 0, &call));
    fails_with(call, ZKLOCK_TIMEOUT);
    OK(zklock_barrier_wait_start(barrier, ZKLOCK_FOREVER, &waits));
    goes_on(waits);
    OK(zklock_barrier_remove_start(barrier, &call));
    CHECK(number_of(call) == 1);
    CHECK(number_of(waits) == 0);
    zklock_barrier_free(barrier);

    zklock_double_barrier *round = new_double_barrier(client, fresh_path(), 2);
    zklock_call *enters[2], *leaves[2];
    zklock_member *members[2];
    OK(zklock_double_barrier_enter_start(round, ZKLOCK_FOREVER, &enters[0]));
    goes_on(enters[0]);
    IS(zklock_call_member(enters[0], &members[0]), ZKLOCK_PENDING);
    OK(zklock_double_barrier_enter_start(round, SOON_MS, &enters[1]));
    for (int at = 0; at < 2; at++) {
        await_call(enters[at]);
        OK(zklock_call_finish(enters[at], NULL));
        OK(zklock_call_member(enters[at], &members[at]));
        IS(zklock_call_member(enters[at], &members[at]), ZKLOCK_NOT_HELD);
        zklock_call_free(enters[at]);
    }
    OK(zklock_member_leave_start(members[0], ZKLOCK_FOREVER, &leaves[0]));
    goes_on(leaves[0]);
    OK(zklock_member_leave_start(members[1], SOON_MS, &leaves[1]));
    for (int at = 0; at < 2; at++) CHECK(number_of(leaves[at]) == 0);
    OK(zklock_member_leave_start(members[0], 0, &call));
    fails_with(call, ZKLOCK_NOT_HELD);
    for (int at = 0; at < 2; at++) zklock_member_free(members[at]);
    zklock_double_barrier_free(round);
    zklock_client_free(client);
}

static void *releases_in_vain(void *hold) {
    zklock_call *call;
    OK(zklock_release_start(hold, &call));
    fails_with(call, ZKLOCK_NOT_OWNER);
    return NULL;
}

TEST(a_failure_comes_with_the_result) {
    zklock_client *client = new_client();
    const char *path = fresh_path();
    zklock_lock *lock = new_mutex(client, path, ZKLOCK_REENTRANT);
    zklock_hold *hold = acquire(lock, SOON_MS), *inner = acquire(lock, SOON_MS);
    zklock_call *call;

    zklock_write writes[] = {{.kind = ZKLOCK_WRITE_CREATE, .path = "/async-calls-conflict"},
                             {.kind = ZKLOCK_WRITE_DELETE, .path = "/there/is/none", .version = ZKLOCK_ANY_VERSION}};
    OK(zklock_hold_commit_start(hold, writes, 2, &call));
    await_call(call);
    IS(zklock_call_finish(call, NULL), ZKLOCK_CONFLICT);
    CHECK(zklock_last_conflict() == 1);
    SAYS("zklock_call_finish");
    IS(zklock_call_versions(call, NULL), ZKLOCK_CONFLICT);
    zklock_call_free(call);

    join_thread(start_thread(releases_in_vain, hold));
    /* The first release of a reentrant lock waits for nothing. */
    OK(zklock_release_start(inner, &call));
    CHECK(readable(descriptor_of(call), 0));
    CHECK(number_of(call) == 0);
    CHECK(state_of(hold) == ZKLOCK_STATE_HELD && contenders_at(path) == 1);
    OK(zklock_release_start(inner, &call));
    fails_with(call, ZKLOCK_NOT_HELD);

    ground("delete %s", node_of(hold));
    zklock_reason reason;
    OK(zklock_hold_wait_lost(hold, SOON_MS, &reason));
    OK(zklock_hold_confirm_start(hold, &call));
    fails_with(call, ZKLOCK_LOST);
    OK(zklock_release_start(hold, &call));
    fails_with(call, ZKLOCK_LOST);
    zklock_hold_free(inner);

    zklock_options *hasty;
    OK(zklock_options_new(&hasty));
    OK(zklock_options_set_connect_timeout(hasty, 100));
    int64_t begun = now_ms();
    OK(zklock_client_new_start("127.0.0.1:1", hasty, &call));
    NOT_LATER(now_ms() - begun, AT_ONCE_MS);
    zklock_client *none;
    await_call(call);
    IS(zklock_call_client(call, &none), ZKLOCK_UNREACHABLE);
    fails_with(call, ZKLOCK_UNREACHABLE);
    zklock_options_free(hasty);
    free_all(hold, lock, client);
}

TEST(a_call_gives_only_what_is_its_own) {
    zklock_client *client = new_client(), *other;
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_call *call;
    zklock_member *member;
    int seen = 0;
    OK(zklock_contenders_start(lock, &call));
    await_call(call);
    IS(zklock_call_client(call, &other), ZKLOCK_INVALID_ARGUMENT);
    SAYS("does not give a client");
    IS(zklock_call_member(call, &member), ZKLOCK_INVALID_ARGUMENT);
    IS(zklock_call_versions(call, NULL), ZKLOCK_INVALID_ARGUMENT);
    OK(zklock_call_contenders(call, count, &seen));
    zklock_call_free(call);
    IS(zklock_call_finish(call, NULL), ZKLOCK_INVALID_HANDLE);
    free_all(NULL, lock, client);
}

TEST(a_cancelled_call_is_over_at_once_and_leaves_nothing_behind) {
    zklock_client *client = new_client();
    char path[96], entered[96];
    snprintf(path, sizeof path, "%s", fresh_path());
    snprintf(entered, sizeof entered, "%s", fresh_path());
    zklock_barrier *barrier = new_barrier(client, path);
    zklock_double_barrier *round = new_double_barrier(client, entered, 2);
    zklock_call *call;
    OK(zklock_barrier_set(barrier, NULL));
    OK(zklock_barrier_wait_start(barrier, ZKLOCK_FOREVER, &call));
    OK(zklock_call_cancel(call));
    CHECK(readable(descriptor_of(call), 0));
    IS(zklock_call_finish(call, NULL), ZKLOCK_INTERRUPTED);
    OK(zklock_barrier_remove(barrier, NULL));
    IS(zklock_call_finish(call, NULL), ZKLOCK_INTERRUPTED);
    zklock_call_free(call);

    for (int is_cancelled = 0; is_cancelled < 2; is_cancelled++) {
        OK(zklock_double_barrier_enter_start(round, ZKLOCK_FOREVER, &call));
        wait_for_contenders(entered, 1);
        if (is_cancelled) OK(zklock_call_cancel(call));
        zklock_call_free(call);
        wait_for_contenders(entered, 0);
    }
    settled(client);
    zklock_barrier_free(barrier);
    zklock_double_barrier_free(round);
    zklock_client_free(client);
}

TEST(what_has_begun_goes_on_without_its_call) {
    zklock_client *client = new_client(), *closing = new_client();
    char path[96], closed[96];
    snprintf(path, sizeof path, "%s", fresh_path());
    snprintf(closed, sizeof closed, "%s", fresh_path());
    zklock_lock *lock = new_mutex(client, path, 0), *of_closing = new_mutex(closing, closed, 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *lost = acquire(of_closing, SOON_MS);
    zklock_call *call;
    OK(zklock_release_start(hold, &call));
    zklock_call_free(call);
    zklock_hold_free(hold);
    EVENTUALLY(contenders_at(path) == 0);
    OK(zklock_client_close_start(closing, &call));
    OK(zklock_call_cancel(call));
    zklock_call_free(call);
    EVENTUALLY(contenders_at(closed) == 0);
    CHECK(state_of(lost) == ZKLOCK_STATE_LOST);
    free_all(lost, of_closing, closing);

    /* A member that nobody has fetched leaves. */
    zklock_double_barrier *round = new_double_barrier(client, closed, 1);
    OK(zklock_double_barrier_enter_start(round, SOON_MS, &call));
    await_call(call);
    CHECK(contenders_at(closed) > 0);
    zklock_call_free(call);
    wait_for_contenders(closed, 0);
    zklock_double_barrier_free(round);
    free_all(NULL, lock, client);
}

TEST(a_close_ends_the_calls_of_its_client) {
    zklock_client *client = new_client();
    zklock_double_barrier *round = new_double_barrier(client, fresh_path(), 2);
    zklock_call *enters, *closes;
    OK(zklock_double_barrier_enter_start(round, ZKLOCK_FOREVER, &enters));
    goes_on(enters);
    OK(zklock_client_close_start(client, &closes));
    fails_with(enters, ZKLOCK_CLOSED);
    CHECK(number_of(closes) == 0);
    zklock_double_barrier_free(round);
    zklock_client_free(client);
}

TEST(hundreds_run_at_once_in_one_thread) {
    zklock_client *client = new_client();
    zklock_double_barrier *round = new_double_barrier(client, fresh_path(), MANY);
    zklock_call *calls[MANY];
    /* Nobody enters before all are there, so no call can have waited for another one to end. */
    for (int at = 0; at < MANY; at++) {
        if (at == MANY - 1) goes_on(calls[0]);
        OK(zklock_double_barrier_enter_start(round, ZKLOCK_FOREVER, &calls[at]));
    }
    for (int at = 0; at < MANY; at++) CHECK(number_of(calls[at]) == 0);
    zklock_double_barrier_free(round);
    zklock_client_free(client);
}

TEST_MAIN("standalone", LISTED(each_gives_what_the_call_that_waits_gives),
          LISTED(barriers_are_set_waited_for_and_entered), LISTED(a_failure_comes_with_the_result),
          LISTED(a_call_gives_only_what_is_its_own), LISTED(a_cancelled_call_is_over_at_once_and_leaves_nothing_behind),
          LISTED(what_has_begun_goes_on_without_its_call), LISTED(a_close_ends_the_calls_of_its_client),
          LISTED(hundreds_run_at_once_in_one_thread))
