/* Every call with a status, in an order in which all of them succeed on one set of handles. */

#ifndef ZKLOCK_CALLS_H
#define ZKLOCK_CALLS_H

#include "test.h"

typedef struct {
    const char *hosts, *path;
    zklock_options *options;
    zklock_lock_options *lock_options;
    zklock_client *client;
    zklock_lock *lock, *unused;
    zklock_observer *observer;
    zklock_barrier *barrier;
    zklock_double_barrier *double_barrier;
    /* Set by new_handles, and again by zklock_double_barrier_enter. */
    zklock_member *member;
    /* Set by zklock_acquire. */
    zklock_hold *hold;
    /* Calls that are still running; the first is an acquire. */
    zklock_call *waiting, *call;
} handles;

typedef struct {
    const char *name;
    zklock_status (*run)(handles *on);
    /* The status that it returns on success. */
    zklock_status live;
    /* ZKLOCK_DEADLOCK in a callback. */
    int blocks;
} call;

static inline void ignore_loss(zklock_hold *hold, zklock_reason reason, void *context) {
    (void)hold, (void)reason, (void)context;
}
static inline void ignore_contender(const zklock_contender *contender, void *context) {
    (void)contender, (void)context;
}

#define CALL(name) static inline zklock_status call_##name(handles *on)

#include "calls_of_options.h"
#include "calls_of_clients.h"

CALL(lock_options_new) {
    (void)on;
    zklock_lock_options *options;
    zklock_status status = zklock_lock_options_new(&options);
    if (!status) zklock_lock_options_free(options);
    return status;
}
CALL(lock_options_set_flags) { return zklock_lock_options_set_flags(on->lock_options, 0); }
CALL(lock_options_set_dialect) {
    return zklock_lock_options_set_dialect(on->lock_options, ZKLOCK_DIALECT_CURATOR);
}
CALL(lock_options_set_linger) { return zklock_lock_options_set_linger(on->lock_options, 0); }
CALL(lock_options_set_local_turns) { return zklock_lock_options_set_local_turns(on->lock_options, 1); }
CALL(lock_options_set_permits) { return zklock_lock_options_set_permits(on->lock_options, 1); }
CALL(lock_options_set_limit_at) { return zklock_lock_options_set_limit_at(on->lock_options, on->path); }

/* A call that makes a lock from a path and options. */
#define CALL_OF_KIND(name)                                                                          \
    CALL(name) {                                                                                    \
        zklock_lock *lock;                                                                          \
        zklock_status status = zklock_##name(on->client, on->path, NULL, &lock);                    \
        if (!status) zklock_lock_free(lock);                                                        \
        return status;                                                                              \
    }
CALL_OF_KIND(mutex_new)
CALL_OF_KIND(rwlock_read_new)
CALL_OF_KIND(rwlock_write_new)
CALL_OF_KIND(election_new)
CALL_OF_KIND(exclusive_new)
CALL(semaphore_new) {
    zklock_lock *lock;
    zklock_status status = zklock_semaphore_new(on->client, on->path, 1, NULL, &lock);
    if (!status) zklock_lock_free(lock);
    return status;
}
CALL(set_limit) {
    char path[128];
    snprintf(path, sizeof path, "%s-limit", on->path);
    return zklock_set_limit(on->client, path, 1);
}
CALL(all_new) {
    zklock_lock *lock;
    zklock_status status = zklock_all_new(on->client, &on->lock, 1, NULL, &lock);
    if (!status) zklock_lock_free(lock);
    return status;
}
CALL(any_new) {
    zklock_lock *lock;
    zklock_status status = zklock_any_new(on->client, &on->lock, 1, NULL, &lock);
    if (!status) zklock_lock_free(lock);
    return status;
}
CALL(lock_path) {
    const char *path;
    return zklock_lock_path(on->lock, &path);
}
CALL(acquire) {
    zklock_hold *hold;
    zklock_status status = zklock_acquire(on->lock, SOON_MS, &hold);
    if (!status) on->hold = hold;
    return status;
}
CALL(contenders) { return zklock_contenders(on->lock, ignore_contender, NULL); }
CALL(observe) {
    zklock_observer *observer;
    zklock_status status = zklock_observe(on->lock, &observer);
    if (!status) zklock_observer_free(observer);
    return status;
}
CALL(observer_next) {
    const zklock_contender *holder;
    return zklock_observer_next(on->observer, SOON_MS, &holder);
}
CALL(barrier_new) {
    zklock_barrier *barrier;
    zklock_status status = zklock_barrier_new(on->client, on->path, &barrier);
    if (!status) zklock_barrier_free(barrier);
    return status;
}
CALL(barrier_set) { return zklock_barrier_set(on->barrier, NULL); }
CALL(barrier_is_set) {
    int is_set;
    return zklock_barrier_is_set(on->barrier, &is_set);
}
CALL(barrier_remove) { return zklock_barrier_remove(on->barrier, NULL); }
CALL(barrier_wait) { return zklock_barrier_wait(on->barrier, SOON_MS); }
CALL(double_barrier_new) {
    zklock_double_barrier *double_barrier;
    zklock_status status = zklock_double_barrier_new(on->client, on->path, 1, &double_barrier);
    if (!status) zklock_double_barrier_free(double_barrier);
    return status;
}
CALL(double_barrier_enter) {
    zklock_member *member;
    zklock_status status = zklock_double_barrier_enter(on->double_barrier, SOON_MS, &member);
    if (status) return status;
    zklock_member_free(on->member);
    on->member = member;
    return status;
}
CALL(member_node) {
    const char *node;
    return zklock_member_node(on->member, &node);
}
CALL(member_loss) {
    zklock_reason reason;
    return zklock_member_loss(on->member, &reason);
}
CALL(member_leave) { return zklock_member_leave(on->member, SOON_MS); }
CALL(acquire_start) {
    zklock_call *waiting;
    zklock_status status = zklock_acquire_start(on->lock, SOON_MS, &waiting);
    if (status) return status;
    zklock_call_free(on->waiting);
    on->waiting = waiting;
    return status;
}
CALL(call_hold) {
    zklock_hold *hold;
    zklock_status status = zklock_call_hold(on->waiting, &hold);
    if (!status) zklock_hold_free(hold);
    return status;
}
CALL(hold_token) {
    uint64_t token;
    return zklock_hold_token(on->hold, &token);
}
CALL(hold_valid_for) {
    int64_t milliseconds;
    return zklock_hold_valid_for(on->hold, &milliseconds);
}
CALL(hold_state) {
    zklock_state state;
    return zklock_hold_state(on->hold, &state, NULL);
}
CALL(hold_path) {
    const char *path;
    return zklock_hold_path(on->hold, &path);
}
CALL(hold_node) {
    const char *node;
    return zklock_hold_node(on->hold, &node);
}
CALL(hold_fd) {
    int descriptor;
    return zklock_hold_fd(on->hold, &descriptor);
}
CALL(hold_set_context) { return zklock_hold_set_context(on->hold, on); }
CALL(hold_on_lost) { return zklock_hold_on_lost(on->hold, ignore_loss, NULL); }
CALL(hold_wait_lost) {
    zklock_reason reason;
    return zklock_hold_wait_lost(on->hold, 0, &reason);
}
CALL(hold_is_wanted) {
    int is_wanted;
    return zklock_hold_is_wanted(on->hold, &is_wanted);
}
CALL(hold_wait_wanted) { return zklock_hold_wait_wanted(on->hold, 0); }
CALL(hold_confirm) { return zklock_hold_confirm(on->hold, NULL); }
CALL(hold_commit) {
    char path[128];
    snprintf(path, sizeof path, "%s/written", on->path);
    zklock_write writes[] = {{.kind = ZKLOCK_WRITE_CREATE, .path = path},
                             {.kind = ZKLOCK_WRITE_DELETE, .path = path, .version = ZKLOCK_ANY_VERSION}};
    return zklock_hold_commit(on->hold, writes, 2, NULL);
}
CALL(hold_read) {
    size_t length;
    int32_t version;
    return zklock_hold_read(on->hold, "/", NULL, 0, &length, &version);
}
CALL(set_log) {
    (void)on;
    return zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL);
}
/* No contender has that name, and nobody holds the lock that is broken. */
CALL(evict) {
    char node[192];
    snprintf(node, sizeof node, "%s/_c_01234567-89ab-4cde-8f01-23456789abcd-lock-2147483647", on->path);
    return zklock_evict(on->lock, node, NULL);
}
CALL(break_lock) { return zklock_break_lock(on->unused, NULL, NULL); }
CALL(revoke) { return zklock_revoke(on->unused, NULL, NULL); }
CALL(release) { return zklock_release(on->hold); }
CALL(client_close) { return zklock_client_close(on->client); }

/* A call that starts another one in the background, and ends it. */
#define CALL_OF_START(name, ...)                                                                    \
    CALL(name) {                                                                                    \
        zklock_call *call;                                                                          \
        zklock_status status = zklock_##name(__VA_ARGS__, &call);                                   \
        if (!status) zklock_call_free(call);                                                        \
        return status;                                                                              \
    }
CALL_OF_START(client_new_start, on->hosts, NULL)
CALL(client_new_lazy) {
    zklock_client *client;
    zklock_status status = zklock_client_new_lazy(on->hosts, NULL, &client);
    if (!status) zklock_client_free(client);
    return status;
}
CALL(client_connect) { return zklock_client_connect(on->client, SOON_MS); }
CALL_OF_START(client_connect_start, on->client, SOON_MS)
CALL_OF_START(contenders_start, on->lock)
CALL_OF_START(barrier_set_start, on->barrier)
CALL_OF_START(barrier_is_set_start, on->barrier)
CALL_OF_START(barrier_remove_start, on->barrier)
CALL_OF_START(barrier_wait_start, on->barrier, SOON_MS)
CALL_OF_START(double_barrier_enter_start, on->double_barrier, SOON_MS)
CALL_OF_START(member_leave_start, on->member, SOON_MS)
CALL_OF_START(hold_confirm_start, on->hold)
CALL(hold_commit_start) {
    zklock_call *call;
    zklock_write writes[] = {{.kind = ZKLOCK_WRITE_DELETE, .path = "/there/is/none", .version = ZKLOCK_ANY_VERSION}};
    zklock_status status = zklock_hold_commit_start(on->hold, writes, 1, &call);
    if (!status) zklock_call_free(call);
    return status;
}
CALL_OF_START(release_start, on->hold)
CALL_OF_START(client_close_start, on->client)
CALL(call_fd) {
    int descriptor;
    return zklock_call_fd(on->call, &descriptor);
}
CALL(call_set_context) { return zklock_call_set_context(on->call, on); }
CALL(call_finish) { return zklock_call_finish(on->call, NULL); }
CALL(call_client) {
    zklock_client *client;
    return zklock_call_client(on->call, &client);
}
CALL(call_member) {
    zklock_member *member;
    return zklock_call_member(on->call, &member);
}
CALL(call_versions) { return zklock_call_versions(on->call, NULL); }
CALL(call_contenders) { return zklock_call_contenders(on->call, ignore_contender, NULL); }
CALL(call_cancel) { return zklock_call_cancel(on->call); }

#undef CALL
#define CALL(name, live, blocks) {"zklock_" #name, call_##name, live, blocks}

static const call calls[] = {
    CALL(options_new, ZKLOCK_OK, 0),
    CALL(options_set_session_timeout, ZKLOCK_OK, 0),
    CALL(options_set_connect_timeout, ZKLOCK_OK, 0),
    CALL(options_set_server_version, ZKLOCK_OK, 0),
    CALL(options_set_try_timeout, ZKLOCK_OK, 0),
    CALL(options_set_chroot, ZKLOCK_OK, 0),
    CALL(options_set_create_chroot, ZKLOCK_OK, 0),
    CALL(options_set_heartbeat, ZKLOCK_OK, 0),
    CALL(options_set_identity, ZKLOCK_OK, 0),
    CALL(options_add_digest, ZKLOCK_OK, 0),
    CALL(options_add_digest_from_file, ZKLOCK_INVALID_ARGUMENT, 0),
    CALL(options_add_digest_from_env, ZKLOCK_INVALID_ARGUMENT, 0),
    CALL(options_add_sasl, ZKLOCK_OK, 0),
    CALL(options_add_sasl_from_file, ZKLOCK_INVALID_ARGUMENT, 0),
    CALL(options_add_sasl_from_env, ZKLOCK_INVALID_ARGUMENT, 0),
    CALL(options_add_kerberos, ZKLOCK_REFUSED, 0),
    CALL(options_set_access, ZKLOCK_OK, 0),
    CALL(options_set_access_list, ZKLOCK_OK, 0),
    CALL(options_set_tls, ZKLOCK_INVALID_ARGUMENT, 0),
    CALL(options_set_tls_system, ZKLOCK_INVALID_ARGUMENT, 0),
    CALL(options_set_pass_phrase, ZKLOCK_INVALID_ARGUMENT, 0),
    CALL(options_set_pass_phrase_from_file, ZKLOCK_INVALID_ARGUMENT, 0),
    CALL(options_set_pass_phrase_from_env, ZKLOCK_INVALID_ARGUMENT, 0),
    CALL(client_new, ZKLOCK_OK, 1),
    CALL(client_new_start, ZKLOCK_OK, 0),
    CALL(client_new_lazy, ZKLOCK_OK, 0),
    CALL(client_connect, ZKLOCK_OK, 1),
    CALL(client_connect_start, ZKLOCK_OK, 0),
    CALL(client_guard, ZKLOCK_INVALID_ARGUMENT, 1),
    CALL(client_stats, ZKLOCK_OK, 0),
    CALL(client_histogram, ZKLOCK_OK, 0),
    CALL(client_prometheus, ZKLOCK_OK, 0),
    CALL(client_fd, ZKLOCK_OK, 0),
    CALL(client_next_event, ZKLOCK_OK, 0),
    CALL(lock_options_new, ZKLOCK_OK, 0),
    CALL(lock_options_set_flags, ZKLOCK_OK, 0),
    CALL(lock_options_set_dialect, ZKLOCK_OK, 0),
    CALL(lock_options_set_linger, ZKLOCK_OK, 0),
    CALL(lock_options_set_local_turns, ZKLOCK_OK, 0),
    CALL(lock_options_set_permits, ZKLOCK_OK, 0),
    CALL(lock_options_set_limit_at, ZKLOCK_OK, 0),
    CALL(mutex_new, ZKLOCK_OK, 0),
    CALL(rwlock_read_new, ZKLOCK_OK, 0),
    CALL(rwlock_write_new, ZKLOCK_OK, 0),
    CALL(election_new, ZKLOCK_OK, 0),
    CALL(exclusive_new, ZKLOCK_OK, 0),
    CALL(semaphore_new, ZKLOCK_OK, 0),
    CALL(set_limit, ZKLOCK_OK, 1),
    CALL(all_new, ZKLOCK_OK, 0),
    CALL(any_new, ZKLOCK_OK, 0),
    CALL(lock_path, ZKLOCK_OK, 0),
    CALL(acquire, ZKLOCK_OK, 1),
    /* Before anybody waits. */
    CALL(hold_is_wanted, ZKLOCK_OK, 0),
    CALL(hold_wait_wanted, ZKLOCK_TIMEOUT, 1),
    CALL(contenders, ZKLOCK_OK, 1),
    CALL(contenders_start, ZKLOCK_OK, 0),
    CALL(observe, ZKLOCK_OK, 0),
    CALL(observer_next, ZKLOCK_OK, 1),
    CALL(evict, ZKLOCK_OK, 1),
    CALL(break_lock, ZKLOCK_OK, 1),
    CALL(revoke, ZKLOCK_OK, 1),
    CALL(barrier_new, ZKLOCK_OK, 0),
    CALL(barrier_set, ZKLOCK_OK, 1),
    CALL(barrier_is_set, ZKLOCK_OK, 1),
    CALL(barrier_remove, ZKLOCK_OK, 1),
    CALL(barrier_wait, ZKLOCK_OK, 1),
    CALL(barrier_set_start, ZKLOCK_OK, 0),
    CALL(barrier_is_set_start, ZKLOCK_OK, 0),
    CALL(barrier_remove_start, ZKLOCK_OK, 0),
    CALL(barrier_wait_start, ZKLOCK_OK, 0),
    CALL(double_barrier_new, ZKLOCK_OK, 0),
    CALL(double_barrier_enter, ZKLOCK_OK, 1),
    CALL(double_barrier_enter_start, ZKLOCK_OK, 0),
    CALL(member_node, ZKLOCK_OK, 0),
    CALL(member_loss, ZKLOCK_OK, 0),
    CALL(member_leave, ZKLOCK_OK, 1),
    CALL(member_leave_start, ZKLOCK_OK, 0),
    CALL(acquire_start, ZKLOCK_OK, 0),
    CALL(call_hold, ZKLOCK_PENDING, 0),
    CALL(hold_token, ZKLOCK_OK, 0),
    CALL(hold_valid_for, ZKLOCK_OK, 0),
    CALL(hold_state, ZKLOCK_OK, 0),
    CALL(hold_path, ZKLOCK_OK, 0),
    CALL(hold_node, ZKLOCK_OK, 0),
    CALL(hold_fd, ZKLOCK_OK, 0),
    CALL(hold_set_context, ZKLOCK_OK, 0),
    CALL(hold_on_lost, ZKLOCK_OK, 0),
    CALL(hold_wait_lost, ZKLOCK_TIMEOUT, 1),
    CALL(hold_confirm, ZKLOCK_OK, 1),
    CALL(hold_confirm_start, ZKLOCK_OK, 0),
    CALL(hold_commit, ZKLOCK_OK, 1),
    CALL(hold_commit_start, ZKLOCK_OK, 0),
    CALL(hold_read, ZKLOCK_OK, 1),
    CALL(set_log, ZKLOCK_OK, 0),
    CALL(call_fd, ZKLOCK_OK, 0),
    CALL(call_set_context, ZKLOCK_OK, 0),
    CALL(call_finish, ZKLOCK_PENDING, 0),
    CALL(call_client, ZKLOCK_PENDING, 0),
    CALL(call_member, ZKLOCK_PENDING, 0),
    CALL(call_versions, ZKLOCK_PENDING, 0),
    CALL(call_contenders, ZKLOCK_PENDING, 0),
    CALL(call_cancel, ZKLOCK_OK, 0),
    CALL(release, ZKLOCK_OK, 1),
    CALL(release_start, ZKLOCK_OK, 0),
    CALL(client_close, ZKLOCK_OK, 1),
    CALL(client_close_start, ZKLOCK_OK, 0),
};

#undef CALL

/* Handles for all calls. Hold and acquire come from the calls that make them. */
static inline handles new_handles(const char *hosts, const char *path) {
    handles made = {.hosts = hosts, .path = path};
    char unused[128];
    OK(zklock_options_new(&made.options));
    made.client = connect_to(hosts);
    OK(zklock_lock_options_new(&made.lock_options));
    made.lock = new_mutex(made.client, path, 0);
    snprintf(unused, sizeof unused, "%s-unused", path);
    made.unused = new_mutex(made.client, unused, 0);
    OK(zklock_observe(made.lock, &made.observer));
    char barrier[128];
    snprintf(barrier, sizeof barrier, "%s-barrier", path);
    OK(zklock_barrier_new(made.client, barrier, &made.barrier));
    snprintf(barrier, sizeof barrier, "%s-double-barrier", path);
    OK(zklock_double_barrier_new(made.client, barrier, 1, &made.double_barrier));
    OK(zklock_double_barrier_enter(made.double_barrier, SOON_MS, &made.member));
    zklock_double_barrier *alone;
    snprintf(barrier, sizeof barrier, "%s-alone", path);
    OK(zklock_double_barrier_new(made.client, barrier, 2, &alone));
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
    zklock_double_barrier_free(of->double_barrier);
    zklock_barrier_free(of->barrier);
    zklock_lock_free(of->lock);
    zklock_lock_free(of->unused);
    zklock_lock_options_free(of->lock_options);
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
