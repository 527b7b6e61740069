/*
 * zklock.hpp - distributed locks on Apache ZooKeeper, for C++17 and later
 *
 * The classes of this file keep the handles of zklock.h and turn its statuses into exceptions. What a hold promises,
 * and what threads, signals and fork do, is said at the top of zklock.h, and holds here as well.
 *
 *     zklock::client client("zk1:2181,zk2:2181,zk3:2181");
 *     zklock::mutex mutex(client, "/locks/report");
 *     {
 *         std::lock_guard guard(mutex);
 *         write_the_report();
 *     }
 *
 * A zklock::mutex goes where a std::timed_mutex goes: std::unique_lock, std::scoped_lock (with several),
 * std::condition_variable_any; a zklock::shared_mutex where a std::shared_timed_mutex goes; and a zklock::semaphore is
 * used as a std::counting_semaphore. Unlike those, they can be lost. To learn of that, take the hold:
 *
 *     zklock::hold hold = client.mutex("/locks/report").acquire_for(5s);
 *     hold.on_lost([&](zklock_reason) { stop = true; });
 *     write_the_report(hold.token());
 *     hold.release(); // throws a lost_error
 *
 * All kinds of lock come from the client: mutex, read, write, semaphore, election, exclusive, and sets of them (all).
 *
 * Errors and times
 * ----------------
 *
 * What fails throws a zklock::error, which has the zklock_status and the message that explains it. What a caller may want
 * to catch by itself has a class of its own. Destructors and unlock() do not throw.
 *
 * A wait is any duration of std::chrono, rounded up to whole milliseconds. One that is not positive tries once; one
 * that is too long for milliseconds to say waits for ever.
 *
 * Event loops
 * -----------
 *
 * What has start in its name waits in the background, and gives an object with a descriptor: lock::start() a ticket, all
 * others an async_call. Their try_finish() gives the result as soon as fd() is readable. A client has a descriptor for all of
 * them, and for its holds: when it is readable, next_event() says what has happened.
 *
 * Objects
 * -------
 *
 * Only lock_options can be copied; all but the mutexes and semaphores can be moved. One that was moved from can be
 * assigned to and destroyed; everything else throws a misuse_error. They may be destroyed in any order. No destructor waits for a server: a hold is
 * released in the background, and a client closed when all that it made is gone as well. So statics do no harm at the
 * end of the process; in a forked child destructors do nothing.
 *
 * Several threads may call the const members of one object at once, and all members of a mutex or semaphore.
 *
 * Files
 * -----
 *
 * A program includes this file, which brings all those of the folder zklock: one noun in each.
 */

#ifndef ZKLOCK_HPP
#define ZKLOCK_HPP

#include "zklock/async_call.hpp"
#include "zklock/barrier.hpp"
#include "zklock/client.hpp"
#include "zklock/contender.hpp"
#include "zklock/double_barrier.hpp"
#include "zklock/error.hpp"
#include "zklock/event.hpp"
#include "zklock/hold.hpp"
#include "zklock/lock.hpp"
#include "zklock/lock_options.hpp"
#include "zklock/locked.hpp"
#include "zklock/mutex.hpp"
#include "zklock/observer.hpp"
#include "zklock/options.hpp"
#include "zklock/semaphore.hpp"
#include "zklock/shared_mutex.hpp"
#include "zklock/ticket.hpp"

#endif // ZKLOCK_HPP
