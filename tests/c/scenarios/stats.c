/* A client's figures, and their report to Prometheus. */

#include "test.h"

static char page[1 << 16];

/* The value of a series; -1 if there is none. */
static double value_of(const zklock_client *client, const char *series) {
    size_t length;
    OK(zklock_client_prometheus(client, page, sizeof page - 1, &length));
    CHECK(length < sizeof page);
    page[length] = '\0';
    for (const char *line = page; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, series, strlen(series)) && line[strlen(series)] == ' ') return atof(line + strlen(series));
    }
    return -1;
}

TEST(acquires_and_losses_are_counted_by_how_they_ended) {
    rivals all = new_rivals();
    zklock_hold *hold = acquire(all.others, SOON_MS), *none;
    zklock_call *call;
    zklock_reason reason;
    IS(zklock_acquire(all.lock, 0, &none), ZKLOCK_TIMEOUT);
    IS(zklock_acquire(all.lock, 300, &none), ZKLOCK_TIMEOUT);
    OK(zklock_acquire_start(all.lock, ZKLOCK_FOREVER, &call));
    wait_for_contenders(all.path, 2);
    zklock_call_free(call);
    EVENTUALLY(stats_of(all.client).acquires_cancelled == 1);
    give_back(hold);
    hold = acquire(all.lock, SOON_MS);
    ground("delete %s", node_of(hold));
    OK(zklock_hold_wait_lost(hold, SOON_MS, &reason));
    EVENTUALLY(stats_of(all.client).losses_by[ZKLOCK_REASON_NODE_DELETED] == 1);
    zklock_stats stats = stats_of(all.client);
    CHECK(stats.acquires_granted == 1 && stats.acquires_busy == 1 && stats.acquires_timed_out == 1 && stats.acquires_failed == 0);
    CHECK(stats.reconnects == 0 && stats.losses == 1 && stats.losses_by[ZKLOCK_REASON_SESSION_EXPIRED] == 0);
    CHECK(value_of(all.client, "zklock_acquires_total{outcome=\"timed_out\"}") == 1);
    CHECK(value_of(all.client, "zklock_acquire_wait_seconds_count") == 1);
    CHECK(value_of(all.client, "zklock_losses_total{reason=\"node_deleted\"}") == 1);
    CHECK(value_of(all.client, "zklock_none") == -1);
    zklock_hold_free(hold);
    free_rivals(&all);
}

TEST(a_snapshot_has_all_counts_and_nothing_else) {
    zklock_client *lazy, *client = new_client();
    zklock_stats stats, none;
    memset(&none, 0, sizeof none);
    memset(&stats, 0x7f, sizeof stats);
    OK(zklock_client_new_lazy(servers(), NULL, &lazy));
    OK(zklock_client_stats(lazy, &stats));
    CHECK(!memcmp(&stats, &none, sizeof none));
    memset(&stats, 0x7f, sizeof stats);
    OK(zklock_client_stats(client, &stats));
    CHECK(stats.sessions == 1 && stats.session_id && stats.session_timeout == SESSION_MS);
    stats.sessions = none.sessions, stats.session_id = none.session_id, stats.session_timeout = none.session_timeout;
    CHECK(!memcmp(&stats, &none, sizeof none));
    zklock_client_free(lazy);
    zklock_client_free(client);
}

TEST(what_was_counted_is_told_by_how_it_is_distributed) {
    static const zklock_histogram times[] = {ZKLOCK_HISTOGRAM_ACQUIRE_WAIT, ZKLOCK_HISTOGRAM_HOLD_TIME};
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_bucket buckets[ZKLOCK_BUCKETS];
    size_t length;
    double sum;
    OK(zklock_client_histogram(client, ZKLOCK_HISTOGRAM_HOLD_TIME, buckets, ZKLOCK_BUCKETS, &length, &sum));
    CHECK(length == ZKLOCK_BUCKETS && sum == 0 && buckets[length - 1].count == 0);
    for (int round = 0; round < 2; round++) give_back(acquire(lock, SOON_MS));
    for (int kind = 0; kind < 2; kind++) {
        OK(zklock_client_histogram(client, times[kind], buckets, ZKLOCK_BUCKETS, &length, &sum));
        CHECK(sum > 0 && buckets[length - 1].count == 2);
        CHECK(buckets[0].bound == 0.0001 && buckets[length - 1].bound == 1.0 / 0.0);
        for (size_t at = 1; at < length; at++) {
            CHECK(buckets[at - 1].bound < buckets[at].bound && buckets[at - 1].count <= buckets[at].count);
        }
    }
    /* Nobody was ahead. What does not fit is left out. */
    memset(buckets, 0x7f, sizeof buckets);
    OK(zklock_client_histogram(client, ZKLOCK_HISTOGRAM_QUEUE_LENGTH, buckets, 1, &length, &sum));
    CHECK(length == 13 && sum == 0 && buckets[0].bound == 0 && buckets[0].count == 2);
    CHECK(buckets[1].count == 0x7f7f7f7f7f7f7f7f);
    /* The same holds for a text. */
    char start[8] = "xxxxxxx";
    size_t whole;
    OK(zklock_client_prometheus(client, NULL, 0, &whole));
    OK(zklock_client_prometheus(client, start, 6, &length));
    CHECK(whole > 1000 && length == whole && !strcmp(start, "# HELPx"));
    free_all(NULL, lock, client);
}

TEST_MAIN(STANDALONE, LISTED(acquires_and_losses_are_counted_by_how_they_ended),
          LISTED(a_snapshot_has_all_counts_and_nothing_else), LISTED(what_was_counted_is_told_by_how_it_is_distributed))
