/*
 * zklock.hpp - distributed locks on Apache ZooKeeper, for C++17 and later
 *
 * These classes own the handles of zklock.h and turn its statuses into exceptions. The top of zklock.h says what a hold
 * promises, and how the library behaves with threads, signals and fork. All of that applies here too.
 *
 *     zklock::client client("zk1:2181,zk2:2181,zk3:2181");
 *     zklock::hold hold = client.mutex("/locks/report").acquire_for(5s);
 *     hold.on_lost([&] { stop = true; });
 *     write_the_report(hold.token());
 *     hold.release(); // throws a lost_error
 *
 * Unlike those of the standard library, a zklock lock can be lost: the hold tells of it.
 *
 * Start here
 * ----------
 *
 * - client: connects, and makes every kind of lock: mutex, semaphore, election; close()
 * - lock: acquire, acquire_for, try_acquire, contenders
 * - hold: token, valid_for, ensure, on_lost, release
 * - job: runs once in each period, on one of many hosts
 * - error, and the classes that derive from it
 *
 * Further
 * -------
 *
 * - More kinds of lock: read_lock, write_lock, single_node, sets of locks (all) and choices of them (any)
 * - lockable, recursive_lockable and shared_lockable adapt a lock to std::unique_lock and its kin. They need to know what to
 *   do at a loss, because unlock() cannot report it. To lock several of them at once, use a zklock::scoped_lock. A
 *   std::scoped_lock makes little progress if threads or processes contend: it tries one while it holds another, and a try
 *   fails while others wait.
 * - options, observer, barrier, double_barrier, writes to ZooKeeper itself, figures
 *
 * Errors and times
 * ----------------
 *
 * A function that fails throws a zklock::error, which has the status and a message that explains it. Errors that a
 * caller may want to handle separately have their own classes. Destructors and unlock() do not throw.
 *
 * A wait is any std::chrono duration, rounded up to whole milliseconds. If it is zero or negative, the call tries once.
 * If it is too long to be expressed in milliseconds, the call waits for ever.
 *
 * Event loops
 * -----------
 *
 * A function whose name contains start waits in the background and returns an async_call. When its fd() is readable,
 * try_finish() gives the result. A client has one descriptor for all of its calls, holds and observers. When it is
 * readable, next_event() says what has happened.
 *
 * Objects
 * -------
 *
 * Only options can be copied. All classes except the lockables and scoped_lock can be moved. An object
 * that was moved from can be assigned to or destroyed; anything else throws a misuse_error. Objects may be destroyed in
 * any order. No destructor waits for a server, except that of scoped_lock, which unlocks. A hold is released in the
 * background, and a client is closed once everything that it made is destroyed too. So static objects are safe when the
 * process ends. In a forked child, destructors do nothing.
 *
 * Several threads may call const member functions of one object at the same time, and all member functions of a
 * lockable.
 *
 * Files
 * -----
 *
 * Include this file. It includes all the files of the folder zklock, each of which has one of the classes.
 */

#ifndef ZKLOCK_HPP
#define ZKLOCK_HPP

#include "zklock/client.hpp"
#include "zklock/lock.hpp"
#include "zklock/hold.hpp"
#include "zklock/job.hpp"
#include "zklock/error.hpp"
#include "zklock/options.hpp"
#include "zklock/lockable.hpp"
#include "zklock/scoped_lock.hpp"
#include "zklock/observer.hpp"
#include "zklock/contender.hpp"
#include "zklock/barrier.hpp"
#include "zklock/double_barrier.hpp"
#include "zklock/async_call.hpp"
#include "zklock/event.hpp"
#include "zklock/enums.hpp"

#endif // ZKLOCK_HPP
