/* Jobs, which run once in each period. */

#include "events.h"

#include <unistd.h>

static zklock_hold *begins(zklock_job *job) {
    zklock_hold *run;
    OK(zklock_job_begin(job, SOON_MS, &run));
    return run;
}

static void is_done(zklock_job *job) {
    zklock_hold *run;
    IS(zklock_job_begin(job, SOON_MS, &run), ZKLOCK_DONE);
}

static void ends(zklock_hold *run) {
    OK(zklock_job_end(run, NULL));
    zklock_hold_free(run);
}

static zklock_record last(zklock_job *job) {
    zklock_record record;
    memset(&record, 0x5A, sizeof record);
    OK(zklock_job_last(job, &record));
    for (size_t at = 0; at < sizeof record.reserved / sizeof *record.reserved; at++) CHECK(!record.reserved[at]);
    return record;
}

TEST(a_job_runs_once_in_its_period_and_tells_of_its_last_run) {
    zklock_client *client = new_client(), *other = new_client();
    const char *path = fresh_path();
    zklock_job *job = new_job(client, path), *others = new_job(other, path);
    zklock_hold *none;
    zklock_record record = last(others);
    CHECK(record.outcome == ZKLOCK_RUN_NEVER && !record.began && !record.ended && !*record.identity);
    zklock_hold *run = begins(job);
    uint64_t token = token_of(run);
    record = last(others);
    CHECK(record.outcome == ZKLOCK_RUN_RUNNING && record.token == token && record.ended == -1);
    IS(zklock_job_begin(others, 0, &none), ZKLOCK_TIMEOUT);
    IS(zklock_job_begin(others, 50, &none), ZKLOCK_TIMEOUT);
    OK(zklock_job_end(run, NULL));
    IS(zklock_job_end(run, NULL), ZKLOCK_NOT_HELD);
    zklock_hold_free(run);
    is_done(others);
    /* It is no failure. */
    SAYS("zklock_job_end: ");
    record = last(job);
    CHECK(record.outcome == ZKLOCK_RUN_DONE && record.token == token && !*record.failure);
    CHECK(record.began > 0 && record.ended >= record.began && record.next == 31536000000000 && record.period == 0);
    char pid[32];
    snprintf(pid, sizeof pid, "/%d", (int)getpid());
    CHECK(strstr(record.identity, pid));
    zklock_job_free(job);
    zklock_job_free(others);
    free_all(NULL, NULL, client);
    free_all(NULL, NULL, other);
}

TEST(a_run_that_fails_or_is_freed_is_followed_by_another) {
    zklock_client *client = new_client();
    const char *path = fresh_path();
    zklock_job *job = new_job(client, path), *next;
    zklock_hold *run = begins(job);
    char why[1001] = "";
    for (int at = 0; at < 500; at++) strcat(why, "\303\274");
    OK(zklock_job_end(run, why));
    zklock_hold_free(run);
    /* No half of a character. */
    zklock_record record = last(job);
    CHECK(record.outcome == ZKLOCK_RUN_FAILED && strlen(record.failure) == 510 && !strncmp(record.failure, why, 510));
    ends(begins(job));
    is_done(job);
    zklock_job_free(job);

    zklock_options *options;
    OK(zklock_options_new(&options));
    OK(zklock_options_set(options, "offset", "1s"));
    OK(zklock_options_set(options, "after-failure", "next"));
    OK(zklock_job_new(client, fresh_path(), 31536000000000, options, &next));
    zklock_options_free(options);
    run = begins(next);
    OK(zklock_job_end(run, "on purpose"));
    zklock_hold_free(run);
    is_done(next);
    CHECK(last(next).next == 31536000001000);
    zklock_job_free(next);
    free_all(NULL, NULL, client);
}

TEST(runs_are_begun_and_ended_in_an_event_loop) {
    zklock_client *client = follow(new_client()), *other = new_client();
    const char *path = fresh_path();
    zklock_job *job = new_job(client, path), *others = new_job(other, path);
    zklock_call *call, *ending;
    zklock_hold *run, *none;
    int here;
    /* A run that nobody takes counts as failed. */
    OK(zklock_job_begin_start(job, SOON_MS, &call));
    expect(client, ZKLOCK_EVENT_CALL);
    zklock_call_free(call);
    OK(zklock_job_begin_start(job, SOON_MS, &call));
    OK(zklock_call_set_context(call, &here));
    CHECK(expect(client, ZKLOCK_EVENT_CALL).call == call);
    OK(zklock_call_hold(call, &run));
    IS(zklock_call_hold(call, &none), ZKLOCK_NOT_HELD);
    zklock_call_free(call);
    /* The loss of a run's hold is an event like any other, and it is not done then. */
    ground("delete %s", node_of(run));
    zklock_event event = expect(client, ZKLOCK_EVENT_LOST);
    CHECK(event.hold == run && event.context == &here);
    IS(zklock_job_end(run, NULL), ZKLOCK_LOST);
    SAYS("counts as failed");
    zklock_hold_free(run);
    run = begins(job);
    /* Another process waits for the end, and has nothing to do then. */
    OK(zklock_job_begin_start(others, ZKLOCK_FOREVER, &call));
    /* With the record. */
    wait_for_contenders(path, 3);
    IS(zklock_call_hold(call, &none), ZKLOCK_PENDING);
    OK(zklock_job_end_start(run, NULL, &ending));
    CHECK(expect(client, ZKLOCK_EVENT_CALL).call == ending);
    OK(zklock_call_finish(ending, 0, NULL));
    zklock_call_free(ending);
    zklock_hold_free(run);
    await_call(call);
    IS(zklock_call_hold(call, &none), ZKLOCK_DONE);
    IS(zklock_call_finish(call, 0, NULL), ZKLOCK_DONE);
    zklock_call_free(call);
    zklock_job_free(job);
    zklock_job_free(others);
    free_all(NULL, NULL, client);
    free_all(NULL, NULL, other);
}

TEST_MAIN(STANDALONE)
