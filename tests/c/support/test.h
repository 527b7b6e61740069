/*
 * A test program in C: what most of them need.
 *
 * Each has its own servers, which the program `ground` runs (see tests/src/bin/ground.rs; `ground("help")` lists
 * its commands). TEST_MAIN starts a standalone server, runs the tests by name, and stops everything.
 */

#ifndef ZKLOCK_TEST_H
#define ZKLOCK_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zklock.h>

/* The session timeout that tests ask for: a lease long enough for a busy machine, a heartbeat short enough to wait for. */
#define SESSION_MS 4000
/* How long anything may take that takes no time on an idle machine. */
#define SOON_MS 10000
/* What promise 4 allows beyond the deadline. */
#define GRACE_MS 50

typedef struct {
    const char *name;
    void (*run)(void);
} test;

#define TEST(name) static void name(void)
#define LISTED(name) {#name, name}

/* The tests of the program, in this order; with words as arguments, those whose names contain one of them. */
#define TEST_MAIN(start, ...)                                             \
    int main(int count, char **words) {                                   \
        static const test tests[] = {__VA_ARGS__};                        \
        return run_tests(start, tests, sizeof tests / sizeof *tests, count, words); \
    }

int run_tests(const char *start, const test *tests, size_t count, int words_count, char **words);

/* Ends the program with a message if it does not hold. */
#define CHECK(condition)                                               \
    do {                                                               \
        if (!(condition)) failed(__FILE__, __LINE__, "%s", #condition); \
    } while (0)

/* A call that must work. */
#define OK(call) IS(call, ZKLOCK_OK)

/* A call that must return this status. */
#define IS(call, status) check_status(__FILE__, __LINE__, #call, (call), (status))

void failed(const char *file, int line, const char *format, ...) __attribute__((noreturn, format(printf, 3, 4)));
void check_status(const char *file, int line, const char *call, zklock_status got, zklock_status wanted);

/* Tells the ground to do something, and gives its answer without the "ok"; an error ends the program. It is valid until
 * the next call, and any thread may call it. */
const char *ground(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The connect string of the servers that TEST_MAIN started. */
const char *servers(void);

/* Milliseconds on the monotonic clock. */
int64_t now_ms(void);
void sleep_ms(int64_t milliseconds);

/* Whether the descriptor is readable within this time. */
int readable(int descriptor, int64_t milliseconds);

/* Waits until it holds, for SOON_MS at most; what was waited for is named in the message. */
#define EVENTUALLY(condition)                                                          \
    do {                                                                               \
        int64_t until_ = now_ms() + SOON_MS;                                           \
        while (!(condition)) {                                                         \
            if (now_ms() > until_) failed(__FILE__, __LINE__, "never: %s", #condition); \
            sleep_ms(5);                                                               \
        }                                                                              \
    } while (0)

/* A client with a session timeout of SESSION_MS. */
zklock_client *connect_to(const char *hosts);
zklock_client *new_client(void); /* of servers() */
zklock_lock *new_mutex(zklock_client *client, const char *path, uint32_t flags);
zklock_hold *acquire(zklock_lock *lock, int64_t timeout);
int64_t valid_for(const zklock_hold *hold);
uint64_t token_of(const zklock_hold *hold);
zklock_state state_of(const zklock_hold *hold);
uint64_t stat_of(const zklock_client *client, zklock_stat stat);

/* A path that no other test has. */
const char *fresh_path(void);

/* A proxy before server 1: its number, and a connect string through it. */
int new_proxy(char *hosts, size_t size);

#endif
