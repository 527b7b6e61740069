/* A mutex for the locks of the standard library. */

#ifndef ZKLOCK_MUTEX_HPP
#define ZKLOCK_MUTEX_HPP

#include <chrono>
#include <memory>
#include <string>

#include "client.hpp"
#include "locked.hpp"

namespace zklock {
class scoped_lock;

/**
 * A mutex for the locks of the standard library. It meets the requirements of TimedLockable. See mutex and
 * recursive_mutex.
 *
 * It excludes other processes and other threads of this process, whether they share the object or have one each. It
 * cannot be moved, because the threads that locked it know it by its address.
 */
template <bool Reentrant>
class basic_mutex {
public:
    /** The option reentrant is ignored: the class decides. */
    basic_mutex(const client &maker, const std::string &path, lock_options how = lock_options())
        : locked_(maker.get(), maker.mutex(path, how.set("reentrant", Reentrant ? "yes" : "no")), Reentrant) {}

    /** Waits until the mutex is held. As with a std::mutex, a thread must not lock it twice. The log has a warning if one does. */
    void lock() { locked_.lock(); }
    /** Tries once; false if others or this thread hold it. Any other failure throws, for example an unreachable_error. */
    [[nodiscard]] bool try_lock() { return try_lock_for(detail::span(0)); }
    /** Waits for up to this time; false when the time is over. Any other failure throws. */
    [[nodiscard]] bool try_lock_for(detail::span wait) { return locked_.try_lock_for(wait); }
    /** Waits until this time at the latest. Setting the clock back prolongs the wait; setting it forward does not end it. */
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        return detail::try_until([this](detail::span wait) { return try_lock_for(wait); }, time);
    }

    /**
     * Releases the mutex, and waits until the servers have confirmed it, for up to a session timeout. After that the
     * release goes on in the background. In a callback it does not wait, and the lock is released in the background
     * once the last copy of current() is destroyed. A thread that has not locked the mutex unlocks it for the thread
     * that has, because a std::unique_lock can be handed over. But a recursive mutex can only be unlocked by its own
     * thread. Since destructors call this function, it does not throw: only current() reports a loss.
     */
    void unlock() noexcept { locked_.unlock(); }

    /**
     * The hold that unlock() would release. It has the token and the lease, and reports a loss. Throws a misuse_error if
     * the mutex is not locked.
     *
     *     std::unique_lock guard(mutex);
     *     write_the_report(mutex.current()->token());
     *     mutex.current()->release(); // throws if it was lost; the guard then finds nothing more to do
     *
     * You may keep the hold: after unlock(), its state is either released or lost.
     */
    std::shared_ptr<hold> current() const {
        if (std::shared_ptr<hold> held = locked_.current()) return held;
        detail::fail(ZKLOCK_NOT_HELD, "the mutex " + path() + " is not locked: lock it first");
    }
    /** The path of the lock. */
    std::string path() const { return locked_.path(); }
private:
    friend class scoped_lock;
    detail::locked locked_;
};

/** Like std::timed_mutex. See basic_mutex. */
using mutex = basic_mutex<false>;
/**
 * Like std::recursive_timed_mutex: the thread that locked it may lock it again, and must unlock it as often. See
 * basic_mutex. Do not use it if a thread may switch to other work while it holds the mutex, as a thread that runs coroutines
 * does: both pieces of work would hold it together.
 */
using recursive_mutex = basic_mutex<true>;
} // namespace zklock

#endif // ZKLOCK_MUTEX_HPP
