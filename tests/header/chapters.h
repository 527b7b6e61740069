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
@INDEX@
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
 * zklock_acquire_start gives a zklock_ticket, the others a zklock_call. (zklock_client_guard,
 * zklock_hold_read, zklock_set_limit, zklock_evict, zklock_break_lock and zklock_revoke have no twin.)
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
#define ZKLOCK_VERSION "@VERSION@"
#define ZKLOCK_VERSION_MAJOR @MAJOR@
#define ZKLOCK_VERSION_MINOR @MINOR@
#define ZKLOCK_VERSION_PATCH @PATCH@
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
