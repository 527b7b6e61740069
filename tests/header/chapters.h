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
@INDEX@
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
#define ZKLOCK_VERSION "@VERSION@"
#define ZKLOCK_VERSION_MAJOR @MAJOR@
#define ZKLOCK_VERSION_MINOR @MINOR@
#define ZKLOCK_VERSION_PATCH @PATCH@
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
