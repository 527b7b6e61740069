/* Promise 4: an acquire with a deadline returns by then, whatever the network does, and says what the trouble is. */

#include "test.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#define A_WHILE_MS 200
#define HOUR_MS (60 * 60 * 1000)

static const char *const DIRECTIONS[] = {"to-server", "to-client", "both"};

/* A plain sleep beside the call that must be over in time. If the sleep is late, the machine is late, so the call may be as
 * late. */
typedef struct {
    int64_t timeout;
    thread *sleeping;
} bound;

static void *sleeps(void *argument) {
    int64_t timeout = ((bound *)argument)->timeout, begun = now_ms();
    sleep_ms(timeout);
    return (void *)(intptr_t)(now_ms() - begun - timeout);
}

static void begin(bound *bound, int64_t timeout) {
    on_time();
    bound->timeout = timeout;
    bound->sleeping = start_thread(sleeps, bound);
}

/* Checks that something took no longer than allowed, if several threads and the servers take part. */
#define IN_TIME(bound, took) in_time(__LINE__, (bound), (took))

static void in_time(int line, bound *bound, int64_t took) {
    int64_t late = (intptr_t)join_thread(bound->sleeping);
    not_later(__FILE__, line, "took", took, bound->timeout + GRACE_MS + late + allowance_ms());
}

/* The number of tries to meet the grace itself. */
enum { TRIES = 20 };

static int soon_enough(int64_t took, int64_t timeout, int try) {
    if (took <= timeout + grace_ms()) return 1;
    if (try == TRIES - 1) NOT_LATER(took, timeout + grace_ms());
    return 0;
}

/* Whether the time ran out. an_outage_is_not_called_contention tests which of the two statuses it must be. */
static int is_late(zklock_status status) {
    return status == ZKLOCK_TIMEOUT || status == ZKLOCK_UNREACHABLE;
}

/* Checks that an acquire times out, started or not, in time, and not too early. The message stays. */
static void times_out(zklock_lock *lock, int64_t timeout) {
    zklock_hold *hold = NULL;
    const char *path;
    int64_t begun, took;
    OK(zklock_lock_path(lock, &path));
    for (int try = 0; try < TRIES; try++) {
        zklock_call *waiting;
        int descriptor;
        on_time();
        begun = now_ms();
        OK(zklock_acquire_start(lock, timeout, &waiting));
        OK(zklock_call_fd(waiting, &descriptor));
        CHECK(readable(descriptor, timeout + SOON_MS));
        took = now_ms() - begun;
        CHECK(took >= timeout - 1);
        CHECK(is_late(zklock_call_hold(waiting, &hold)));
        SAYS(path);
        zklock_call_free(waiting);
        if (soon_enough(took, timeout, try)) break;
    }
    for (int try = 0; try < TRIES; try++) {
        on_time();
        begun = now_ms();
        CHECK(is_late(zklock_acquire(lock, timeout, &hold)));
        took = now_ms() - begun;
        CHECK(took >= timeout - 1);
        SAYS(path);
        if (soon_enough(took, timeout, try)) break;
    }
    CHECK(!hold);
}

/* Checks that the lock works (again), and its client owes nothing. */
static void works(zklock_client *client, zklock_lock *lock) {
    zklock_hold *hold = acquire(lock, SOON_MS);
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    settled(client);
}

static void unreachable_in_time(const char *hosts, int64_t timeout) {
    zklock_options *options;
    zklock_client *client = NULL;
    OK(zklock_options_new(&options));
    OK(zklock_options_set_connect_timeout(options, timeout));
    for (int try = 0; try < TRIES; try++) {
        int64_t begun, took;
        on_time();
        begun = now_ms();
        IS(zklock_client_new(hosts, options, &client), ZKLOCK_UNREACHABLE);
        took = now_ms() - begun;
        if (soon_enough(took, timeout, try)) break;
    }
    CHECK(!client);
    zklock_options_free(options);
}

/* Waits until the client knows that it is disconnected. */
static void notices(zklock_lock *lock) {
    int64_t until = now_ms() + SOON_MS;
    zklock_hold *hold;
    do {
        CHECK(now_ms() < until);
        CHECK(is_late(zklock_acquire(lock, 20, &hold)));
    } while (!strstr(zklock_last_error(), "no server answers"));
}

TEST(a_frozen_network_delays_nobody_whichever_way) {
    for (int way = 0; way < 3; way++) {
        const char *path = fresh_path();
        char hosts[128];
        int proxy = new_proxy(hosts, sizeof hosts);
        zklock_client *client = connect_to(hosts);
        zklock_lock *lock = new_mutex(client, path, 0);
        ground("freeze %d %s", proxy, DIRECTIONS[way]);
        times_out(lock, A_WHILE_MS);
        unreachable_in_time(hosts, A_WHILE_MS);
        ground("thaw %d", proxy);
        works(client, lock);
        wait_for_contenders(path, 0);
        free_all(NULL, lock, client);
    }
}

TEST(a_wait_in_the_queue_ends_in_time_when_the_network_freezes_under_it) {
    const char *path = fresh_path();
    int proxy;
    zklock_client *holder = new_client(), *waiter = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(holder, path, 0), *waiters = new_mutex(waiter, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    bound bound;
    attempt *attempt;
    begin(&bound, 2 * A_WHILE_MS);
    attempt = start_acquire(waiters, 2 * A_WHILE_MS);
    wait_for_contenders(path, 2);
    ground("freeze %d both", proxy);
    EVENTUALLY(is_over(attempt));
    IN_TIME(&bound, took_ms(attempt));
    CHECK(refused(attempt, NULL, 0) == ZKLOCK_TIMEOUT);
    ground("thaw %d", proxy);
    wait_for_contenders(path, 1);
    OK(zklock_release(hold));
    free_all(NULL, waiters, waiter);
    free_all(hold, lock, holder);
}

TEST(a_half_open_or_refused_connection_delays_nobody) {
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    zklock_client *client = connect_to(hosts);
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    ground("half-open %d", proxy);
    times_out(lock, A_WHILE_MS);
    works(client, lock);

    /* In the middle of a reconnect, which cannot succeed as long as the proxy refuses. */
    ground("refuse %d on", proxy);
    ground("reset %d", proxy);
    notices(lock);
    times_out(lock, A_WHILE_MS);
    SAYS("no server answers");
    SAYS(": check hosts and network");
    unreachable_in_time(hosts, A_WHILE_MS);
    SAYS(hosts);
    ground("refuse %d off", proxy);
    works(client, lock);
    free_all(NULL, lock, client);
}

TEST(the_error_says_who_is_in_the_way) {
    const char *path = fresh_path();
    zklock_client *holder = new_client(), *waiter = new_client();
    zklock_lock *lock = new_mutex(holder, path, 0), *waiters = new_mutex(waiter, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *none;
    times_out(waiters, 3 * A_WHILE_MS);
    SAYS("zklock_acquire: ");
    SAYS("not acquired within 600ms: others are before us in the queue");
    /* A try names the holder. On a busy machine that may not be known in time. */
    EVENTUALLY(zklock_acquire(waiters, 0, &none) == ZKLOCK_TIMEOUT &&
               strstr(zklock_last_error(), "is held by another: ") &&
               strstr(zklock_last_error(), " holds it (its node "));
    settled(waiter);
    OK(zklock_release(hold));
    free_all(NULL, waiters, waiter);
    free_all(hold, lock, holder);
}

TEST(the_error_does_not_blame_the_queue_for_a_silent_server) {
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *none;
    ground("freeze %d to-client", proxy);
    IS(zklock_acquire(lock, A_WHILE_MS, &none), ZKLOCK_TIMEOUT);
    /* Nobody is ahead in the queue. */
    CHECK(!strstr(zklock_last_error(), "others are before us"));
    ground("thaw %d", proxy);
    works(client, lock);
    free_all(NULL, lock, client);
}

TEST(an_outage_is_not_called_contention) {
    const char *path = fresh_path();
    int proxy;
    zklock_client *holder = new_client(), *waiter = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(holder, path, 0), *waiters = new_mutex(waiter, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *none;
    zklock_call *waiting;
    int descriptor;
    IS(zklock_acquire(waiters, A_WHILE_MS, &none), ZKLOCK_TIMEOUT);
    SAYS("others are before us");
    /* It has a place in the queue, but nobody knows whether that still exists. */
    OK(zklock_acquire_start(waiters, 4 * A_WHILE_MS, &waiting));
    OK(zklock_call_fd(waiting, &descriptor));
    wait_for_contenders(path, 2);
    ground("refuse %d on", proxy);
    ground("reset %d", proxy);
    CHECK(readable(descriptor, SOON_MS));
    IS(zklock_call_hold(waiting, &none), ZKLOCK_UNREACHABLE);
    SAYS("no server answers");
    zklock_call_free(waiting);
    IS(zklock_acquire(waiters, A_WHILE_MS, &none), ZKLOCK_UNREACHABLE);
    ground("refuse %d off", proxy);
    OK(zklock_release(hold));
    works(waiter, waiters);
    free_all(NULL, waiters, waiter);
    free_all(hold, lock, holder);
}

TEST(a_timeout_of_zero_tries_once) {
    const char *path = fresh_path();
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    zklock_client *client = client_with(hosts, SESSION_MS, HOUR_MS), *other = new_client();
    zklock_lock *lock = new_mutex(client, path, 0), *others = new_mutex(other, path, 0);
    zklock_hold *hold = acquire(lock, 0), *none;
    bound bound;
    int64_t begun;
    IS(zklock_acquire(others, 0, &none), ZKLOCK_TIMEOUT);
    SAYS("is held by another");
    /* A try does not wait, so it cannot hang. */
    IS(zklock_acquire(lock, 0, &none), ZKLOCK_TIMEOUT);
    wait_for_contenders(path, 1);
    OK(zklock_release(hold));

    /* It waits for an answer, but only for the try timeout, which is a second by default. */
    ground("freeze %d both", proxy);
    begin(&bound, 1000);
    begun = now_ms();
    IS(zklock_acquire(lock, 0, &none), ZKLOCK_UNREACHABLE);
    IN_TIME(&bound, now_ms() - begun);
    ground("thaw %d", proxy);
    works(client, lock);
    wait_for_contenders(path, 0);
    zklock_hold_free(hold);
    free_all(NULL, others, other);
    free_all(NULL, lock, client);
}

/* Calls that do not wait for others. They must return when no server answers, although connecting may take an hour. */
typedef struct {
    zklock_lock *lock;
    zklock_barrier *barrier;
    zklock_double_barrier *doors;
    zklock_member *member;
} tries;

static void *all_are_unreachable(void *argument) {
    tries *tries = argument;
    zklock_hold *none = NULL;
    zklock_member *nobody = NULL;
    zklock_call *waiting;
    int descriptor;
    for (int try = 0; try < 2; try++) {
        IS(zklock_acquire(tries->lock, 0, &none), ZKLOCK_UNREACHABLE);
        SAYS("was not tried within 300ms: no server answers: check hosts and network");
        OK(zklock_acquire_start(tries->lock, 0, &waiting));
        OK(zklock_call_fd(waiting, &descriptor));
        CHECK(readable(descriptor, SOON_MS));
        IS(zklock_call_hold(waiting, &none), ZKLOCK_UNREACHABLE);
        zklock_call_free(waiting);
        IS(zklock_barrier_wait(tries->barrier, 0), ZKLOCK_UNREACHABLE);
        IS(zklock_double_barrier_enter(tries->doors, 0, &nobody), ZKLOCK_UNREACHABLE);
    }
    IS(zklock_member_leave(tries->member, 0), ZKLOCK_UNREACHABLE);
    CHECK(!none && !nobody);
    return NULL;
}

TEST(a_try_is_bounded_by_its_own_timeout_where_nobody_answers) {
    char hosts[128], path[64], barrier[80], doors[80];
    int proxy = new_proxy(hosts, sizeof hosts);
    zklock_options *options;
    zklock_client *client;
    tries tries;
    snprintf(path, sizeof path, "%s", fresh_path());
    snprintf(barrier, sizeof barrier, "%s-barrier", path);
    snprintf(doors, sizeof doors, "%s-doors", path);
    OK(zklock_options_new(&options));
    OK(zklock_options_set_session_timeout(options, SESSION_MS));
    OK(zklock_options_set_connect_timeout(options, HOUR_MS));
    OK(zklock_options_set_try_timeout(options, 300));
    OK(zklock_client_new(hosts, options, &client));
    zklock_options_free(options);
    tries.lock = new_mutex(client, path, 0);
    OK(zklock_barrier_new(client, barrier, &tries.barrier));
    OK(zklock_double_barrier_new(client, doors, 1, &tries.doors));
    OK(zklock_double_barrier_enter(tries.doors, SOON_MS, &tries.member));
    ground("freeze %d both", proxy);
    /* This waits for SOON_MS at most. */
    join_thread(start_thread(all_are_unreachable, &tries));
    ground("thaw %d", proxy);
    works(client, tries.lock);
    wait_for_contenders(path, 0);
    zklock_member_free(tries.member);
    zklock_double_barrier_free(tries.doors);
    zklock_barrier_free(tries.barrier);
    free_all(NULL, tries.lock, client);
}

TEST(a_timeout_of_a_millisecond_is_kept) {
    const char *path = fresh_path();
    zklock_client *holder = new_client(), *waiter = new_client();
    zklock_lock *lock = new_mutex(holder, path, 0), *waiters = new_mutex(waiter, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    for (int round = 0; round < 20; round++) times_out(waiters, 1);
    wait_for_contenders(path, 1);
    OK(zklock_release(hold));
    works(waiter, waiters);
    free_all(NULL, waiters, waiter);
    free_all(hold, lock, holder);
}

TEST(a_timeout_beyond_the_end_of_time_waits_for_ever) {
    const int64_t timeouts[] = {ZKLOCK_FOREVER, INT64_MAX - 1, INT64_MAX, INT64_MAX / 1000};
    const char *path = fresh_path();
    zklock_client *holder = new_client(), *waiter = new_client();
    zklock_lock *lock = new_mutex(holder, path, 0), *waiters = new_mutex(waiter, path, 0);
    for (size_t at = 0; at < sizeof timeouts / sizeof *timeouts; at++) {
        zklock_hold *hold = acquire(lock, SOON_MS), *next;
        attempt *attempt = start_acquire(waiters, timeouts[at]);
        zklock_call *waiting;
        zklock_reason reason;
        int descriptor;
        wait_for_contenders(path, 2);
        OK(zklock_acquire_start(waiters, timeouts[at], &waiting));
        OK(zklock_call_fd(waiting, &descriptor));
        CHECK(!readable(descriptor, 30) && !is_over(attempt));
        OK(zklock_release(hold));
        IS(zklock_hold_wait_lost(hold, timeouts[at], &reason), ZKLOCK_NOT_HELD);
        zklock_hold_free(hold);
        next = granted(attempt);
        OK(zklock_release(next));
        zklock_hold_free(next);
        CHECK(readable(descriptor, SOON_MS));
        OK(zklock_call_hold(waiting, &next));
        OK(zklock_release(next));
        zklock_hold_free(next);
        zklock_call_free(waiting);
    }
    free_all(NULL, waiters, waiter);
    free_all(NULL, lock, holder);
}

TEST(a_new_session_and_a_new_place_in_the_queue_do_not_extend_the_deadline) {
    const char *path = fresh_path();
    char before[512];
    int proxy;
    zklock_client *holder = new_client(), *waiter = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(holder, path, 0), *waiters = new_mutex(waiter, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    bound bound;
    attempt *attempt;
    begin(&bound, 6 * A_WHILE_MS);
    attempt = start_acquire(waiters, 6 * A_WHILE_MS);
    wait_for_contenders(path, 2);
    snprintf(before, sizeof before, "%s", ground("children %s", path));
    expire_session(proxy);
    /* It queues again, in the next session. */
    EVENTUALLY(contenders_at(path) == 2 && strcmp(before, ground("children %s", path)));
    CHECK(!is_over(attempt));
    EVENTUALLY(is_over(attempt));
    IN_TIME(&bound, took_ms(attempt));
    CHECK(refused(attempt, NULL, 0) == ZKLOCK_TIMEOUT);
    CHECK(stats_of(waiter).sessions == 2);
    settled(waiter);
    wait_for_contenders(path, 1);
    OK(zklock_release(hold));
    free_all(NULL, waiters, waiter);
    free_all(hold, lock, holder);
}

TEST(a_release_is_bounded_by_the_session_timeout_and_goes_on_in_the_background) {
    const char *path = fresh_path();
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    zklock_client *client = client_with(hosts, 1000, 0);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    int64_t session = (int64_t)stats_of(client).session_timeout;
    bound bound;
    int64_t begun;
    ground("freeze %d to-server", proxy);
    begin(&bound, session);
    begun = now_ms();
    IS(zklock_release(hold), ZKLOCK_TIMEOUT);
    IN_TIME(&bound, now_ms() - begun);
    SAYS("goes on in the background");
    IS(zklock_release(hold), ZKLOCK_NOT_HELD);
    CHECK(stats_of(client).owed == 1);
    ground("thaw %d", proxy);
    settled(client);
    wait_for_contenders(path, 0);
    free_all(hold, lock, client);
}

TEST(a_close_takes_a_second_at_most) {
    const char *path = fresh_path();
    for (int way = 0; way < 2; way++) {
        int proxy;
        zklock_client *client = proxied_client(&proxy);
        zklock_lock *lock = new_mutex(client, path, 0);
        zklock_hold *hold = acquire(lock, SOON_MS);
        bound bound;
    int64_t begun;
        ground("freeze %d %s", proxy, DIRECTIONS[way]);
        begin(&bound, 1000);
        begun = now_ms();
        OK(zklock_client_close(client));
        IN_TIME(&bound, now_ms() - begun);
        CHECK(valid_for(hold) == 0);
        ground("thaw %d", proxy);
        free_all(hold, lock, client);
        /* The session was closed after all, or has timed out: the lock is free for the next round. */
        wait_for_contenders(path, 0);
    }
}

TEST(a_connect_is_bounded_where_something_else_listens_or_nobody_does) {
    /* The kernel accepts connections into the backlog, but nobody answers. */
    int mute = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    char hosts[64];
    CHECK(!bind(mute, (struct sockaddr *)&address, sizeof address) && !listen(mute, 16));
    CHECK(!getsockname(mute, (struct sockaddr *)&address, &size));
    snprintf(hosts, sizeof hosts, "127.0.0.1:%d", ntohs(address.sin_port));
    unreachable_in_time(hosts, 2 * A_WHILE_MS);
    SAYS("accepts connections but opens no session");
    /* A network that drops everything: addresses reserved for documentation, where nobody answers. */
    unreachable_in_time("192.0.2.1:2181,192.0.2.2:2181,192.0.2.3:2181,192.0.2.4:2181", A_WHILE_MS);
    SAYS("192.0.2.4");
}

TEST_MAIN("standalone tick=200 max-session=4000", LISTED(a_frozen_network_delays_nobody_whichever_way),
          LISTED(a_wait_in_the_queue_ends_in_time_when_the_network_freezes_under_it),
          LISTED(a_half_open_or_refused_connection_delays_nobody), LISTED(the_error_says_who_is_in_the_way),
          LISTED(the_error_does_not_blame_the_queue_for_a_silent_server),
          LISTED(an_outage_is_not_called_contention), LISTED(a_timeout_of_zero_tries_once),
          LISTED(a_try_is_bounded_by_its_own_timeout_where_nobody_answers),
          LISTED(a_timeout_of_a_millisecond_is_kept),
          LISTED(a_timeout_beyond_the_end_of_time_waits_for_ever),
          LISTED(a_new_session_and_a_new_place_in_the_queue_do_not_extend_the_deadline),
          LISTED(a_release_is_bounded_by_the_session_timeout_and_goes_on_in_the_background),
          LISTED(a_close_takes_a_second_at_most),
          LISTED(a_connect_is_bounded_where_something_else_listens_or_nobody_does))
