/* What the network, a pause or a kill does to a program: each call says so in time, and grants nothing falsely. */

#define _GNU_SOURCE /* RTLD_NEXT */
#include "test.h"

#include <dlfcn.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define A_WHILE_MS 200
#define HOUR_MS (60 * 60 * 1000)

/* Checks that an acquire fails, in time, and not too early. Returns its status. */
static zklock_status fails_in_time(zklock_lock *lock, int64_t timeout) {
    zklock_hold *none = NULL;
    on_time();
    int64_t begun = now_ms();
    zklock_status status = zklock_acquire(lock, timeout, &none);
    int64_t took = now_ms() - begun;
    CHECK(!none && took >= timeout - 1);
    NOT_LATER(took, timeout + grace_ms());
    return status;
}

static atomic_int resolver_fails;

/* Takes the place of libc's, so that a name server can fail for a moment. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*usual)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&usual = dlsym(RTLD_NEXT, "getaddrinfo");
    return resolver_fails-- > 0 ? EAI_AGAIN : usual(name, service, hints, found);
}

TEST(a_name_server_that_fails_for_a_moment_is_asked_again) {
    zklock_client *client = NULL;
    zklock_options *options = options_with(0, A_WHILE_MS);
    char hosts[128];
    snprintf(hosts, sizeof hosts, "localhost%s", strchr(servers(), ':'));
    resolver_fails = INT_MAX;
    IS(zklock_client_new(hosts, options, &client), ZKLOCK_UNREACHABLE);
    SAYS("could be resolved within 200ms: check the resolver (localhost: ");
    /* Each side asks twice in vain: the one that connects, and the one that looks for what is wrong. */
    resolver_fails = 4;
    OK(zklock_client_new(hosts, NULL, &client));
    zklock_client_free(client);
    zklock_options_free(options);
}

TEST(an_acquire_in_a_frozen_network_and_a_connect_end_in_time) {
    rivals all = new_rivals();
    zklock_client *none = NULL;
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    ground("freeze %d both", all.proxy);
    IS(fails_in_time(all.lock, A_WHILE_MS), ZKLOCK_TIMEOUT);
    SAYS(all.path);
    zklock_options *options = options_with(0, A_WHILE_MS);
    ground("freeze %d to-client", proxy);
    on_time();
    int64_t begun = now_ms();
    IS(zklock_client_new(hosts, options, &none), ZKLOCK_UNREACHABLE);
    NOT_LATER(now_ms() - begun, A_WHILE_MS + grace_ms());
    SAYS("within 200ms");
    CHECK(!none);
    zklock_options_free(options);
    ground("thaw %d", all.proxy);
    give_back(acquire(all.lock, SOON_MS));
    free_rivals(&all);
}

TEST(an_outage_is_not_called_contention_and_the_error_says_who_is_in_the_way) {
    rivals all = new_rivals();
    zklock_hold *hold = acquire(all.others, SOON_MS), *none;
    zklock_call *call;
    IS(fails_in_time(all.lock, 3 * A_WHILE_MS), ZKLOCK_TIMEOUT);
    SAYS("zklock_acquire: ");
    SAYS("not acquired within 600ms: others are before us in the queue");
    /* A try names the holder. On a busy machine that may not be known in time. */
    EVENTUALLY(zklock_acquire(all.lock, 0, &none) == ZKLOCK_TIMEOUT && strstr(zklock_last_error(), "is held by another: ") &&
               strstr(zklock_last_error(), " holds it (its node "));
    /* It has a place in the queue, but nobody knows whether that still exists. */
    OK(zklock_acquire_start(all.lock, 4 * A_WHILE_MS, &call));
    wait_for_contenders(all.path, 2);
    ground("refuse %d on", all.proxy);
    ground("reset %d", all.proxy);
    await_call(call);
    IS(zklock_call_hold(call, &none), ZKLOCK_UNREACHABLE);
    SAYS("no server answers");
    SAYS(": check hosts and network");
    zklock_call_free(call);
    IS(fails_in_time(all.lock, A_WHILE_MS), ZKLOCK_UNREACHABLE);
    ground("refuse %d off", all.proxy);
    give_back(hold);
    free_rivals(&all);
}

/* Calls that do not wait for others return when no server answers, although connecting may take an hour. */
TEST(a_try_is_bounded_by_its_own_timeout_where_nobody_answers) {
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    zklock_client *client;
    zklock_hold *none = NULL;
    zklock_member *member, *nobody = NULL;
    zklock_call *call;
    zklock_options *options = options_with(SESSION_MS, HOUR_MS);
    set_time(options, "try-timeout", 300);
    OK(zklock_client_new(hosts, options, &client));
    zklock_options_free(options);
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_barrier *barrier = new_barrier(client, fresh_path());
    zklock_double_barrier *doors = new_double_barrier(client, fresh_path(), 1);
    OK(zklock_double_barrier_enter(doors, SOON_MS, &member));
    ground("freeze %d both", proxy);
    int64_t begun = now_ms();
    for (int try = 0; try < 2; try++) {
        IS(zklock_acquire(lock, 0, &none), ZKLOCK_UNREACHABLE);
        SAYS("was not tried within 300ms: no server answers: check hosts and network");
        OK(zklock_acquire_start(lock, 0, &call));
        not_acquired(call, ZKLOCK_UNREACHABLE);
        IS(zklock_barrier_wait(barrier, 0), ZKLOCK_UNREACHABLE);
        IS(zklock_double_barrier_enter(doors, 0, &nobody), ZKLOCK_UNREACHABLE);
    }
    IS(zklock_member_leave(member, 0), ZKLOCK_UNREACHABLE);
    CHECK(!none && !nobody && now_ms() - begun < SOON_MS);
    ground("thaw %d", proxy);
    zklock_member_free(member);
    zklock_double_barrier_free(doors);
    zklock_barrier_free(barrier);
    free_all(NULL, lock, client);
}

TEST(a_release_without_an_answer_goes_on_in_the_background) {
    const char *path = fresh_path();
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    zklock_client *client = client_with(hosts, 1000, 0);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    on_time();
    ground("freeze %d to-server", proxy);
    int64_t begun = now_ms();
    IS(zklock_release(hold), ZKLOCK_TIMEOUT);
    NOT_LATER(now_ms() - begun, 1000 + GRACE_MS + allowance_ms());
    SAYS("goes on in the background");
    IS(zklock_release(hold), ZKLOCK_NOT_HELD);
    CHECK(stats_of(client).owed == 1);
    ground("thaw %d", proxy);
    settled(client);
    wait_for_contenders(path, 0);
    free_all(hold, lock, client);
}

TEST(a_lost_reply_leaves_one_node_and_a_waiter_whose_session_expires_queues_again) {
    rivals all = new_rivals();
    int lost = new_hook("drop-reply", all.proxy, "create", 2, all.path);
    give_back(acquire(all.lock, SOON_MS));
    zklock_hold *hold = acquire(all.lock, SOON_MS), *next;
    CHECK(hook_fired(lost) && contenders_at(all.path) == 1);
    give_back(hold);
    hold = acquire(all.others, SOON_MS);
    attempt *attempt = start_acquire(all.lock, SOON_MS);
    wait_for_contenders(all.path, 2);
    expire_session(all.proxy);
    EVENTUALLY(stats_of(all.client).sessions == 2);
    wait_for_contenders(all.path, 2);
    /* It is back in the queue, and not granted before its turn. */
    CHECK(!is_over(attempt));
    give_back(hold);
    next = granted(attempt);
    CHECK(stats_of(all.client).losses == 0 && !strcmp(ground("exists %s", node_of(next)), "true"));
    give_back(next);
    free_rivals(&all);
}

/* The grant comes while the whole process is stopped, for longer than a lease or a session. */
static void slept_through(int64_t stop) {
    const char *path = fresh_path();
    char before[128];
    zklock_client *client = client_with(servers(), 1000, 0);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold;
    zklock_call *call;
    give_back(acquire(lock, SOON_MS));
    /* A persistent node is ahead of both of them. */
    snprintf(before, sizeof before, "%s/_c_01234567-89ab-4cde-8f01-23456789abcd-lock-0000000000", path);
    ground("create %s", before);
    attempt *attempt = start_acquire(lock, SOON_MS);
    wait_for_contenders(path, 2);
    OK(zklock_acquire_start(lock, SOON_MS, &call));
    while_stopped(stop, "delete %s", before);
    hold = granted(attempt);
    CHECK(!strcmp(ground("exists %s", node_of(hold)), "true"));
    IS(zklock_call_finish(call, NULL), ZKLOCK_PENDING);
    give_back(hold);
    /* The call has its grant, but the process is stopped before it is fetched. */
    await_call(call);
    while_stopped(stop, "exists %s", path);
    zklock_status status = zklock_call_hold(call, &hold);
    if (status == ZKLOCK_OK) {
        CHECK(valid_for(hold) > 0);
        CHECK(!strcmp(ground("exists %s", node_of(hold)), "true"));
        give_back(hold);
    } else {
        CHECK(status == ZKLOCK_LOST);
        SAYS(path);
    }
    zklock_call_free(call);
    settled(client);
    wait_for_contenders(path, 0);
    free_all(NULL, lock, client);
}

TEST(a_grant_that_the_process_slept_through_is_not_delivered) {
    /* Past the lease, and past the session. */
    slept_through(690);
    slept_through(1750);
}

TEST(a_killed_process_leaves_nothing_behind) {
    rivals all = new_rivals();
    char ready;
    int pipes[2];
    CHECK(!pipe(pipes));
    pid_t child = new_child();
    if (!child) {
        zklock_client *client = client_with(servers(), 1000, 0);
        zklock_lock *lock = new_mutex(client, all.path, 0);
        zklock_call *call;
        acquire(lock, SOON_MS);
        OK(zklock_acquire_start(lock, ZKLOCK_FOREVER, &call));
        wait_for_contenders(all.path, 2);
        CHECK(write(pipes[1], "r", 1) == 1);
        for (;;) pause();
    }
    CHECK(readable(pipes[0], SOON_MS) && read(pipes[0], &ready, 1) == 1);
    CHECK(!can_be_had(all.lock));
    CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
    give_back(acquire(all.lock, SOON_MS));
    free_rivals(&all);
}

TEST_MAIN("standalone tick=200 max-session=4000")
