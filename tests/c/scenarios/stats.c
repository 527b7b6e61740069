/* A client's figures, and their report to Prometheus. */

#include "test.h"

#include <string.h>

static char page[1 << 16];

/* The value of a series; -1 if there is none. */
static double value_of(const zklock_client *client, const char *series) {
    size_t length;
    OK(zklock_client_prometheus(client, page, sizeof page - 1, &length));
    CHECK(length < sizeof page);
    page[length] = '\0';
    const char *line = page;
    while (line && *line) {
        if (!strncmp(line, series, strlen(series)) && line[strlen(series)] == ' ') return atof(line + strlen(series));
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return -1;
}

TEST(acquires_are_counted_by_how_they_ended) {
    zklock_client *other = new_client(), *client = new_client();
    const char *path = fresh_path();
    zklock_lock *theirs = new_mutex(other, path, 0), *ours = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(theirs, SOON_MS), *none;
    IS(zklock_acquire(ours, 0, &none), ZKLOCK_TIMEOUT);
    IS(zklock_acquire(ours, 300, &none), ZKLOCK_TIMEOUT);
    zklock_call *waiting;
    OK(zklock_acquire_start(ours, ZKLOCK_FOREVER, &waiting));
    wait_for_contenders(path, 2);
    zklock_call_free(waiting);
    EVENTUALLY(stats_of(client).acquires_cancelled == 1);
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    hold = acquire(ours, SOON_MS);
    OK(zklock_release(hold));
    CHECK(stats_of(client).acquires_granted == 1);
    CHECK(stats_of(client).acquires_busy == 1);
    CHECK(stats_of(client).acquires_timed_out == 1);
    CHECK(stats_of(client).acquires_failed == 0);
    CHECK(stats_of(client).reconnects == 0);
    CHECK(value_of(client, "zklock_acquires_total{outcome=\"granted\"}") == 1);
    CHECK(value_of(client, "zklock_acquires_total{outcome=\"timed_out\"}") == 1);
    CHECK(value_of(client, "zklock_acquire_wait_seconds_count") == 1);
    CHECK(value_of(client, "zklock_hold_seconds_bucket{le=\"+Inf\"}") == 1);
    CHECK(value_of(client, "zklock_none") == -1);
    free_all(hold, ours, client);
    zklock_lock_free(theirs);
    zklock_client_free(other);
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
    CHECK(!stats.grants && !stats.losses && !stats.owed && !stats.reconnects);
    CHECK(!memcmp(stats.losses_by, none.losses_by, sizeof none.losses_by));
    CHECK(!memcmp(stats.reserved, none.reserved, sizeof none.reserved));
    zklock_client_free(lazy);
    zklock_client_free(client);
}

static const double infinity = 1.0 / 0.0;

TEST(what_was_counted_is_told_by_how_it_is_distributed) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_bucket buckets[ZKLOCK_BUCKETS];
    size_t length;
    double sum;
    OK(zklock_client_histogram(client, ZKLOCK_HISTOGRAM_HOLD_TIME, buckets, ZKLOCK_BUCKETS, &length, &sum));
    CHECK(length == ZKLOCK_BUCKETS && sum == 0 && buckets[length - 1].count == 0);
    for (int i = 0; i < 2; i++) {
        zklock_hold *hold = acquire(lock, SOON_MS);
        OK(zklock_release(hold));
        zklock_hold_free(hold);
    }
    static const zklock_histogram times[] = {ZKLOCK_HISTOGRAM_ACQUIRE_WAIT, ZKLOCK_HISTOGRAM_HOLD_TIME};
    for (size_t i = 0; i < 2; i++) {
        OK(zklock_client_histogram(client, times[i], buckets, ZKLOCK_BUCKETS, &length, &sum));
        CHECK(sum > 0 && buckets[length - 1].count == 2);
        CHECK(buckets[0].bound == 0.0001 && buckets[length - 1].bound == infinity);
        for (size_t at = 1; at < length; at++) {
            CHECK(buckets[at - 1].bound < buckets[at].bound && buckets[at - 1].count <= buckets[at].count);
        }
    }
    /* Nobody was ahead. What does not fit is left out. */
    memset(buckets, 0x7f, sizeof buckets);
    OK(zklock_client_histogram(client, ZKLOCK_HISTOGRAM_QUEUE_LENGTH, buckets, 1, &length, &sum));
    CHECK(length == 13 && sum == 0 && buckets[0].bound == 0 && buckets[0].count == 2);
    CHECK(buckets[1].count == 0x7f7f7f7f7f7f7f7f);
    IS(zklock_client_histogram(client, 5, buckets, 1, &length, &sum), ZKLOCK_INVALID_ARGUMENT);
    zklock_lock_free(lock);
    zklock_client_free(client);
}

TEST(losses_are_counted_by_their_reason) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    const char *node;
    zklock_reason reason;
    OK(zklock_hold_node(hold, &node));
    ground("delete %s", node);
    OK(zklock_hold_wait_lost(hold, SOON_MS, &reason));
    EVENTUALLY(stats_of(client).losses_by[ZKLOCK_REASON_NODE_DELETED] == 1);
    CHECK(stats_of(client).losses_by[reason] == 1);
    CHECK(stats_of(client).losses == 1);
    CHECK(stats_of(client).losses_by[ZKLOCK_REASON_SESSION_EXPIRED] == 0);
    CHECK(value_of(client, "zklock_losses_total{reason=\"node_deleted\"}") == 1);
    free_all(hold, lock, client);
}

TEST(a_text_for_which_there_is_no_room_says_how_long_it_is) {
    zklock_client *client = new_client();
    size_t length, same;
    char start[8] = "xxxxxxx";
    OK(zklock_client_prometheus(client, NULL, 0, &length));
    CHECK(length > 1000 && length < sizeof page);
    OK(zklock_client_prometheus(client, start, 6, &same));
    CHECK(same == length && !strcmp(start, "# HELPx"));
    zklock_client_free(client);
}

TEST_MAIN("standalone tick=200 max-session=4000", LISTED(acquires_are_counted_by_how_they_ended),
          LISTED(a_snapshot_has_all_counts_and_nothing_else),
          LISTED(what_was_counted_is_told_by_how_it_is_distributed),
          LISTED(losses_are_counted_by_their_reason), LISTED(a_text_for_which_there_is_no_room_says_how_long_it_is))
