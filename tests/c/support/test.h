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
#define SOON_MS 30000
/* The delay beyond the deadline that promise 4 allows. */
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

#ifdef __cplusplus
extern "C" {
#endif

int run_tests(const char *start, const test *tests, size_t count, int words_count, char **words);

/* Ends the program with a message if it does not hold. */
#define CHECK(condition)                                               \
    do {                                                               \
        if (!(condition)) failed(__FILE__, __LINE__, "%s", #condition); \
    } while (0)

/* A promise that has a time in it: this took no longer than that. On a busy machine anything may be late, so a test in which
 * something was is run once more, up to LATE_TRIES times, and fails if it was late each time. Where one is in time, nothing in zklock
 * takes longer. It goes on meanwhile, and every other check of it counts. */
#define NOT_LATER(took, bound) not_later(__FILE__, __LINE__, #took, (took), (bound))

/* A call that must work. */
#define OK(call) IS(call, ZKLOCK_OK)

/* A call that must return this status. */
#define IS(call, status) check_status(__FILE__, __LINE__, #call, (call), (status))

void not_later(const char *file, int line, const char *what, int64_t took, int64_t bound);
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
zklock_barrier *new_barrier(zklock_client *client, const char *path);
zklock_double_barrier *new_double_barrier(zklock_client *client, const char *path, uint32_t members);
/* A lock of any kind that is made from a path alone: zklock_rwlock_read_new. */
typedef zklock_status constructor(zklock_client *, const char *, const zklock_lock_options *, zklock_lock **);
zklock_lock *new_lock(constructor *make, zklock_client *client, const char *path);
/* A semaphore of which so many permits are acquired at once. */
zklock_lock *new_semaphore(zklock_client *client, const char *path, uint32_t limit, uint32_t permits);
zklock_hold *acquire(zklock_lock *lock, int64_t timeout);
int64_t valid_for(const zklock_hold *hold);
uint64_t token_of(const zklock_hold *hold);
const char *node_of(const zklock_hold *hold);
/* Releases and frees it. */
void give_back(zklock_hold *hold);
/* Whether the lock can be had at once; it is given back. */
int can_be_had(zklock_lock *lock);
zklock_state state_of(const zklock_hold *hold);
uint64_t stat_of(const zklock_client *client, zklock_stat stat);

/* A path that no other test has. */
const char *fresh_path(void);

/* A client with these timeouts, in milliseconds; 0 is the default. */
zklock_client *client_with(const char *hosts, int64_t session, int64_t connect);

/* Checks that the last error of this thread tells of this. */
#define SAYS(part) check_sentence(__FILE__, __LINE__, zklock_last_error(), (part))
void check_sentence(const char *file, int line, const char *sentence, const char *part);

/* A proxy before server 1: its number, and a connect string through it. */
int new_proxy(char *hosts, size_t size);

/* A client that goes through a proxy of its own. */
zklock_client *proxied_client(int *proxy);

/* Ends the latest session that came through the proxy, at the server. Its client is kept out meanwhile. The time just
 * before. */
int64_t expire_session(int proxy);

/* A hook at the proxy: what, kind of message, which of those to come (1 is the next), part of its path ("" for any). */
int new_hook(const char *what, int proxy, const char *kind, int nth, const char *path);
int hook_fired(int hook);
/* Waits until it has fired. */
void await_hook(int hook);

/* How many requests went through the proxy since its record began, without those that only keep the session and its lease,
 * and without the look that a hold of more than a heartbeat takes at its queue. */
int asked(int proxy);

/* The next heartbeat of the client behind the proxy has just been answered. */
void just_after_a_heartbeat(int proxy);

/* How many contenders there are at a path, and waits until there are so many. */
int contenders_at(const char *path);
void wait_for_contenders(const char *path, int count);

/* Waits until the client owes no clean-up any more. */
void settled(const zklock_client *client);

/* The number at the end of the node's name. */
unsigned long sequence_of(const zklock_hold *hold);

/* A thread that the end of a test waits for. */
typedef struct thread thread;
thread *start_thread(void *(*run)(void *argument), void *argument);
/* Waits for its end, for SOON_MS at most, and gives its result. */
void *join_thread(thread *thread);

/* An acquire by a thread of its own. */
typedef struct attempt attempt;
attempt *start_acquire(zklock_lock *lock, int64_t timeout);
int is_over(attempt *attempt);
/* Waits for the grant. The hold was alive when it was given. */
zklock_hold *granted(attempt *attempt);
/* Waits for the end of what is not granted. What the sentence was, if wanted. */
zklock_status refused(attempt *attempt, char *sentence, size_t size);
/* How long it took by its own clock; for one that is over. */
int64_t took_ms(const attempt *attempt);
/* Waits for the end of what may be granted or not. The hold is NULL if it is not. */
zklock_status outcome(attempt *attempt, zklock_hold **hold);

/* How late the machine is: measured from the first call on. `late_ms` is the worst since the last `on_time`. */
void on_time(void);
int64_t late_ms(void);
/* The delay that promise 4 allows, plus the delay of the machine. */
int64_t grace_ms(void);
/* To be added to a time limit for something that goes through several threads and the servers. */
int64_t allowance_ms(void);

/* Has this process stopped, the ground do something meanwhile, and the process go on after a time. */
void while_stopped(int64_t milliseconds, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Frees what is not NULL. */
void free_all(zklock_hold *hold, zklock_lock *lock, zklock_client *client);

#ifdef __cplusplus
}
#endif

#endif
