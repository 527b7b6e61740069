/*
 * Promise 8: a host that has not changed SIGPIPE survives when servers hang up on the library.
 *
 * A write raises SIGPIPE if the server has closed its side, has answered an earlier write with a reset, and we have not
 * read that end yet, unless the write asks for none, as the library's do. A signal that the I/O thread blocks would stay
 * pending there, where the test would see it.
 */

#define _GNU_SOURCE
#include "guest.h"

#define CLIENTS 20
#define WORKERS (2 * CLIENTS)
#define STRIKES 300

static int enough;
static long done;

/* Writes all the time, whatever the result is. */
static void *work(void *given) {
    zklock_lock *lock = given;
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
        zklock_hold *hold;
        if (zklock_acquire(lock, 200, &hold) != ZKLOCK_OK) continue;
        zklock_release(hold);
        zklock_hold_free(hold);
        __atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static int was_raised(void) { return (the_task("zklock-io").pending & bit(SIGPIPE)) != 0; }

static void strike(int proxy, int number) {
    static const char *const ways[] = {"cut", "reset", "cut", "half-open"};
    const char *way = ways[number % COUNT(ways)];
    ground("%s %d", way, proxy);
    /* The reply to data sent into a half-open connection. */
    if (!strcmp(way, "half-open")) ground("reset %d", proxy);
}

TEST(the_host_lives_while_connections_are_reset_under_load) {
    struct sigaction now;
    CHECK(!sigaction(SIGPIPE, NULL, &now) && now.sa_handler == SIG_DFL);
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    zklock_client *clients[CLIENTS];
    zklock_lock *locks[WORKERS];
    pthread_t workers[WORKERS];
    for (int at = 0; at < CLIENTS; at++) clients[at] = connect_to(hosts);
    for (int at = 0; at < WORKERS; at++) {
        locks[at] = new_mutex(clients[at % CLIENTS], fresh_path(), 0);
        workers[at] = start_thread(work, locks[at]);
    }
    CHECK(!was_raised());
    int connections = 0;
    for (int strikes = 0; strikes < STRIKES; strikes++) {
        /* A strike without connections would prove nothing. */
        EVENTUALLY(atoi(ground("connections %d", proxy)) > CLIENTS / 2);
        long before = __atomic_load_n(&done, __ATOMIC_RELAXED);
        EVENTUALLY(__atomic_load_n(&done, __ATOMIC_RELAXED) != before);
        connections += atoi(ground("connections %d", proxy));
        strike(proxy, strikes);
        CHECK(!was_raised());
    }
    printf("  %d connections ended in %d strikes under %ld locks\n", connections, STRIKES, done);
    /* Afterwards everything still works. */
    enough = 1;
    for (int at = 0; at < WORKERS; at++) {
        join_thread(workers[at]);
        give_back(acquire(locks[at], SOON_MS));
    }
    CHECK(!sigaction(SIGPIPE, NULL, &now) && now.sa_handler == SIG_DFL);
}

TEST_MAIN("standalone max-session=4000")
