/*
 * Helpers for most test programs in C.
 *
 * Each has its own servers, which the program `ground` runs (see tests/src/bin/ground.rs; `ground("help")` lists
 * its commands). TEST_MAIN starts a standalone server, runs the tests by name, and stops everything.
 */

#ifndef ZKLOCK_TEST_H
#define ZKLOCK_TEST_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <zklock.h>

/* The session timeout of most tests: its lease is long enough for a busy machine, its heartbeat short enough to wait for. It is
 * longer where everything takes longer: see `sanitize`. */
#ifndef SESSION_MS
#define SESSION_MS 4000
#endif
/* The limit for anything that takes almost no time on an idle machine. */
#define SOON_MS 30000

#define IN_QUOTES(number) #number
#define TEXT_OF(number) IN_QUOTES(number)
/* A server that grants no longer sessions. */
#define STANDALONE "standalone max-session=" TEXT_OF(SESSION_MS)

#define TEST(name)                                                                                       \
    static void name(void);                                                                              \
    __attribute__((constructor)) static void list_##name(void) { list_test(__LINE__, #name, name); }      \
    static void name(void)

/* Runs the tests of the program, from its first line to its last; with words as arguments, those whose names contain one of
 * them. */
#define TEST_MAIN(start) \
    int main(int count, char **words) { return run_tests(start, count, words); }

#ifdef __cplusplus
extern "C" {
#endif

void list_test(int line, const char *name, void (*run)(void));
int run_tests(const char *start, int words_count, char **words);

/* Ends the program with a message if the condition is false. */
#define CHECK(condition)                                               \
    do {                                                               \
        if (!(condition)) failed(__FILE__, __LINE__, "%s", #condition); \
    } while (0)

/* Checks a promise about time: this took no longer than that. On a busy machine anything may be late, so a test in which something
 * was late runs again, up to LATE_TRIES times, and fails if it was late each time. If one run is in time, nothing in zklock takes
 * longer. A late test goes on, and all its other checks count. */
#define NOT_LATER(took, bound) not_later(__FILE__, __LINE__, #took, (took), (bound))

/* A call that must work. */
#define OK(call) IS(call, ZKLOCK_OK)
/* Calls a function that returns what it sees. The message tells what is wrong, and looked() the status that it stands for. */
#define LOOKED(call) (forget_error(), (void)!(call), looked(#call))
#define LOOKS(call) IS(LOOKED(call), ZKLOCK_OK)
void forget_error(void);
zklock_status looked(const char *call);

/* What is seen by a call that must be able to look. */
#define SEEN(call) (LOOKS(call), (call))

/* A call that must return this status. */
#define IS(call, status) check_status(__FILE__, __LINE__, #call, (call), (status))

/* The object of this type that a call makes, whose place in the call is `&made`. It is kept. */
#define MADE(type, call) \
    __extension__({      \
        type *made;      \
        OK(call);        \
        KEPT(type, made); \
    })

/* Keeps an object until the end of the test, which frees all that are not free by then, the latest first. */
#define KEPT(type, object) ((type *)keep((void (*)(void *))type##_free, object))
void *keep(void (*free)(void *), void *object);
/* What was kept last, and an end to all that was kept after it. NULL is before everything. */
const void *last_kept(void);
void free_kept(const void *since);

void not_later(const char *file, int line, const char *what, int64_t took, int64_t bound);
void failed(const char *file, int line, const char *format, ...) __attribute__((noreturn, format(printf, 3, 4)));
void check_status(const char *file, int line, const char *call, zklock_status got, zklock_status wanted);

/* Sends an order to the ground, and returns its answer without the "ok"; an error ends the program. The answer is valid until
 * the next call. Any thread may call this. */
const char *ground(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The connect string of the servers that TEST_MAIN started. */
const char *servers(void);

/* Milliseconds on the monotonic clock. */
int64_t now_ms(void);
void sleep_ms(int64_t milliseconds);

/* Whether the descriptor is readable within this time. */
int readable(int descriptor, int64_t milliseconds);

/* Waits until the condition is true, for SOON_MS at most. The message names the condition. */
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
#define IS_REENTRANT 1
zklock_lock *new_mutex(zklock_client *client, const char *path, int is_reentrant);
zklock_barrier *new_barrier(zklock_client *client, const char *path);
zklock_double_barrier *new_double_barrier(zklock_client *client, const char *path, uint32_t members);
/* A job with a period that does not end during a test. */
zklock_job *new_job(zklock_client *client, const char *path);
/* A constructor of any kind of lock that only needs a path, for example zklock_read_lock_new. */
typedef zklock_status constructor(zklock_client *, const char *, const zklock_options *, zklock_lock **);
zklock_lock *new_lock(constructor *make, zklock_client *client, const char *path);
zklock_hold *acquire(zklock_lock *lock, int64_t timeout);
zklock_call *start_acquire(zklock_lock *lock, int64_t timeout);
/* A hold of a mutex, with a client of its own. */
zklock_hold *new_hold(const char *hosts, const char *path);
int64_t valid_for(const zklock_hold *hold);
/* Waits until the hold is valid. On a slow machine its lease may lapse for a moment, and is valid again with the next answer; but
 * the hold must not be lost. */
void becomes_valid(const zklock_hold *hold);
uint64_t token_of(const zklock_hold *hold);
const char *node_of(const zklock_hold *hold);
/* Releases and frees the hold. */
void give_back(zklock_hold *hold);
zklock_state state_of(const zklock_hold *hold);
zklock_stats stats_of(const zklock_client *client);

/* Forks. */
pid_t new_child(void);

/* A path that no other test has. */
const char *fresh_path(void);

/* Options, and a client, with these timeouts, in milliseconds; 0 is the default. */
void set_time(zklock_options *options, const char *option, int64_t milliseconds);
zklock_options *options_with(int64_t session, int64_t connect);
zklock_client *client_with(const char *hosts, int64_t session, int64_t connect);

/* Checks that the last error message of this thread has this part. */
#define SAYS(part) check_sentence(__FILE__, __LINE__, zklock_last_error(), (part))
/* A call that must return this status, and say this. */
#define FAILS(call, status, part) (IS(call, status), SAYS(part))
void check_sentence(const char *file, int line, const char *sentence, const char *part);

/* A proxy before server 1: its number, and a connect string through it. */
int new_proxy(char *hosts, size_t size);

/* Two clients, each with a mutex at a path that no other test has. The first client is behind a proxy. The end of the test checks
 * that neither has left a node. */
typedef struct {
    char path[64];
    int proxy;
    zklock_client *client, *other;
    zklock_lock *lock, *others;
} rivals;
rivals new_rivals(void);

/* Ends the latest session that came through the proxy, at the server, and keeps its client out meanwhile. Returns the time
 * just before. */
int64_t expire_session(int proxy);

/* A hook at the proxy: the action, the kind of message, its number among those to come (1 is the next), and a part of its path
 * ("" for any). */
int new_hook(const char *what, int proxy, const char *kind, int nth, const char *path);
/* Waits until the hook has fired. */
void await_hook(int hook);

/* Waits until a heartbeat of the client behind the proxy has just been answered. */
void just_after_a_heartbeat(int proxy);

/* The number of contenders at a path, and a wait for that number. */
int contenders_at(const char *path);
void wait_for_contenders(const char *path, int count);

/* Waits until the client owes no clean-up any more, or is freed. */
void settled(const zklock_client *client);

/* Waits until the call has ended. */
void await_call(zklock_call *call);
/* The hold of a started acquire that must be granted soon. */
zklock_hold *hold_of(zklock_call *call);

/* A thread of this program, whose name is "host". The end of a test waits for it. */
typedef pthread_t thread;
thread start_thread(void *(*run)(void *argument), void *argument);
/* Waits until the thread ends, for SOON_MS at most, and returns its result. */
void *join_thread(thread thread);
/* The same, for a thread whose result is a status. */
zklock_status join_status(thread thread);

/* Begins to measure how late the machine is. */
void on_time(void);
/* An addition to a time limit for something that goes through several threads and the servers. */
int64_t allowance_ms(void);

/* Frees the objects that are not NULL. */
void free_all(zklock_hold *hold, zklock_lock *lock, zklock_client *client);

#ifdef __cplusplus
}
#endif

#endif
