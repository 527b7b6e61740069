/* The places for a client's figures: what is written there. (The figures themselves: cpp/objects.) */

#include "test.h"

TEST(a_snapshot_has_all_counts_and_nothing_else) {
    zklock_client *client = new_client();
    zklock_stats stats, none;
    memset(&none, 0, sizeof none);
    memset(&stats, 0x7f, sizeof stats);
    zklock_client *lazy = MADE(zklock_client, zklock_client_new_lazy(servers(), NULL, &made));
    OK(zklock_client_stats(lazy, &stats));
    CHECK(!memcmp(&stats, &none, sizeof none));
    memset(&stats, 0x7f, sizeof stats);
    OK(zklock_client_stats(client, &stats));
    CHECK(stats.sessions == 1 && stats.session_id && stats.session_timeout == SESSION_MS);
    stats.sessions = none.sessions, stats.session_id = none.session_id, stats.session_timeout = none.session_timeout;
    CHECK(!memcmp(&stats, &none, sizeof none));
}

TEST(what_does_not_fit_is_left_out_and_its_length_is_told) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_bucket buckets[ZKLOCK_BUCKETS];
    size_t length;
    double sum;
    for (int round = 0; round < 2; round++) give_back(acquire(lock, SOON_MS));
    OK(zklock_client_histogram(client, ZKLOCK_HISTOGRAM_HOLD_TIME, buckets, ZKLOCK_BUCKETS, &length, &sum));
    CHECK(length == ZKLOCK_BUCKETS && sum > 0 && buckets[length - 1].count == 2);
    CHECK(buckets[0].bound == 0.0001 && buckets[length - 1].bound == 1.0 / 0.0);
    for (size_t at = 1; at < length; at++) {
        CHECK(buckets[at - 1].bound < buckets[at].bound && buckets[at - 1].count <= buckets[at].count);
    }
    /* Nobody was ahead. What does not fit is left out. */
    memset(buckets, 0x7f, sizeof buckets);
    OK(zklock_client_histogram(client, ZKLOCK_HISTOGRAM_QUEUE_LENGTH, buckets, 1, &length, &sum));
    CHECK(length == 13 && sum == 0 && buckets[0].bound == 0 && buckets[0].count == 2);
    CHECK(buckets[1].count == 0x7f7f7f7f7f7f7f7f);
    /* The same holds for a text. */
    char start[8] = "xxxxxxx";
    size_t whole;
    OK(zklock_prometheus(&client, NULL, 1, NULL, 0, &whole));
    OK(zklock_prometheus(&client, NULL, 1, start, 6, &length));
    CHECK(whole > 1000 && length == whole && !strcmp(start, "# HELPx"));
}

TEST(a_named_lock_has_figures_of_its_own) {
    zklock_client *client = new_client();
    zklock_lock_stats report, none;
    memset(&none, 0, sizeof none);
    memset(&report, 0x7f, sizeof report);
    OK(zklock_client_lock_stats(client, "report", &report));
    CHECK(!memcmp(&report, &none, sizeof none));
    zklock_options *options = options_with(0, 0);
    OK(zklock_options_set(options, "metrics-name", "report"));
    zklock_lock *lock = MADE(zklock_lock, zklock_mutex_new(client, fresh_path(), options, &made));
    zklock_hold *hold = acquire(lock, SOON_MS);
    sleep_ms(2);
    OK(zklock_client_lock_stats(client, "report", &report));
    CHECK(report.held == 1 && report.waiting == 0 && report.oldest_hold > 0 && report.acquires_granted == 1);
    give_back(hold);
    OK(zklock_client_lock_stats(client, "report", &report));
    report.acquires_granted -= 1;
    CHECK(!memcmp(&report, &none, sizeof none));
}

TEST_MAIN(STANDALONE)
