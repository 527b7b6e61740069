/*
 * zklock.h - distributed locks on Apache ZooKeeper
 *
 * This file is generated from the sources in zklock-ffi: edit those, not this file.
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
 * Link with `pkg-config --cflags --libs zklock`, or with zklock::zklock in CMake. zklock.hpp has classes
 * for C++.
 *
 * Index
 * -----
 *
 * Types come first, then the functions in this order. Most programs need only what is under Start here.
 *
 * Start here
 *
 * - To connect and disconnect, see zklock_client_new, zklock_client_close, zklock_client_free.
 * - To make a lock, see zklock_mutex_new, zklock_semaphore_new, zklock_election_new,
 *   zklock_lock_free.
 * - To acquire it, once or with a timeout, and release it, see zklock_acquire, zklock_release,
 *   zklock_hold_free.
 * - To rely on what you hold, see zklock_hold_valid_for, zklock_hold_ensure, zklock_hold_token.
 * - To learn of a loss, see zklock_hold_on_lost, zklock_hold_wait_lost,
 *   zklock_hold_wait_lost_start.
 * - To run a job once in each period, see zklock_job_new, zklock_job_begin, zklock_job_end,
 *   zklock_job_free.
 * - To see who holds it and waits, see zklock_contenders.
 * - To explain a failure, see zklock_last_error, zklock_status_name.
 *
 * Connect
 *
 * - To set how a client connects, a lock behaves or a job runs, see zklock_options_new,
 *   zklock_options_set, zklock_options_free.
 * - To connect on first use, see zklock_client_new_lazy, zklock_client_connect_start.
 * - To free the locks of a process that is killed, see zklock_client_guard.
 * - To disconnect in the background, see zklock_client_close_start.
 *
 * Lock
 *
 * - To create another kind of lock, see zklock_read_lock_new, zklock_write_lock_new,
 *   zklock_client_set_limit, zklock_all_new, zklock_any_new, zklock_single_node_new,
 *   zklock_lock_path.
 *
 * Acquire
 *
 * - To acquire in the background, see zklock_acquire_start, zklock_call_hold.
 * - To ask the servers whether the lock is still held, see zklock_hold_confirm,
 *   zklock_hold_confirm_start.
 * - To fence another resource with the token, see zklock_client_ensemble_id, zklock_fence_sql,
 *   zklock_hold_publish.
 * - To write to ZooKeeper while the lock is held, see zklock_hold_commit, zklock_hold_commit_start,
 *   zklock_call_versions, zklock_last_conflict, zklock_hold_read.
 * - To see what a hold belongs to, see zklock_hold_path, zklock_hold_node.
 * - To release in the background, see zklock_release_start.
 *
 * Losses and waiters
 *
 * - To look at a hold, and follow it in an event loop, see zklock_hold_state,
 *   zklock_hold_set_context.
 * - To learn that others are waiting, see zklock_hold_is_wanted, zklock_hold_wait_wanted.
 *
 * Event loops
 *
 * - To follow everything in a client with one descriptor, see zklock_client_fd,
 *   zklock_client_next_event.
 * - To follow a call, see zklock_call_fd, zklock_call_set_context, zklock_call_finish,
 *   zklock_call_cancel, zklock_call_free.
 *
 * Administer
 *
 * - To see the queue in the background, see zklock_contenders_start, zklock_call_contenders.
 * - To follow the holder or leader, see zklock_observe, zklock_observer_next, zklock_observer_free.
 * - To take a lock away or ask its holders to release it, see zklock_break_lock, zklock_evict,
 *   zklock_request_release.
 * - To measure, see zklock_client_stats, zklock_client_lock_stats, zklock_client_histogram,
 *   zklock_prometheus.
 * - To log, see zklock_set_log.
 *
 * Related primitives
 *
 * - To make programs wait until a barrier is removed, see zklock_barrier_new, zklock_barrier_set,
 *   zklock_barrier_set_start, zklock_barrier_remove, zklock_barrier_remove_start,
 *   zklock_barrier_wait, zklock_barrier_wait_start, zklock_barrier_free.
 * - To make programs begin and end together, see zklock_double_barrier_new,
 *   zklock_double_barrier_enter, zklock_double_barrier_enter_start, zklock_call_member,
 *   zklock_member_leave, zklock_member_leave_start, zklock_member_node, zklock_member_loss,
 *   zklock_member_free, zklock_double_barrier_free.
 * - To run a job in an event loop, and see its last run, see zklock_job_begin_start,
 *   zklock_job_end_start, zklock_job_last.
 *
 * Versions
 *
 * - To find out the version, see zklock_version, zklock_abi.
 *
 * To test a program without ZooKeeper, connect it to the in-memory server that the separate program
 * zklock-testkit runs. The library itself has no functions for tests.
 *
 * Kinds of lock
 * -------------
 *
 * Each kind has its own constructor. From zklock_acquire to zklock_release, everything after that is
 * the same for all kinds.
 *
 * - zklock_mutex_new: one holder at a time, in order of arrival
 * - zklock_read_lock_new, zklock_write_lock_new: many readers, or one writer
 * - zklock_semaphore_new: as many holders as there are permits
 * - zklock_all_new: several locks at once, all of them or none
 * - zklock_any_new: any one of several locks, whichever is free first
 * - zklock_election_new: one leader, which zklock_observe reports
 * - zklock_single_node_new: one node and no queue, shared with programs that create that node
 *
 * Two related primitives are not locks: zklock_barrier_new and zklock_double_barrier_new. A job
 * (zklock_job_new) is a mutex that remembers its last run, so that it runs once in each period.
 *
 * What a hold promises
 * --------------------
 *
 * While zklock_hold_valid_for gives more than 0, the lock is held, and no conflicting hold exists.
 * This time is a lease. It starts when the client sends the last write that a quorum committed. It is
 * measured on a clock that keeps running while the machine is suspended. It ends before the servers
 * can give the lock to another client.
 *
 * The lease rests on three assumptions:
 *
 * - Clocks run at the same speed to within 2 %.
 * - The servers' tick is at most half of the session timeout. Servers enforce this unless
 *   minSessionTimeout was lowered.
 * - No server grants less than half of the session timeout that another one granted.
 *
 * While the servers answer, you learn of a loss within a tenth of the session timeout: from the hold's
 * state, its event, its callback, zklock_hold_wait_lost or zklock_release. The options loss-timeout and
 * heartbeat of a client can make that time longer. If the servers fall silent, zklock_hold_valid_for
 * gives 0 before anyone else can get the lock.
 *
 * You can ask whether others wait for what you hold (zklock_hold_is_wanted). While no other client
 * wants a lock, it can stay with the client that held it last (the option linger of a lock). That
 * client then acquires it again without a request.
 *
 * No lock can keep your process from being paused right after it checks its hold. If that matters,
 * have the resource that the lock guards refuse any token smaller than the largest it has seen, and
 * accept an equal one (zklock_hold_token). Or write to ZooKeeper itself with zklock_hold_commit.
 *
 * Calls
 * -----
 *
 * A call that can fail returns a zklock_status. ZKLOCK_OK is 0. After a failure, zklock_last_error
 * gives a message that says what is wrong and what to do. Output parameters come last, and are
 * written only if the status is ZKLOCK_OK. Strings are UTF-8.
 *
 * A function that only looks at a handle returns what it sees, such as zklock_hold_token. If the handle
 * is wrong, it returns the value that is safe to believe (0 milliseconds, "lost", the smallest token),
 * and zklock_last_error says what is wrong.
 *
 * Timeouts are in milliseconds. 0 tries once and ZKLOCK_FOREVER (-1) waits for ever. Any other
 * negative number is ZKLOCK_INVALID_ARGUMENT, so if you compute `deadline - now`, make sure that it
 * is at least 0.
 *
 * Compilers warn if a status is ignored, except for calls that clean up: zklock_release,
 * zklock_call_cancel, zklock_member_leave, zklock_client_close, zklock_set_log. To switch the warnings
 * off, define ZKLOCK_NODISCARD as nothing before you include this file.
 *
 * NULL for a required argument, a handle of the wrong type or a freed handle is an error and never
 * crashes. A handle is a number that looks like a pointer: do not dereference it.
 *
 * Statuses of every function
 * --------------------------
 *
 * Every function that returns a zklock_status can return these. The comment of a function names them
 * only if that function has a particular reason to return them.
 *
 * - ZKLOCK_INVALID_ARGUMENT: a required argument is NULL, a string is not UTF-8, or a number, path or
 *   name is out of range.
 * - ZKLOCK_INVALID_HANDLE: the handle is of another type, or was freed.
 * - ZKLOCK_FORKED: the handle was made before this process was forked. See "Fork" below.
 * - ZKLOCK_INTERNAL: a bug in zklock.
 *
 * Three more have the same meaning wherever a function lists them without giving a reason.
 *
 * - ZKLOCK_REFUSED: an access list, a rule of the servers or a limit of this system forbids it.
 * - ZKLOCK_CLOSED: the client is closed, or was closed during the call.
 * - ZKLOCK_DEADLOCK in a callback: the call would have to wait, which is not allowed in a callback.
 *
 * Event loops
 * -----------
 *
 * Almost every call that waits for the servers has a counterpart that does not wait. Its name ends
 * with _start. It gives a zklock_call, and zklock_call_finish says how the call ended. The exceptions
 * are zklock_client_guard, zklock_hold_read, zklock_job_last, zklock_client_set_limit, zklock_evict,
 * zklock_break_lock and zklock_request_release, which only exist as calls that wait: make them on another
 * thread. Events replace zklock_hold_wait_wanted and zklock_observer_next.
 *
 * One descriptor per client is enough for any number of calls and holds: zklock_client_fd. It is
 * readable while the client has an event: a call has its result, a hold is lost or wanted, an observer
 * has a new leader, or the connection has changed. An event contains the handle that it is about, and
 * the context pointer that you set for that handle.
 *
 *     zklock_event event;
 *     zklock_status status;
 *     struct pollfd any;
 *
 *     any.events = POLLIN;
 *     if (zklock_client_fd(client, &any.fd) != ZKLOCK_OK) return fail(zklock_last_error());
 *     while (poll(&any, 1, -1) == 1) {
 *         while ((status = zklock_client_next_event(client, &event)) == ZKLOCK_OK) {
 *             if (event.kind == ZKLOCK_EVENT_CALL) go_on_with(event.context, event.call);
 *             if (event.kind == ZKLOCK_EVENT_LOST) stop(event.context);
 *         }
 *         if (status != ZKLOCK_PENDING) return fail(zklock_last_error());
 *     }
 *
 * ZKLOCK_PENDING means that there are no more events for now. Every other status is an error that the
 * loop must handle: in a forked child, for example, it is ZKLOCK_FORKED, and no event ever comes.
 *
 * A program that waits for a single call needs no events: each call has a descriptor of its own
 * (zklock_call_fd). It is created the first time that you ask for it.
 *
 *     zklock_call *call;
 *     struct pollfd readable;
 *
 *     readable.events = POLLIN;
 *     if (zklock_release_start(hold, &call) != ZKLOCK_OK || zklock_call_fd(call, &readable.fd) != ZKLOCK_OK)
 *         return fail(zklock_last_error());
 *     poll(&readable, 1, -1);
 *     if (zklock_call_finish(call, 0, NULL) == ZKLOCK_LOST)
 *         fprintf(stderr, "%s\n", zklock_last_error());
 *     zklock_call_free(call);
 *
 * Ownership and lifetime
 * ----------------------
 *
 * You own every handle that a function gives you, except in an event or an argument of a callback. Free
 * it with the _free function of its type. Freeing NULL does nothing. You may free handles in any order:
 * a hold outlives its lock, and a lock outlives its client.
 *
 * Freeing never waits for a server. If you free a hold that is still held, it is released in the
 * background. If a release must reach the servers before the process exits, call zklock_release or
 * zklock_client_close. A string that a function gives you lives as long as the handle that you passed
 * to it.
 *
 * Threads
 * -------
 *
 * Any thread may call any function at any time with any handle, even one that another thread is using
 * or freeing. Any thread may release a hold, so one thread can acquire a lock for another. Only a
 * hold of a reentrant lock belongs to the thread that acquired it.
 *
 * The library starts one thread on the first call that connects a client or asks for its events, and a
 * second one for the first callback. If hosts are given by name, the resolver needs another one. A
 * thread that calls the library needs no more than 64 KiB of stack.
 *
 * A thread that is cancelled (pthread_cancel) during a call is cancelled after the call, even if its
 * cancellation is asynchronous (PTHREAD_CANCEL_ASYNCHRONOUS). With asynchronous cancellation, the
 * thread may end after the last instruction of the call but before your code has stored the result.
 * The result is then lost, and a lock that the call acquired stays held until the client is freed. So
 * keep cancellation deferred in threads that acquire locks.
 *
 * Callbacks
 * ---------
 *
 * Callbacks for losses and for the log run one at a time, on a single thread of the library. They may
 * make any call that does not wait, because that thread holds no internal lock meanwhile. A call that
 * would wait returns ZKLOCK_DEADLOCK there.
 *
 * A callback must return: it must not throw, longjmp out or end the thread. All other callbacks wait
 * while it runs. All signals are blocked in it, and in any thread or process that it starts. A
 * callback may run while the process is exiting. Before you destroy anything that it uses, free the
 * hold, or set another log.
 *
 * Signals
 * -------
 *
 * The library installs no signal handlers and does not change your signal masks. Its threads block all
 * signals except their own faults, so signals are delivered only to your threads. SIGPIPE is never
 * raised in the library's threads. A signal handler does not interrupt a wait. To end a wait, close
 * the client from another thread, or wait with a zklock_call, which can be cancelled. Do not call any
 * function of this library in a signal handler.
 *
 * Fork
 * ----
 *
 * A child process may make its own clients, whatever its parent did before. Handles that were made
 * before the fork stay with the parent. In the child, every call on them returns ZKLOCK_FORKED, _free
 * does nothing, and the parent's holds are not disturbed. So a program may connect to check its
 * configuration, close, become a daemon, and connect again.
 *
 * Options are plain values, and the log callback stays set, so both keep working in the child. The
 * exception is a fork that happens while another thread is making, changing or freeing options, or
 * setting the log: in that case, make them again in the child.
 *
 * A client of zklock_client_new_lazy, its locks, barriers and jobs may be made before the fork. If the
 * parent has not used them by then, each child may use them, and connects on its own. So a server may
 * set up once and then fork its workers. If another thread was making or freeing such objects at the
 * moment of the fork, they may return ZKLOCK_FORKED in the child.
 *
 * Descriptors
 * -----------
 *
 * Close only descriptors that you opened. Some programs close all others when they become daemons. If
 * that closes descriptors of this library, it closes every client: the holds are lost at once
 * (ZKLOCK_REASON_CLIENT_CLOSED), and calls return ZKLOCK_CLOSED, with a message that says why. _free
 * still frees. A new client works, but the locks of the old one are only free once its session has
 * timed out. So become a daemon before you connect, or close the client first.
 *
 * The library notices this in the next call. Without a call, it notices in the next heartbeat, or
 * within a third of the session timeout if nothing is held. It checks a descriptor before it uses it,
 * so it does not write to a file of yours that now has the same number. This check does not help if
 * you close only a few of its descriptors, or close them while another thread is in a call or a call
 * of a _start function is running.
 *
 * A program may run without standard streams. The library leaves the descriptors 0 to 2 free, except
 * for a moment while the first client of a process connects. You may open them at any other time.
 *
 * Constructors
 * ------------
 *
 * Do not connect in the constructor of a shared object: a function with __attribute__((constructor))
 * or, in C++, a global zklock::client. There, make a client with zklock_client_new_lazy, or connect
 * when the plugin is first used (in C++, with a static variable in a function).
 *
 * The loader holds a lock while it loads a shared object. Every thread that starts, or that calls this
 * library for the first time, waits for that lock. So in a constructor, the first zklock_client_new of
 * a process returns ZKLOCK_UNREACHABLE when the connect timeout is over, and the message says why. A
 * later one may succeed, but may fail if hosts are given by name. You may call
 * zklock_client_connect_start in a constructor, but do not wait there for its result, which may only
 * come once the object is loaded. Calls of other threads go on, except in a thread that has not called the library before: its
 * calls wait until the object is loaded.
 *
 * Memory
 * ------
 *
 * If the system has no memory left for the library, the process ends with SIGABRT and prints nothing.
 * As after any crash, its locks are free once the session has timed out.
 *
 * ThreadSanitizer does not see how the library synchronises, and reports data races that do not
 * exist. Run your program with TSAN_OPTIONS=suppressions=PREFIX/share/zklock/tsan.supp. Valgrind's leak
 * check calls memory of the library's threads possibly lost, because they live as long as the process.
 * Run it with --suppressions=PREFIX/share/zklock/valgrind.supp.
 *
 * Versions
 * --------
 *
 * Before 1.0, a new minor version may change anything here. So each minor version of the library has
 * its own SONAME (libzklock.so.0.1, then libzklock.so.0.2), and a program runs with any patch version
 * of the minor version for which it was compiled. From 1.0 on, the SONAME has only the major version,
 * and a program runs with every later minor version.
 *
 * Every name that the library exports has a version (zklock_acquire@@ZKLOCK_0.1), so that two plugins
 * in one process can use two versions of the library. If the library was not installed by install.sh
 * (cargo build, cargo-c), its names have no version.
 *
 * Numbers of enums are never reused, and the library treats an enum as int32_t. A later library may
 * return a number that this header does not name, so give every switch a default. Compilers can warn
 * about numbers that a switch leaves out (-Wswitch-enum).
 *
 * You fill zklock_write, which has reserved members. Set the whole struct to 0 first, for example with
 * `zklock_write write = {0}`. If a reserved member is 0, a later library behaves as an earlier one
 * did. An earlier library refuses any other value with ZKLOCK_INVALID_ARGUMENT. The library fills your
 * zklock_event, zklock_stats, zklock_lock_stats and zklock_record. They have reserved members too, and
 * never grow. The library owns zklock_contender, which may grow at its end. Its first member is its
 * size. All other structs are opaque.
 *
 * The end of the process
 * ----------------------
 *
 * A process may end while it holds or waits for locks: nothing hangs. The servers free its locks when
 * its session has timed out. zklock_client_close frees them at once. A wait that failed leaves no
 * node, unless the servers take longer than 30 ms to confirm its deletion. (If main ends with
 * pthread_exit, the library's threads keep the process alive: call exit instead.) Every function may be
 * called in atexit handlers and in destructors of static objects. The library stays loaded after
 * dlclose.
 */

#ifndef ZKLOCK_H
#define ZKLOCK_H

#include <stddef.h>
#include <stdint.h>

/** The version of this header. zklock_version() gives the version of the library that is running. */
#define ZKLOCK_VERSION "0.1.0"
#define ZKLOCK_VERSION_MAJOR 0
#define ZKLOCK_VERSION_MINOR 1
#define ZKLOCK_VERSION_PATCH 0
#define ZKLOCK_VERSION_NUMBER (ZKLOCK_VERSION_MAJOR * 1000000 + ZKLOCK_VERSION_MINOR * 1000 + ZKLOCK_VERSION_PATCH)

/**
 * Marks a function whose status must not be ignored. Before C23, C gets GCC's attribute, and `(void)` does not silence
 * its warning.
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

/** The width of an enum, where the language can express it: since C++11, and since C23. */
#if defined(__cplusplus) && __cplusplus >= 201103L || defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L
#define ZKLOCK_INT32 : int32_t
#else
#define ZKLOCK_INT32
#endif

/** A timeout that never ends: wait as long as it takes. */
#define ZKLOCK_FOREVER (-1)

/** Room for the buckets of every histogram of this version: see zklock_client_histogram. */
#define ZKLOCK_BUCKETS 25

/** As the version in a guarded write: the node may have any version. */
#define ZKLOCK_ANY_VERSION (-1)

/** In place of a node's version: the node does not exist. */
#define ZKLOCK_NO_NODE (-2)

/**
 * The status that a call returns. Numbers are never reused.
 */
typedef enum zklock_status ZKLOCK_INT32 {
    /**
     * Success.
     */
    ZKLOCK_OK = 0,
    /**
     * An argument is wrong (NULL, not UTF-8, an invalid path, out of range): correct the call.
     */
    ZKLOCK_INVALID_ARGUMENT = 1,
    /**
     * The handle is of another type, or has been freed: correct the program.
     */
    ZKLOCK_INVALID_HANDLE = 2,
    /**
     * No server could be reached: check the hosts and the network, or try again later.
     */
    ZKLOCK_UNREACHABLE = 3,
    /**
     * The time ran out: try again, or do without the lock.
     */
    ZKLOCK_TIMEOUT = 4,
    /**
     * The wait could never end: this thread holds the lock itself, or the call was made in a
     * callback. Correct the program.
     */
    ZKLOCK_DEADLOCK = 5,
    /**
     * The hold is of a reentrant lock that another thread acquired: release it on that thread.
     */
    ZKLOCK_NOT_OWNER = 6,
    /**
     * The hold was already released, the result was already taken from the call, or the member
     * has already left: correct the program.
     */
    ZKLOCK_NOT_HELD = 7,
    /**
     * The hold is lost, and others may hold the lock: stop the work that it guarded.
     */
    ZKLOCK_LOST = 8,
    /**
     * A contender of another library is in the queue and cannot see ours: make both sides use
     * the same naming scheme (the option naming).
     */
    ZKLOCK_FOREIGN_CONTENDER = 9,
    /**
     * An access list, a rule of the servers or a limit of this system forbids it.
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
     * The reply to a guarded write was lost, so the write may or may not be done.
     * zklock_hold_read says what to do.
     */
    ZKLOCK_UNCERTAIN = 13,
    /**
     * A guarded write was refused because a node was not in the required state. Nothing was
     * written.
     */
    ZKLOCK_CONFLICT = 14,
    /**
     * The handle was made before this process was forked, and belongs to the parent: see
     * "Fork" above.
     */
    ZKLOCK_FORKED = 15,
    /**
     * The call has no result yet, or the client has no event: wait for the descriptor.
     */
    ZKLOCK_PENDING = 16,
    /**
     * A bug in zklock, caught before it could do harm: please report it.
     */
    ZKLOCK_INTERNAL = 17,
    /**
     * The lock is held, but not certain to be held for long enough: begin nothing, and ask again.
     */
    ZKLOCK_AT_RISK = 18,
    /**
     * A fence refused a write, because a later holder has written: stop the work.
     */
    ZKLOCK_STALE_TOKEN = 19,
    /**
     * A fence refused a write, because it keeps the token of another ensemble: zklock_last_error says
     * how to go on.
     */
    ZKLOCK_OTHER_ENSEMBLE = 20,
    /**
     * Nothing is left to do: the job has run in this period. zklock_job_last shows that run.
     */
    ZKLOCK_DONE = 21,
} zklock_status;

/**
 * What a contender wants.
 */
typedef enum zklock_role ZKLOCK_INT32 {
    /**
     * The lock itself: a mutex, a permit of a semaphore, or the lead of an election.
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
     * The hold is not lost.
     */
    ZKLOCK_REASON_NONE = 0,
    /**
     * The servers ended the session.
     */
    ZKLOCK_REASON_SESSION_EXPIRED = 1,
    /**
     * The hold's node was deleted.
     */
    ZKLOCK_REASON_NODE_DELETED = 2,
    /**
     * The client did not hear from the servers in time, so others may hold the lock by now.
     */
    ZKLOCK_REASON_LEASE_LAPSED = 3,
    /**
     * The client was closed, or the program closed descriptors of the library.
     */
    ZKLOCK_REASON_CLIENT_CLOSED = 4,
    /**
     * A reason that has no number: the message of ZKLOCK_LOST names it. Or the handle is wrong:
     * zklock_last_error says how.
     */
    ZKLOCK_REASON_OTHER = 5,
    /**
     * A contender came that cannot see the hold, such as kazoo's Lock. Both may hold the lock.
     */
    ZKLOCK_REASON_FOREIGN_CONTENDER = 6,
    /**
     * The client closed its session to remove a node that it is not allowed to delete. The
     * message of ZKLOCK_LOST names the missing right.
     */
    ZKLOCK_REASON_SESSION_CLOSED = 7,
} zklock_reason;

/**
 * What has happened. Later versions may add kinds: ignore any that you do not know.
 */
typedef enum zklock_event_kind ZKLOCK_INT32 {
    /**
     * A call has its result, good or bad: zklock_call_finish gives it, and for an acquire
     * zklock_call_hold gives the hold.
     */
    ZKLOCK_EVENT_CALL = 1,
    /**
     * A hold is lost: zklock_hold_state says why.
     */
    ZKLOCK_EVENT_LOST = 2,
    /**
     * Others are waiting for what a hold has. This event comes only for holds for which
     * zklock_hold_is_wanted was called.
     */
    ZKLOCK_EVENT_WANTED = 3,
    /**
     * An observer has a new holder or leader: zklock_observer_next gives it.
     */
    ZKLOCK_EVENT_LEADER = 4,
    /**
     * The client is connected to a server.
     */
    ZKLOCK_EVENT_CONNECTED = 5,
    /**
     * The connection broke, and the client is looking for another server. The session and its
     * holds live on for now: zklock_hold_valid_for says for how long.
     */
    ZKLOCK_EVENT_DISCONNECTED = 6,
    /**
     * The session is over, and all of its holds are lost. The client is opening a new session.
     */
    ZKLOCK_EVENT_SESSION_LOST = 7,
    /**
     * The client was closed. This is the last event about its connection.
     */
    ZKLOCK_EVENT_CLOSED = 8,
} zklock_event_kind;

/**
 * The databases for which zklock_fence_sql has statements.
 */
typedef enum zklock_database ZKLOCK_INT32 {
    /**
     * PostgreSQL 9.5 or later.
     */
    ZKLOCK_DATABASE_POSTGRESQL = 1,
    /**
     * MariaDB or MySQL, with InnoDB.
     */
    ZKLOCK_DATABASE_MARIADB = 2,
    /**
     * SQLite 3.24 or later.
     */
    ZKLOCK_DATABASE_SQLITE = 3,
} zklock_database;

/**
 * The statements of zklock_fence_sql.
 */
typedef enum zklock_fence_statement ZKLOCK_INT32 {
    /**
     * Creates the table of fences, if it is not there.
     */
    ZKLOCK_FENCE_CREATE_TABLE = 1,
    /**
     * Begins a guarded transaction. Its parameters are the lock's path (zklock_hold_path), the
     * ensemble's identity (zklock_client_ensemble_id) and the token (zklock_hold_token). It raises
     * the lock's row to the token. If a later holder has written, or the row is of another ensemble,
     * it is refused: it changes no row in PostgreSQL and SQLite, and fails with error 1242 in
     * MariaDB and MySQL. Then roll back and stop.
     */
    ZKLOCK_FENCE_RAISE = 2,
    /**
     * Reads the ensemble and the token of a row. Its parameter is the path.
     */
    ZKLOCK_FENCE_LOOK = 3,
} zklock_fence_statement;

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
 * The state of a hold.
 */
typedef enum zklock_state ZKLOCK_INT32 {
    /**
     * The lock is held, and the servers have confirmed it recently.
     */
    ZKLOCK_STATE_HELD = 1,
    /**
     * The servers are out of reach or slow to answer. The lock is held for as long as
     * zklock_hold_valid_for says. After that, others may hold it.
     */
    ZKLOCK_STATE_AT_RISK = 2,
    /**
     * The lock is no longer held. This is final.
     */
    ZKLOCK_STATE_LOST = 3,
    /**
     * The hold was released.
     */
    ZKLOCK_STATE_RELEASED = 4,
} zklock_state;

/**
 * How a run of a job ended.
 */
typedef enum zklock_run_outcome ZKLOCK_INT32 {
    /**
     * The job has never run.
     */
    ZKLOCK_RUN_NEVER = 0,
    /**
     * The end is not recorded: it has not come, or the process died or lost the lock before it
     * could record the end. Such a run counts as failed.
     */
    ZKLOCK_RUN_RUNNING = 1,
    /**
     * The run did its work.
     */
    ZKLOCK_RUN_DONE = 2,
    /**
     * The run failed.
     */
    ZKLOCK_RUN_FAILED = 3,
} zklock_run_outcome;

/**
 * How much to log. Each level includes those above it in this list.
 */
typedef enum zklock_log_level ZKLOCK_INT32 {
    /**
     * Nothing.
     */
    ZKLOCK_LOG_OFF = 0,
    /**
     * Bugs in zklock.
     */
    ZKLOCK_LOG_ERROR = 1,
    /**
     * What an operator should know, such as a lost hold.
     */
    ZKLOCK_LOG_WARN = 2,
    /**
     * Sessions that begin and end.
     */
    ZKLOCK_LOG_INFO = 3,
    /**
     * The steps of each acquire, from its call to the release, and attempts to connect.
     */
    ZKLOCK_LOG_DEBUG = 4,
    /**
     * Everything.
     */
    ZKLOCK_LOG_TRACE = 5,
} zklock_log_level;

/**
 * The distributions that zklock_client_histogram can give.
 */
typedef enum zklock_histogram ZKLOCK_INT32 {
    /**
     * Seconds from the start of a call that acquires a lock to its hold. Only calls that got a
     * hold are counted.
     */
    ZKLOCK_HISTOGRAM_ACQUIRE_WAIT = 1,
    /**
     * Seconds from a grant to its release or loss. It is counted when the hold is released or
     * freed, even if it had been lost.
     */
    ZKLOCK_HISTOGRAM_HOLD_TIME = 2,
    /**
     * Seconds from a heartbeat to its answer. Heartbeats are sent only while something is held.
     */
    ZKLOCK_HISTOGRAM_HEARTBEAT_LAG = 3,
    /**
     * How many contenders were ahead of a node in its queue when it had just been created. Zero
     * means that the lock was free. For a set of locks, it is the longest of their queues; for a
     * semaphore, the contenders that are about to take permits.
     */
    ZKLOCK_HISTOGRAM_QUEUE_LENGTH = 4,
} zklock_histogram;

/**
 * A barrier at a path: while its node exists, zklock_barrier_wait waits. The node does not belong
 * to a client, and outlives the process that set it.
 */
typedef struct zklock_barrier zklock_barrier;

/**
 * A call that runs in the background, for event loops. Every function with _start in its name
 * starts one.
 */
typedef struct zklock_call zklock_call;

/**
 * A logical connection to an ensemble. It outlives sessions: when one expires, it opens the next.
 */
typedef struct zklock_client zklock_client;

/**
 * A double barrier at a path, whose members begin together and end together.
 */
typedef struct zklock_double_barrier zklock_double_barrier;

/**
 * The proof that a lock is held.
 */
typedef struct zklock_hold zklock_hold;

/**
 * A job at a path, which runs once in each period, on one of many hosts. It is a mutex, and the record
 * of the last run.
 */
typedef struct zklock_job zklock_job;

/**
 * A lock at a path. A zklock_lock holds nothing itself: zklock_acquire gives a hold.
 */
typedef struct zklock_lock zklock_lock;

/**
 * A member of a double barrier, from entering to leaving.
 */
typedef struct zklock_member zklock_member;

/**
 * Reports who holds a lock, without taking part in it.
 */
typedef struct zklock_observer zklock_observer;

/**
 * How a client connects, a lock behaves, or a job runs. The defaults suit most programs.
 */
typedef struct zklock_options zklock_options;

/**
 * A contender in the queue of a lock. Its strings are valid during the call of the visitor.
 * The running library may be earlier or later than this
 * header: see `size`.
 */
typedef struct {
    /**
     * The size of this struct in the running library, in bytes. Later versions add members at the
     * end. A member that lies beyond this size is missing: do not read it, and do not copy more
     * than this many bytes.
     */
    size_t size;
    /**
     * The name of its node, a child of the lock's node.
     */
    const char *name;
    /**
     * The name that the contender gives itself. A contender of zklock has "host/pid", or the
     * identity from its client's options.
     */
    const char *identity;
    /**
     * The naming scheme of its library: "curator", "kazoo" or "writelock".
     */
    const char *naming;
    /**
     * The session that owns its node.
     */
    uint64_t session;
    /**
     * The fencing token that it has, or will have once it holds the lock. For the holder of a
     * semaphore's permit, this is the number of its permit, and its token may be smaller.
     */
    uint64_t token;
    /**
     * When its node was created, in milliseconds since 1970 on the servers' clock.
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
     * 1 if it holds the lock, judging by its place in the queue; 0 if it waits. A set of locks
     * holds none of its locks until its turn has come in all of their queues, even if it is first
     * in this one.
     */
    int32_t holds;
} zklock_contender;

/**
 * Called once for each contender.
 */
typedef void (*zklock_contender_visitor)(const zklock_contender *contender, void *context);

/**
 * Something that has happened. zklock_client_next_event fills all members. The struct never grows.
 */
typedef struct {
    /**
     * The pointer that was given to zklock_call_set_context or zklock_hold_set_context; NULL if none
     * was.
     */
    void *context;
    /**
     * For ZKLOCK_EVENT_CALL, the call; otherwise NULL.
     */
    zklock_call *call;
    /**
     * For ZKLOCK_EVENT_LOST and ZKLOCK_EVENT_WANTED, the hold. For ZKLOCK_EVENT_CALL, the hold that a
     * call of zklock_release_start has released, unless it has been freed. Otherwise NULL.
     */
    zklock_hold *hold;
    /**
     * For ZKLOCK_EVENT_LEADER, the observer; otherwise NULL.
     */
    zklock_observer *observer;
    /**
     * What has happened.
     */
    zklock_event_kind kind;
    /**
     * Always 0. A later version may give it a meaning.
     */
    uint32_t reserved[7];
} zklock_event;

/**
 * One of the writes of zklock_hold_commit.
 */
typedef struct {
    /**
     * What is done.
     */
    zklock_write_kind kind;
    /**
     * For ZKLOCK_WRITE_SET and ZKLOCK_WRITE_DELETE, the version that the node must have;
     * ZKLOCK_ANY_VERSION if any version will do.
     */
    int32_t version;
    /**
     * The path of the node.
     */
    const char *path;
    /**
     * For ZKLOCK_WRITE_CREATE and ZKLOCK_WRITE_SET, the data. It may be NULL if length is 0.
     */
    const void *data;
    /**
     * The length of the data in bytes.
     */
    size_t length;
    /**
     * Must be 0. A later version may give it a meaning.
     */
    uint64_t reserved[2];
} zklock_write;

/**
 * Called when a hold is lost.
 */
typedef void (*zklock_loss_callback)(zklock_hold *hold, zklock_reason reason, void *context);

/**
 * What is recorded of the last run of a job. zklock_job_last fills all members. The struct never
 * grows. Times are in milliseconds since 1970 on the servers' clock.
 */
typedef struct {
    /**
     * When the run began.
     */
    int64_t began;
    /**
     * When it ended; -1 if it has not, or nobody could record that.
     */
    int64_t ended;
    /**
     * When the next period begins, and the job is due again.
     */
    int64_t next;
    /**
     * The number of the period in which it ran. Periods are counted from 1970.
     */
    int64_t period;
    /**
     * The fencing token of the hold under which it ran.
     */
    uint64_t token;
    /**
     * How it ended. If it is ZKLOCK_RUN_NEVER, all other members are 0 or empty.
     */
    zklock_run_outcome outcome;
    /**
     * Whose run it was: the identity from the client's options, "host/pid" by default. A longer one is
     * cut off.
     */
    char identity[512];
    /**
     * Why it failed, if it did. A longer text is cut off.
     */
    char failure[512];
    /**
     * Always 0. A later version may give them a meaning.
     */
    uint32_t reserved[9];
} zklock_record;

/**
 * Called with a line of the log. The line is valid during the call.
 */
typedef void (*zklock_log_callback)(int32_t level, const char *message, void *context);

/**
 * The counters of a client: its work so far, and the nodes that it still has to clean up.
 * zklock_client_stats fills all members. The struct never grows.
 */
typedef struct {
    /**
     * Sessions opened.
     */
    uint64_t sessions;
    /**
     * The number of the session, as the servers print it in their logs; 0 if there is no session.
     */
    uint64_t session_id;
    /**
     * The session timeout that the servers granted, in milliseconds; 0 if there is no session.
     */
    uint64_t session_timeout;
    /**
     * How often a session got a new connection because the previous one broke.
     */
    uint64_t reconnects;
    /**
     * Attempts whose caller already has an answer, but whose node may still exist. The client is
     * deleting these nodes.
     */
    uint64_t owed;
    /**
     * Locks granted.
     */
    uint64_t grants;
    /**
     * Calls to acquire a lock that were given a hold.
     */
    uint64_t acquires_granted;
    /**
     * Calls to acquire a lock that tried once and found the lock busy.
     */
    uint64_t acquires_busy;
    /**
     * Calls to acquire a lock that waited until their timeout because others had the lock.
     */
    uint64_t acquires_timed_out;
    /**
     * Calls to acquire a lock that failed with any other error.
     */
    uint64_t acquires_failed;
    /**
     * Calls to acquire a lock that were cancelled, or whose zklock_call was freed.
     */
    uint64_t acquires_cancelled;
    /**
     * Holds lost.
     */
    uint64_t losses;
    /**
     * Holds lost for each zklock_reason, whose number is the index.
     */
    uint64_t losses_by[16];
    /**
     * Always 0. A later version may give them a meaning.
     */
    uint64_t reserved[4];
} zklock_stats;

/**
 * The figures of the locks with one name in a client: see the option metrics-name in zklock_options_set.
 * zklock_client_lock_stats fills all members. The struct never grows.
 */
typedef struct {
    /**
     * Grants that are held now. A reentrant thread has one, however often it acquires, and a lost
     * hold is not held.
     */
    uint64_t held;
    /**
     * Calls that wait for the lock now.
     */
    uint64_t waiting;
    /**
     * The age of the oldest grant that is held now, in milliseconds; 0 if nothing is held.
     */
    uint64_t oldest_hold;
    /**
     * Calls to acquire such a lock that were given a hold.
     */
    uint64_t acquires_granted;
    /**
     * Calls that tried once and found the lock busy.
     */
    uint64_t acquires_busy;
    /**
     * Calls that waited until their timeout because others had the lock.
     */
    uint64_t acquires_timed_out;
    /**
     * Calls that failed with any other error.
     */
    uint64_t acquires_failed;
    /**
     * Calls that were cancelled, or whose zklock_call was freed.
     */
    uint64_t acquires_cancelled;
    /**
     * Holds lost for each zklock_reason, whose number is the index.
     */
    uint64_t losses_by[16];
    /**
     * Always 0. A later version may give them a meaning.
     */
    uint64_t reserved[8];
} zklock_lock_stats;

/**
 * One bucket of zklock_client_histogram.
 */
typedef struct {
    /**
     * The largest value that the bucket counts. It is infinite in the last bucket.
     */
    double bound;
    /**
     * How many values were not larger than the bound. In the last bucket, that is the number of all
     * values.
     */
    uint64_t count;
} zklock_bucket;

/**
 * Checks that enums have 32 bits, as in the library. If this fails, compile without -fshort-enums, or as
 * C++ or C23.
 */
typedef char zklock_enums_have_32_bits[sizeof(zklock_status) == sizeof(int32_t) ? 1 : -1];

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* ==== Start here ==== */

/**
 * Creates a client and opens its first session. It returns once the session is open, or after the
 * connect timeout at the latest.
 *
 * @param hosts "host:port,host:port", optionally with a "/chroot" at the end. The default port is
 *         2181. If it is NULL, the environment variable ZKLOCK_HOSTS names them.
 * @param options NULL for the defaults. They are copied.
 * @param[out] client the client. Free it with zklock_client_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the hosts cannot be parsed, or are NULL and the
 *         variable is not set or empty; ZKLOCK_UNREACHABLE if no server answers in time, or no
 *         host name can be resolved; ZKLOCK_REFUSED if the chroot does not exist, or the system
 *         gives the library no threads or descriptors;
 *         ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_new(const char *hosts,
                                const zklock_options *options,
                                zklock_client **client);

/**
 * Closes the sessions of a client, which frees every lock that it holds. It returns once the
 * servers have confirmed this, or after a second at the latest.
 *
 * All holds of the client are lost, and all waits end with ZKLOCK_CLOSED. Closing twice is not an
 * error. You must still free the client.
 *
 * @param client the client.
 * @return ZKLOCK_OK; ZKLOCK_DEADLOCK in a callback; ZKLOCK_REFUSED if the process is exiting and
 *         no thread can be started.
 */
zklock_status zklock_client_close(zklock_client *client);

/**
 * Frees a client with its descriptor and its events, and returns at once. Its sessions are closed
 * in the background, once its locks, calls and holds are freed as well. To close them now, call
 * zklock_client_close first.
 *
 * @param client may be NULL. A handle that was already freed is ignored.
 */
void zklock_client_free(zklock_client *client);

/**
 * Creates the mutex at a path: one holder at a time, in order of arrival. As with every kind of
 * lock, this sends no request. The first acquire creates the node.
 *
 * A mutex shares a queue with Curator's InterProcessMutex and LeaderSelector, and with those of
 * other libraries: see the option naming in zklock_options_set.
 *
 * @param client the client. You may free it before the lock.
 * @param path such as "/locks/report".
 * @param options NULL for the defaults. They are copied.
 * @param[out] lock the lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
 *         to this kind.
 */
ZKLOCK_NODISCARD
zklock_status zklock_mutex_new(zklock_client *client,
                               const char *path,
                               const zklock_options *options,
                               zklock_lock **lock);

/**
 * Creates the semaphore at a path. It can have as many holders as it has permits, in order of
 * arrival. Its nodes have the layout of Curator's InterProcessSemaphoreV2.
 *
 * A permit does not belong to a thread: any thread may acquire several and release any.
 *
 * @param client the client. You may free it before the lock.
 * @param path such as "/locks/licences".
 * @param limit the number of permits, 1 to 4294967295. Every program that uses the semaphore must
 *         give the same number.
 * @param options NULL for the defaults. They are copied.
 * @param[out] lock the lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, if the options ask for more
 *         permits at once than the limit, or if an option does not apply to this kind.
 */
ZKLOCK_NODISCARD
zklock_status zklock_semaphore_new(zklock_client *client,
                                   const char *path,
                                   uint32_t limit,
                                   const zklock_options *options,
                                   zklock_lock **lock);

/**
 * Creates the election at a path. The client that acquires it leads until it releases it.
 * zklock_observe reports the leader, even to programs that are not candidates. An election shares
 * a queue with Curator's LeaderLatch.
 *
 * @param client the client. You may free it before the lock.
 * @param path such as "/election/scheduler".
 * @param options NULL for the defaults. They are copied.
 * @param[out] lock the lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
 *         to this kind.
 */
ZKLOCK_NODISCARD
zklock_status zklock_election_new(zklock_client *client,
                                  const char *path,
                                  const zklock_options *options,
                                  zklock_lock **lock);

/**
 * Frees a lock. Its holds are not affected, and waits for it go on.
 *
 * @param lock may be NULL. A handle that was already freed is ignored.
 */
void zklock_lock_free(zklock_lock *lock);

/**
 * Acquires a lock: waits until it is held.
 *
 * Clients get the lock in the order in which they queue, and the callers within a client in the
 * order in which they call. However many callers a client has, clients take turns. If a caller
 * gives up, the next caller of its client takes its place.
 *
 * A thread may acquire a lock for another thread, so it also waits for holds that it acquired
 * itself. If no other thread releases such a hold, the wait never ends. The log has a warning when
 * such a wait begins.
 *
 * You may poll with a timeout of 0. After two tries have found a zklock_lock of a mutex, an
 * election or a read/write lock busy, further tries send no request until the servers report
 * that the contender ahead has left. So just after another client's release, a try may still
 * return ZKLOCK_TIMEOUT until that report arrives, for a tenth of the session timeout at most.
 * A call whose timeout leaves enough time for an answer always asks the servers.
 *
 * After ZKLOCK_TIMEOUT, the message of zklock_last_error names the holder, if the servers say who
 * that is. To find out, a wait asks them shortly before its end, and a try asks at most once a
 * second.
 *
 * A call that fails deletes its node, and waits until the servers have confirmed that, for 30 ms at
 * most. So the process may end right after it, unless the servers take longer.
 *
 * @param lock the lock.
 * @param timeout in milliseconds. 0 tries once, and takes the try timeout if no server answers.
 *         ZKLOCK_FOREVER waits as long as it takes. With any other timeout the call returns in
 *         time, whatever the network does.
 * @param[out] hold the proof that the lock is held. Release it with zklock_release, and free it
 *         with zklock_hold_free.
 * @return ZKLOCK_OK; ZKLOCK_TIMEOUT if others held the lock for all that time, or the time was too
 *         short for an answer; ZKLOCK_UNREACHABLE if there was no connection in the end, or no
 *         server answered within the try timeout, so that it is not known who has the lock;
 *         ZKLOCK_DEADLOCK in a callback, or if the call would wait for a hold of a reentrant lock
 *         that only this thread can release (for example, a hold of the read side, if this is the
 *         write side); ZKLOCK_LOST if the lock is reentrant and this thread's outer hold is lost,
 *         and ZKLOCK_UNREACHABLE if that hold's lease has run out; ZKLOCK_FOREIGN_CONTENDER;
 *         ZKLOCK_REFUSED if the servers' access list does not allow it, or the process is exiting
 *         and no thread can be started; ZKLOCK_CLOSED.
 */
ZKLOCK_NODISCARD
zklock_status zklock_acquire(zklock_lock *lock, int64_t timeout, zklock_hold **hold);

/**
 * Releases a hold, and waits until the servers have confirmed it. If a reentrant lock has several
 * holds, only the release of the last one reaches the servers.
 *
 * Whatever this returns, except for ZKLOCK_NOT_OWNER, ZKLOCK_DEADLOCK and ZKLOCK_FORKED, the hold
 * has ended. You must still free it.
 *
 * @param hold the hold.
 * @return ZKLOCK_OK; ZKLOCK_LOST if the hold was lost before the release; ZKLOCK_NOT_HELD if it
 *         was already released; ZKLOCK_NOT_OWNER if the lock is reentrant and another thread
 *         acquired it, in which case nothing changes; ZKLOCK_TIMEOUT if the servers have not
 *         answered within a session timeout, in which case the release goes on in the background;
 *         ZKLOCK_UNREACHABLE if the client can no longer connect to its session, for example after
 *         a change of passwords, in which case the lock is free once the servers end the session,
 *         a session timeout after they last heard from it; ZKLOCK_REFUSED if the access list does
 *         not allow deleting its node, in which case the client's session was ended to remove the
 *         node, and its other holds are lost too; ZKLOCK_REFUSED also if the process is exiting
 *         and no thread can be started; ZKLOCK_DEADLOCK in a callback.
 */
zklock_status zklock_release(zklock_hold *hold);

/**
 * Frees a hold. If the lock is still held, it is released in the background, whichever thread acquired
 * it. Calls that are waiting with this hold end. A freed hold has no more callbacks or events.
 *
 * If a callback of this hold is running, this function waits for it to return, unless the callback
 * itself calls this function. So do not call it with a mutex locked that the callback locks too.
 * It waits for nothing else.
 *
 * @param hold may be NULL. A handle that was already freed is ignored.
 */
void zklock_hold_free(zklock_hold *hold);

/**
 * Gets how long the lock is certain to be held, even if the client hears nothing more from the
 * servers. 0 means that others may hold the lock. It sends no request.
 *
 * An answer stays true to its end, whatever the network and the servers do, unless you release the
 * hold or an operator ends it. But if the process is paused right after the call, that end may have
 * passed by the time it goes on. The token (zklock_hold_token) and zklock_hold_commit protect you
 * against that.
 *
 * @param hold the hold.
 * @return milliseconds, rounded down; 0 if the handle is wrong.
 */
int64_t zklock_hold_valid_for(const zklock_hold *hold);

/**
 * Checks that the lock is certain to be held for this time plus a hundredth of the session
 * timeout, even if the client hears nothing more from the servers. Call it before work that takes
 * this long, so that you begin nothing that cannot end in time. It sends no request and does not
 * wait.
 *
 * A lease is never longer than half of the session timeout, and in normal operation seldom shorter
 * than four tenths of it. If the process is paused after the call, its work may still be late:
 * have the resource compare tokens (zklock_hold_token).
 *
 *     if (zklock_hold_ensure(hold, 2000) != ZKLOCK_OK) return fail(zklock_last_error());
 *     send_the_request(2000);
 *
 * @param hold the hold.
 * @param needs the time in milliseconds.
 * @return ZKLOCK_OK; ZKLOCK_AT_RISK if the lease is shorter: ask again later, or zklock_hold_confirm
 *         it; ZKLOCK_LOST if the hold is lost; ZKLOCK_NOT_HELD if it was released;
 *         ZKLOCK_INVALID_ARGUMENT if no lease of this session can be that long.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_ensure(const zklock_hold *hold, int64_t needs);

/**
 * Gets the fencing token of a hold. If two grants at one path exclude each other, the later one
 * never has a smaller token. Have the resource that the lock guards refuse any token smaller than
 * the largest it has seen, and accept an equal one.
 *
 * Grants that follow one another on one node have the same token. These are nested holds of a lock
 * that is reentrant, and grants that a client takes over because of the option linger or
 * max-local-handoffs. All other grants that exclude each other have different tokens.
 *
 * Among grants that can be held at the same time, the order of tokens means nothing: the later of
 * two readers with no writer between them may have the smaller token, and so may the later of two
 * permits. So compare a reader's token only with those of writers.
 *
 * @param hold the hold.
 * @return the token; 0, which is smaller than any token, if the handle is wrong.
 */
uint64_t zklock_hold_token(const zklock_hold *hold);

/**
 * Registers a callback for the loss of a hold, and returns at once. The callback is called once,
 * on a thread of the library, and not at all if the hold is released first. If the hold is already
 * lost, it is called right away. Several callbacks may be registered.
 *
 * @param hold the hold.
 * @param callback see "Callbacks" above. It may query the hold, and free it.
 * @param context passed to the callback. Both must stay valid until zklock_hold_free returns.
 * @return ZKLOCK_OK; ZKLOCK_REFUSED if no thread can be started for callbacks.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_on_lost(zklock_hold *hold,
                                  zklock_loss_callback callback,
                                  void *context);

/**
 * Waits until a hold is lost.
 *
 * @param hold the hold.
 * @param timeout in milliseconds. ZKLOCK_FOREVER waits as long as it takes.
 * @param[out] reason why the hold was lost. It may be NULL.
 * @return ZKLOCK_OK if the hold is lost; ZKLOCK_TIMEOUT if it is still held at the end;
 *         ZKLOCK_NOT_HELD if it is released or freed; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_wait_lost(zklock_hold *hold,
                                    int64_t timeout,
                                    zklock_reason *reason);

/**
 * Starts to wait for a loss as zklock_hold_wait_lost does, and returns at once. zklock_call_finish gives
 * the reason as its number. So a program with one hold needs no events: it waits for zklock_call_fd.
 *
 * @param hold the hold. If you release or free it, the call has the result ZKLOCK_NOT_HELD.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_wait_lost_start(zklock_hold *hold, zklock_call **call);

/**
 * Creates the handle of the job at a path. This sends no request. All processes that run the job
 * should describe it alike.
 *
 * @param client the client. You may free it before the job.
 * @param path such as "/jobs/report". Give the job a path of its own, and let zklock alone use it.
 * @param every the length of a period in milliseconds, 1000 to 31536000000000 (1,000 years). Periods
 *         are counted from 1970-01-01T00:00:00Z on the servers' clock.
 * @param options NULL for the defaults. They are copied.
 * @param[out] job the job. Free it with zklock_job_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or the period or an
 *         option is out of range.
 */
ZKLOCK_NODISCARD
zklock_status zklock_job_new(zklock_client *client,
                             const char *path,
                             int64_t every,
                             const zklock_options *options,
                             zklock_job **job);

/**
 * Begins a run of a job, unless nothing is left to do in this period.
 *
 * While another process runs the job, this waits. If that process does the work, the status is
 * ZKLOCK_DONE. If it fails, dies or loses the lock, the job runs here, or in the next period: see
 * the option after-failure. The period is the one that it is for the servers once the lock is held.
 *
 * @param job the job.
 * @param timeout in milliseconds. 0 does not wait for another process, and takes the try timeout if
 *         no server answers. ZKLOCK_FOREVER waits as long as it takes.
 * @param[out] hold the hold of the job's lock, which stands for the run. End the run with
 *         zklock_job_end. If you release or free the hold instead, the run counts as failed.
 * @return ZKLOCK_OK if the job runs here: do its work now; ZKLOCK_DONE if nothing is left to do, and
 *         zklock_job_last shows who has run it; ZKLOCK_TIMEOUT if another process ran it for all that
 *         time; ZKLOCK_LOST if the lock is lost before the run is recorded; ZKLOCK_CONFLICT if
 *         somebody else writes or deletes the record at that moment; ZKLOCK_REFUSED also if the record
 *         cannot be read, or is from the future by more than a period; ZKLOCK_UNREACHABLE;
 *         ZKLOCK_FOREIGN_CONTENDER; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_job_begin(zklock_job *job, int64_t timeout, zklock_hold **hold);

/**
 * Records how a run ended, and releases the job's lock. The record is only written if the lock is
 * still held. Whatever this returns, except for ZKLOCK_INVALID_ARGUMENT, ZKLOCK_DEADLOCK and
 * ZKLOCK_FORKED, the run has ended: its lock is released, or is being released in the background.
 *
 * @param hold the hold that zklock_job_begin gave. You must still free it.
 * @param failure NULL if the job is done in this period; otherwise why it failed, for
 *         zklock_job_last. It is kept in one line of at most 500 characters. When the job runs again
 *         then depends on its option after-failure.
 * @return ZKLOCK_OK; ZKLOCK_LOST if the hold is lost, in which case the run counts as failed, and
 *         another process may have begun to run the job again; ZKLOCK_NOT_HELD if the run was already
 *         ended; ZKLOCK_CONFLICT if somebody else has written or deleted the record; ZKLOCK_UNREACHABLE
 *         if the servers do not answer, so that it is not known whether it is recorded;
 *         ZKLOCK_INVALID_ARGUMENT if the hold is of no run; ZKLOCK_REFUSED and ZKLOCK_TIMEOUT as for
 *         zklock_release; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_job_end(zklock_hold *hold, const char *failure);

/**
 * Frees the handle of a job. Its runs are not affected, and waits for it go on.
 *
 * @param job may be NULL. A handle that was already freed is ignored.
 */
void zklock_job_free(zklock_job *job);

/**
 * Asks the servers for the queue of a lock, and passes each contender to the visitor, holders
 * first. Contenders of other libraries are included. It waits for the servers' answer.
 *
 * @param lock the lock.
 * @param visitor called on this thread, before zklock_contenders returns. It may make any call.
 * @param context passed to the visitor.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
 *         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_contenders(zklock_lock *lock,
                                zklock_contender_visitor visitor,
                                void *context);

/**
 * Gets the message of the last call on this thread that failed: what is wrong, and what to do. The
 * wording is meant for people and may change with any version.
 *
 * ZKLOCK_PENDING and ZKLOCK_DONE are no failures, and leave the message alone. Any other status but
 * ZKLOCK_OK replaces it.
 *
 * @return the message, or "" if no call on this thread has failed. It is never NULL, and is valid
 *         until the next call on this thread that fails.
 */
const char *zklock_last_error(void);

/**
 * Gets the name of a status, such as "ZKLOCK_TIMEOUT".
 *
 * @param status what a call returned.
 * @return the name, or "unknown" if no status has this number. It is never NULL and is valid for
 *         the life of the process.
 */
const char *zklock_status_name(int32_t status);

/* ==== Connect ==== */

/**
 * Creates options with the defaults. Free them with zklock_options_free, at any time after they were
 * used.
 *
 * @param[out] options the options.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_new(zklock_options **options);

/**
 * Sets an option of a client, of a lock or of a job. A constructor refuses an option that its object
 * does not have.
 *
 * The options of a client, which the configuration file of the command zklock has too:
 *
 * - session-timeout (DURATION): The session timeout to ask for, 100 ms to 24 days: after a crash of
 *   its holder, a lock is free when this time is over. Default: 10s.
 * - connect-timeout (DURATION): How long connecting, and queries such as those for contenders, try
 *   to reach a server. Default: 10s.
 * - try-timeout (DURATION): How long a call that tries once waits for the servers' answer. Default:
 *   1s.
 * - loss-timeout (DURATION): How soon to learn of a loss that no server reports: with more, the
 *   client writes less often. At most a third of the session timeout, and a fifth for the command.
 *   Default: a tenth of the session timeout.
 * - heartbeat (YES|NO): Whether the servers are asked to confirm what is held. Otherwise nothing
 *   proves a hold from half a session timeout after its grant on, and its loss may be reported
 *   late. Default: yes.
 * - chroot (PATH): The node below which all paths are, in place of one that follows the hosts.
 * - create-chroot (YES|NO): Whether the chroot, and the nodes above it, are created if they are
 *   missing. Default: no.
 * - identity (NAME): The name under which others see the holder, up to 1024 bytes. Default:
 *   host/pid.
 * - server-version (VERSION): The version of the servers, such as 3.4; during an upgrade, the
 *   oldest. Default: the servers are asked.
 * - auth (USER:PASSWORD): A user to log in as, by the scheme digest. Each further one is added.
 * - auth-file (FILE): A file with USER:PASSWORD on each line, for the scheme digest, which is read
 *   again for each connection.
 * - auth-env (VARIABLE): The environment variable with USER:PASSWORD, for the scheme digest.
 * - sasl (USER:PASSWORD): The user to log in as by SASL, with the mechanism DIGEST-MD5: one at
 *   most.
 * - sasl-file (FILE): A file with USER:PASSWORD, for SASL, which is read again for each connection.
 * - sasl-env (VARIABLE): The environment variable with USER:PASSWORD, for SASL.
 * - kerberos (SERVICE[/HOST]): Log in with the Kerberos ticket of this process, to servers of this
 *   principal, such as zookeeper. The host is otherwise the one that is connected to.
 * - access (ACCESS): Who may use the nodes that are created: open, creator-all, read-open, or a
 *   list such as sasl:billing:cdrwa,world:anyone:r. Default: open.
 * - tls (YES|NO): Connect with TLS, and trust the authorities that the system trusts. Default: no.
 * - ca (FILE): Connect with TLS, and trust the authorities in this PEM file. All files of TLS are
 *   read again for each connection.
 * - cert (FILE): The client's certificate, a PEM file.
 * - key (FILE): The certificate's key, a PEM file.
 * - pass-phrase (TEXT): The pass phrase of the key.
 * - pass-phrase-file (FILE): A file with the pass phrase of the key on its first line.
 * - pass-phrase-env (VARIABLE): The environment variable with the pass phrase of the key.
 *
 * The options of a lock:
 *
 * - reentrant (YES|NO): Whether a thread that holds the lock may acquire it again. Only that thread
 *   may then release its holds. Not for semaphores. Default: no.
 * - naming (NAMING): The library that the lock shares its queue with: curator (also go-zookeeper),
 *   kazoo for mutexes and read/write locks, writelock for mutexes; or the pattern of a custom lock,
 *   such as {name}_lock_{sequence}. Default: curator.
 * - foreign (refuse|ignore-unknown): Whether an acquire fails if a contender cannot see ours.
 *   ignore-unknown is dangerous: an acquire waits for contenders of known libraries, which must see
 *   ours, and ignores all others, which must have nothing to do with the lock. Otherwise two may
 *   hold it. Default: refuse.
 * - permits (N): How many permits of a semaphore to acquire at once, up to 256. Default: 1.
 * - limit-at (PATH): The node that stores a semaphore's number of permits, in the format of
 *   Curator's SharedCount.
 * - linger (DURATION): How long the lock's node stays after a release while no other client wants
 *   the lock, so that this client acquires it again without a request. For mutexes and read/write
 *   locks. Default: 0s.
 * - max-local-handoffs (N): How often holders of this client may pass the lock on among themselves
 *   while other clients wait. For mutexes and read/write locks. Default: 0.
 * - metrics-name (NAME): A name under which the client counts the lock separately, up to 128 bytes.
 *
 * The options of a job:
 *
 * - offset (DURATION): How much later each period begins. No period must begin when you start the
 *   job: the clocks of hosts and servers differ, so it would be skipped in one period, and run
 *   twice in another. Default: 0s.
 * - after-failure (again|next): Whether a job that has failed runs again in the same period, or in
 *   the next one, so that no half of its work is done twice. A process that dies, or loses the
 *   lock, has failed. Default: again.
 *
 * A DURATION has a unit, as in "250ms", "10s" or "1h30m". Without one it is in seconds. Whether
 * options go together, and what is in the files of TLS, is checked when the client is made. No
 * password appears in an error message or in the log.
 *
 * Contenders of every naming scheme are recognised, whichever one the lock itself uses. Grants on one
 * node, because of linger or max-local-handoffs, have the same token, so the resource that the lock guards
 * must accept a token equal to the largest that it has seen.
 *
 * docs/securing.md says more about logging in, TLS and access lists, docs/performance.md about
 * loss-timeout, linger and max-local-handoffs, docs/interop.md about naming and foreign, and
 * docs/monitoring.md about metrics-name.
 *
 *     if (zklock_options_new(&options) != ZKLOCK_OK ||
 *         zklock_options_set(options, "session-timeout", "20s") != ZKLOCK_OK ||
 *         zklock_options_set(options, "auth", "billing:secret") != ZKLOCK_OK)
 *         return fail(zklock_last_error());
 *
 * @param options the options.
 * @param option the name of the option.
 * @param value its value.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if there is no such option, or it cannot have this
 *         value: zklock_last_error() names what is possible; ZKLOCK_REFUSED if this library was built
 *         without TLS or Kerberos, and the option is about that.
 */
ZKLOCK_NODISCARD
zklock_status zklock_options_set(zklock_options *options,
                                 const char *option,
                                 const char *value);

/**
 * Frees options. Clients, locks and jobs that were made with them are not affected.
 *
 * @param options may be NULL. A handle that was already freed is ignored.
 */
void zklock_options_free(zklock_options *options);

/**
 * Creates a client that connects on first use. Until then it does nothing. So a program may create
 * it, with its locks and barriers, before it forks: each child that uses them connects on its own.
 *
 * The first call that needs a connection connects. It tries for no longer than it may wait, and
 * for no longer than the connect timeout. So this call may also return ZKLOCK_UNREACHABLE or
 * ZKLOCK_REFUSED for the reasons given at zklock_client_new. The next call tries again. A call
 * with a timeout of 0 that has to connect first may take the connect timeout plus the try timeout.
 *
 * @param hosts as for zklock_client_new.
 * @param options NULL for the defaults. They are copied.
 * @param[out] client the client. Free it with zklock_client_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the hosts cannot be parsed.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_new_lazy(const char *hosts,
                                     const zklock_options *options,
                                     zklock_client **client);

/**
 * Starts to connect a client of zklock_client_new_lazy, and returns at once. If it is connected, this
 * does nothing. To wait for the connection, see zklock_call_finish.
 *
 * @param client the client. You may free it before the call.
 * @param timeout in milliseconds. It is never longer than the connect timeout, even with
 *         ZKLOCK_FOREVER. The result is then ZKLOCK_UNREACHABLE, as if no host name can be
 *         resolved; it is ZKLOCK_REFUSED for the reasons given at zklock_client_new.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_connect_start(zklock_client *client,
                                          int64_t timeout,
                                          zklock_call **call);

/**
 * Starts a guardian: a process that ends the session at the servers when this process is dead. The
 * client's locks are then free at once. Without a guardian, which is the default, they are free when
 * the session times out.
 *
 *     if (zklock_client_guard(client, NULL) != ZKLOCK_OK) return fail(zklock_last_error());
 *
 * The guardian is the command zklock with the argument "guardian", of the same version as this
 * library. It is a child of this process, in a process group of its own. The client writes to its
 * standard input: how to connect, with all passwords, and the key of each session. This call returns
 * when the guardian watches. The guardian ends when the client is closed, or freed together with
 * everything that was made from it. It writes to standard error only if it could not end the session
 * of a dead process.
 *
 * The guardian waits until this process is dead. It does nothing to a process that is stopped, slow,
 * cut off or replaced (exec). Child processes of this process may still run when the next holder has
 * the lock. If the machine or the container dies, if the guardian is killed too, or if the servers
 * cannot be reached, the session timeout applies. If the guardian ends early, the log has a warning,
 * and you can make this call again.
 *
 * @param client the client. If it has not connected yet, it connects first. In a forked child,
 *        guard a client that the child made.
 * @param command the path of the command zklock, or its name in the directories of PATH. NULL for
 *        "zklock".
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the command cannot be found or executed, if it is
 *         another program or of another version, if the client has a guardian already, and on
 *         Linux before 5.3; ZKLOCK_REFUSED if the command was built without what it takes to
 *         connect, or for a reason of zklock_client_new; ZKLOCK_UNREACHABLE; ZKLOCK_CLOSED;
 *         ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_guard(zklock_client *client, const char *command);

/**
 * Starts to close a client as zklock_client_close does, and returns at once. When the call has its
 * result, the holds of the client are lost.
 *
 * @param client the client. You may free it before the call.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_close_start(zklock_client *client, zklock_call **call);

/* ==== Lock ==== */

/**
 * Creates the read side of the read/write lock at a path. Any number of readers can hold it at
 * once, while no writer does.
 *
 * It shares a queue with Curator's InterProcessReadWriteLock or, in kazoo's naming scheme, with kazoo's
 * locks.
 *
 * To downgrade, a thread that holds the write side may acquire the read side, and then release the
 * write side. This needs a write side with the option reentrant; the read side may be reentrant
 * or not. If the write side is not reentrant, the thread waits until the write side is released,
 * like any other thread: see zklock_write_lock_new.
 *
 * @param client the client. You may free it before the lock.
 * @param path such as "/locks/catalogue".
 * @param options NULL for the defaults. They are copied.
 * @param[out] lock the lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
 *         to this kind.
 */
ZKLOCK_NODISCARD
zklock_status zklock_read_lock_new(zklock_client *client,
                                   const char *path,
                                   const zklock_options *options,
                                   zklock_lock **lock);

/**
 * Creates the write side of the read/write lock at a path: one writer at a time, and no reader at
 * the same time.
 *
 * If a thread holds the read side and acquires the write side, it waits until the read side is
 * released, by any thread. If no other thread can release it, because its lock is reentrant, the
 * acquire returns ZKLOCK_DEADLOCK.
 *
 * If a thread holds the write side of a reentrant lock, it gets the read side at
 * once, because no other thread can release that write side. A write side that is not reentrant
 * may have been handed to another thread, which is still writing. So the thread that acquired it
 * must wait for its release before it can read, or gets ZKLOCK_TIMEOUT. The log has a warning
 * about such a wait.
 *
 * @param client the client. You may free it before the lock.
 * @param path the same path as for the read side.
 * @param options NULL for the defaults. They are copied.
 * @param[out] lock the lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
 *         to this kind.
 */
ZKLOCK_NODISCARD
zklock_status zklock_write_lock_new(zklock_client *client,
                                    const char *path,
                                    const zklock_options *options,
                                    zklock_lock **lock);

/**
 * Writes a number of permits to the node that semaphores name with the option limit-at. Creates
 * the node if it does not exist. It waits for the servers' answer.
 *
 * Permits that are held stay held, even if the new limit is lower.
 *
 * @param client the client.
 * @param path the path of the node, such as "/limits/licences".
 * @param limit 0 to 2147483647.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
 *         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_set_limit(zklock_client *client,
                                      const char *path,
                                      uint32_t limit);

/**
 * Creates a set of several locks that are acquired and released together: all of them, or none.
 * Sets cannot deadlock each other, whatever order they name their locks in.
 *
 * @param client the client that made the locks. You may free it before the set.
 * @param locks mutexes, read and write sides, semaphores and elections. A lock that you name twice
 *         is in the set once. You may free them before the set.
 * @param count the number of locks, at least 1.
 * @param options NULL for the defaults. They are copied. Each lock keeps its own options, except
 *         that the options of the set decide whether it is reentrant as a whole.
 * @param[out] lock the set, which is itself a lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if one of the locks is NULL, is of another client or
 *         is a single-node lock, if two different locks have the same path, if there are too many
 *         for one request, or if an option does not apply to a set.
 */
ZKLOCK_NODISCARD
zklock_status zklock_all_new(zklock_client *client,
                             zklock_lock *const *locks,
                             size_t count,
                             const zklock_options *options,
                             zklock_lock **lock);

/**
 * Creates a choice of several locks. Acquiring it gives a hold of whichever lock is free first,
 * and leaves the queues of the others. zklock_hold_path says which lock it is. This is for workers
 * that take any free job out of many.
 *
 * An acquire first looks at all the queues, in one round trip that changes nothing. If some locks
 * are free, it acquires the one that you named first. If none is free, it queues for all of them.
 * Each lock is acquired as it would be alone, with its own options, so a lock that the caller
 * already holds counts as busy unless it is reentrant.
 *
 * @param client the client that made the locks. You may free it before the choice.
 * @param locks mutexes, read and write sides, semaphores, elections and sets. You may free them
 *         before the choice.
 * @param count the number of locks, at least 1.
 * @param options NULL for the defaults. A choice takes no options of its own: set them on its
 *         locks.
 * @param[out] lock the choice, which is itself a lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if one of the locks is NULL, is of another client, is
 *         a single-node lock or is itself a choice, if two locks have the same path, if there are
 *         too many for one session to watch, or if an option is not the default.
 */
ZKLOCK_NODISCARD
zklock_status zklock_any_new(zklock_client *client,
                             zklock_lock *const *locks,
                             size_t count,
                             const zklock_options *options,
                             zklock_lock **lock);

/**
 * Creates the single-node lock at a path. The client that creates the node "lock" below the path
 * holds the lock. There is no queue and no order. Use it only to share a lock with programs that
 * create that node. For a job, see zklock_job_new.
 *
 * @param client the client. You may free it before the lock.
 * @param path such as "/jobs/nightly".
 * @param options NULL for the defaults. They are copied.
 * @param[out] lock the lock. Free it with zklock_lock_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
 *         to this kind.
 */
ZKLOCK_NODISCARD
zklock_status zklock_single_node_new(zklock_client *client,
                                     const char *path,
                                     const zklock_options *options,
                                     zklock_lock **lock);

/**
 * Gets the path of a lock, or all the paths of a set of locks.
 *
 * @param lock the lock.
 * @return the path, valid until the lock is freed; "" if the handle is wrong.
 */
const char *zklock_lock_path(const zklock_lock *lock);

/* ==== Acquire ==== */

/**
 * Starts to acquire a lock as zklock_acquire does, and returns at once. When the call has its
 * result, take the hold from it with zklock_call_hold.
 *
 * Such a wait does not belong to a thread: a thread that holds the lock may start another wait for
 * it, and any thread may release the hold, even if the lock is reentrant. The lock is held from
 * the moment that it is granted, not from the moment that you take the hold.
 *
 * @param lock the lock. You may free it before the call.
 * @param timeout in milliseconds, as for zklock_acquire.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_acquire_start(zklock_lock *lock, int64_t timeout, zklock_call **call);

/**
 * Takes the hold from a call of zklock_acquire_start or zklock_job_begin_start. It returns at once.
 * The events of the hold start with the pointer of the call: see zklock_call_set_context.
 *
 * @param call the call. You must still free it.
 * @param[out] hold as for zklock_acquire.
 * @return ZKLOCK_OK; ZKLOCK_NOT_HELD if the hold was already taken from the call; ZKLOCK_LOST if
 *         the lock was granted, but lost before this call; ZKLOCK_INVALID_ARGUMENT if the call is of
 *         another function; and everything that zklock_call_finish, zklock_acquire and
 *         zklock_job_begin return.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_hold(zklock_call *call, zklock_hold **hold);

/**
 * Asks the servers whether the lock is still held, and waits for their answer.
 *
 * @param hold the hold.
 * @param[out] milliseconds how long the lock is certain to be held. It may be NULL.
 * @return ZKLOCK_OK if it is held; ZKLOCK_LOST if it is not; ZKLOCK_UNREACHABLE if the servers did
 *         not answer within what was left of the lease, or within a second; ZKLOCK_NOT_HELD if the
 *         hold was released, before the call or during it; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_confirm(zklock_hold *hold, int64_t *milliseconds);

/**
 * Starts to ask the servers as zklock_hold_confirm does, and returns at once. zklock_call_finish
 * gives the milliseconds as its number.
 *
 * @param hold the hold. Keep it until the call has its result: freeing it releases the lock, and
 *         the call may then give ZKLOCK_NOT_HELD.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_confirm_start(zklock_hold *hold, zklock_call **call);

/**
 * Gets the identity of the ensemble. A fence keeps it together with the token (zklock_hold_token),
 * because tokens of two ensembles cannot be compared. The identity is the data of the node
 * "/zklock-ensemble". The first client that asks creates this node below its chroot, with its access
 * list. A client asks the servers once in each session, and waits for their answer.
 *
 * An ensemble that you restore from a backup keeps its identity, although its tokens start
 * again from earlier ones. In that case, delete the node once the ensemble's clients have
 * ended.
 *
 * @param client the client.
 * @param buffer receives the identity, without a NUL at its end: printable ASCII. What does not fit
 *         is cut off. It may be NULL if size is 0.
 * @param size the size of the buffer in bytes. 64 are enough.
 * @param[out] length the length of the identity in bytes, even if it does not fit.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
 *         ZKLOCK_REFUSED if the access list does not allow reading or creating the node, or if the
 *         node's data is not from zklock; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_ensemble_id(zklock_client *client,
                                        void *buffer,
                                        size_t size,
                                        size_t *length);

/**
 * Gets a statement with which a database refuses the write of a late holder: a process that was
 * paused between its last check of the hold and its write. The database keeps the greatest token
 * of each lock in a table. The first statement of each guarded transaction raises the lock's row,
 * or is refused. docs/fencing.md explains how to use it.
 *
 *     const char *raise;
 *
 *     if (zklock_fence_sql(ZKLOCK_DATABASE_POSTGRESQL, ZKLOCK_FENCE_RAISE, &raise) != ZKLOCK_OK) return fail(zklock_last_error());
 *
 * @param database one of zklock_database.
 * @param statement one of zklock_fence_statement.
 * @param[out] text the statement. It is valid for the life of the process.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_fence_sql(zklock_database database,
                               zklock_fence_statement statement,
                               const char **text);

/**
 * Replaces a file with a new one that is ready, unless a later holder has written to that folder.
 * The file ".zklock-fence" in the target's folder keeps the greatest token, and is locked with
 * flock meanwhile. Readers see the old file or the new one, always complete, even after a crash.
 * The call waits while another holder writes. The first call also waits for the servers: see
 * zklock_client_ensemble_id.
 *
 *     if (zklock_hold_publish(hold, "reports/.sales.new", "reports/sales.csv") != ZKLOCK_OK) return fail(zklock_last_error());
 *
 * It works on one machine, on a local file system. It does not work on NFS.
 *
 * @param hold the hold.
 * @param staged the path of the file that is ready. It must be in the same file system, best in the
 *         same folder. The call syncs and renames it. If the call fails, the file stays.
 * @param target the path of the file that it replaces, or that does not exist yet.
 * @return ZKLOCK_OK; ZKLOCK_STALE_TOKEN if a later holder has written: stop; ZKLOCK_OTHER_ENSEMBLE
 *         if the folder keeps the token of another ensemble; ZKLOCK_REFUSED if the system refuses an
 *         operation; ZKLOCK_UNREACHABLE if the servers do not give the identity of the ensemble;
 *         ZKLOCK_LOST if the hold is lost, and that identity was not asked for before;
 *         ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_publish(zklock_hold *hold,
                                  const char *staged,
                                  const char *target);

/**
 * Writes to ZooKeeper itself: either all of the writes or none, and only if the lock is still held
 * when the servers commit them. It waits for the servers' answer, or until none can come: for a
 * session timeout or two seconds at most, whichever is longer.
 *
 * @param hold the hold.
 * @param writes the writes, which are done in this order.
 * @param count the number of writes.
 * @param[out] versions the version of each node after its write, as many as there are writes: 0
 *         for a node that was created, ZKLOCK_NO_NODE for a node that was deleted. It may be NULL.
 * @return ZKLOCK_OK; ZKLOCK_LOST if the lock was no longer held, and nothing was written;
 *         ZKLOCK_CONFLICT if a node was not in the required state, and nothing was written:
 *         zklock_last_conflict says which write was refused; ZKLOCK_UNCERTAIN if the reply was
 *         lost, and either all or nothing is written: see zklock_hold_read;
 *         ZKLOCK_NOT_HELD after a release; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT
 *         for an invalid path, or for more than 512 KiB in total.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_commit(zklock_hold *hold,
                                 const zklock_write *writes,
                                 size_t count,
                                 int32_t *versions);

/**
 * Starts to write as zklock_hold_commit does, and returns at once. zklock_call_versions gives the
 * versions. If zklock_call_finish or zklock_call_versions returns ZKLOCK_CONFLICT,
 * zklock_last_conflict says which write was refused.
 *
 * @param hold the hold. Keep it until the call has its result: freeing it releases the lock, and
 *         the call may then give ZKLOCK_NOT_HELD.
 * @param writes the writes, which are done in this order. They are copied.
 * @param count the number of writes.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_commit_start(zklock_hold *hold,
                                       const zklock_write *writes,
                                       size_t count,
                                       zklock_call **call);

/**
 * Gets the versions that a call of zklock_hold_commit_start has written. It returns at once.
 *
 * @param call the call. You must still free it.
 * @param[out] versions the version of each node after its write, as zklock_hold_commit gives them.
 *         There are as many as there were writes, and zklock_call_finish gives that number. It may
 *         be NULL.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the call is of another function; and everything
 *         that zklock_call_finish returns.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_versions(zklock_call *call, int32_t *versions);

/**
 * Says which write was refused, after ZKLOCK_CONFLICT from zklock_hold_commit, or from
 * zklock_call_finish or zklock_call_versions for a zklock_hold_commit_start. Ask right away: the
 * next call on this thread that fails replaces the answer.
 *
 * @return the index of the write, counting from 0; -1 if the last call that failed on this thread
 *         failed in another way.
 */
int64_t zklock_last_conflict(void);

/**
 * Reads the data and the version of a node in ZooKeeper. The answer is at least as recent as
 * everything that the servers had committed when this was called. So after ZKLOCK_UNCERTAIN, read
 * what you meant to write. If it is not there, write again, with the version that you have read:
 * at most one of the two writes is done. (While the hold lasts, a server that was cut off may
 * still do the first one.) Once the hold is released or lost, the answer is final. It works while
 * the client is open.
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
 * It waits for the servers' answer, for a session timeout or two seconds at most, whichever is
 * longer.
 *
 * @param hold the hold.
 * @param path the path of the node.
 * @param buffer receives the data, without a NUL at its end. Data that does not fit is cut off. It
 *         may be NULL if size is 0.
 * @param size the size of the buffer in bytes.
 * @param[out] length the length of all the data in bytes, even if it does not fit; 0 if the node
 *         does not exist.
 * @param[out] version the version of the node, for a zklock_write. If the node does not exist,
 *         ZKLOCK_NO_NODE, which a write refuses.
 * @return ZKLOCK_OK, even if the node does not exist; ZKLOCK_UNREACHABLE if the servers did not
 *         answer in time; ZKLOCK_REFUSED if the access list does not allow reading the node;
 *         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT for an invalid
 *         path.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_read(zklock_hold *hold,
                               const char *path,
                               void *buffer,
                               size_t size,
                               size_t *length,
                               int32_t *version);

/**
 * Gets the path of the lock that a hold is on.
 *
 * @param hold the hold.
 * @return the path, valid until the hold is freed; "" if the handle is wrong.
 */
const char *zklock_hold_path(const zklock_hold *hold);

/**
 * Gets the path of a hold's node.
 *
 * @param hold the hold.
 * @return the path, valid until the hold is freed; "" if the handle is wrong.
 */
const char *zklock_hold_node(const zklock_hold *hold);

/**
 * Starts to release a hold as zklock_release does, and returns at once. If this gives you a call,
 * and this thread may release the hold, then the hold has ended, and the release goes on even if
 * you cancel or free the call.
 *
 * @param hold the hold. You must still free it, and may do so before the call has its result.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_release_start(zklock_hold *hold, zklock_call **call);

/* ==== Losses and waiters ==== */

/**
 * Gets the state of a hold. It sends no request.
 *
 * @param hold the hold.
 * @param[out] reason why the hold was lost; ZKLOCK_REASON_NONE if it is not lost. It may be NULL.
 * @return the state; ZKLOCK_STATE_LOST, with ZKLOCK_REASON_OTHER, if the handle is wrong.
 */
zklock_state zklock_hold_state(const zklock_hold *hold, zklock_reason *reason);

/**
 * Sets the pointer that the events of a hold give back to you. The library never follows it.
 * Before you set it, it is the pointer of the call that gave the hold, or NULL.
 *
 * @param hold the hold.
 * @param context any pointer, or NULL.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_set_context(zklock_hold *hold, void *context);

/**
 * Says whether others are known to be waiting for what this hold has, in any process and with any
 * library. Use it to finish early, or to release the lock between two pieces of work.
 *
 *     for (piece = 0; piece < pieces && !zklock_hold_is_wanted(hold); piece++) work_on(piece);
 *
 * A request by zklock_request_release, or by Curator's Revoker, counts as a waiter.
 *
 * This function never waits for the servers. The first call of this function or of
 * zklock_hold_wait_wanted for a hold starts to list the lock's queue and to read the hold's own nodes
 * in the background. It leaves watches, which the next contender or request triggers. A hold that is
 * never asked costs nothing.
 *
 * In an event loop, call this function once for each hold. If the client queues events,
 * ZKLOCK_EVENT_WANTED comes when others wait. Without a loop, call zklock_hold_wait_wanted on a
 * thread.
 *
 * The answer is the state that was seen last, so it may still be 1 after the other contender has
 * given up. Readers do not wait for readers, so other readers do not make a hold of the read
 * side wanted. A lock of zklock_single_node_new has no queue: there, only waiters of this client
 * and requests to release are seen.
 *
 * @param hold the hold.
 * @return 1 if others wait; 0 if none do, if the hold is released or lost, or if the handle is wrong.
 */
int zklock_hold_is_wanted(zklock_hold *hold);

/**
 * Waits until others wait for what a hold has. See zklock_hold_is_wanted.
 *
 * @param hold the hold.
 * @param timeout in milliseconds. ZKLOCK_FOREVER waits as long as it takes.
 * @return ZKLOCK_OK if others wait; ZKLOCK_TIMEOUT if none do in that time; ZKLOCK_NOT_HELD if
 *         the hold is released; ZKLOCK_LOST if it is lost; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_hold_wait_wanted(zklock_hold *hold, int64_t timeout);

/* ==== Event loops ==== */

/**
 * Gets the descriptor of a client. It is readable while zklock_client_next_event has an event,
 * so this one descriptor serves all calls, holds and observers of the client. Do not read from
 * it, write to it or close it.
 *
 * The client queues events only after the first call of this function or of
 * zklock_client_next_event. After that call, a client of zklock_client_new_lazy belongs to this
 * process. Its first event about the connection comes once it has connected.
 *
 * @param client the client.
 * @param[out] descriptor valid until the client is freed.
 * @return ZKLOCK_OK; ZKLOCK_REFUSED if the system has no descriptor or thread left.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_fd(zklock_client *client, int *descriptor);

/**
 * Gets the next event of a client and returns at once. Events are about the client itself or about
 * anything that it made. Those about the connection come first, all others in the order in which
 * they happened. Call it until it returns anything but ZKLOCK_OK. ZKLOCK_PENDING then means that
 * there is nothing more for now; any other status is an error.
 *
 *     zklock_event event;
 *     zklock_status status;
 *
 *     while ((status = zklock_client_next_event(client, &event)) == ZKLOCK_OK) {
 *         if (event.kind == ZKLOCK_EVENT_CALL) go_on_with(event.context, event.call);
 *         if (event.kind == ZKLOCK_EVENT_LOST) stop(event.context);
 *     }
 *     if (status != ZKLOCK_PENDING) return fail(zklock_last_error());
 *
 * After the first call of this function or of zklock_client_fd, the client has one event for
 *
 * - each call of the client and of its locks, holds, barriers and members that gets its result,
 *   even if it was started earlier;
 * - each hold that is lost, if it was acquired after that call;
 * - each such hold that others wait for, if zklock_hold_is_wanted was called for it;
 * - each new holder or leader that an observer sees: see zklock_observe;
 * - each change of the connection, starting with its current state.
 *
 * Cancelling a call gives it a result, and so an event. A handle that is freed before its event was
 * fetched has no event. Events about the connection that are not fetched are merged:
 * several outages become one, several lost sessions become one, but none vanishes entirely. All
 * other events are kept until they are fetched or their handle is freed.
 *
 * @param client the client.
 * @param[out] event what has happened. You still own the handles in it.
 * @return ZKLOCK_OK; ZKLOCK_PENDING if there is no event; ZKLOCK_REFUSED if the first call
 *         cannot start a thread.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_next_event(zklock_client *client, zklock_event *event);

/**
 * Gets the descriptor of a call. It becomes readable when there is a result, and stays readable.
 * Do not read from it, write to it or close it. It is created the first time that you ask for it.
 * A program with thousands of calls should use the one descriptor of their client instead:
 * zklock_client_fd.
 *
 * @param call the call.
 * @param[out] descriptor valid until the call is freed.
 * @return ZKLOCK_OK; ZKLOCK_REFUSED if the system has no descriptor left.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_fd(const zklock_call *call, int *descriptor);

/**
 * Sets the pointer that the event of a call gives back to you. The library never follows it.
 * Before you set it, a call of zklock_release_start has the pointer of its hold, and any other
 * call has NULL. A hold that you take from a call starts with the pointer of the call.
 *
 * The event may come as soon as the call is started. So start calls and fetch events on the same
 * thread, or lock a mutex of yours from the start until the context is set, and also while you
 * handle an event.
 *
 * @param call the call.
 * @param context any pointer, or NULL.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_set_context(zklock_call *call, void *context);

/**
 * Gets the result of a call, once there is one. You may call it more than once.
 *
 * This function only gives a number. zklock_call_hold, zklock_call_member, zklock_call_versions and
 * zklock_call_contenders give other results, and you need not call this function before them.
 *
 * @param call the call. You must still free it.
 * @param timeout how long to wait for the result, in milliseconds; 0 in an event loop.
 *         zklock_call_cancel on another thread ends the wait.
 * @param[out] number for zklock_hold_confirm_start, for how many milliseconds the lock is certain
 *         to be held; for zklock_hold_wait_lost_start, the zklock_reason; for
 *         zklock_barrier_set_start and zklock_barrier_remove_start, 1 or 0, as the function without
 *         _start gives it; for zklock_hold_commit_start and zklock_contenders_start, the number of
 *         versions or contenders; otherwise 0. It may be NULL.
 * @return ZKLOCK_OK; ZKLOCK_PENDING while the call is running; ZKLOCK_INTERRUPTED after
 *         zklock_call_cancel; ZKLOCK_CLOSED if the client was closed meanwhile; ZKLOCK_DEADLOCK in a
 *         callback that would have to wait; and everything that the function without _start returns.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_finish(zklock_call *call, int64_t timeout, int64_t *number);

/**
 * Stops waiting for a call, and returns at once: the call's descriptor becomes readable, its event
 * comes, and zklock_call_finish gives ZKLOCK_INTERRUPTED, or the result if there already is one.
 *
 * An acquire leaves nothing behind in the queue, and a member that has not entered a double barrier
 * yet withdraws: their nodes are deleted in the background. Before the process ends, close the
 * client, which waits for that. Work that has already begun goes on in the background: a release,
 * leaving a barrier, closing a client. A cancelled commit, or end of a run, may or may not be done. If
 * a run is begun just then, it counts as failed.
 *
 * @param call the call. You must still free it.
 * @return ZKLOCK_OK.
 */
zklock_status zklock_call_cancel(zklock_call *call);

/**
 * Frees a call and its descriptor. Remove the descriptor from your event loop first. A call that
 * is still running is cancelled, as by zklock_call_cancel. If it has acquired a lock, entered a double
 * barrier or begun a run, and you have not taken the hold or member from it, then the lock is
 * released, the member leaves, or the run counts as failed, in the background. A freed call has no
 * more events.
 *
 * @param call may be NULL. A handle that was already freed is ignored.
 */
void zklock_call_free(zklock_call *call);

/* ==== Administer ==== */

/**
 * Starts to ask for the queue of a lock as zklock_contenders does, and returns at once. When the
 * call has its result, zklock_call_contenders shows the contenders.
 *
 * @param lock the lock. You may free it before the call.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_contenders_start(zklock_lock *lock, zklock_call **call);

/**
 * Passes each contender that a call of zklock_contenders_start has found to the visitor, holders
 * first.
 *
 * @param call the call. You must still free it.
 * @param visitor called on this thread, before zklock_call_contenders returns. It may make any
 *         call.
 * @param context passed to the visitor.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the call is of another function; and everything
 *         that zklock_call_finish returns.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_contenders(zklock_call *call,
                                     zklock_contender_visitor visitor,
                                     void *context);

/**
 * Starts to observe who holds a lock or, for an election, who leads. It returns at once. An
 * observer watches only the holder, so many can observe one lock without waking each other.
 *
 * If the client queues events (see zklock_client_next_event), each report of the observer is one:
 * ZKLOCK_EVENT_LEADER. zklock_observer_next with a timeout of 0 gives the report. The next event
 * can only come after that. An observer that was made before the client queued events, or that has
 * reported an error, only reports after another call of zklock_observer_next.
 *
 * @param lock the lock. It must be of a kind that has a single holder, or one side of a read/write
 *         lock. You may free it before the observer.
 * @param[out] observer the observer. Free it with zklock_observer_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT for a semaphore or a set of locks.
 */
ZKLOCK_NODISCARD
zklock_status zklock_observe(zklock_lock *lock, zklock_observer **observer);

/**
 * Reports the holder of the lock on the first call. Each later call waits until the holder has
 * changed, and reports the new one. Several quick changes may be reported as one. If there are
 * several holders, it reports the first of them. If no server answers, it keeps waiting.
 *
 * The first contender in the queue is reported as the holder, even if it is a set of locks that
 * still waits for another of its locks. zklock_contenders can tell the two apart.
 *
 * @param observer the observer.
 * @param timeout in milliseconds. 0 gives what was found in the background, and goes on looking
 *         there. ZKLOCK_FOREVER waits as long as it takes.
 * @param visitor called on this thread with the holder, before zklock_observer_next returns, and not
 *         at all if there is none. It may make any call.
 * @param context passed to the visitor.
 * @return ZKLOCK_OK; ZKLOCK_TIMEOUT if nothing changed in that time; ZKLOCK_UNREACHABLE if the
 *         client has never connected, and cannot; ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK
 *         if it would have to wait in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_observer_next(zklock_observer *observer,
                                   int64_t timeout,
                                   zklock_contender_visitor visitor,
                                   void *context);

/**
 * Frees an observer. Calls that are waiting with this observer go on. A freed observer has no more
 * events.
 *
 * @param observer may be NULL. A handle that was already freed is ignored.
 */
void zklock_observer_free(zklock_observer *observer);

/**
 * Takes the lock away from all its holders, by deleting their nodes. See zklock_evict for what
 * this breaks. Waiters stay in the queue, and so does a set of locks that is first in this queue
 * but still waits for another of its locks.
 *
 * The next holder of a single-node lock keeps its lock, with one exception: if the servers are of
 * version 3.4, or another library holds the lock, a node that is created just between the request
 * that reads the node and the one that deletes it is deleted too.
 *
 * @param lock the lock.
 * @param visitor called on this thread for each holder, before zklock_break_lock returns. It may
 *         make any call. It may be NULL.
 * @param context passed to the visitor.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
 *         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_break_lock(zklock_lock *lock,
                                zklock_contender_visitor visitor,
                                void *context);

/**
 * Takes one contender, of any library, out of the queue by deleting its node. A holder learns that
 * its hold is lost, if its library reports that. A waiter queues again.
 *
 * Evicting a holder breaks the protection of the lock, unless the holder is known to have stopped:
 * until it learns of the loss, it believes that it holds the lock, and another already does.
 *
 * All nodes of a single-node lock have the same path, so this evicts the current holder, which may
 * not be the contender that you saw. zklock_break_lock avoids this.
 *
 * @param lock the lock.
 * @param node the path of the contender's node, as zklock_contenders shows it.
 * @param[out] evicted 1, or 0 if the node no longer existed. It may be NULL.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
 *         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT if
 *         the node is not that of a contender of this lock.
 */
ZKLOCK_NODISCARD
zklock_status zklock_evict(zklock_lock *lock, const char *node, int *evicted);

/**
 * Asks all holders of the lock to release it. Nothing is taken away: a holder learns of the
 * request if it looks for waiters (see zklock_hold_is_wanted), and keeps the lock until it
 * releases it.
 *
 * The request is written as Curator's Revoker writes it: the data of the holder's node becomes
 * `__REVOKE__`. So it reaches holders of zklock, in this process too, and holders of a Curator
 * InterProcessMutex that called makeRevocable. Other libraries ignore it. Below that word, the node
 * of a holder of zklock keeps its identity. For a holder of another library, the word replaces it.
 *
 * @param lock the lock.
 * @param visitor called on this thread for each holder, before zklock_request_release returns. It may make
 *         any call. It may be NULL.
 * @param context passed to the visitor.
 * @return ZKLOCK_OK, even if the lock has no holder; ZKLOCK_UNREACHABLE if no server answers
 *         within the connect timeout; ZKLOCK_REFUSED, for example if the access list does not
 *         allow writing to a holder's node (all other holders are still asked, but the visitor is
 *         not called); ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_request_release(zklock_lock *lock,
                                     zklock_contender_visitor visitor,
                                     void *context);

/**
 * Gets the counters of a client. It sends no request.
 *
 *     zklock_stats stats;
 *
 *     if (zklock_client_stats(client, &stats) != ZKLOCK_OK) return fail(zklock_last_error());
 *     if (stats.losses_by[ZKLOCK_REASON_NODE_DELETED] > 0) puts("an operator breaks our locks");
 *
 * @param client the client. If it has not connected yet, all counts are 0.
 * @param[out] stats the counts.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_stats(const zklock_client *client, zklock_stats *stats);

/**
 * Gets the figures of the locks with one name in a client: what happened so far, and the present
 * state. The text of zklock_client_prometheus also has how long they waited and held. It sends
 * no request.
 *
 *     zklock_lock_stats report;
 *
 *     if (zklock_client_lock_stats(client, "report", &report) != ZKLOCK_OK) return fail(zklock_last_error());
 *     if (report.oldest_hold > 3600000) puts("somebody has been writing the report for an hour");
 *
 * @param client the client.
 * @param name the lock's option metrics-name: 1 to 128 bytes, without control characters.
 * @param[out] stats the figures, all 0 if the client has made no lock with this name.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_lock_stats(const zklock_client *client,
                                       const char *name,
                                       zklock_lock_stats *stats);

/**
 * Gets a histogram of the values that a client has counted so far, such as the times that acquires
 * took. For each bucket, it has the number of values that are not larger than its bound. It sends
 * no request.
 *
 *     zklock_bucket buckets[ZKLOCK_BUCKETS];
 *     size_t length;
 *     double sum;
 *
 *     if (zklock_client_histogram(client, ZKLOCK_HISTOGRAM_ACQUIRE_WAIT, buckets, ZKLOCK_BUCKETS, &length, &sum) != ZKLOCK_OK)
 *         return fail(zklock_last_error());
 *     const uint64_t count = buckets[length - 1].count;
 *     if (count > 0) printf("%llu acquires waited %g s on average\n", (unsigned long long)count, sum / (double)count);
 *
 * @param client the client. If it has not connected yet, all counts are 0.
 * @param histogram one of zklock_histogram.
 * @param buckets receives the buckets, in the order of their bounds. Buckets that do not fit are
 *        left out. It may be NULL if size is 0.
 * @param size the number of buckets for which there is room. ZKLOCK_BUCKETS is enough for every
 *        histogram of this version.
 * @param[out] length the number of buckets, even if they do not fit.
 * @param[out] sum the sum of all values.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_client_histogram(const zklock_client *client,
                                      zklock_histogram histogram,
                                      zklock_bucket *buckets,
                                      size_t size,
                                      size_t *length,
                                      double *sum);

/**
 * Gets all figures of zklock_client_stats and zklock_client_histogram as text for Prometheus, for one
 * client or for several. The text has Prometheus' format 0.0.4: serve it as "text/plain;
 * version=0.0.4". It sends no request.
 *
 *     static char page[16384];
 *     size_t length;
 *
 *     if (zklock_prometheus(&client, NULL, 1, page, sizeof page, &length) != ZKLOCK_OK) return fail(zklock_last_error());
 *     if (length <= sizeof page) fwrite(page, 1, length, out);
 *
 * Names of metrics and labels do not change from version to version, but later versions may add
 * some. Serve one text on a page: in two texts every name would occur twice, which Prometheus refuses.
 *
 * @param clients the clients. If one has not connected yet, all its counts are 0.
 * @param names a name for each client, for the label "client". No two may be equal. NULL for a single
 *         client, without that label.
 * @param count the number of clients, at least 1.
 * @param buffer receives the text, without a NUL at its end. Text that does not fit is cut off. It
 *         may be NULL if size is 0.
 * @param size the size of the buffer in bytes.
 * @param[out] length the length of the whole text in bytes, even if it does not fit. The text may
 *         be longer the next time.
 * @return ZKLOCK_OK.
 */
ZKLOCK_NODISCARD
zklock_status zklock_prometheus(zklock_client *const *clients,
                                const char *const *names,
                                size_t count,
                                void *buffer,
                                size_t size,
                                size_t *length);

/**
 * Sends the library's log to a callback, or to nowhere. The whole process has one log callback:
 * the one that was set last.
 *
 * The callback gets one line at a time (see "Callbacks" above). While 10,000 lines are waiting for
 * it, further lines are dropped. Once this function returns, the previous callback is not running
 * and is never called again.
 *
 * @param level one of zklock_log_level.
 * @param callback the callback; NULL for none.
 * @param context passed to the callback. Both must stay valid until they are replaced.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if there is no such level.
 */
zklock_status zklock_set_log(zklock_log_level level, zklock_log_callback callback, void *context);

/* ==== Related primitives ==== */

/**
 * Creates the handle of the barrier at a path. This sends no request and does not set the barrier.
 * The barrier is compatible with Curator's DistributedBarrier.
 *
 * @param client the client. You may free it before the barrier.
 * @param path such as "/barriers/migration".
 * @param[out] barrier the barrier. Free it with zklock_barrier_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_new(zklock_client *client,
                                 const char *path,
                                 zklock_barrier **barrier);

/**
 * Sets the barrier, and waits for the servers' answer. It is not an error if the barrier is
 * already set.
 *
 * @param barrier the barrier.
 * @param[out] changed 1, or 0 if the barrier was already set. It may be NULL.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout, in which
 *         case the barrier may be set or not; ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a
 *         callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_set(zklock_barrier *barrier, int *changed);

/**
 * Starts to set the barrier as zklock_barrier_set does, and returns at once. zklock_call_finish
 * gives `changed` as its number.
 *
 * @param barrier the barrier. You may free it before the call.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_set_start(zklock_barrier *barrier, zklock_call **call);

/**
 * Removes the barrier, so that all waiters go on, and waits for the servers' answer. It is not an
 * error if the barrier is not set.
 *
 * @param barrier the barrier.
 * @param[out] changed 1, or 0 if the barrier was not set. It may be NULL.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout, in which
 *         case the barrier may be removed or not; ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK
 *         in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_remove(zklock_barrier *barrier, int *changed);

/**
 * Starts to remove the barrier as zklock_barrier_remove does, and returns at once.
 * zklock_call_finish gives `changed` as its number.
 *
 * @param barrier the barrier. You may free it before the call.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_remove_start(zklock_barrier *barrier, zklock_call **call);

/**
 * Waits until the barrier is not set. With a timeout of 0, it says whether the barrier is set.
 *
 * @param barrier the barrier.
 * @param timeout in milliseconds. 0 checks once, and takes the try timeout if no server answers.
 *         ZKLOCK_FOREVER waits as long as it takes. With any other timeout the call returns in
 *         time, whatever the network does.
 * @return ZKLOCK_OK; ZKLOCK_TIMEOUT if the barrier was set for all that time; ZKLOCK_UNREACHABLE
 *         if there was no connection in the end, or no server answered a single check;
 *         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_wait(zklock_barrier *barrier, int64_t timeout);

/**
 * Starts to wait for the barrier as zklock_barrier_wait does, and returns at once.
 *
 * @param barrier the barrier. You may free it before the call.
 * @param timeout in milliseconds, as for zklock_barrier_wait.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_barrier_wait_start(zklock_barrier *barrier,
                                        int64_t timeout,
                                        zklock_call **call);

/**
 * Frees the handle of a barrier. The barrier itself does not change, and waits for it go on.
 *
 * @param barrier may be NULL. A handle that was already freed is ignored.
 */
void zklock_barrier_free(zklock_barrier *barrier);

/**
 * Creates the handle of the double barrier at a path. This sends no request. The barrier is
 * compatible with Curator's DistributedDoubleBarrier.
 *
 * @param client the client. You may free it before the barrier.
 * @param path such as "/barriers/round".
 * @param members how many members open the barrier, 1 to 4294967295. Every program that uses it
 *         must give the same number. Additional members that come while it is open enter as well.
 * @param[out] double_barrier the barrier. Free it with zklock_double_barrier_free.
 * @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid.
 */
ZKLOCK_NODISCARD
zklock_status zklock_double_barrier_new(zklock_client *client,
                                        const char *path,
                                        uint32_t members,
                                        zklock_double_barrier **double_barrier);

/**
 * Enters the barrier as a new member, and waits until the barrier is open. Every call makes a
 * member of its own.
 *
 * @param double_barrier the barrier.
 * @param timeout in milliseconds. 0 enters only if the barrier is open or this member opens it,
 *         and takes the try timeout if no server answers. ZKLOCK_FOREVER waits as long as it
 *         takes. With any other timeout the call returns in time, whatever the network does.
 * @param[out] member the member, which stays inside until zklock_member_leave. Free it with
 *         zklock_member_free.
 * @return ZKLOCK_OK; ZKLOCK_TIMEOUT if the barrier did not open in that time; ZKLOCK_UNREACHABLE
 *         if there was no connection in the end, or no server answered a single try;
 *         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_double_barrier_enter(zklock_double_barrier *double_barrier,
                                          int64_t timeout,
                                          zklock_member **member);

/**
 * Starts to enter the barrier as zklock_double_barrier_enter does, and returns at once. When the
 * call has its result, take the member from it with zklock_call_member.
 *
 * @param double_barrier the barrier. You may free it before the call.
 * @param timeout in milliseconds, as for zklock_double_barrier_enter.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_double_barrier_enter_start(zklock_double_barrier *double_barrier,
                                                int64_t timeout,
                                                zklock_call **call);

/**
 * Takes the member from a call of zklock_double_barrier_enter_start that has entered. It returns
 * at once.
 *
 * @param call the call. You must still free it.
 * @param[out] member the member, which you now own. Free it with zklock_member_free.
 * @return ZKLOCK_OK; ZKLOCK_NOT_HELD if the member was already taken from the call;
 *         ZKLOCK_INVALID_ARGUMENT if the call is of another function; and everything that
 *         zklock_call_finish returns.
 */
ZKLOCK_NODISCARD
zklock_status zklock_call_member(zklock_call *call, zklock_member **member);

/**
 * Leaves the barrier, and waits until all other members have left. A member that crashes counts as
 * having left once its session is over.
 *
 * Whatever this returns, except for ZKLOCK_DEADLOCK and ZKLOCK_FORKED, this member has left or is
 * leaving in the background.
 *
 * @param member the member. You must still free it.
 * @param timeout in milliseconds. 0 does not wait for the others, and takes the try timeout if no
 *         server answers. ZKLOCK_FOREVER waits as long as it takes.
 * @return ZKLOCK_OK; ZKLOCK_TIMEOUT if other members are still inside; ZKLOCK_LOST if the member's
 *         session ended earlier, or its node was deleted, so that the others may have gone on
 *         without it; ZKLOCK_NOT_HELD if it has already left; ZKLOCK_UNREACHABLE if there was no
 *         connection in the end, or the timeout was 0 and no server answered; ZKLOCK_REFUSED;
 *         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
zklock_status zklock_member_leave(zklock_member *member, int64_t timeout);

/**
 * Starts to leave the barrier as zklock_member_leave does, and returns at once. If this gives you
 * a call, the member has left or is leaving in the background, even if you cancel or free the
 * call.
 *
 * @param member the member. You must still free it, and may do so before the call has its result.
 * @param timeout in milliseconds, as for zklock_member_leave.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_member_leave_start(zklock_member *member,
                                        int64_t timeout,
                                        zklock_call **call);

/**
 * Gets the path of a member's node.
 *
 * @param member the member.
 * @return the path, valid until the member is freed; "" if the handle is wrong.
 */
const char *zklock_member_node(const zklock_member *member);

/**
 * Says whether and why a member is lost. Once its session has ended, the others consider it to
 * have left. It sends no request.
 *
 * @param member the member.
 * @return why it was lost; ZKLOCK_REASON_NONE if it is not lost; ZKLOCK_REASON_OTHER if the
 *         handle is wrong.
 */
zklock_reason zklock_member_loss(const zklock_member *member);

/**
 * Frees a member. If it has not left yet, it leaves in the background, without waiting for the
 * others.
 *
 * @param member may be NULL. A handle that was already freed is ignored.
 */
void zklock_member_free(zklock_member *member);

/**
 * Frees the handle of a double barrier. Its members are not affected, and waits for it go on.
 *
 * @param double_barrier may be NULL. A handle that was already freed is ignored.
 */
void zklock_double_barrier_free(zklock_double_barrier *double_barrier);

/**
 * Starts to begin a run as zklock_job_begin does, and returns at once. When the call has its
 * result, take the hold from it with zklock_call_hold.
 *
 * @param job the job. You may free it before the call.
 * @param timeout in milliseconds, as for zklock_job_begin.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_job_begin_start(zklock_job *job, int64_t timeout, zklock_call **call);

/**
 * Starts to end a run as zklock_job_end does, and returns at once.
 *
 * @param hold the hold. You must still free it. Keep it until the call has its result: if you free
 *         the hold or the call earlier, or cancel the call, the run may count as failed.
 * @param failure as for zklock_job_end.
 * @param[out] call the call. Free it with zklock_call_free.
 * @return ZKLOCK_OK. Other statuses come with the result.
 */
ZKLOCK_NODISCARD
zklock_status zklock_job_end_start(zklock_hold *hold,
                                   const char *failure,
                                   zklock_call **call);

/**
 * Reads what is recorded of the last run of a job. It neither waits for a run nor disturbs it.
 *
 * @param job the job.
 * @param[out] record its outcome is ZKLOCK_RUN_NEVER if the job has never run.
 * @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
 *         ZKLOCK_REFUSED if the access list does not allow reading the record, or it cannot be read;
 *         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
 */
ZKLOCK_NODISCARD
zklock_status zklock_job_last(zklock_job *job, zklock_record *record);

/* ==== Versions ==== */

/**
 * Gets the version of the running library. ZKLOCK_VERSION is the version of the header.
 *
 * @return the version, such as "1.2.3". It is never NULL and is valid for the life of the process.
 */
const char *zklock_version(void);

/**
 * Gets the number of the interface of the running library. A binding that does not read this header
 * compares it with the number for which it was written, and refuses to run with any other.
 *
 * @return 1 for all versions 0.1.x, 2 for 0.2.x, and so on; 1000 for all versions 1.x, 2000 for 2.x
 */
uint32_t zklock_abi(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif /* ZKLOCK_H */
