/* Jobs, which run once in each period. */

#include "events.h"

#include <unistd.h>

static zklock_run *begins(zklock_once *once) {
    zklock_run *run;
    OK(zklock_once_begin(once, SOON_MS, &run));
    return run;
}

static void is_done(zklock_once *once) {
    zklock_run *run;
    IS(zklock_once_begin(once, SOON_MS, &run), ZKLOCK_DONE);
}

static void ends(zklock_run *run) {
    OK(zklock_run_done(run));
    zklock_run_free(run);
}

static zklock_hold *hold_of_run(const zklock_run *run) {
    zklock_hold *hold;
    OK(zklock_run_hold(run, &hold));
    return hold;
}

static zklock_record last(zklock_once *once) {
    zklock_record record;
    memset(&record, 0x5A, sizeof record);
    OK(zklock_once_last(once, &record));
    for (size_t at = 0; at < sizeof record.reserved / sizeof *record.reserved; at++) CHECK(!record.reserved[at]);
    return record;
}

TEST(a_job_runs_once_in_its_period_and_tells_of_its_last_run) {
    zklock_client *client = new_client(), *other = new_client();
    const char *path = fresh_path();
    zklock_once *once = new_once(client, path), *others = new_once(other, path);
    zklock_run *none;
    zklock_record record = last(others);
    CHECK(record.outcome == ZKLOCK_RUN_NEVER && !record.began && !record.ended && !*record.identity);
    zklock_run *run = begins(once);
    uint64_t token = token_of(hold_of_run(run));
    record = last(others);
    CHECK(record.outcome == ZKLOCK_RUN_RUNNING && record.token == token && record.ended == -1);
    IS(zklock_once_begin(others, 0, &none), ZKLOCK_TIMEOUT);
    IS(zklock_once_begin(others, 50, &none), ZKLOCK_TIMEOUT);
    OK(zklock_run_done(run));
    IS(zklock_run_done(run), ZKLOCK_NOT_HELD);
    zklock_run_free(run);
    is_done(others);
    record = last(once);
    SAYS(path);
    SAYS(record.identity);
    CHECK(record.outcome == ZKLOCK_RUN_DONE && record.token == token && !*record.failure);
    CHECK(record.began > 0 && record.ended >= record.began && record.next == 31536000000000 && record.period == 0);
    char pid[32];
    snprintf(pid, sizeof pid, "/%d", (int)getpid());
    CHECK(strstr(record.identity, pid));
    zklock_once_free(once);
    zklock_once_free(others);
    free_all(NULL, NULL, client);
    free_all(NULL, NULL, other);
}

TEST(a_run_that_fails_or_is_freed_is_followed_by_another) {
    zklock_client *client = new_client();
    const char *path = fresh_path();
    zklock_once *once = new_once(client, path), *next;
    zklock_run *run = begins(once);
    char why[1001] = "";
    for (int at = 0; at < 500; at++) strcat(why, "\303\274");
    OK(zklock_run_failed(run, why));
    zklock_run_free(run);
    /* No half of a character. */
    zklock_record record = last(once);
    CHECK(record.outcome == ZKLOCK_RUN_FAILED && strlen(record.failure) == 510 && !strncmp(record.failure, why, 510));
    run = begins(once);
    zklock_run_free(run);
    CHECK(last(once).outcome == ZKLOCK_RUN_RUNNING);
    ends(begins(once));
    is_done(once);
    zklock_once_free(once);

    OK(zklock_once_new(client, fresh_path(), 31536000000000, 1000, ZKLOCK_AFTER_FAILURE_NEXT, &next));
    run = begins(next);
    OK(zklock_run_failed(run, "on purpose"));
    zklock_run_free(run);
    is_done(next);
    CHECK(last(next).next == 31536000001000);
    zklock_once_free(next);
    free_all(NULL, NULL, client);
}

TEST(a_run_whose_hold_is_lost_is_not_done) {
    zklock_client *client = new_client(), *other = new_client();
    const char *path = fresh_path();
    zklock_once *once = new_once(client, path), *others = new_once(other, path);
    zklock_run *run = begins(once);
    zklock_hold *hold = hold_of_run(run);
    zklock_reason reason;
    ground("delete %s", node_of(hold));
    OK(zklock_hold_wait_lost(hold, SOON_MS, &reason));
    zklock_run *next = begins(others);
    IS(zklock_run_done(run), ZKLOCK_LOST);
    SAYS("counts as failed");
    zklock_run_free(run);
    IS(zklock_hold_wait_lost(hold, 0, &reason), ZKLOCK_INVALID_HANDLE);
    ends(next);
    CHECK(last(once).outcome == ZKLOCK_RUN_DONE);
    zklock_once_free(once);
    zklock_once_free(others);
    free_all(NULL, NULL, client);
    free_all(NULL, NULL, other);
}

TEST(runs_are_begun_and_ended_in_an_event_loop) {
    zklock_client *client = follow(new_client()), *other = new_client();
    const char *path = fresh_path();
    zklock_once *once = new_once(client, path), *others = new_once(other, path);
    zklock_call *call, *ending;
    zklock_run *run, *none;
    zklock_hold *no_hold;
    int here;
    OK(zklock_once_begin_start(once, ZKLOCK_FOREVER, &call));
    OK(zklock_call_set_context(call, &here));
    CHECK(expect(client, ZKLOCK_EVENT_CALL).call == call);
    IS(zklock_call_hold(call, &no_hold), ZKLOCK_INVALID_ARGUMENT);
    OK(zklock_call_run(call, &run));
    IS(zklock_call_run(call, &none), ZKLOCK_NOT_HELD);
    zklock_call_free(call);
    /* Another process waits for the end, and has nothing to do then. */
    OK(zklock_once_begin_start(others, ZKLOCK_FOREVER, &call));
    /* With the record. */
    wait_for_contenders(path, 3);
    IS(zklock_call_run(call, &none), ZKLOCK_PENDING);
    OK(zklock_run_done_start(run, &ending));
    CHECK(expect(client, ZKLOCK_EVENT_CALL).call == ending);
    OK(zklock_call_finish(ending, NULL));
    zklock_call_free(ending);
    zklock_run_free(run);
    await_call(call);
    IS(zklock_call_run(call, &none), ZKLOCK_DONE);
    IS(zklock_call_finish(call, NULL), ZKLOCK_DONE);
    SAYS(path);
    zklock_call_free(call);
    zklock_once_free(once);
    zklock_once_free(others);

    /* A run that nobody takes counts as failed, and so does one whose end says so. */
    once = new_once(client, fresh_path());
    OK(zklock_once_begin_start(once, SOON_MS, &call));
    expect(client, ZKLOCK_EVENT_CALL);
    zklock_call_free(call);
    run = begins(once);
    OK(zklock_run_failed_start(run, "on purpose", &ending));
    expect(client, ZKLOCK_EVENT_CALL);
    OK(zklock_call_finish(ending, NULL));
    zklock_call_free(ending);
    zklock_run_free(run);
    CHECK(!strcmp(last(once).failure, "on purpose"));
    /* The loss of a run's hold is an event like any other. */
    OK(zklock_once_begin_start(once, SOON_MS, &call));
    OK(zklock_call_set_context(call, &here));
    expect(client, ZKLOCK_EVENT_CALL);
    OK(zklock_call_run(call, &run));
    zklock_call_free(call);
    ground("delete %s", node_of(hold_of_run(run)));
    zklock_event event = expect(client, ZKLOCK_EVENT_LOST);
    CHECK(event.hold == hold_of_run(run) && event.context == &here);
    zklock_run_free(run);
    zklock_once_free(once);
    free_all(NULL, NULL, client);
    free_all(NULL, NULL, other);
}

TEST_MAIN(STANDALONE)
