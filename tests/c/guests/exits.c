/*
 * Promise 8: a process may end at any time and in any way, whatever the library is doing: without a hang, a crash or
 * output, and with the right exit code. Each way to end is a separate program.
 */

#define _GNU_SOURCE
#include "guest.h"

#include "calls.h"

/* Objects of the programs. */
static zklock_client *client, *other;
static zklock_lock *lock;
static zklock_hold *hold;
static const char *hosts, *path;

/* Ends the work of a thread, in a function of any type. */
static int pauses(void) {
    for (;;) pause();
    return 0;
}

static void begin(char **words) {
    hosts = words[0], path = words[1];
    client = connect_to(hosts);
    lock = new_mutex(client, path, 0);
    hold = acquire(lock, SOON_MS);
}

static void *waits(void *given) {
    (void)given;
    zklock_lock *wanted = new_mutex(other, path, 0);
    zklock_hold *never;
    /* This only returns at the end of the process, with any result. */
    (void)!zklock_acquire(wanted, ZKLOCK_FOREVER, &never);
    pauses();
    return NULL;
}

MODE(holding) {
    begin(words);
    return 3;
}

TEST(while_holding) {
    const char *at = fresh_path();
    run_program("holding", servers(), at, EXITED(3));
    /* The session is not closed, so the servers have to find out. */
    CHECK(contenders_at(at) == 1);
    wait_for_contenders(at, 0);
}

static int is_running;

static void never_returns(zklock_hold *lost, zklock_reason reason, void *context) {
    (void)lost, (void)reason, (void)context;
    __atomic_store_n(&is_running, 1, __ATOMIC_RELEASE);
    pauses();
}

/* A thread waits, acquires are pending, and a callback runs. */
ENDS(while_a_thread_waits_acquires_are_pending_and_a_callback_runs, 1, "") {
    begin(words);
    other = connect_to(hosts);
    start_thread(waits, NULL);
    EVENTUALLY(queue_of(lock) == 2);
    for (int at = 0; at < 20; at++) start_acquire(lock, ZKLOCK_FOREVER);
    OK(zklock_hold_on_lost(hold, never_returns, NULL));
    OK(zklock_evict(lock, node_of(hold), NULL));
    EVENTUALLY(__atomic_load_n(&is_running, __ATOMIC_ACQUIRE));
    return 3;
}

static void logs_for_ever(int32_t level, const char *line, void *context) {
    (void)level, (void)line, (void)context;
    __atomic_store_n(&is_running, 1, __ATOMIC_RELEASE);
    pauses();
}

ENDS(while_a_log_callback_runs, 1, "") {
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, logs_for_ever, NULL));
    begin(words);
    EVENTUALLY(__atomic_load_n(&is_running, __ATOMIC_ACQUIRE));
    return 3;
}

static void say(const char *word) {
    puts(word);
    fflush(stdout);
}

/* Everything that a handler may do: use existing objects, and make new ones. */
static void clean_up(void) {
    zklock_hold *again;
    IS(zklock_acquire(lock, 100, &again), ZKLOCK_TIMEOUT);
    CHECK(strstr(zklock_last_error(), "zklock_acquire"));
    give_back(hold);
    hold = acquire(lock, SOON_MS);
    OK(zklock_client_close(client));
    IS(zklock_release(hold), ZKLOCK_LOST);
    free_all(hold, lock, client);
    make_every_call(hosts, path);
    say("cleaned up");
}

static void clean_up_late(void) {
    clean_up();
    /* Objects for the handler that was registered before. */
    begin((char *[]){(char *)hosts, (char *)path});
}

ENDS(with_calls_in_handlers_from_before_and_after_the_first_use, 1, "cleaned up\ncleaned up\n") {
    CHECK(!atexit(clean_up));
    begin(words);
    CHECK(!atexit(clean_up_late));
    return 3;
}

ENDS(with_calls_in_a_handler_of_quick_exit, 1, "cleaned up\n") {
    CHECK(!at_quick_exit(clean_up));
    begin(words);
    quick_exit(3);
}

/* From the release on the waiting thread has the lock. */
static void hand_over(void) {
    zklock_hold *again;
    OK(zklock_release(hold));
    IS(zklock_acquire(lock, 100, &again), ZKLOCK_TIMEOUT);
    OK(zklock_client_close(client));
    free_all(hold, lock, client);
    make_every_call(hosts, fresh_path());
    say("handed over");
}

static void *exits(void *given) {
    begin(given);
    __atomic_store_n(&is_running, 1, __ATOMIC_RELEASE);
    EVENTUALLY(queue_of(lock) == 2);
    exit(3);
    return NULL;
}

ENDS(in_another_thread_than_the_one_that_waits, 1, "handed over\n") {
    other = connect_to(words[0]);
    CHECK(!atexit(hand_over));
    start_thread(exits, words);
    EVENTUALLY(__atomic_load_n(&is_running, __ATOMIC_ACQUIRE));
    waits(NULL);
    return 1;
}

static int first_has_ended(void) {
    char line[256];
    FILE *status = fopen("/proc/self/stat", "re");
    CHECK(status && fgets(line, sizeof line, status));
    fclose(status);
    return strstr(line, ") Z ") != NULL;
}

static void *goes_on(void *nothing) {
    EVENTUALLY(first_has_ended());
    give_back(hold);
    make_every_call(hosts, path);
    exit(3);
    return nothing;
}

ENDS(after_the_end_of_the_main_thread, 1, "") {
    begin(words);
    start_thread(goes_on, NULL);
    pthread_exit(NULL);
}

static void refused_in_handler(void) {
    /* Our own thread runs the handlers, so calls that block are refused, and nothing hangs. */
    zklock_hold *none;
    FAILS(zklock_acquire(lock, 100, &none), ZKLOCK_DEADLOCK, "a callback must not make calls that block");
    IS(zklock_release(hold), ZKLOCK_DEADLOCK);
    IS(zklock_client_close(client), ZKLOCK_DEADLOCK);
    IS(zklock_client_new(hosts, NULL, &client), ZKLOCK_DEADLOCK);
    free_all(hold, lock, client);
    say("refused");
}

static void exits_itself(zklock_hold *lost, zklock_reason reason, void *context) {
    (void)lost, (void)reason, (void)context;
    exit(3);
}

ENDS(in_a_callback, 1, "refused\n") {
    begin(words);
    CHECK(!atexit(refused_in_handler));
    OK(zklock_hold_on_lost(hold, exits_itself, NULL));
    OK(zklock_client_close(client));
    return pauses();
}

static void close_late(void) {
    int64_t begun = now_ms();
    zklock_release(hold);
    OK(zklock_client_close(client));
    free_all(hold, lock, client);
    /* The release takes a session timeout, and the close a second, at most. `bounded` checks the exact limits. */
    CHECK(now_ms() - begun < SESSION_MS + 1000 + SOON_MS);
    say("gave up");
}

MODE(unreachable) {
    begin(words);
    CHECK(!atexit(close_late));
    go_ahead("held");
    return 3;
}

static void *connects(void *given) {
    zklock_client *never;
    (void)!zklock_client_new(given, NULL, &never);
    pauses();
    return NULL;
}

ENDS(while_others_connect, 10, "") {
    begin(words);
    start_thread(connects, "127.0.0.1:1,no-such-host.invalid:1");
    start_thread(connects, (void *)hosts);
    /* Exit at a random moment of that. */
    sleep_ms(getpid() % 5);
    return 3;
}

static void *is_busy(void *given) {
    (void)given;
    for (;;) {
        zklock_hold *mine;
        zklock_call *waiting;
        if (zklock_acquire_start(lock, 100, &waiting) == ZKLOCK_OK) zklock_call_free(waiting);
        if (zklock_acquire(lock, 100, &mine)) continue;
        zklock_release(mine);
        zklock_hold_free(mine);
    }
    return NULL;
}

ENDS(while_all_threads_are_busy, 20, "") {
    begin(words);
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, count_line, NULL));
    for (int at = 0; at < 8; at++) start_thread(is_busy, NULL);
    give_back(hold);
    uint64_t grants = stats_of(client).grants;
    EVENTUALLY(stats_of(client).grants > grants + 20);
    return 3;
}

TEST(while_the_servers_are_out_of_reach) {
    char through[128];
    int proxy = new_proxy(through, sizeof through);
    program started = start_program("unreachable", through, fresh_path());
    hear(&started, "held");
    ground("freeze %d both", proxy);
    let(&started);
    hear(&started, "gave up");
    expect_end(&started, ENDS_MS, EXITED(3));
    ground("thaw %d", proxy);
}

TEST_OR_CHILD_MAIN("standalone max-session=4000")
