/* Every call with a status, in an order in which all of them succeed on one set of handles. */

#ifndef ZKLOCK_CALLS_H
#define ZKLOCK_CALLS_H

#include <unistd.h>

#include "test.h"

typedef struct {
    const char *hosts, *path;
    zklock_options *options;
    zklock_client *client;
    zklock_lock *lock, *unused;
    zklock_observer *observer;
    zklock_barrier *barrier;
    zklock_double_barrier *double_barrier;
    zklock_member *member;
    zklock_job *job;
    /* Of a job each: a run is ended once. */
    zklock_hold *runs[2];
    /* Set by zklock_acquire. */
    zklock_hold *hold;
    /* Still running. */
    zklock_call *call;
    /* An acquire that some tests start. */
    zklock_call *waiting;
} handles;

typedef struct {
    const char *name;
    zklock_status (*run)(handles *on);
    /* The status that it returns on success. */
    zklock_status live;
} call;

static inline void ignore_loss(zklock_hold *hold, zklock_reason reason, void *context) {
    (void)hold, (void)reason, (void)context;
}
static inline void ignore_contender(const zklock_contender *contender, void *context) {
    (void)contender, (void)context;
}

/* A path that begins with that of the handles. */
static inline const char *below(const handles *on, const char *rest) {
    static __thread char path[192];
    snprintf(path, sizeof path, "%s%s", on->path, rest);
    return path;
}

/* How long the lease is, and whether it is lost, does not matter here. */
static inline zklock_status ensures(handles *on) {
    zklock_status status = zklock_hold_ensure(on->hold, 0);
    return status == ZKLOCK_AT_RISK || status == ZKLOCK_LOST ? ZKLOCK_OK : status;
}
/* It is chance whether an event has come by then. */
static inline zklock_status any_event(handles *on) {
    zklock_event event;
    zklock_status status = zklock_client_next_event(on->client, &event);
    return status == ZKLOCK_PENDING ? ZKLOCK_OK : status;
}
static inline zklock_status commits(handles *on) {
    const char *path = below(on, "/written");
    zklock_write writes[] = {{.kind = ZKLOCK_WRITE_CREATE, .path = path},
                             {.kind = ZKLOCK_WRITE_DELETE, .path = path, .version = ZKLOCK_ANY_VERSION}};
    return zklock_hold_commit(on->hold, writes, 2, NULL);
}

#define WORKS(name, ...) CALL(name, ZKLOCK_OK, zklock_##name(__VA_ARGS__))
#define LOOKS_AT(name, ...) CALL(name, ZKLOCK_OK, LOOKED(zklock_##name(__VA_ARGS__)))
#define PENDING(name, ...) CALL(name, ZKLOCK_PENDING, zklock_##name(__VA_ARGS__))

#define CALL(name, live, ...)                            \
    static inline zklock_status call_##name(handles *on) {       \
        (void)on;                                                \
        return __VA_ARGS__;                                      \
    }
#define MAKES(name, kind, ...)                                   \
    static inline zklock_status call_##name(handles *on) {       \
        (void)on;                                                \
        zklock_##kind *made;                                     \
        zklock_status status = zklock_##name(__VA_ARGS__); \
        if (!status) zklock_##kind##_free(made);                 \
        return status;                                           \
    }
#include "every_call.h"
#undef CALL
#undef MAKES

#define CALL(name, live, ...) {"zklock_" #name, call_##name, live},
#define MAKES(name, ...) CALL(name, ZKLOCK_OK)
static const call calls[] = {
#include "every_call.h"
};

/* Handles for all calls. Hold and acquire come from the calls that make them. */
static inline handles new_handles(const char *hosts, const char *path) {
    handles made = {.hosts = hosts, .path = path};
    OK(zklock_options_new(&made.options));
    made.client = connect_to(hosts);
    made.lock = new_mutex(made.client, path, 0);
    made.unused = new_mutex(made.client, below(&made, "-unused"), 0);
    OK(zklock_observe(made.lock, &made.observer));
    made.barrier = new_barrier(made.client, below(&made, "-barrier"));
    made.double_barrier = new_double_barrier(made.client, below(&made, "-double-barrier"), 1);
    OK(zklock_double_barrier_enter(made.double_barrier, SOON_MS, &made.member));
    made.job = new_job(made.client, below(&made, "-job"));
    for (size_t at = 0; at < sizeof made.runs / sizeof *made.runs; at++) {
        /* A job runs once, so the next handles, or those of a child, have others. */
        static _Atomic unsigned jobs;
        char name[48];
        snprintf(name, sizeof name, "-job-%ld-%u", (long)getpid(), jobs++);
        zklock_job *job = new_job(made.client, below(&made, name));
        OK(zklock_job_begin(job, SOON_MS, &made.runs[at]));
        zklock_job_free(job);
    }
    zklock_double_barrier *alone = new_double_barrier(made.client, below(&made, "-alone"), 2);
    OK(zklock_double_barrier_enter_start(alone, ZKLOCK_FOREVER, &made.call));
    zklock_double_barrier_free(alone);
    return made;
}

static inline void free_handles(handles *of) {
    zklock_call_free(of->call);
    zklock_call_free(of->waiting);
    zklock_hold_free(of->hold);
    zklock_observer_free(of->observer);
    zklock_member_free(of->member);
    for (size_t at = 0; at < sizeof of->runs / sizeof *of->runs; at++) zklock_hold_free(of->runs[at]);
    zklock_job_free(of->job);
    zklock_double_barrier_free(of->double_barrier);
    zklock_barrier_free(of->barrier);
    zklock_lock_free(of->lock);
    zklock_lock_free(of->unused);
    zklock_client_free(of->client);
    zklock_options_free(of->options);
    *of = (handles){0};
}

/* Makes all calls, each of which must succeed. */
static inline void make_every_call(const char *hosts, const char *path) {
    handles on = new_handles(hosts, path);
    for (size_t at = 0; at < sizeof calls / sizeof *calls; at++) {
        check_status(__FILE__, __LINE__, calls[at].name, calls[at].run(&on), calls[at].live);
    }
    free_handles(&on);
}

#endif
