/*
 * zklock.h - distributed locks on Apache ZooKeeper
 *
 * This file is generated: change the sources in zklock-ffi, not this.
 *
 * Quick example
 * -------------
 *
 *     zklock_client *client;
 *     zklock_lock *lock;
 *     zklock_hold *hold;
 *
 *     if (zklock_client_new("zk1:2181,zk2:2181,zk3:2181", NULL, &client) != ZKLOCK_OK)
 *         return fail(zklock_last_error());
 *     if (zklock_mutex_new(client, "/locks/report", NULL, &lock) != ZKLOCK_OK)
 *         return fail(zklock_last_error());
 *     if (zklock_acquire(lock, 5000, &hold) == ZKLOCK_OK) {
 *         write_the_report();
 *         if (zklock_release(hold) == ZKLOCK_LOST)
 *             fprintf(stderr, "%s\n", zklock_last_error());
 *         zklock_hold_free(hold);
 *     }
 *     zklock_lock_free(lock);
 *     zklock_client_free(client);
 *
 * Link with `pkg-config --cflags --libs zklock`, or in CMake with zklock::zklock. For C++ there are
 * classes in zklock.hpp.
 *
 * Index
 * -----
 *
 * Types come first, then the functions, in this order.
 *
 * Connect
 *
 * - To connect, see zklock_client_new, zklock_client_new_start, zklock_call_client.
 * - To connect when it is first needed, see zklock_client_new_lazy, zklock_client_connect,
 *   zklock_client_connect_start.
 * - To disconnect, see zklock_client_close, zklock_client_close_start, zklock_client_free.
 * - To set how a client connects, see zklock_options_new, zklock_options_free,
 *   zklock_options_set_session_timeout, zklock_options_set_connect_timeout,
 *   zklock_options_set_try_timeout, zklock_options_set_chroot, zklock_options_set_create_chroot,
 *   zklock_options_set_heartbeat, zklock_options_set_identity, zklock_options_set_server_version.
 * - To use TLS, see zklock_options_set_tls, zklock_options_set_tls_system,
 *   zklock_options_set_pass_phrase, zklock_options_set_pass_phrase_from_file,
 *   zklock_options_set_pass_phrase_from_env.
 * - To log in, see zklock_options_add_digest, zklock_options_add_digest_from_file,
 *   zklock_options_add_digest_from_env, zklock_options_add_sasl, zklock_options_add_sasl_from_file,
 *   zklock_options_add_sasl_from_env, zklock_options_add_kerberos.
 * - To set access lists, see zklock_options_set_access, zklock_options_set_access_list.
 *
 * Lock
 *
 * - To make a lock, see zklock_mutex_new, zklock_rwlock_read_new, zklock_rwlock_write_new,
 *   zklock_semaphore_new, zklock_set_limit, zklock_all_new, zklock_any_new, zklock_election_new,
 *   zklock_exclusive_new, zklock_lock_path, zklock_lock_free.
 * - To set how a lock behaves, see zklock_lock_options_new, zklock_lock_options_free,
 *   zklock_lock_options_set_flags, zklock_lock_options_set_dialect,
 *   zklock_lock_options_set_permits, zklock_lock_options_set_limit_at,
 *   zklock_lock_options_set_linger, zklock_lock_options_set_local_turns.
 *
 * Acquire
 *
 * - To wait for a lock, or try once, see zklock_acquire.
 * - To acquire without waiting in a call, see zklock_acquire_start, zklock_acquire_finish,
 *   zklock_acquire_cancel, zklock_ticket_fd, zklock_ticket_set_context, zklock_ticket_free.
 * - To check that the lock is still held, see zklock_hold_valid_for, zklock_hold_confirm,
 *   zklock_hold_confirm_start.
 * - To guard another resource, see zklock_hold_token.
 * - To write to ZooKeeper while the lock is held, see zklock_hold_commit, zklock_hold_commit_start,
 *   zklock_call_versions, zklock_last_conflict, zklock_hold_read.
 * - To know what a hold is of, see zklock_hold_path, zklock_hold_node.
 * - To release, see zklock_release, zklock_release_start, zklock_hold_free.
 *
 * Lose
 *
 * - To learn of a loss, see zklock_hold_state, zklock_hold_on_lost, zklock_hold_wait_lost,
 *   zklock_hold_fd, zklock_hold_set_context.
 * - To learn that others wait, see zklock_hold_is_wanted, zklock_hold_on_wanted,
 *   zklock_hold_wait_wanted, zklock_hold_wanted_fd.
 *
 * Event loops
 *
 * - To follow a client with one descriptor, see zklock_client_fd, zklock_client_next_event.
 * - To follow a call, see zklock_call_fd, zklock_call_set_context, zklock_call_finish,
 *   zklock_call_cancel, zklock_call_free.
 *
 * Administer
 *
 * - To see the queue, see zklock_contenders, zklock_contenders_start, zklock_call_contenders.
 * - To follow the holder or leader, see zklock_observe, zklock_observer_next, zklock_observer_fd,
 *   zklock_observer_free.
 * - To take a lock away, or ask for it, see zklock_break_lock, zklock_evict, zklock_revoke.
 * - To measure, see zklock_client_stat, zklock_client_prometheus.
 * - To log, see zklock_set_log.
 *
 * Related primitives
 *
 * - To let others wait until a barrier is removed, see zklock_barrier_new, zklock_barrier_set,
 *   zklock_barrier_set_start, zklock_barrier_remove, zklock_barrier_remove_start,
 *   zklock_barrier_is_set, zklock_barrier_is_set_start, zklock_barrier_wait,
 *   zklock_barrier_wait_start, zklock_barrier_free.
 * - To begin and end together, see zklock_double_barrier_new, zklock_double_barrier_enter,
 *   zklock_double_barrier_enter_start, zklock_call_member, zklock_member_leave,
 *   zklock_member_leave_start, zklock_member_node, zklock_member_loss, zklock_member_free,
 *   zklock_double_barrier_free.
 *
 * Errors and versions
 *
 * - To explain a failure, see zklock_last_error, zklock_status_name.
 * - To know the version, see zklock_version, zklock_version_number.
 *
 * A program that is tested without a ZooKeeper can connect to the server in memory, the program
 * zklock-testkit. The library has no functions for tests.
 *
 * Kinds of lock
 * -------------
 *
 * Each kind has a constructor. Everything after that, from zklock_acquire to zklock_release, is the
 * same for all.
 *
 * - zklock_mutex_new: one holder at a time, in the order of arrival
 * - zklock_rwlock_read_new, zklock_rwlock_write_new: many readers, or one writer
 * - zklock_semaphore_new: as many as there are permits
 * - zklock_all_new: several locks at once, all of them or none
 * - zklock_any_new: any one of several locks, whichever comes first
 * - zklock_election_new: one leader, which zklock_observe shows
 * - zklock_exclusive_new: one node and no queue, for jobs that are tried once
 *
 * Two related primitives are not locks: zklock_barrier_new and zklock_double_barrier_new.
 *
 * What a hold promises
 * --------------------
 *
 * While zklock_hold_valid_for gives more than 0, nobody else holds the lock. This is a lease. It
 * starts when the last write that a quorum committed was sent, on a clock that runs on through
 * suspend, and it ends before the servers can give the lock to another client. It assumes clocks that
 * run equally fast within 2 %, and servers whose tick is at most half of the session timeout, which
 * they insist on unless minSessionTimeout was lowered. The state of a hold, its descriptor, its
 * callback, zklock_hold_wait_lost and zklock_release report a loss within a tenth of the session
 * timeout, whatever the cause.
 *
 * A holder may ask whether others wait (zklock_hold_is_wanted). A lock that nobody else wants may
 * stay with the client that took it last (zklock_lock_options_set_linger). That client can then
 * acquire it again without a request.
 *
 * A hold cannot promise that the process is not paused right after it checked. If that matters, let
 * the resource that the lock guards refuse a smaller token than it has seen and accept an equal one
 * (zklock_hold_token), or write to ZooKeeper itself with zklock_hold_commit.
 *
 * Calls
 * -----
 *
 * A call that can fail returns a zklock_status. ZKLOCK_OK is 0. zklock_last_error has the message
 * that explains a failure: what is wrong, and what to do. Results come last, and are written only if
 * the status is ZKLOCK_OK. Timeouts are milliseconds: 0 tries once, ZKLOCK_FOREVER (-1) waits for
 * ever, any other negative number is ZKLOCK_INVALID_ARGUMENT. So if you compute `deadline - now`, make
 * it at least 0. Strings are UTF-8.
 *
 * Compilers warn if a status is ignored, except for the calls of a clean-up: zklock_release,
 * zklock_acquire_cancel, zklock_call_cancel, zklock_member_leave, zklock_client_close, zklock_set_log.
 * To switch the warnings off, define ZKLOCK_NODISCARD as nothing before this file is included.
 *
 * NULL where an argument is needed, a handle of the wrong kind or a freed handle gives a status. It
 * does not crash. A handle is a number that looks like a pointer: do not dereference it.
 *
 * Statuses of every function
 * --------------------------
 *
 * Every function that returns a zklock_status may return these. The comment of a function names them
 * only if it has a reason of its own for one.
 *
 * - ZKLOCK_INVALID_ARGUMENT: NULL where an argument is needed, a string that is not UTF-8, or a
 *   number, path or name that is out of range.
 * - ZKLOCK_INVALID_HANDLE: a handle of another type, or one that was freed.
 * - ZKLOCK_FORKED: a handle that was made before this process was forked. See "Fork" below.
 * - ZKLOCK_INTERNAL: a bug in zklock.
 *
 * Three more mean the same wherever a function lists them without a reason.
 *
 * - ZKLOCK_REFUSED: an access list, a rule of the servers or a limit of this system forbids it.
 * - ZKLOCK_CLOSED: the client is closed, or was closed during the call.
 * - ZKLOCK_DEADLOCK in a callback: the call would wait, and a callback may not.
 *
 * Event loops
 * -----------
 *
 * Every call that waits for the servers has a twin that does not wait, whose name ends with _start.
 * zklock_acquire_start gives a zklock_ticket, the others a zklock_call. (zklock_hold_read,
 * zklock_set_limit, zklock_evict, zklock_break_lock and zklock_revoke have no twin.)
 * zklock_acquire_finish and zklock_call_finish fetch the result. There are two ways to learn that the
 * result is there.
 *
 * The first needs one descriptor for each client, however much is going on: zklock_client_fd. It is
 * readable as long as the client has an event: a ticket or a call has its result, a hold is lost or
 * wanted, the connection has changed. The event has the handle, and a pointer of yours.
 *
 *     zklock_event event;
 *     struct pollfd any;
 *
 *     any.events = POLLIN;
 *     if (zklock_client_fd(client, &any.fd) != ZKLOCK_OK) return fail(zklock_last_error());
 *     while (poll(&any, 1, -1) == 1) {
 *         while (zklock_client_next_event(client, &event) == ZKLOCK_OK) {
 *             if (event.kind == ZKLOCK_EVENT_TICKET) go_on_with(event.context, event.ticket);
 *             if (event.kind == ZKLOCK_EVENT_LOST) stop(event.context);
 *         }
 *     }
 *
 * The second is a descriptor for each ticket, call, hold and observer: zklock_ticket_fd,
 * zklock_call_fd, zklock_hold_fd, zklock_hold_wanted_fd, zklock_observer_fd. Each is made when it is
 * first asked for.
 *
 *     zklock_call *call;
 *     struct pollfd readable;
 *
 *     readable.events = POLLIN;
 *     if (zklock_release_start(hold, &call) != ZKLOCK_OK || zklock_call_fd(call, &readable.fd) != ZKLOCK_OK)
 *         return fail(zklock_last_error());
 *     poll(&readable, 1, -1);
 *     if (zklock_call_finish(call, NULL) == ZKLOCK_LOST)
 *         fprintf(stderr, "%s\n", zklock_last_error());
 *     zklock_call_free(call);
 *
 * Ownership and lifetime
 * ----------------------
 *
 * You own what a _new, a _start, zklock_acquire, zklock_acquire_finish, zklock_observe,
 * zklock_double_barrier_enter, zklock_call_client or zklock_call_member gives you. End it with the
 * _free of its type. Freeing NULL does nothing. Handles may be freed in any order: a hold outlives its
 * lock, a lock its client. Freeing waits for no server, and a hold that is freed is released in the
 * background. If a release must reach the servers before the process exits, call zklock_release or
 * zklock_client_close. A string that a call gives you lives as long as the handle that you asked.
 *
 * Threads
 * -------
 *
 * Every function may be called by any thread at any time with any handle, even with one that another
 * thread is using or freeing. A hold may be released by any thread, so a lock can be acquired by one
 * thread for another. Only a hold of a lock made with ZKLOCK_REENTRANT belongs to the thread that
 * acquired it.
 *
 * The library starts one thread at the first call that connects a client or asks for its events, a
 * second at the first callback, and another if hosts are given by name, because the resolver needs
 * one. A stack of 64 KiB is enough for a thread that calls the library. A thread that is cancelled
 * (pthread_cancel) during a call is cancelled after it, even if its cancellation is asynchronous
 * (PTHREAD_CANCEL_ASYNCHRONOUS). With asynchronous cancellation the thread may end between the last
 * instruction of a call and the instruction of yours that stores the result. Then nobody has the
 * result, and a lock that the call acquired stays held until the client is freed. So keep cancellation
 * deferred in a thread that acquires.
 *
 * Callbacks
 * ---------
 *
 * Callbacks for a loss, for waiters and for the log run on one thread of the library, one after the
 * other, with none of its locks held. They may make every call that does not wait. One that waits
 * returns ZKLOCK_DEADLOCK there. A callback must return: it must not throw, longjmp out or end the
 * thread, and while it runs the others wait. All signals are blocked in it, and in any thread or
 * process that it starts. It may run while the process is exiting. Before what it uses is destroyed,
 * free the hold, or set another log.
 *
 * Signals
 * -------
 *
 * The library installs no handler and changes no mask of yours. Its threads block all signals except
 * their own faults, so signals reach your threads only. SIGPIPE is never raised in them. A handler
 * that runs does not end a wait: to end one, close the client from another thread, or use a ticket or
 * a zklock_call. No function here may be called in a signal handler.
 *
 * Fork
 * ----
 *
 * A child may make clients of its own, whatever its parent did before. Handles that were made before
 * the fork stay the parent's. In the child every call on them returns ZKLOCK_FORKED and _free does
 * nothing, and the parent's holds are not disturbed. Options are plain values, and the log's callback
 * goes on in the child, unless another thread was making, changing or freeing options, or setting the
 * log, at the moment of the fork: in that case make them again. So a program may connect to check its
 * configuration, close, become a daemon, and connect again.
 *
 * A client of zklock_client_new_lazy, its locks and its barriers may be made before the fork. As long
 * as the parent has not used them, each child may use them, and connects for itself. So a server may
 * set up once and then fork its workers. If another thread was making or freeing such objects at the
 * moment of the fork, they may return ZKLOCK_FORKED as well.
 *
 * Constructors
 * ------------
 *
 * Do not connect in the constructor of a shared object (__attribute__((constructor)), or a global
 * zklock::client in C++). Make a client with zklock_client_new_lazy there, or connect when the plugin
 * is first used, in C++ with a static in a function. While a shared object is being loaded, the loader
 * holds a lock, and every thread waits for it that starts, or that makes its first calls of this
 * library. So the first zklock_client_new of a process returns ZKLOCK_UNREACHABLE there when the
 * connect timeout is over, and the message says why. A later one may work, but may not if hosts are
 * given by name. zklock_client_new_start may be called there, but its call may have no result before
 * the object is loaded, so do not wait for it there. Calls go on in other threads, except in a thread
 * that has not called the library before: its calls wait until the object is loaded.
 *
 * Memory
 * ------
 *
 * If the system has no memory left for the library, the process ends with SIGABRT, and nothing is
 * printed. Its locks are free when the session has timed out, as after any crash.
 *
 * ThreadSanitizer does not see how the library synchronises, and reports races in it that do not
 * exist. Run your program with TSAN_OPTIONS=suppressions=PREFIX/share/zklock/tsan.supp.
 *
 * Versions
 * --------
 *
 * Before 1.0 a new minor version may change anything here. So each minor version of the library has
 * another SONAME (libzklock.so.0.1, then libzklock.so.0.2), and a program runs with the patch versions
 * of the minor version for which it was compiled. From 1.0 on the SONAME has the major version alone,
 * and a program runs with every later minor version. Every name that the library exports has a version
 * (zklock_acquire@@ZKLOCK_0.1), so that a process may contain two versions of the library, each in
 * another plugin. If the library was not installed by install.sh (cargo build, cargo-c), the names
 * have no version.
 *
 * Numbers of enums are never reused, and an enum is int32_t to the library. A later library may return
 * a number that this header does not name: let a switch have a default. Compilers can warn of a number
 * that a switch leaves out (-Wswitch-enum).
 *
 * You fill zklock_write, which has reserved members. Set the whole struct to 0 first, as
 * `zklock_write write = {0}` does. A later library treats 0 there as an earlier one did, and an earlier
 * one refuses anything else with ZKLOCK_INVALID_ARGUMENT. The library fills your zklock_event, which
 * has reserved members as well, and never grows. The library owns zklock_contender, which has its size
 * in its first member, and grows at its end. All other structs are opaque.
 *
 * The end of the process
 * ----------------------
 *
 * A process may end while it holds or waits: nothing hangs. The servers free its locks when its
 * session has timed out. zklock_client_close frees them at once. (If main leaves with pthread_exit,
 * the library's threads keep the process alive: call exit.) Every function may be called in handlers
 * of atexit and in destructors of statics. The library stays loaded after dlclose.
 */

#ifndef ZKLOCK_H
#define ZKLOCK_H

#include <stddef.h>
#include <stdint.h>

/** The version of this header. zklock_version() is that of the library that runs. */
#define ZKLOCK_VERSION "0.1.0"
#define ZKLOCK_VERSION_MAJOR 0
#define ZKLOCK_VERSION_MINOR 1
#define ZKLOCK_VERSION_PATCH 0
#define ZKLOCK_VERSION_NUMBER (ZKLOCK_VERSION_MAJOR * 1000000 + ZKLOCK_VERSION_MINOR * 1000 + ZKLOCK_VERSION_PATCH)

/**
 * Marks a function whose status must not be ignored. With GCC's attribute, which C before C23 gets, `(void)` does not
 * silence the warning.
 */
#ifndef ZKLOCK_NODISCARD
#if defined(__cplusplus) && __cplusplus >= 201703L
#define ZKLOCK_NODISCARD [[nodiscard]]
#elif !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L
#define ZKLOCK_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define ZKLOCK_NODISCARD __attribute__((warn_unused_result))
#else
#define ZKLOCK_NODISCARD
#endif
#endif

/** The width of an enum, if the language can express it: C++ from C++11 on, and C from C23 on. */
#if defined(__cplusplus) && __cplusplus >= 201103L || defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L
#define ZKLOCK_INT32 : int32_t
#else
#define ZKLOCK_INT32
#endif

/** A timeout: wait as long as it takes. */
#define ZKLOCK_FOREVER (-1)

/** The version of a node in a guarded write: any will do. */
#define ZKLOCK_ANY_VERSION (-1)

/** In place of a node's version: there is no such node. */
#define ZKLOCK_NO_NODE (-2)

/**
 * What a call returns. The numbers are never reused.
 */
typedef enum zklock_status ZKLOCK_INT32 {
    /**
     * It worked.
     */
    ZKLOCK_OK = 0,
    /**
     * An argument is wrong (NULL, not UTF-8, a bad path, out of range): correct the call.
     */
    ZKLOCK_INVALID_ARGUMENT = 1,
    /**
     * Not a handle of this kind, or it was freed before: correct the program.
     */
    ZKLOCK_INVALID_HANDLE = 2,
    /**
     * No server could be reached: check the hosts and the network, or try again later.
     */
    ZKLOCK_UNREACHABLE = 3,
    /**
     * The time ran out: try again, or do without.
     */
    ZKLOCK_TIMEOUT = 4,
    /**
     * The wait could never end, since this thread itself holds the lock, or is one of ours (in
     * a callback): correct the program.
     */
    ZKLOCK_DEADLOCK = 5,
    /**
     * The hold is of a reentrant lock, and belongs to another thread: release it there.
     */
    ZKLOCK_NOT_OWNER = 6,
    /**
     * The hold has been released before, the ticket's result fetched, what a call gave taken
     * from it, or the member has left: correct the program.
     */
    ZKLOCK_NOT_HELD = 7,
    /**
     * The hold is lost: stop what it guarded; others may hold the lock.
     */
    ZKLOCK_LOST = 8,
    /**
     * A contender of another library is in the queue and cannot see ours: let both sides use
     * one naming scheme.
     */
    ZKLOCK_FOREIGN_CONTENDER = 9,
    /**
     * The servers' access list, their rules or this system's limits forbid it.
     */
    ZKLOCK_REFUSED = 10,
    /**
     * The client is closed: make a new one.
     */
    ZKLOCK_CLOSED = 11,
    /**
     * The wait was cancelled.
     */
    ZKLOCK_INTERRUPTED = 12,
    /**
     * A guarded write whose reply was lost: it may have been done. zklock_hold_read shows
     * whether it was.
     */
    ZKLOCK_UNCERTAIN = 13,
    /**
     * A guarded write was refused, because a node was not in the required state. Nothing was
     * written.
     */
    ZKLOCK_CONFLICT = 14,
    /**
     * The handle was made before this process was forked, and belongs to the parent: see
     * "Fork" above.
     */
    ZKLOCK_FORKED = 15,
    /**
     * The ticket or the call has no result yet, or the client no event: wait for the
     * descriptor.
     */
    ZKLOCK_PENDING = 16,
    /**
     * A bug in zklock, caught before it could do harm: please report it.
     */
    ZKLOCK_INTERNAL = 17,
} zklock_status;

/**
 * What a contender wants.
 */
typedef enum zklock_role ZKLOCK_INT32 {
    /**
     * The whole lock: a mutex, a permit, or the lead.
     */
    ZKLOCK_ROLE_EXCLUSIVE = 1,
    /**
     * The read side of a read/write lock.
     */
    ZKLOCK_ROLE_READ = 2,
    /**
     * The write side of a read/write lock.
     */
    ZKLOCK_ROLE_WRITE = 3,
} zklock_role;

/**
 * Why a hold was lost.
 */
typedef enum zklock_reason ZKLOCK_INT32 {
    /**
     * It is not lost.
     */
    ZKLOCK_REASON_NONE = 0,
    /**
     * The servers ended the session.
     */
    ZKLOCK_REASON_SESSION_EXPIRED = 1,
    /**
     * Somebody deleted the hold's node.
     */
    ZKLOCK_REASON_NODE_DELETED = 2,
    /**
     * The servers could not be heard from in time, so others may hold the lock by now.
     */
    ZKLOCK_REASON_LEASE_LAPSED = 3,
    /**
     * The client was closed.
     */
    ZKLOCK_REASON_CLIENT_CLOSED = 4,
    /**
     * Another reason, for which there is no number: the message of ZKLOCK_LOST says which.
     */
    ZKLOCK_REASON_OTHER = 5,
    /**
     * A contender came that cannot see the hold, such as kazoo's Lock: both may hold the lock.
     */
    ZKLOCK_REASON_FOREIGN_CONTENDER = 6,
    /**
     * The client closed the session, to be rid of a node that it may not delete:
     * zklock_last_error() of ZKLOCK_LOST names the right that it lacks.
     */
    ZKLOCK_REASON_SESSION_CLOSED = 7,
} zklock_reason;

/**
 * What has happened. Later versions may add kinds: ignore those that you do not know.
 */
typedef enum zklock_event_kind ZKLOCK_INT32 {
    /**
     * A ticket has its result: zklock_acquire_finish gives the hold, or the reason why there
     * is none.
     */
    ZKLOCK_EVENT_TICKET = 1,
    /**
     * A hold is lost: zklock_hold_state says why.
     */
    ZKLOCK_EVENT_LOST = 2,
    /**
     * A call of zklock_release_start has its result, good or bad: zklock_call_finish gives it.
     */
    ZKLOCK_EVENT_RELEASED = 3,
    /**
     * Another call has its result, good or bad: zklock_call_finish gives it.
     */
    ZKLOCK_EVENT_CALL = 4,
    /**
     * The client is connected to a server.
     */
    ZKLOCK_EVENT_CONNECTED = 5,
    /**
     * The connection broke, and the client is looking for another server. The session lives on
     * for now, and so do its holds, for as long as zklock_hold_valid_for says.
     */
    ZKLOCK_EVENT_DISCONNECTED = 6,
    /**
     * The session is over, and all holds of it are lost. The client is opening the next
     * session.
     */
    ZKLOCK_EVENT_SESSION_LOST = 7,
    /**
     * The client was closed. This is the last event of its connection.
     */
    ZKLOCK_EVENT_CLOSED = 8,
    /**
     * Others wait for what a hold has: of those holds alone for which zklock_hold_is_wanted or
     * zklock_hold_wanted_fd was called.
     */
    ZKLOCK_EVENT_WANTED = 9,
} zklock_event_kind;

/**
 * How a hold stands.
 */
typedef enum zklock_state ZKLOCK_INT32 {
    /**
     * The lock is held, and the servers have confirmed it recently.
     */
    ZKLOCK_STATE_HELD = 1,
    /**
     * The servers are out of reach or late. The lock is held for as long as
     * zklock_hold_valid_for says; after that others may hold it.
     */
    ZKLOCK_STATE_AT_RISK = 2,
    /**
     * The lock is not held any more. This is final.
     */
    ZKLOCK_STATE_LOST = 3,
    /**
     * It was released.
     */
    ZKLOCK_STATE_RELEASED = 4,
} zklock_state;

/**
 * Who may use the nodes that a client creates: those of locks and barriers, the nodes above
 * them, limits, and what guarded writes create. All clients of a lock create, list, read and
 * delete nodes there: so with all but ZKLOCK_ACCESS_OPEN all must log in as the same user.
 * Nodes that are there already stay as they are.
 */
typedef enum zklock_access ZKLOCK_INT32 {
    /**
     * Everyone may do everything. This is the default.
     */
    ZKLOCK_ACCESS_OPEN = 1,
    /**
     * Those who are logged in as the creator may do everything, all others nothing.
     */
    ZKLOCK_ACCESS_CREATOR_ALL = 2,
    /**
     * Those who are logged in as the creator may do everything, and all others read.
     */
    ZKLOCK_ACCESS_READ_OPEN = 3,
} zklock_access;

/**
 * How the nodes of a lock are named, and so with which libraries it shares a queue.
 */
typedef enum zklock_dialect ZKLOCK_INT32 {
    /**
     * Like those of Curator and go-zookeeper, and of kazoo with extra_lock_patterns. This is
     * the default.
     */
    ZKLOCK_DIALECT_CURATOR = 1,
    /**
     * Like those of kazoo: for mutexes, read and write sides.
     */
    ZKLOCK_DIALECT_KAZOO = 2,
    /**
     * Like those of WriteLock in ZooKeeper's own recipes: for mutexes.
     */
    ZKLOCK_DIALECT_WRITELOCK = 3,
} zklock_dialect;

/**
 * Boolean properties of a lock: see zklock_lock_options_set_flags.
 */
typedef enum zklock_flag ZKLOCK_INT32 {
    /**
     * A thread that holds the lock may acquire it again; each hold is released by that thread.
     * Without it any thread may release a hold, and so a thread that acquires again waits
     * until one does. Of a read/write lock, a thread that holds the write side by such a lock
     * may acquire the read side as well. Leave it out if a thread may turn to other work while
     * the first holds the lock, as a thread that runs coroutines does: both count as one
     * owner, and would be inside together. Not for semaphores, whose permits belong to nobody.
     */
    ZKLOCK_REENTRANT = 1,
    /**
     * Wait for a contender that cannot see ours as for any other, instead of failing with
     * ZKLOCK_FOREIGN_CONTENDER. Both may come to hold the lock, so set this only if you know
     * that it sees ours after all.
     */
    ZKLOCK_ALLOW_FOREIGN = 2,
    /**
     * A waiter watches all the others, and not only the one that matters: the simple way, for
     * comparison.
     */
    ZKLOCK_WATCH_CHILDREN = 4,
} zklock_flag;

/**
 * How much is to be logged: each level includes those before it.
 */
typedef enum zklock_log_level ZKLOCK_INT32 {
    /**
     * Nothing.
     */
    ZKLOCK_LOG_OFF = 0,
    /**
     * Bugs.
     */
    ZKLOCK_LOG_ERROR = 1,
    /**
     * What an operator should know: a hold was lost.
     */
    ZKLOCK_LOG_WARN = 2,
    /**
     * Sessions that come and go.
     */
    ZKLOCK_LOG_INFO = 3,
    /**
     * What an acquire does from its call to its release, and tries to connect.
     */
    ZKLOCK_LOG_DEBUG = 4,
    /**
     * All there is.
     */
    ZKLOCK_LOG_TRACE = 5,
} zklock_log_level;

/**
 * What zklock_client_stat can tell.
 */
typedef enum zklock_stat ZKLOCK_INT32 {
    /**
     * Sessions opened so far.
     */
    ZKLOCK_STAT_SESSIONS = 1,
    /**
     * Locks granted so far.
     */
    ZKLOCK_STAT_GRANTS = 2,
    /**
     * Holds lost so far.
     */
    ZKLOCK_STAT_LOSSES = 3,
    /**
     * Attempts whose caller has its answer, but whose node may still be there. It is being
     * deleted.
     */
    ZKLOCK_STAT_OWED = 4,
    /**
     * The number of the session, as servers print it in their logs; 0 while there is none.
     */
    ZKLOCK_STAT_SESSION_ID = 5,
    /**
     * The session timeout that the servers granted, in milliseconds; 0 while there is no
     * session.
     */
    ZKLOCK_STAT_SESSION_TIMEOUT = 6,
    /**
     * Connections attached to a session after the one before had broken.
     */
    ZKLOCK_STAT_RECONNECTS = 7,
    /**
     * Calls that acquire a lock and have been given a hold.
     */
    ZKLOCK_STAT_ACQUIRES_GRANTED = 8,
    /**
     * Those that found the lock busy and were not to wait.
     */
    ZKLOCK_STAT_ACQUIRES_BUSY = 9,
    /**
     * Those for which others had the lock for too long.
     */
    ZKLOCK_STAT_ACQUIRES_TIMED_OUT = 10,
    /**
     * Those with any other error.
     */
    ZKLOCK_STAT_ACQUIRES_FAILED = 11,
    /**
     * Those that were cancelled, or whose ticket was freed.
     */
    ZKLOCK_STAT_ACQUIRES_CANCELLED = 12,
    /**
     * Holds lost for ZKLOCK_REASON_SESSION_EXPIRED. So for each zklock_reason: its number, and
     * 100.
     */
    ZKLOCK_STAT_LOSSES_SESSION_EXPIRED = 101,
    /**
     * Holds lost for ZKLOCK_REASON_NODE_DELETED.
     */
    ZKLOCK_STAT_LOSSES_NODE_DELETED = 102,
    /**
     * Holds lost for ZKLOCK_REASON_LEASE_LAPSED.
     */
    ZKLOCK_STAT_LOSSES_LEASE_LAPSED = 103,
    /**
     * Holds lost for ZKLOCK_REASON_CLIENT_CLOSED.
     */
    ZKLOCK_STAT_LOSSES_CLIENT_CLOSED = 104,
    /**
     * Holds lost for ZKLOCK_REASON_OTHER.
     */
    ZKLOCK_STAT_LOSSES_OTHER = 105,
    /**
     * Holds lost for ZKLOCK_REASON_FOREIGN_CONTENDER.
     */
    ZKLOCK_STAT_LOSSES_FOREIGN_CONTENDER = 106,
    /**
     * Holds lost for ZKLOCK_REASON_SESSION_CLOSED.
     */
    ZKLOCK_STAT_LOSSES_SESSION_CLOSED = 107,
} zklock_stat;

/**
 * What a guarded write does.
 */
typedef enum zklock_write_kind ZKLOCK_INT32 {
    /**
     * Create a persistent node with data.
     */
    ZKLOCK_WRITE_CREATE = 1,
    /**
     * Set the data of a node.
     */
    ZKLOCK_WRITE_SET = 2,
    /**
     * Delete a node.
     */
    ZKLOCK_WRITE_DELETE = 3,
} zklock_write_kind;

/**
 * A node that exists or not: as long as it exists, zklock_barrier_wait waits. It belongs to
 * nobody, and outlives the process that set it.
 */
typedef struct zklock_barrier zklock_barrier;

/**
 * A call that runs in the background, for event loops: whatever has _start in its name begins one,
 * except zklock_acquire_start, which gives a zklock_ticket.
 */
typedef struct zklock_call zklock_call;

/**
 * One logical connection to an ensemble. It outlives sessions: when one expires it opens the next.
 */
typedef struct zklock_client zklock_client;

/**
 * Lets its members begin together, and end together.
 */
typedef struct zklock_double_barrier zklock_double_barrier;

/**
 * The proof that a lock is held.
 */
typedef struct zklock_hold zklock_hold;

/**
 * A lock at a path. It holds nothing itself: zklock_acquire does.
 */
typedef struct zklock_lock zklock_lock;

/**
 * How a lock behaves. The defaults suit most programs.
 */
typedef struct zklock_lock_options zklock_lock_options;

/**
 * A member of a double barrier, between entering and leaving.
 */
typedef struct zklock_member zklock_member;

/**
 * Reports who holds a lock, without taking part.
 */
typedef struct zklock_observer zklock_observer;

/**
 * How a client connects. The defaults suit most programs.
 */
typedef struct zklock_options zklock_options;

/**
 * A wait for a lock that goes on by itself, for event loops.
 */
typedef struct zklock_ticket zklock_ticket;

/**
 * One in the queue of a lock. What it points to lives as long as the call of the visitor, or as
 * long as zklock_observer_next says. The library that runs may be an earlier or a later one than
 * this header: see `size`.
 */
typedef struct {
    /**
     * How many bytes this struct has in the library that runs. Later versions add members at the
     * end: a member that ends beyond is not there. So read no such member, and copy no more than
     * this.
     */
    size_t size;
    /**
     * The name of its node, a child of the lock's node.
     */
    const char *name;
    /**
     * What it calls itself. zklock writes "host/pid" or what the client's options say.
     */
    const char *identity;
    /**
     * The naming scheme of its library: "curator", "kazoo" or "writelock".
     */
    const char *dialect;
    /**
     * The session that owns it.
     */
    uint64_t session;
    /**
     * Its fencing token, when it comes to hold the lock. A holder of a semaphore's permit has a
     * smaller one: this is the number of its permit.
     */
    uint64_t token;
    /**
     * When its node was created: milliseconds since 1970 on the servers' clock.
     */
    int64_t since;
    /**
     * The path of its node.
     */
    const char *node;
    /**
     * What it wants.
     */
    zklock_role role;
    /**
     * 1 if it holds the lock, as far as its place tells; 0 if it waits. A set of locks holds none
     * of them before it is its turn in all of their queues, even if it is the first.
     */
    int32_t holds;
} zklock_contender;

/**
 * Is shown one contender after the other.
 */
typedef void (*zklock_contender_visitor)(const zklock_contender *contender, void *context);

/**
 * Something that has happened: see zklock_client_next_event, which fills all of it. It never
 * grows.
 */
typedef struct {
    /**
     * What was given to zklock_ticket_set_context, zklock_call_set_context or
     * zklock_hold_set_context; NULL if nothing was.
     */
    void *context;
    /**
     * The ticket of ZKLOCK_EVENT_TICKET, otherwise NULL.
     */
    zklock_ticket *ticket;
    /**
     * The call of ZKLOCK_EVENT_RELEASED and ZKLOCK_EVENT_CALL, otherwise NULL.
     */
    zklock_call *call;
    /**
     * The hold of ZKLOCK_EVENT_LOST and ZKLOCK_EVENT_WANTED, and that of ZKLOCK_EVENT_RELEASED
     * unless it is freed; otherwise NULL.
     */
    zklock_hold *hold;
    /**
     * What has happened.
     */
    zklock_event_kind kind;
    /**
     * 0. A later version may give it a meaning.
     */
    uint32_t reserved[7];
} zklock_event;

/**
 * One of the writes of zklock_hold_commit.
 */
typedef struct {
    /**
     * One of zklock_write_kind.
     */
    int32_t kind;
    /**
     * The version that the node must have, for ZKLOCK_WRITE_SET and ZKLOCK_WRITE_DELETE;
     * ZKLOCK_ANY_VERSION if any will do.
     */
    int32_t version;
    /**
     * The path of the node.
     */
    const char *path;
    /**
     * The data, for ZKLOCK_WRITE_CREATE and ZKLOCK_WRITE_SET. It may be NULL if it is empty.
     */
    const void *data;
    /**
     * How many bytes it has.
     */
    size_t length;
    /**
     * Must be 0. A later version may give it a meaning.
     */
    uint64_t reserved[2];
} zklock_write;

/**
 * Is called when a hold is lost.
 */
typedef void (*zklock_loss_callback)(zklock_hold *hold, zklock_reason reason, void *context);

/**
 * Is called when others wait for what a hold has.
 */
typedef void (*zklock_wanted_callback)(zklock_hold *hold, void *context);

/**
 * Is given a line for the log. The line is valid during the call.
 */
typedef void (*zklock_log_callback)(int32_t level, const char *message, void *context);

/**
 * Enums have 32 bits, as in the library: compile without -fshort-enums, or as C++ or C23.
 */
typedef char zklock_enums_have_32_bits[sizeof(zklock_status) == sizeof(int32_t) ? 1 : -1];

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* ==== Connect ==== */

/**
 * Opens a session. It waits until there is one, for the connect timeout at most.
 *
 * @param hosts "host:port,host:port", and perhaps a "/chroot" at the end. The port may be left
 *        out: 2181.
 * @param options NULL for the defaults. They are copied.
 * @param[out] client the client. Free it with zklock_client_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the hosts cannot be read; ZKLOCK_UNREACHABLE if no
 *         server answers in time, or no host is known; ZKLOCK_REFUSED if the chroot does not
 *         exist, or the system gives us no threads or descriptors; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_new(const char *hosts,
                                const zklock_options *options,
                                zklock_client **client);

/**
 * Begins what zklock_client_new does, and returns at once.
 *
 * @param hosts as zklock_client_new.
 * @param options NULL for the defaults. They are copied.
 * @param[out] call the call: zklock_call_client gives the client. Free it with zklock_call_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the hosts cannot be read. All other statuses come
 *         with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_new_start(const char *hosts,
                                      const zklock_options *options,
                                      zklock_call **call);

/**
 * The client that a call of zklock_client_new_start has connected.
 *
 * @param call the call. It must be freed all the same.
 * @param[out] client the client, which is yours from now on. Free it with zklock_client_free.
 * @return ZKLOCK_OK; ZKLOCK_NOT_HELD if it was taken from the call before; ZKLOCK_INVALID_ARGUMENT
 *         for another call; and all that zklock_call_finish returns.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_client(zklock_call *call, zklock_client **client);

/**
 * Makes a client that connects when it is first needed. Until then it does nothing, so a program
 * may make it, and locks and barriers of it, before it forks: each child that uses them connects
 * for itself.
 *
 * The first call that needs it connects, in the time that its caller is willing to wait, and never
 * for longer than the connect timeout. So it may fail with ZKLOCK_UNREACHABLE or ZKLOCK_REFUSED
 * where the docs of zklock_client_new say so; the next call tries again. A try that connects may
 * take the connect timeout, and the try timeout after it.
 *
 * @param hosts as zklock_client_new.
 * @param options NULL for the defaults. They are copied.
 * @param[out] client the client. Free it with zklock_client_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the hosts cannot be read.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_new_lazy(const char *hosts,
                                     const zklock_options *options,
                                     zklock_client **client);

/**
 * Connects a client of zklock_client_new_lazy now, unless that has been done.
 *
 * @param client the client.
 * @param timeout milliseconds, of which it takes no more than the connect timeout; ZKLOCK_FOREVER
 *        waits that long.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers in time, or no host is known;
 *         ZKLOCK_REFUSED if the chroot does not exist, or the system gives us no threads or
 *         descriptors; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
zklock_status zklock_client_connect(zklock_client *client, int64_t timeout);

/**
 * Begins what zklock_client_connect does, and returns at once.
 *
 * @param client the client. It may be freed before the call.
 * @param timeout milliseconds: as zklock_client_connect.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_connect_start(zklock_client *client,
                                          int64_t timeout,
                                          zklock_call **call);

/**
 * Closes the sessions of the client, which frees every lock that it holds, and waits until the
 * servers have confirmed it, for a second at most.
 *
 * Its holds are lost then, and waits end with ZKLOCK_CLOSED. Closing twice is not an error. The
 * client must be freed all the same.
 *
 * @param client the client.
 * @return ZKLOCK_OK; ZKLOCK_DEADLOCK in a callback; ZKLOCK_REFUSED if the process is exiting and
 *         no thread can be started.
 */
zklock_status zklock_client_close(zklock_client *client);

/**
 * Begins what zklock_client_close does, and returns at once. When the call has its result, the
 * holds of the client are lost.
 *
 * @param client the client. It may be freed before the call.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_close_start(zklock_client *client, zklock_call **call);

/**
 * Frees the client with its descriptor and its events, and does not wait. Its sessions are closed,
 * in the background, when its locks, tickets and holds are freed as well. To end them now, call
 * zklock_client_close before.
 *
 * @param client may be NULL; a handle that was freed before is ignored.
 */
void zklock_client_free(zklock_client *client);

/**
 * Makes options with the defaults. Free them with zklock_options_free, which may be done as soon
 * as the client is made.
 *
 * @param[out] options the options.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_new(zklock_options **options);

/**
 * Frees options. Clients made with them are not touched.
 *
 * @param options may be NULL; a handle that was freed before is ignored.
 */
void zklock_options_free(zklock_options *options);

/**
 * The session timeout to ask for, 100 ms at least; the servers may grant another. Default: 10 s.
 *
 * After a crash, a holder's lock is free again when its session has timed out. A short timeout
 * frees it sooner, and loses holds on shorter network troubles.
 *
 * @param options the options.
 * @param milliseconds 100 to 2147483647.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_session_timeout(zklock_options *options,
                                                 int64_t milliseconds);

/**
 * How long to try to reach a server before zklock_client_new, or a question such as
 * zklock_contenders, fails. Default: 10 s.
 *
 * @param options the options.
 * @param milliseconds not negative.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_connect_timeout(zklock_options *options,
                                                 int64_t milliseconds);

/**
 * How long the servers have to answer an acquire that tries once, and any other call whose timeout
 * is 0, before it is ZKLOCK_UNREACHABLE. Default: 1 s. If they answer, a try takes a few round
 * trips and never that long.
 *
 * @param options the options.
 * @param milliseconds positive.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_try_timeout(zklock_options *options, int64_t milliseconds);

/**
 * Put all paths below this node, which must exist unless it is created: see
 * zklock_options_set_create_chroot. It replaces a chroot among the hosts.
 *
 * @param options the options.
 * @param path such as "/apps/billing".
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_chroot(zklock_options *options, const char *path);

/**
 * Whether to create the chroot, and the nodes above it, if it is missing when a session is opened.
 * They are persistent, and have the access list of what the client creates. Default: no.
 *
 * @param options the options.
 * @param creates 0 for no, any other number for yes.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_create_chroot(zklock_options *options, int creates);

/**
 * Whether the servers are asked to confirm what is held, every twelfth of the session timeout.
 * Default: yes.
 *
 * A client that holds anything, be it one lock or a thousand, writes that often to the ensemble.
 * That is a load where thousands of clients hold something all day, such as the leaders of as many
 * elections. Without a heartbeat they cost nothing. But then nothing proves that a hold is still
 * there: half a session timeout after it was granted, zklock_hold_valid_for is zero for good. The
 * hold is at risk while the client is disconnected. It is lost when the servers say that its
 * session is over, or that its node is deleted. By then another may have held the lock for a
 * while. zklock_hold_confirm and guarded writes ask the servers, with a heartbeat or without.
 *
 * @param options the options.
 * @param beats 0 for no, any other number for yes.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_heartbeat(zklock_options *options, int beats);

/**
 * What others see as the contender's name: the data of its nodes. Default: "host/pid".
 *
 * @param options the options.
 * @param identity 1024 bytes at most.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_identity(zklock_options *options, const char *identity);

/**
 * The version of the servers, such as 3 and 4 for 3.4.14; of an ensemble that is being upgraded it
 * is the oldest. Servers before 3.5 have no sets of locks, no several permits at once, no read
 * side within the own write side, no double barriers and no guarded writes that create a node:
 * that is ZKLOCK_REFUSED there. Default: the first server of each session is asked, by the word
 * srvr; one that does not answer it, or speaks TLS, is taken for 3.5 or later.
 *
 * @param options the options.
 * @param major 3 to 4294967295.
 * @param minor 4 to 4294967295 if the first is 3, otherwise any.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it is older than 3.4.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_server_version(zklock_options *options,
                                                uint32_t major,
                                                uint32_t minor);

/**
 * Speak TLS with the servers. Their certificates must come from the given authorities, and be for
 * the names that stand among the hosts; neither check can be switched off.
 *
 * The files are read now, and anew for each connection, so that renewed certificates are used
 * without a restart. As long as one cannot be used then, no connection is made: what was read
 * before is not used again. The connection that there is stays.
 *
 * @param options the options.
 * @param authorities a PEM file with the certificates of the authorities to trust.
 * @param certificate a PEM file with the certificate of this client, for servers that ask for one;
 *        or NULL.
 * @param key a PEM file with its private key; NULL if there is no certificate. If it is encrypted,
 *        give the pass phrase first.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if a file cannot be read, or is not what it should
 *         be, or one of certificate and key is missing; ZKLOCK_REFUSED if this library was built
 *         without TLS.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_tls(zklock_options *options,
                                     const char *authorities,
                                     const char *certificate,
                                     const char *key);

/**
 * The same with the authorities that this system trusts: those in the file that the environment
 * variable SSL_CERT_FILE names, otherwise those in the file of the system's distribution. Where
 * the servers' certificates come from an authority of your own, give that alone.
 *
 * @param options the options.
 * @param certificate a PEM file with the certificate of this client, for servers that ask for one;
 *        or NULL.
 * @param key a PEM file with its private key; NULL if there is no certificate.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if a file cannot be read, or is not what it should
 *         be, or one of certificate and key is missing; ZKLOCK_REFUSED if this library was built
 *         without TLS.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_tls_system(zklock_options *options,
                                            const char *certificate,
                                            const char *key);

/**
 * The pass phrase of the key that zklock_options_set_tls or zklock_options_set_tls_system is given
 * next. It is in no message and no log line. Keys are read in the form that "openssl genpkey
 * -aes256" writes.
 *
 * @param options the options.
 * @param pass_phrase not empty.
 * @return ZKLOCK_OK; ZKLOCK_REFUSED if this library was built without TLS.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_pass_phrase(zklock_options *options,
                                             const char *pass_phrase);

/**
 * The same with the first line of a file. It is read now, and anew for each connection.
 *
 * @param options the options.
 * @param file its path.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it cannot be read, or the line is empty;
 *         ZKLOCK_REFUSED if this library was built without TLS.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_pass_phrase_from_file(zklock_options *options,
                                                       const char *file);

/**
 * The same with an environment variable, which is read now.
 *
 * @param options the options.
 * @param variable its name, such as "CLIENT_KEY_PASS".
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it is not set, or empty; ZKLOCK_REFUSED if this
 *         library was built without TLS.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_pass_phrase_from_env(zklock_options *options,
                                                      const char *variable);

/**
 * Log in as this user, with ZooKeeper's scheme "digest", and as those that were added before. The
 * password crosses the network as it is: use TLS where others could listen. It is in no message
 * and no log line.
 *
 * The servers keep no list of users: with a wrong password the client is somebody else, whom
 * access lists do not know.
 *
 * @param options the options.
 * @param user without a colon.
 * @param password its password.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_add_digest(zklock_options *options,
                                        const char *user,
                                        const char *password);

/**
 * The same with the users and passwords in a file: "user:password", one a line. It is read now,
 * and anew for each connection, so that passwords can be changed while the client runs. As long as
 * it cannot be read then, no connection is made.
 *
 * @param options the options.
 * @param file its path.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it cannot be read, or is not what it should be.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_add_digest_from_file(zklock_options *options, const char *file);

/**
 * The same with "user:password" in an environment variable, which is read now.
 *
 * @param options the options.
 * @param variable its name, such as "ZKLOCK_AUTH".
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it is not set, or is not what it should be.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_add_digest_from_env(zklock_options *options,
                                                 const char *variable);

/**
 * Log in as this user by SASL, with its mechanism DIGEST-MD5, beside the users that were added for
 * the scheme "digest". To access lists it is "sasl:user". A client can log in by SASL as one user:
 * a second one is ZKLOCK_INVALID_ARGUMENT when a client is made. The password is in no message and
 * no log line, and does not cross the network; but a listener can try out passwords on what does:
 * use TLS.
 *
 * The servers have a list of users, in the section "Server" of their JAAS file. With a wrong
 * password, with a user whom they do not know, and where they are not set up for SASL, making a
 * client is ZKLOCK_REFUSED. A password that is changed on the servers matters to the next
 * connection: as long as they refuse it there is none, and the session and its holds are lost.
 *
 * @param options the options.
 * @param user of ASCII, without a colon, a quotation mark or a backslash.
 * @param password its password, of ASCII.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_add_sasl(zklock_options *options,
                                      const char *user,
                                      const char *password);

/**
 * The same with the user and the password in a file: one line "user:password". It is read now, and
 * anew for each connection, so that the password can be changed while the client runs. As long as
 * it cannot be read then, no connection is made.
 *
 * @param options the options.
 * @param file its path.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it cannot be read, or is not what it should be.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_add_sasl_from_file(zklock_options *options, const char *file);

/**
 * The same with "user:password" in an environment variable, which is read now.
 *
 * @param options the options.
 * @param variable its name, such as "ZKLOCK_SASL".
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it is not set, or is not what it should be.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_add_sasl_from_env(zklock_options *options,
                                               const char *variable);

/**
 * Log in with the ticket that Kerberos has for this process, beside the users that were added for
 * the scheme "digest"; it counts as a login by SASL. To access lists it is the client's principal,
 * such as "sasl:billing@EXAMPLE.COM". The ticket is the one of the credential cache (KRB5CCNAME),
 * or comes from a keytab (KRB5_CLIENT_KTNAME), with which it is renewed. It is looked up anew for
 * each connection. Without one, making a client is ZKLOCK_REFUSED, or ZKLOCK_UNREACHABLE if no KDC
 * answers, and Kerberos' own words say why.
 *
 * @param options the options.
 * @param service the first part of the servers' principal; may be NULL for "zookeeper".
 * @param host the second part of it; may be NULL for the host that is connected to.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if one is empty, or has a space or one of @, / and \
 *         in it; ZKLOCK_REFUSED if this library was built without Kerberos.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_add_kerberos(zklock_options *options,
                                          const char *service,
                                          const char *host);

/**
 * Who may use the nodes that the client creates. Without a user to log in as, all but
 * ZKLOCK_ACCESS_OPEN is ZKLOCK_INVALID_ARGUMENT when a client is made.
 *
 * @param options the options.
 * @param access one of zklock_access.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_access(zklock_options *options, int32_t access);

/**
 * The same with a list of one's own, as zkCli takes it. A client that it does not name is locked
 * out of what it creates.
 *
 * @param options the options.
 * @param list entries "scheme:id:rights" with commas between them, the rights being some of the
 *        letters cdrwa: such as "sasl:billing:cdrwa,world:anyone:r"; or "open", "creator-all" or
 *        "read-open".
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if an entry is wrong: zklock_last_error() says which,
 *         by its number.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set_access_list(zklock_options *options, const char *list);

/* ==== Lock ==== */

/**
 * Makes the mutex at a path: one holder at a time, in the order of arrival. Like every kind of
 * lock it costs no request: the node is created by the first acquire.
 *
 * It shares a queue with Curator's InterProcessMutex and LeaderSelector, and others: see
 * zklock_dialect.
 *
 * @param client the client. It may be freed before the lock.
 * @param path such as "/locks/report".
 * @param options NULL for the defaults. They are copied.
 * @param[out] lock the lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
 *         to this kind.
 */
ZKLOCK_NODISCARD
zklock_status zklock_mutex_new(zklock_client *client,
                               const char *path,
                               const zklock_lock_options *options,
                               zklock_lock **lock);

/**
 * Makes the read side of the read/write lock at a path: it is held by any number at once, while no
 * writer holds.
 *
 * A thread that holds the write side by a reentrant lock (ZKLOCK_REENTRANT) may acquire the read
 * side as well, and release the write side first: a downgrade. The lock of the read side may be
 * reentrant or not. Where that of the write side is not, the thread waits for the release of the
 * write side as any other does: see zklock_rwlock_write_new. It shares a queue with Curator's
 * InterProcessReadWriteLock, and in kazoo's dialect with kazoo's.
 *
 * @param client the client. It may be freed before the lock.
 * @param path such as "/locks/catalogue".
 * @param options NULL for the defaults. They are copied.
 * @param[out] lock the lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
 *         to this kind.
 */
ZKLOCK_NODISCARD
zklock_status zklock_rwlock_read_new(zklock_client *client,
                                     const char *path,
                                     const zklock_lock_options *options,
                                     zklock_lock **lock);

/**
 * Makes the write side of the read/write lock at a path: one holder at a time, and no reader
 * beside it.
 *
 * A thread that holds the read side waits until that is released, by whichever thread. If no other
 * can release it, because it is of a reentrant lock, that is ZKLOCK_DEADLOCK. A thread that has
 * acquired the write side gets the read side at once if the lock is made with ZKLOCK_REENTRANT, so
 * that no other thread can release the write side. Any other hold may have been handed to another
 * thread, which writes: so the thread that acquired it waits for its release before it reads, or
 * gets ZKLOCK_TIMEOUT, and the log warns of the wait.
 *
 * @param client the client. It may be freed before the lock.
 * @param path that of the read side.
 * @param options NULL for the defaults. They are copied.
 * @param[out] lock the lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
 *         to this kind.
 */
ZKLOCK_NODISCARD
zklock_status zklock_rwlock_write_new(zklock_client *client,
                                      const char *path,
                                      const zklock_lock_options *options,
                                      zklock_lock **lock);

/**
 * Makes the semaphore at a path: as many hold it as it has permits, in the order of arrival. It
 * has the layout of Curator's InterProcessSemaphoreV2.
 *
 * A permit belongs to nobody: any thread may acquire several and release any.
 *
 * @param client the client. It may be freed before the lock.
 * @param path such as "/locks/licences".
 * @param limit how many permits there are, 1 to 4294967295. Every program that uses it must give
 *        the same number.
 * @param options NULL for the defaults. They are copied.
 * @param[out] lock the lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, if more permits are wanted
 *         than there are, or an option does not apply to this kind.
 */
ZKLOCK_NODISCARD
zklock_status zklock_semaphore_new(zklock_client *client,
                                   const char *path,
                                   uint32_t limit,
                                   const zklock_lock_options *options,
                                   zklock_lock **lock);

/**
 * Writes how many permits there are to the node that semaphores name with
 * zklock_lock_options_set_limit_at, and creates it if it is not there.
 *
 * Permits that are held stay held, even if the new limit is lower.
 *
 * @param client the client.
 * @param path that of the node, such as "/limits/licences".
 * @param limit 0 to 2147483647.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
 *         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_set_limit(zklock_client *client, const char *path, uint32_t limit);

/**
 * Makes the set of several locks, which are acquired and released together: all of them, or none.
 * No two sets can come to wait for each other, in whatever order they name their locks.
 *
 * @param client the client from which the locks come. It may be freed before the set.
 * @param locks mutexes, read and write sides, semaphores and elections. They may be freed before
 *        the set.
 * @param count how many there are: one at least.
 * @param options NULL for the defaults. They are copied. The options of the locks stay, except
 *        that the set as a whole is reentrant or not.
 * @param[out] lock the set, which is a lock as well. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if one of the locks is NULL, of another client or an
 *         exclusive one, if two are of one path, they are too many for one request, or an option
 *         does not apply to a set.
 */
ZKLOCK_NODISCARD
zklock_status zklock_all_new(zklock_client *client,
                             zklock_lock *const *locks,
                             size_t count,
                             const zklock_lock_options *options,
                             zklock_lock **lock);

/**
 * Makes any one of several locks: an acquire holds the first that comes, and leaves the queues of
 * the rest. zklock_hold_path says which it is. It is for a worker that takes any free job out of
 * many.
 *
 * All queues are looked at first, in one round trip that changes nothing, and of the locks that
 * are free the one that is named first is acquired. If none is, an acquire queues for all. Each
 * lock is acquired as it is alone, with its own options: so one that the caller holds already is
 * busy, unless it is reentrant.
 *
 * @param client the client from which the locks come. It may be freed before the choice.
 * @param locks mutexes, read and write sides, semaphores, elections and sets. They may be freed
 *        before the choice.
 * @param count how many there are: one at least.
 * @param options NULL for the defaults. No option but a default applies to a choice: give them to
 *        its locks.
 * @param[out] lock the choice, which is a lock as well. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if one of the locks is NULL, of another client, an
 *         exclusive one or such a choice itself, if two are of one path, they are too many to be
 *         watched by one session, or an option does not apply to a choice.
 */
ZKLOCK_NODISCARD
zklock_status zklock_any_new(zklock_client *client,
                             zklock_lock *const *locks,
                             size_t count,
                             const zklock_lock_options *options,
                             zklock_lock **lock);

/**
 * Makes the election at a path: the client that acquires it leads until it releases. It shares a
 * queue with Curator's LeaderLatch. zklock_observe reports who leads, even to programs that are
 * not candidates.
 *
 * @param client the client. It may be freed before the lock.
 * @param path such as "/election/scheduler".
 * @param options NULL for the defaults. They are copied.
 * @param[out] lock the lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
 *         to this kind.
 */
ZKLOCK_NODISCARD
zklock_status zklock_election_new(zklock_client *client,
                                  const char *path,
                                  const zklock_lock_options *options,
                                  zklock_lock **lock);

/**
 * Makes the exclusive lock at a path: the client that creates the node "lock" below it holds the
 * lock. There is no queue and no order, so it is for jobs that are tried once and skipped if
 * another process is doing them.
 *
 * @param client the client. It may be freed before the lock.
 * @param path such as "/jobs/nightly".
 * @param options NULL for the defaults. They are copied.
 * @param[out] lock the lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
 *         to this kind.
 */
ZKLOCK_NODISCARD
zklock_status zklock_exclusive_new(zklock_client *client,
                                   const char *path,
                                   const zklock_lock_options *options,
                                   zklock_lock **lock);

/**
 * The path of a lock; of a set of locks, the paths of all.
 *
 * @param lock the lock.
 * @param[out] path valid until the lock is freed.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_lock_path(const zklock_lock *lock, const char **path);

/**
 * Frees the lock. Holds of it are not touched, and waits for it go on.
 *
 * @param lock may be NULL; a handle that was freed before is ignored.
 */
void zklock_lock_free(zklock_lock *lock);

/**
 * Makes options with the defaults. Free them with zklock_lock_options_free, which may be done as
 * soon as the lock is made.
 *
 * @param[out] options the options.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_lock_options_new(zklock_lock_options **options);

/**
 * Frees options. Locks made with them are not touched.
 *
 * @param options may be NULL; a handle that was freed before is ignored.
 */
void zklock_lock_options_free(zklock_lock_options *options);

/**
 * Sets the boolean properties of the lock. This replaces the flags that were set before.
 *
 * @param options the options.
 * @param flags 0, or a sum of zklock_flag.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_lock_options_set_flags(zklock_lock_options *options, uint32_t flags);

/**
 * How its nodes are named. Contenders of every dialect are recognised, whichever the lock has.
 *
 * @param options the options.
 * @param dialect one of zklock_dialect. It says which kinds of lock can have it.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_lock_options_set_dialect(zklock_lock_options *options, int32_t dialect);

/**
 * How many permits of a semaphore to acquire at once. Default: 1.
 *
 * @param options the options.
 * @param permits 1 to 256.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_lock_options_set_permits(zklock_lock_options *options,
                                              uint32_t permits);

/**
 * The node that says how many permits a semaphore has, in the format of Curator's SharedCount. As
 * long as it does not exist, the limit is that of zklock_semaphore_new. Waiters notice when
 * zklock_set_limit changes it.
 *
 * @param options the options.
 * @param path such as "/limits/licences".
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_lock_options_set_limit_at(zklock_lock_options *options,
                                               const char *path);

/**
 * For how long the lock's node stays after a release, as long as nobody else wants the lock.
 * Default: 0, not at all. For mutexes, read and write sides.
 *
 * Meanwhile nobody holds the lock, and the client's next acquire takes the node over without a
 * request, or after one check if its lease does not run. When anybody else queues, by whatever
 * library, the node is deleted: at once, or with the release if it is held. So a lock that one
 * process takes again and again costs nothing, and one that others want costs them no more than a
 * deletion. Readers of a client have one node together, until a writer queues.
 *
 * Grants on one node have the same token: what the lock guards must accept one that is not smaller
 * than it has seen. A try of another client that comes while the node lingers finds the lock busy,
 * and makes it free. If the process is killed, others wait for its session timeout, as for any
 * holder's.
 *
 *     zklock_lock_options *options;
 *
 *     if (zklock_lock_options_new(&options) != ZKLOCK_OK) return fail(zklock_last_error());
 *     if (zklock_lock_options_set_linger(options, 10000) != ZKLOCK_OK ||
 *         zklock_mutex_new(client, "/locks/report", options, &lock) != ZKLOCK_OK)
 *         return fail(zklock_last_error());
 *     zklock_lock_options_free(options);
 *
 * @param options the options.
 * @param milliseconds not negative.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_lock_options_set_linger(zklock_lock_options *options,
                                             int64_t milliseconds);

/**
 * How many holders of this client follow one another on one node while others wait. Default: 1, so
 * that clients take turns, whatever the number of their threads. For mutexes, read and write
 * sides.
 *
 * With more than one, or with zklock_lock_options_set_linger, threads pass the lock on without a
 * request: for as long as nobody else waits, and so often otherwise. Grants on one node have the
 * same token.
 *
 * @param options the options.
 * @param turns 1 to 4294967295.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_lock_options_set_local_turns(zklock_lock_options *options,
                                                  uint32_t turns);

/* ==== Acquire ==== */

/**
 * Waits until the lock is held.
 *
 * Grants follow the order in which clients queue, and within a client that of its callers: however
 * many wait, clients take turns. A caller that gives up leaves its place to the next of its
 * client.
 *
 * A thread may acquire for others, and hand each hold to one that releases it: so it also waits
 * for what it has acquired itself. If nobody else releases that, it waits in vain; a warning is
 * logged when such a wait begins.
 *
 * With a timeout of 0 it may be called again and again: from the second time on that one and the
 * same zklock_lock of a mutex, an election or a read/write lock was busy, further such calls cost
 * no request until the servers tell that the one in the way has gone. So right after another
 * client's release it may still be ZKLOCK_TIMEOUT, for the moment that this takes, a tenth of the
 * session timeout at most. With a timeout that leaves the servers the time to answer, they are
 * asked in any case.
 *
 * @param lock the lock.
 * @param timeout milliseconds: 0 tries once, which takes as long as the try timeout if no server
 *        answers; ZKLOCK_FOREVER waits as long as it takes. Otherwise it returns by then, whatever
 *        the network does.
 * @param[out] hold the proof that the lock is held. Give it back with zklock_release, and free it
 *        with zklock_hold_free.
 * @return ZKLOCK_OK; ZKLOCK_TIMEOUT if others had the lock until then, or the time was too short
 *         for an answer; ZKLOCK_UNREACHABLE if there was no connection then, or no server has
 *         answered for the try timeout: nobody knows who has the lock; ZKLOCK_DEADLOCK if it was
 *         to wait for what this thread itself holds by a reentrant lock, so that no other can
 *         release it (such as the read side, if this is the write side), or in a callback; if the
 *         lock is reentrant; ZKLOCK_LOST if the outer hold is lost, and ZKLOCK_UNREACHABLE if its
 *         lease has run out; ZKLOCK_FOREIGN_CONTENDER; ZKLOCK_REFUSED if the servers' access list
 *         does not allow it, or the process is exiting and no thread can be started;
 *         ZKLOCK_CLOSED.
 */
ZKLOCK_NODISCARD
zklock_status zklock_acquire(zklock_lock *lock, int64_t timeout, zklock_hold **hold);

/**
 * Begins to wait for the lock, and returns at once. When zklock_acquire_finish has a result, the
 * ticket's descriptor becomes readable (zklock_ticket_fd), and its client has an event
 * (zklock_client_next_event).
 *
 * Such a wait belongs to no thread: a thread that holds the lock may begin another, and the hold
 * may be released by any thread, also if the lock is reentrant. The time that passes before a
 * grant is fetched is time for which the lock is held.
 *
 * @param lock the lock.
 * @param timeout milliseconds: as zklock_acquire.
 * @param[out] ticket the ticket. Free it with zklock_ticket_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_acquire_start(zklock_lock *lock,
                                   int64_t timeout,
                                   zklock_ticket **ticket);

/**
 * The result of a wait that was begun with zklock_acquire_start, once. It does not wait.
 *
 * @param ticket the ticket. It must be freed all the same.
 * @param[out] hold as zklock_acquire.
 * @return ZKLOCK_OK; ZKLOCK_PENDING as long as the wait goes on; ZKLOCK_INTERRUPTED after
 *         zklock_acquire_cancel; ZKLOCK_NOT_HELD if the result was fetched before; ZKLOCK_LOST if
 *         the lock was granted, and lost before this call; and all that zklock_acquire returns.
 */
ZKLOCK_NODISCARD
zklock_status zklock_acquire_finish(zklock_ticket *ticket, zklock_hold **hold);

/**
 * Ends a wait: its descriptor becomes readable, its event comes, and zklock_acquire_finish gives
 * ZKLOCK_INTERRUPTED, or the result if there is one already. Nothing is left behind in the queue.
 *
 * @param ticket the ticket. It must be freed all the same.
 * @return ZKLOCK_OK.
 */
zklock_status zklock_acquire_cancel(zklock_ticket *ticket);

/**
 * The descriptor of a ticket: readable when there is a result, and from then on. Do not read from
 * it, write to it or close it. It is made when it is first asked for: a program with thousands of
 * tickets does better to ask its client alone, with zklock_client_fd.
 *
 * @param ticket the ticket.
 * @param[out] descriptor valid until the ticket is freed.
 * @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives none.
 */
ZKLOCK_NODISCARD
zklock_status zklock_ticket_fd(const zklock_ticket *ticket, int *descriptor);

/**
 * What the event of a ticket gives back: a pointer of yours, behind which nobody looks. It is NULL
 * until it is set. The hold that is fetched from the ticket begins with it.
 *
 * The event may come as soon as the ticket is begun. So let one thread begin tickets and ask for
 * events, or lock a mutex of yours from zklock_acquire_start until the context is set, and while
 * you handle an event.
 *
 * @param ticket the ticket.
 * @param context any pointer, or NULL.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_ticket_set_context(zklock_ticket *ticket, void *context);

/**
 * Frees a ticket and its descriptor, which must be in no event loop any more. A wait that goes on
 * is ended; a lock that was granted and not fetched is released in the background. No event of it
 * is given from now on.
 *
 * @param ticket may be NULL; a handle that was freed before is ignored.
 */
void zklock_ticket_free(zklock_ticket *ticket);

/**
 * For how long the lock is certain to be held without the servers being heard from again. Zero
 * means that others may hold it. It costs no request.
 *
 * It is the state of now: a process that is paused just after this call may find it changed.
 * Against that help the token, and zklock_hold_commit.
 *
 * @param hold the hold.
 * @param[out] milliseconds rounded down.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_valid_for(const zklock_hold *hold, int64_t *milliseconds);

/**
 * Asks the servers whether the lock is still held.
 *
 * @param hold the hold.
 * @param[out] milliseconds for how long it is certain to be held. It may be NULL.
 * @return ZKLOCK_OK if it is held; ZKLOCK_LOST if it is not; ZKLOCK_UNREACHABLE if the servers did
 *         not answer within what was left of the lease, or a second; ZKLOCK_NOT_HELD after a
 *         release, including one that comes before their answer; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_confirm(zklock_hold *hold, int64_t *milliseconds);

/**
 * Begins what zklock_hold_confirm does, and returns at once. zklock_call_finish gives the
 * milliseconds.
 *
 * @param hold the hold. It must stay until the call has its result: to free it releases the lock,
 *        and the call may give ZKLOCK_NOT_HELD.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_confirm_start(zklock_hold *hold, zklock_call **call);

/**
 * The fencing token: of two grants of one path that exclude each other, the later has the greater
 * token. Let what the lock guards refuse a token smaller than one it has seen, and accept an equal
 * one: grants that follow one another on one node have the same. Those are the holds within a hold
 * of ZKLOCK_REENTRANT, and what zklock_lock_options_set_linger and
 * zklock_lock_options_set_local_turns let a client take again.
 *
 * Holders that may hold together learn of their grants in any order: of two readers without a
 * writer between them the later may have the smaller token, and so may the later of two permits.
 * So compare a reader's token with those of writers alone.
 *
 * @param hold the hold.
 * @param[out] token the token.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_token(const zklock_hold *hold, uint64_t *token);

/**
 * Writes to ZooKeeper itself, all or nothing, and only if the lock is still held when the servers
 * commit it. It waits for their answer, or until it is too late for one: a session timeout at
 * most, or two seconds.
 *
 * @param hold the hold.
 * @param writes what to do, in this order.
 * @param count how many there are.
 * @param[out] versions the version of each node after its write, as many as there are writes: 0 if
 *        it was created, ZKLOCK_NO_NODE if it was deleted. It may be NULL.
 * @return ZKLOCK_OK; ZKLOCK_LOST if the lock was not held any more: nothing was written;
 *         ZKLOCK_CONFLICT if a node was not as it had to be: nothing was written, and
 *         zklock_last_conflict says which it was; ZKLOCK_UNCERTAIN if the reply was lost: all or
 *         nothing was written, and zklock_hold_read shows which; ZKLOCK_NOT_HELD after a release;
 *         ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT for a bad path, and for more than
 *         512 KiB in all.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_commit(zklock_hold *hold,
                                 const zklock_write *writes,
                                 size_t count,
                                 int32_t *versions);

/**
 * Begins what zklock_hold_commit does, and returns at once. zklock_call_versions gives the
 * versions. After ZKLOCK_CONFLICT, zklock_last_conflict says which write was refused, as soon as
 * zklock_call_finish or zklock_call_versions has returned it.
 *
 * @param hold the hold. It must stay until the call has its result: to free it releases the lock,
 *        and the call may give ZKLOCK_NOT_HELD.
 * @param writes what to do, in this order. They are copied.
 * @param count how many there are.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT for a bad path, and for more than 512 KiB in all. All
 *         other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_commit_start(zklock_hold *hold,
                                       const zklock_write *writes,
                                       size_t count,
                                       zklock_call **call);

/**
 * The versions that a call of zklock_hold_commit_start has written.
 *
 * @param call the call. It must be freed all the same.
 * @param[out] versions the version of each node after its write, as zklock_hold_commit gives them:
 *        as many as there are writes, and as zklock_call_finish says. It may be NULL.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT for another call; and all that zklock_call_finish
 *         returns.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_versions(zklock_call *call, int32_t *versions);

/**
 * Which write was refused, if the last function that failed in this thread was a
 * zklock_hold_commit that gave ZKLOCK_CONFLICT; or a zklock_call_finish or zklock_call_versions
 * that gave it for a zklock_hold_commit_start.
 *
 * @return its index among the writes, from 0 on; -1 if the last function that failed did so in
 *         another way.
 */
int64_t zklock_last_conflict(void);

/**
 * What is in a node of ZooKeeper, and its version. It is as new as anything that the servers had
 * committed when this was called, and the outcome of a zklock_hold_commit of this hold is certain
 * by then. So after ZKLOCK_UNCERTAIN read what was to be written, then decide. It works while the
 * client is open, even if the hold is lost or released.
 *
 *     char state[64];
 *     size_t length;
 *     int32_t version;
 *
 *     if (zklock_hold_read(hold, "/report/state", state, sizeof state, &length, &version) != ZKLOCK_OK)
 *         return fail(zklock_last_error());
 *     if (version == ZKLOCK_NO_NODE) puts("no report yet");
 *     else if (length > sizeof state) puts("longer than it should be");
 *     else printf("version %d: %.*s\n", (int)version, (int)length, state);
 *
 * It waits for their answer a session timeout at most, or two seconds.
 *
 * @param hold the hold.
 * @param path of the node.
 * @param buffer where its data go: as many bytes as there is room for, and no NUL after them. It
 *        may be NULL if size is 0.
 * @param size how many bytes there is room for.
 * @param[out] length how many bytes the data have, even if there is not room for all of them; 0 if
 *        there is no such node.
 * @param[out] version its version, for a zklock_write; ZKLOCK_NO_NODE, which a write refuses, if
 *        there is no such node.
 * @return ZKLOCK_OK, also if there is no such node; ZKLOCK_UNREACHABLE if the servers did not
 *         answer in time; ZKLOCK_REFUSED if the access list does not allow to read it;
 *         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT for a bad path.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_read(zklock_hold *hold,
                               const char *path,
                               void *buffer,
                               size_t size,
                               size_t *length,
                               int32_t *version);

/**
 * The path of the lock.
 *
 * @param hold the hold.
 * @param[out] path valid until the hold is freed.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_path(const zklock_hold *hold, const char **path);

/**
 * The path of the node that stands for this hold.
 *
 * @param hold the hold.
 * @param[out] node valid until the hold is freed.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_node(const zklock_hold *hold, const char **node);

/**
 * Releases the lock and waits until the servers have confirmed it. Of a reentrant lock, only the
 * release of the last hold reaches the servers.
 *
 * Whatever is returned, but for ZKLOCK_NOT_OWNER, ZKLOCK_DEADLOCK and ZKLOCK_FORKED, this hold has
 * come to its end. It must be freed all the same.
 *
 * @param hold the hold.
 * @return ZKLOCK_OK; ZKLOCK_LOST if the hold was found to be lost; ZKLOCK_NOT_HELD if it was
 *         released before; ZKLOCK_NOT_OWNER if the lock is reentrant and another thread acquired
 *         it: nothing changes; ZKLOCK_TIMEOUT if the servers have not answered within a session
 *         timeout: the release goes on in the background; ZKLOCK_UNREACHABLE if no connection can
 *         be had for its session any more, such as after a change of passwords: the lock is free
 *         when the servers end the session, a session timeout after they last heard of it;
 *         ZKLOCK_REFUSED if the access list does not allow to delete its node, which has gone with
 *         its session then, and so have the client's other holds, or the process is exiting and no
 *         thread can be started; ZKLOCK_DEADLOCK in a callback.
 */
zklock_status zklock_release(zklock_hold *hold);

/**
 * Begins what zklock_release does, and returns at once. If there is a call, and this thread may
 * release the hold, the hold has come to its end by then, and the release goes on even if the call
 * is cancelled or freed.
 *
 * @param hold the hold. It must be freed all the same, which may be done before the call has its
 *        result.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_release_start(zklock_hold *hold, zklock_call **call);

/**
 * Frees a hold and its descriptor, which must be in no event loop any more. A lock that is still
 * held is released in the background, whichever thread acquired it, and calls that wait with this
 * hold end. Nothing of it is told from now on.
 *
 * It waits for nothing but a callback of this hold that is just running, unless that is what calls
 * it. So call it with nothing locked that the callback locks.
 *
 * @param hold may be NULL; a handle that was freed before is ignored.
 */
void zklock_hold_free(zklock_hold *hold);

/* ==== Lose ==== */

/**
 * How the hold stands. It costs no request.
 *
 * @param hold the hold.
 * @param[out] state how it stands.
 * @param[out] reason why it was lost, ZKLOCK_REASON_NONE if it is not. It may be NULL.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_state(const zklock_hold *hold,
                                zklock_state *state,
                                zklock_reason *reason);

/**
 * Calls back when the hold is lost: once, on a thread of ours, and not if it is released before. A
 * hold that is lost already is reported at once. Each call adds a callback.
 *
 * @param hold the hold.
 * @param callback see "Callbacks" above. It may look at the hold, and free it.
 * @param context handed to it. Both must stay until zklock_hold_free returns.
 * @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives no thread for callbacks.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_on_lost(zklock_hold *hold,
                                  zklock_loss_callback callback,
                                  void *context);

/**
 * Waits until the hold is lost.
 *
 * @param hold the hold.
 * @param timeout milliseconds; ZKLOCK_FOREVER waits as long as it takes.
 * @param[out] reason why it was lost.
 * @return ZKLOCK_OK if it is lost; ZKLOCK_TIMEOUT if it is still held then; ZKLOCK_NOT_HELD if it
 *         is released; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_wait_lost(zklock_hold *hold,
                                    int64_t timeout,
                                    zklock_reason *reason);

/**
 * The descriptor of a hold: readable when the hold is lost, and from then on. Do not read from it,
 * write to it or close it.
 *
 * @param hold the hold.
 * @param[out] descriptor valid until the hold is freed.
 * @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives none.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_fd(const zklock_hold *hold, int *descriptor);

/**
 * What the events of a hold give back: a pointer of yours, behind which nobody looks. Until it is
 * set, it is that of the ticket from which the hold was fetched, or NULL.
 *
 * @param hold the hold.
 * @param context any pointer, or NULL.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_set_context(zklock_hold *hold, void *context);

/**
 * Whether somebody is known to wait for what this hold has, of whatever process and library: to
 * finish early, or to let the lock go between two pieces of work.
 *
 *     for (piece = 0; piece < pieces && !is_wanted; piece++) {
 *         work_on(piece);
 *         if (zklock_hold_is_wanted(hold, &is_wanted) != ZKLOCK_OK) return fail(zklock_last_error());
 *     }
 *
 * Somebody who has asked for it by zklock_revoke, or by Curator's Revoker, counts as one who
 * waits.
 *
 * It does not wait for the servers: the first call of this, or of another that asks for waiters,
 * has the lock's queue listed and the hold's own nodes read, and leaves watches that the next who
 * queues or asks sets off. A hold that never asks costs nothing. Readers do not wait for readers,
 * so they do not count beside one. It is what was seen last: it may stay so though the other has
 * given up. Nobody queues for a lock of zklock_exclusive_new, so there only the waiters of this
 * client are seen, and those who have asked.
 *
 * @param hold the hold.
 * @param[out] is_wanted 1 if somebody waits; 0 if not, and if the hold is released or lost.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_is_wanted(zklock_hold *hold, int *is_wanted);

/**
 * Calls back when others wait for what the hold has: once, on a thread of ours, and not if it is
 * released or lost before. If they wait already, that is told at once. Each call adds a callback.
 * See zklock_hold_is_wanted.
 *
 * @param hold the hold.
 * @param callback see "Callbacks" above. It may look at the hold, and free it, which releases it.
 * @param context handed to it. Both must stay until zklock_hold_free returns.
 * @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives no thread for callbacks.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_on_wanted(zklock_hold *hold,
                                    zklock_wanted_callback callback,
                                    void *context);

/**
 * Waits until others wait for what the hold has. See zklock_hold_is_wanted.
 *
 * @param hold the hold.
 * @param timeout milliseconds; ZKLOCK_FOREVER waits as long as it takes.
 * @return ZKLOCK_OK if somebody waits; ZKLOCK_TIMEOUT if nobody does by then; ZKLOCK_NOT_HELD if
 *         the hold is released; ZKLOCK_LOST if it is lost; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_wait_wanted(zklock_hold *hold, int64_t timeout);

/**
 * Another descriptor of a hold: readable when others wait for what the hold has, and from then on.
 * Do not read from it, write to it or close it. See zklock_hold_is_wanted.
 *
 * @param hold the hold.
 * @param[out] descriptor valid until the hold is freed.
 * @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives none.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_wanted_fd(zklock_hold *hold, int *descriptor);

/* ==== Event loops ==== */

/**
 * The descriptor of a client: readable as long as zklock_client_next_event has an event. So one
 * descriptor serves all tickets, calls and holds of a client, however many they are. Do not read
 * from it, write to it or close it.
 *
 * From the first call of this or of zklock_client_next_event on the events of the client are
 * queued, and none before. A client of zklock_client_new_lazy belongs to this process from then
 * on, and its first event of the connection comes when it has connected.
 *
 * @param client the client.
 * @param[out] descriptor valid until the client is freed.
 * @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives none, or no thread.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_fd(zklock_client *client, int *descriptor);

/**
 * The next event of a client: something has happened to the client, or to what it made. It does
 * not wait. Events of the connection come first, all others in the order in which they happened.
 *
 *     zklock_event event;
 *
 *     while (zklock_client_next_event(client, &event) == ZKLOCK_OK) {
 *         if (event.kind == ZKLOCK_EVENT_TICKET) go_on_with(event.context, event.ticket);
 *         if (event.kind == ZKLOCK_EVENT_LOST) stop(event.context);
 *         if (event.kind == ZKLOCK_EVENT_RELEASED) zklock_call_free(event.call);
 *     }
 *
 * From the first call of this or of zklock_client_fd on, there is one event of each ticket that
 * comes to have its result, even if it was begun before; of each call of the client and of its
 * locks, holds, barriers and members that does so; of each loss of a hold that was acquired from
 * then on, and that others wait for it if zklock_hold_is_wanted or zklock_hold_wanted_fd was
 * called for it; and of each change of the connection, beginning with how it is then. A ticket or
 * a call that is cancelled has its result by that. What is freed before its event was given has
 * none. Events of the connection that nobody asks for are told as fewer: several outages as one,
 * several lost sessions as one, but never none. All others are kept until they are asked for, or
 * their handle is freed.
 *
 * A call of zklock_client_new_start belongs to no client, and an observer has its descriptor
 * alone: there are no events of them.
 *
 * @param client the client.
 * @param[out] event what has happened. Its handles stay yours.
 * @return ZKLOCK_OK; ZKLOCK_PENDING if there is no event; ZKLOCK_REFUSED if the first call is
 *         given no thread by the system.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_next_event(zklock_client *client, zklock_event *event);

/**
 * The descriptor of a call: readable when there is a result, and from then on. Do not read from
 * it, write to it or close it. It is made when it is first asked for: see zklock_client_fd for one
 * that serves all calls of a client.
 *
 * @param call the call.
 * @param[out] descriptor valid until the call is freed.
 * @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives none.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_fd(const zklock_call *call, int *descriptor);

/**
 * What the event of a call gives back: a pointer of yours, behind which nobody looks. Until it is
 * set, a call of zklock_release_start has that of its hold, any other has NULL.
 *
 * @param call the call.
 * @param context any pointer, or NULL.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_set_context(zklock_call *call, void *context);

/**
 * The result of a call. It does not wait, and may be asked more than once.
 *
 * What is more than a number comes from zklock_call_client, zklock_call_member,
 * zklock_call_versions and zklock_call_contenders.
 *
 * @param call the call. It must be freed all the same.
 * @param[out] number of zklock_hold_confirm_start for how many milliseconds the lock is certain to
 *        be held; of zklock_barrier_set_start, zklock_barrier_remove_start and
 *        zklock_barrier_is_set_start 1 or 0, as without _start; of zklock_hold_commit_start and
 *        zklock_contenders_start how many there are; otherwise 0. It may be NULL.
 * @return ZKLOCK_OK; ZKLOCK_PENDING as long as the call goes on; ZKLOCK_INTERRUPTED after
 *         zklock_call_cancel; ZKLOCK_CLOSED if the client was closed meanwhile; and everything
 *         that the function without _start returns.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_finish(zklock_call *call, int64_t *number);

/**
 * Ends the waiting: the descriptor becomes readable, the event comes, and zklock_call_finish gives
 * ZKLOCK_INTERRUPTED, or the result if there is one already.
 *
 * What a call has begun goes on in the background: a release, the leaving of a barrier, a close. A
 * commit that is cancelled may be done or not. A client that connects after that is closed, and a
 * member that has not entered withdraws.
 *
 * @param call the call. It must be freed all the same.
 * @return ZKLOCK_OK.
 */
zklock_status zklock_call_cancel(zklock_call *call);

/**
 * Frees a call and its descriptor, which must be in no event loop any more. One that goes on is
 * ended as by zklock_call_cancel. A client that was not taken from it is closed, and a member
 * leaves, both in the background. No event of it is given from now on.
 *
 * @param call may be NULL; a handle that was freed before is ignored.
 */
void zklock_call_free(zklock_call *call);

/* ==== Administer ==== */

/**
 * Shows the contenders in the queue of a lock, of any library, the holders first.
 *
 * @param lock the lock.
 * @param visitor called by this thread, before zklock_contenders returns. It may make any call.
 * @param context handed to it.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
 *         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_contenders(const zklock_lock *lock,
                                zklock_contender_visitor visitor,
                                void *context);

/**
 * Begins what zklock_contenders does, and returns at once. zklock_call_contenders shows them.
 *
 * @param lock the lock. It may be freed before the call.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_contenders_start(const zklock_lock *lock, zklock_call **call);

/**
 * Shows what a call of zklock_contenders_start has found, the holders first.
 *
 * @param call the call. It must be freed all the same.
 * @param visitor called by this thread, before zklock_call_contenders returns. It may make any
 *        call.
 * @param context handed to it.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT for another call; and all that zklock_call_finish
 *         returns.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_contenders(zklock_call *call,
                                     zklock_contender_visitor visitor,
                                     void *context);

/**
 * Observes who holds a lock; of an election, who leads. It watches the holder alone, so that many
 * may observe one lock without waking each other.
 *
 * @param lock the lock: one that has one holder, or a read or write side. It may be freed before
 *        the observer.
 * @param[out] observer the observer. Free it with zklock_observer_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT for a semaphore or a set of locks.
 */
ZKLOCK_NODISCARD
zklock_status zklock_observe(zklock_lock *lock, zklock_observer **observer);

/**
 * Reports the holder of the lock at the first call, and each new holder after that, as soon as it
 * changes. Changes that follow one another quickly may be reported as one. If several hold at once,
 * it is the first of them. As long as no server answers it waits.
 *
 * It reports the first in the queue as the holder, even if that is a set of locks that still waits
 * for another of its locks. zklock_contenders tells the two apart.
 *
 * @param observer the observer.
 * @param timeout milliseconds: 0 asks whether there is something new, and does not wait;
 *        ZKLOCK_FOREVER waits as long as it takes.
 * @param[out] holder the holder, NULL if there is none. It is valid until the next call with this
 *        observer.
 * @return ZKLOCK_OK; ZKLOCK_TIMEOUT if nothing changed until then; ZKLOCK_UNREACHABLE if the
 *         client has not connected before, and cannot; ZKLOCK_REFUSED; ZKLOCK_CLOSED;
 *         ZKLOCK_DEADLOCK if it were to wait in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_observer_next(zklock_observer *observer,
                                   int64_t timeout,
                                   const zklock_contender **holder);

/**
 * The descriptor of an observer: readable while zklock_observer_next has something new. When it
 * is, call that with a timeout of 0, which gives ZKLOCK_TIMEOUT if nothing is new after all. Do
 * not read from it, write to it or close it.
 *
 * @param observer the observer.
 * @param[out] descriptor valid until the observer is freed.
 * @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives none.
 */
ZKLOCK_NODISCARD
zklock_status zklock_observer_fd(zklock_observer *observer, int *descriptor);

/**
 * Frees an observer and its descriptor, which must be in no event loop any more. Calls that wait
 * with it go on.
 *
 * @param observer may be NULL; a handle that was freed before is ignored.
 */
void zklock_observer_free(zklock_observer *observer);

/**
 * Takes the lock away from all its holders. See zklock_evict, also for what that breaks. Waiters
 * stay, including a set of locks that is the first in the queue and waits for another of its
 * locks.
 *
 * The next holder of an exclusive lock is spared, unless the servers are of version 3.4 or another
 * library holds it, and the next comes between the look at its node and its deletion.
 *
 * @param lock the lock.
 * @param visitor called by this thread for each of them, before zklock_break_lock returns. It may
 *        make any call. It may be NULL.
 * @param context handed to it.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
 *         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_break_lock(zklock_lock *lock,
                                zklock_contender_visitor visitor,
                                void *context);

/**
 * Takes any contender out of the queue, by deleting its node. A holder learns that its hold is
 * lost, if its library reports that; a waiter queues again.
 *
 * All nodes of an exclusive lock have one path. So this evicts the holder of that moment, which
 * may be another than the one that was shown. zklock_break_lock spares another.
 *
 * This breaks what the lock guards, unless the contender is known to have stopped: until it learns
 * of it, it believes that it holds the lock, and another already does.
 *
 * @param lock the lock.
 * @param node the path of its node, as zklock_contenders shows it.
 * @param[out] evicted 1, or 0 if it was not there any more. It may be NULL.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
 *         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT if
 *         it is not a contender of this lock.
 */
ZKLOCK_NODISCARD
zklock_status zklock_evict(zklock_lock *lock, const char *node, int *evicted);

/**
 * Asks all holders of the lock to let it go. It takes nothing away: a holder is told if it wants
 * to know, see zklock_hold_is_wanted, and goes on holding until it releases the lock.
 *
 * Each holder is asked as Curator's Revoker does it: the data of its node becomes `__REVOKE__`,
 * which is its identity from then on. So it reaches the holders of Curator's InterProcessMutex
 * that are makeRevocable, and those of zklock; other libraries do not look. Holders in this
 * process are asked like others.
 *
 * @param lock the lock.
 * @param visitor called by this thread for each of them, before zklock_revoke returns. It may make
 *        any call. It may be NULL.
 * @param context handed to it.
 * @return ZKLOCK_OK, also if nobody holds it; ZKLOCK_UNREACHABLE if no server answers within the
 *         connect timeout; ZKLOCK_REFUSED, also if the access list does not allow to write to a
 *         holder's node (all others are asked, and none is visited); ZKLOCK_CLOSED;
 *         ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_revoke(zklock_lock *lock,
                            zklock_contender_visitor visitor,
                            void *context);

/**
 * What the client has done so far, and what it still owes. It costs no request.
 *
 * @param client the client.
 * @param stat one of zklock_stat.
 * @param[out] value the number.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_stat(const zklock_client *client, int32_t stat, uint64_t *value);

/**
 * What zklock_client_stat tells, and how long acquires waited, holds were held and heartbeats were
 * on their way, as text for Prometheus: its format 0.0.4, to be served as "text/plain;
 * version=0.0.4". It costs no request.
 *
 *     static char page[16384];
 *     size_t length;
 *
 *     if (zklock_client_prometheus(client, page, sizeof page, &length) != ZKLOCK_OK) return fail(zklock_last_error());
 *     if (length <= sizeof page) fwrite(page, 1, length, out);
 *
 * The names of metrics and labels stay as they are from version to version; others may come. The
 * text is that of one client: of two, every name would be there twice, which Prometheus refuses.
 *
 * @param client the client. One that has not connected has counted nothing.
 * @param buffer where the text goes: as many bytes as there is room for, and no NUL after them. It
 *        may be NULL if size is 0.
 * @param size how many bytes there is room for.
 * @param[out] length how many bytes the text has, even if there is not room for all of them. It
 *        may have more the next time.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_prometheus(const zklock_client *client,
                                       void *buffer,
                                       size_t size,
                                       size_t *length);

/**
 * Sends the library's log to a callback, or nowhere. There is one for the whole process: the last
 * one that was set.
 *
 * Lines come one at a time (see "Callbacks" above). When 10,000 wait to be taken, further ones are
 * dropped. When this returns, the callback before is not running, and never called again.
 *
 * @param level one of zklock_log_level.
 * @param callback NULL for none.
 * @param context handed to it. Both must stay until they are replaced.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if there is no such level.
 */
zklock_status zklock_set_log(int32_t level, zklock_log_callback callback, void *context);

/* ==== Related primitives ==== */

/**
 * Makes the barrier at a path, which is the DistributedBarrier of Curator's there. It costs no
 * request, and sets nothing.
 *
 * @param client the client. It may be freed before the barrier.
 * @param path such as "/barriers/migration".
 * @param[out] barrier the barrier. Free it with zklock_barrier_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_new(zklock_client *client,
                                 const char *path,
                                 zklock_barrier **barrier);

/**
 * Sets the barrier. If it is set already, that is not an error.
 *
 * @param barrier the barrier.
 * @param[out] changed 1, or 0 if it was set already. It may be NULL.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout: it may be
 *         set then; ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_set(zklock_barrier *barrier, int *changed);

/**
 * Begins what zklock_barrier_set does, and returns at once. zklock_call_finish gives 1 or 0.
 *
 * @param barrier the barrier. It may be freed before the call.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_set_start(zklock_barrier *barrier, zklock_call **call);

/**
 * Removes the barrier, so that all waiters go on. If it is not set, that is not an error.
 *
 * @param barrier the barrier.
 * @param[out] changed 1, or 0 if it was not set. It may be NULL.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout: it may be
 *         removed then; ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_remove(zklock_barrier *barrier, int *changed);

/**
 * Begins what zklock_barrier_remove does, and returns at once. zklock_call_finish gives 1 or 0.
 *
 * @param barrier the barrier. It may be freed before the call.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_remove_start(zklock_barrier *barrier, zklock_call **call);

/**
 * Whether the barrier is set.
 *
 * @param barrier the barrier.
 * @param[out] is_set 1 if it is, 0 if not.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
 *         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_is_set(zklock_barrier *barrier, int *is_set);

/**
 * Begins what zklock_barrier_is_set does, and returns at once. zklock_call_finish gives 1 or 0.
 *
 * @param barrier the barrier. It may be freed before the call.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_is_set_start(zklock_barrier *barrier, zklock_call **call);

/**
 * Waits until the barrier is not set.
 *
 * @param barrier the barrier.
 * @param timeout milliseconds: 0 looks once, which takes as long as the try timeout if no server
 *        answers; ZKLOCK_FOREVER waits as long as it takes. Otherwise it returns by then, whatever
 *        the network does.
 * @return ZKLOCK_OK; ZKLOCK_TIMEOUT if it was set until then; ZKLOCK_UNREACHABLE if there was no
 *         connection then, or it looked once and no server answered; ZKLOCK_REFUSED;
 *         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_wait(zklock_barrier *barrier, int64_t timeout);

/**
 * Begins what zklock_barrier_wait does, and returns at once.
 *
 * @param barrier the barrier. It may be freed before the call.
 * @param timeout milliseconds: as zklock_barrier_wait.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_wait_start(zklock_barrier *barrier,
                                        int64_t timeout,
                                        zklock_call **call);

/**
 * Frees the barrier. Whether it is set is not touched, and waits for it go on.
 *
 * @param barrier may be NULL; a handle that was freed before is ignored.
 */
void zklock_barrier_free(zklock_barrier *barrier);

/**
 * Makes the double barrier at a path, which is the DistributedDoubleBarrier of Curator's there. It
 * costs no request.
 *
 * @param client the client. It may be freed before the barrier.
 * @param path such as "/barriers/round".
 * @param members how many open it, 1 to 4294967295. Every program that uses it must give the same
 *        number. Further members that come while it is open go in as well.
 * @param[out] double_barrier the barrier. Free it with zklock_double_barrier_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid.
 */
ZKLOCK_NODISCARD
zklock_status zklock_double_barrier_new(zklock_client *client,
                                        const char *path,
                                        uint32_t members,
                                        zklock_double_barrier **double_barrier);

/**
 * Enters the barrier, and waits until it is open. Every call is a member of its own.
 *
 * @param double_barrier the barrier.
 * @param timeout milliseconds: 0 goes in if it is open or opens with this member, which takes as
 *        long as the try timeout if no server answers; ZKLOCK_FOREVER waits as long as it takes.
 *        Otherwise it returns by then, whatever the network does.
 * @param[out] member the member, which is within until zklock_member_leave. Free it with
 *        zklock_member_free.
 * @return ZKLOCK_OK; ZKLOCK_TIMEOUT if it did not open until then; ZKLOCK_UNREACHABLE if there was
 *         no connection then, or it tried once and no server answered; ZKLOCK_REFUSED;
 *         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_double_barrier_enter(zklock_double_barrier *double_barrier,
                                          int64_t timeout,
                                          zklock_member **member);

/**
 * Begins what zklock_double_barrier_enter does, and returns at once.
 *
 * @param double_barrier the barrier. It may be freed before the call.
 * @param timeout milliseconds: as zklock_double_barrier_enter.
 * @param[out] call the call: zklock_call_member gives the member. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_double_barrier_enter_start(zklock_double_barrier *double_barrier,
                                                int64_t timeout,
                                                zklock_call **call);

/**
 * The member that a call of zklock_double_barrier_enter_start has brought within.
 *
 * @param call the call. It must be freed all the same.
 * @param[out] member the member, which is yours from now on. Free it with zklock_member_free.
 * @return ZKLOCK_OK; ZKLOCK_NOT_HELD if it was taken from the call before; ZKLOCK_INVALID_ARGUMENT
 *         for another call; and all that zklock_call_finish returns.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_member(zklock_call *call, zklock_member **member);

/**
 * Leaves, and waits until all other members have left. A member that crashes has left when its
 * session is over.
 *
 * Whatever is returned, but for ZKLOCK_DEADLOCK and ZKLOCK_FORKED, this member has left, or leaves
 * in the background.
 *
 * @param member the member. It must be freed all the same.
 * @param timeout milliseconds: 0 waits for nobody, which takes as long as the try timeout if no
 *        server answers; ZKLOCK_FOREVER waits as long as it takes.
 * @return ZKLOCK_OK; ZKLOCK_TIMEOUT if others are still within then; ZKLOCK_LOST if its session
 *         ended before, or somebody deleted its node: the others may have gone on without it;
 *         ZKLOCK_NOT_HELD if it has left before; ZKLOCK_UNREACHABLE if there was no connection
 *         then, or it waited for nobody and no server answered; ZKLOCK_REFUSED; ZKLOCK_CLOSED;
 *         ZKLOCK_DEADLOCK in a callback.
 */
zklock_status zklock_member_leave(zklock_member *member, int64_t timeout);

/**
 * Begins what zklock_member_leave does, and returns at once. If there is a call, the member has
 * left, or leaves in the background, even if the call is cancelled or freed.
 *
 * @param member the member. It must be freed all the same, which may be done before the call has
 *        its result.
 * @param timeout milliseconds: as zklock_member_leave.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_member_leave_start(zklock_member *member,
                                        int64_t timeout,
                                        zklock_call **call);

/**
 * The path of the node that stands for a member.
 *
 * @param member the member.
 * @param[out] node valid until the member is freed.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_member_node(const zklock_member *member, const char **node);

/**
 * Why a member is lost: when its session has ended, the others take it to have left. It costs no
 * request.
 *
 * @param member the member.
 * @param[out] reason why it was lost, ZKLOCK_REASON_NONE if it is not.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_member_loss(const zklock_member *member, zklock_reason *reason);

/**
 * Frees a member. If it has not left, it leaves in the background, without waiting for the others.
 *
 * @param member may be NULL; a handle that was freed before is ignored.
 */
void zklock_member_free(zklock_member *member);

/**
 * Frees the barrier. Members are not touched, and waits for it go on.
 *
 * @param double_barrier may be NULL; a handle that was freed before is ignored.
 */
void zklock_double_barrier_free(zklock_double_barrier *double_barrier);

/* ==== Errors and versions ==== */

/**
 * A message about the last call that failed in this thread: what is wrong, and what to do.
 *
 * For people: it is no part of the stable interface.
 *
 * @return the message; "" if no call has failed in this thread. It is never NULL, and valid until
 *         the next call of this thread that fails.
 */
const char *zklock_last_error(void);

/**
 * The name of a status, such as "ZKLOCK_TIMEOUT".
 *
 * @param status what a call returned.
 * @return the name, or "unknown" if no status has this number. It is never NULL, and lives for
 *         ever.
 */
const char *zklock_status_name(int32_t status);

/**
 * The version of the library that runs. ZKLOCK_VERSION is that of the header.
 *
 * @return such as "1.2.3". It is never NULL, and lives for ever.
 */
const char *zklock_version(void);

/**
 * The version of the library that runs, as a number. ZKLOCK_VERSION_NUMBER is that of the header.
 *
 * @return major * 1000000 + minor * 1000 + patch
 */
uint32_t zklock_version_number(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif /* ZKLOCK_H */
