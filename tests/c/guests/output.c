/* Promise 8: the library writes nothing to the host's terminal, and leaks neither descriptors nor threads. */

#define _GNU_SOURCE
#include "guest.h"

#include "calls.h"

#define ROUNDS 200

/* This must come first, because threads stay once they were started. */
TEST(one_thread_and_one_for_callbacks) {
    int is_told = 0;
    CHECK(our_tasks() == 0);
    zklock_options_free(options_with(0, 0));
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    CHECK(our_tasks() == 0);
    handles on = new_handles(servers(), fresh_path());
    on.hold = acquire(on.lock, SOON_MS);
    OK(zklock_acquire_start(on.lock, 100, &on.waiting));
    OK(zklock_hold_confirm(on.hold, NULL));
    the_task("zklock-io");
    CHECK(our_tasks() == 1);
    OK(zklock_hold_on_lost(on.hold, note_loss, &is_told));
    OK(zklock_client_close(on.client));
    EVENTUALLY(__atomic_load_n(&is_told, __ATOMIC_ACQUIRE));
    the_task("zklock-calls");
    CHECK(our_tasks() == 2);
    free_handles(&on);
}

/* Uses everything that needs descriptors or threads, and ends each in one of the possible ways. */
static void use(int round) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    zklock_call *waiting[4];
    int descriptor, is_told = 0;
    CHECK(!zklock_client_fd(client, &descriptor) && !zklock_client_fd(client, &descriptor));
    OK(zklock_hold_on_lost(hold, note_loss, &is_told));
    for (size_t at = 0; at < COUNT(waiting); at++) {
        OK(zklock_acquire_start(lock, at ? ZKLOCK_FOREVER : 1, &waiting[at]));
    }
    OK(zklock_call_cancel(waiting[1]));
    if (round % 2) OK(zklock_release(hold));
    if (round % 4 == 1) {
        /* A grant that nobody fetches, but not the grant of the first call. */
        zklock_call_free(waiting[0]);
        await_call(waiting[2]);
    }
    if (round % 3) OK(zklock_client_close(client));
    zklock_hold_free(hold);
    if (round % 5) zklock_client_free(client);
    for (size_t at = 0; at < COUNT(waiting); at++) zklock_call_free(waiting[at]);
    zklock_lock_free(lock);
    if (!(round % 5)) zklock_client_free(client);
}

/* The number of descriptors once nothing is closed in the background any more: it has not changed for a while. */
static size_t settled_descriptors(void) {
    size_t now = descriptors();
    for (int same = 0; same < 100; same++) {
        sleep_ms(10);
        size_t then = now;
        now = descriptors();
        if (now != then) same = 0;
    }
    return now;
}

TEST(descriptors_and_threads_come_back) {
    for (int round = 0; round < 60; round++) use(round);
    EVENTUALLY(our_tasks() == 2);
    size_t before = settled_descriptors();
    for (int round = 0; round < ROUNDS; round++) {
        use(round);
        CHECK(our_tasks() == 2);
    }
    EVENTUALLY(descriptors() == before);
    printf("  %zu descriptors before and after %d rounds\n", before, ROUNDS);
}

TEST(connections_that_fail_leave_nothing) {
    size_t before = settled_descriptors();
    zklock_client *client;
    zklock_options *options = options_with(0, 50);
    for (int round = 0; round < 50; round++) {
        IS(zklock_client_new("127.0.0.1:1", options, &client), ZKLOCK_UNREACHABLE);
        IS(zklock_client_new("127.0.0.1:99999", options, &client), ZKLOCK_INVALID_ARGUMENT);
    }
    zklock_options_free(options);
    EVENTUALLY(descriptors() == before);
    CHECK(our_tasks() == 2);
}

/* Files that this program was started with are not ours. */
static int was_open[256];

__attribute__((constructor)) static void note_what_is_open(void) {
    for (int descriptor = 0; descriptor < 256; descriptor++) was_open[descriptor] = fcntl(descriptor, F_GETFD) >= 0;
}

/* A program that the host starts inherits none of the library's descriptors. */
TEST(descriptors_are_not_inherited) {
    handles on = new_handles(servers(), fresh_path());
    int descriptor;
    on.hold = acquire(on.lock, SOON_MS);
    OK(zklock_acquire_start(on.lock, ZKLOCK_FOREVER, &on.waiting));
    OK(zklock_client_fd(on.client, &descriptor));
    for (descriptor = 3; descriptor < 256; descriptor++) {
        int flags = fcntl(descriptor, F_GETFD);
        if (!was_open[descriptor] && flags >= 0 && !(flags & FD_CLOEXEC)) {
            char link[64], what[256] = "";
            snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
            if (readlink(link, what, sizeof what - 1) < 0) continue;
            failed(__FILE__, __LINE__, "%d, %s, is inherited", descriptor, what);
        }
    }
    free_handles(&on);
}

/* ---- The library prints nothing. ---- */

static void loses_sessions(void) {
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    zklock_lock *lock = new_mutex(connect_to(hosts), fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    zklock_reason why;
    ground("reset %d", proxy);
    EVENTUALLY(zklock_hold_confirm(hold, NULL) == ZKLOCK_OK);
    expire_session(proxy);
    OK(zklock_hold_wait_lost(hold, SOON_MS, &why));
    IS(zklock_release(hold), ZKLOCK_LOST);
    hold = acquire(lock, SOON_MS);
    ground("freeze %d both", proxy);
    OK(zklock_hold_wait_lost(hold, SESSION_MS + SOON_MS, &why));
    CHECK(zklock_acquire(lock, 50, &hold) != ZKLOCK_OK);
    ground("thaw %d", proxy);
}

static void all_that_might_say_something(void) {
    zklock_lock *lock;
    make_every_call(servers(), fresh_path());
    IS(zklock_mutex_new((zklock_client *)&lock, "/a", NULL, &lock), ZKLOCK_INVALID_HANDLE);
    loses_sessions();
    for (int round = 0; round < 10; round++) use(round);
}

MODE(talkative) {
    (void)words;
    list_test(0, "all_that_might_say_something", all_that_might_say_something);
    /* These variables switch on logs and traces of other libraries. */
    setenv("RUST_LOG", "trace", 1), setenv("RUST_BACKTRACE", "full", 1);
    return run_tests("standalone max-session=4000", 2, (char *[]){"", "all_that_might_say_something"});
}

TEST(nothing_is_written_for_the_terminal) {
    program started = start_program("talkative", NULL, NULL);
    expect_end(&started, 6 * SOON_MS, EXITED(0));
    /* The test itself prints one line. */
    if (strncmp(started.said, "ok all", 6) || strchr(started.said, '\n')[1]) {
        failed(__FILE__, __LINE__, "it said: %s", started.said);
    }
}

TEST_OR_CHILD_MAIN("standalone max-session=4000")
