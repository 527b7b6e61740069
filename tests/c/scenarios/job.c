/* Jobs, which run once in each period. */

#include "events.h"

#include <unistd.h>

static zklock_hold *begins(zklock_job *job) { return MADE(zklock_hold, zklock_job_begin(job, SOON_MS, &made)); }

static void is_done(zklock_job *job) {
    zklock_hold *run;
    IS(zklock_job_begin(job, SOON_MS, &run), ZKLOCK_DONE);
}

static zklock_record last(zklock_job *job) {
    zklock_record record;
    memset(&record, 0x5A, sizeof record);
    OK(zklock_job_last(job, &record));
    for (size_t at = 0; at < sizeof record.reserved / sizeof *record.reserved; at++) CHECK(!record.reserved[at]);
    return record;
}

TEST(a_job_runs_once_in_its_period_and_tells_of_its_last_run) {
    const char *path = fresh_path();
    zklock_job *job = new_job(new_client(), path), *others = new_job(new_client(), path);
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
    is_done(others);
    /* It is no failure. */
    SAYS("zklock_job_end: ");
    record = last(job);
    CHECK(record.outcome == ZKLOCK_RUN_DONE && record.token == token && !*record.failure);
    CHECK(record.began > 0 && record.ended >= record.began && record.next == 31536000000000 && record.period == 0);
    char pid[32];
    snprintf(pid, sizeof pid, "/%d", (int)getpid());
    CHECK(strstr(record.identity, pid));
}

TEST(a_run_that_fails_or_is_freed_is_followed_by_another) {
    zklock_client *client = new_client();
    zklock_job *job = new_job(client, fresh_path());
    char why[1001] = "";
    for (int at = 0; at < 500; at++) strcat(why, "\303\274");
    OK(zklock_job_end(begins(job), why));
    /* No half of a character. */
    zklock_record record = last(job);
    CHECK(record.outcome == ZKLOCK_RUN_FAILED && strlen(record.failure) == 510 && !strncmp(record.failure, why, 510));
    OK(zklock_job_end(begins(job), NULL));
    is_done(job);

    zklock_options *options = options_with(0, 0);
    OK(zklock_options_set(options, "offset", "1s"));
    OK(zklock_options_set(options, "after-failure", "next"));
    zklock_job *next = MADE(zklock_job, zklock_job_new(client, fresh_path(), 31536000000000, options, &made));
    OK(zklock_job_end(begins(next), "on purpose"));
    is_done(next);
    CHECK(last(next).next == 31536000001000);
}

TEST(runs_are_begun_and_ended_in_an_event_loop) {
    zklock_client *client = follow(new_client());
    const char *path = fresh_path();
    zklock_job *job = new_job(client, path), *others = new_job(new_client(), path);
    zklock_hold *none;
    int here;
    /* A run that nobody takes counts as failed. */
    zklock_call *call = MADE(zklock_call, zklock_job_begin_start(job, SOON_MS, &made));
    expect(client, ZKLOCK_EVENT_CALL);
    zklock_call_free(call);
    call = MADE(zklock_call, zklock_job_begin_start(job, SOON_MS, &made));
    OK(zklock_call_set_context(call, &here));
    CHECK(expect(client, ZKLOCK_EVENT_CALL).call == call);
    zklock_hold *run = MADE(zklock_hold, zklock_call_hold(call, &made));
    IS(zklock_call_hold(call, &none), ZKLOCK_NOT_HELD);
    /* The loss of a run's hold is an event like any other, and it is not done then. */
    ground("delete %s", node_of(run));
    zklock_event event = expect(client, ZKLOCK_EVENT_LOST);
    CHECK(event.hold == run && event.context == &here);
    FAILS(zklock_job_end(run, NULL), ZKLOCK_LOST, "counts as failed");
    run = begins(job);
    /* Another process waits for the end, and has nothing to do then. */
    call = MADE(zklock_call, zklock_job_begin_start(others, ZKLOCK_FOREVER, &made));
    /* With the record. */
    wait_for_contenders(path, 3);
    IS(zklock_call_hold(call, &none), ZKLOCK_PENDING);
    zklock_call *ending = MADE(zklock_call, zklock_job_end_start(run, NULL, &made));
    CHECK(expect(client, ZKLOCK_EVENT_CALL).call == ending);
    OK(zklock_call_finish(ending, 0, NULL));
    await_call(call);
    IS(zklock_call_hold(call, &none), ZKLOCK_DONE);
    IS(zklock_call_finish(call, 0, NULL), ZKLOCK_DONE);
}

TEST_MAIN(STANDALONE)
