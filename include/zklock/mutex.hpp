/* A mutex for the locks of the standard library. */

#ifndef ZKLOCK_MUTEX_HPP
#define ZKLOCK_MUTEX_HPP

#include <chrono>
#include <memory>
#include <string>

#include "client.hpp"
#include "locked.hpp"

namespace zklock {

/**
 * A mutex for the locks of the standard library: it meets TimedLockable. See mutex and recursive_mutex.
 *
 * It excludes other processes and the threads of this one, which may share the object or have one each. It cannot be
 * moved, because the threads that locked it know it by its address.
 */
template <bool Reentrant>
class basic_mutex {
public:
    /** Whether it is reentrant is not taken from the options. */
    basic_mutex(const client &maker, const std::string &path, lock_options how = lock_options())
        : locked_(maker.mutex(path, how.reentrant(Reentrant)), Reentrant) {}

    /** Waits until it is held; as with a std::mutex, do not lock it twice. The log warns where a thread does. */
    void lock() { locked_.lock(); }
    /** Tries once. False: it is held, by others or this thread. All else throws, such as an unreachable_error. */
    [[nodiscard]] bool try_lock() { return try_lock_for(detail::span(0)); }
    /** Waits for this time at most. False: the time is over. All else throws. */
    [[nodiscard]] bool try_lock_for(detail::span wait) { return locked_.try_lock_for(wait); }
    /** Waits until then at most. A clock that is set back prolongs it; one that is set forward does not end it. */
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        return detail::try_until([this](detail::span wait) { return try_lock_for(wait); }, time);
    }

    /**
     * Releases it, and waits until the servers have confirmed that, for a session timeout at most; then it goes on in
     * the background. In a callback it does not wait, and ends with the last copy of current(). A thread that has not
     * locked it unlocks it for the one that has, as a std::unique_lock may be handed over, but not if it is recursive.
     * Since destructors call this it does not throw: only current() reports a loss.
     */
    void unlock() noexcept { locked_.unlock(); }

    /**
     * The hold that unlock() would release; a misuse_error if there is none. It has the token, the lease and the loss:
     *
     *     std::unique_lock guard(mutex);
     *     write_the_report(mutex.current()->token());
     *     mutex.current()->release(); // throws if it was lost; the guard then finds nothing more to do
     *
     * It may be kept: after unlock(), its state is either ZKLOCK_STATE_RELEASED or ZKLOCK_STATE_LOST.
     */
    std::shared_ptr<hold> current() const {
        if (std::shared_ptr<hold> held = locked_.current()) return held;
        detail::fail(ZKLOCK_NOT_HELD, "nobody has locked the mutex " + path() + ": lock it first");
    }
    /** The path of the lock. */
    std::string path() const { return locked_.path(); }
private:
    detail::locked locked_;
};

/** As std::timed_mutex. See basic_mutex. */
using mutex = basic_mutex<false>;
/**
 * As std::recursive_timed_mutex: its thread may lock it again, and unlocks it as often. See basic_mutex. Do not use it if a
 * thread turns to other work while the first holds it, as a thread that runs coroutines does: they would be inside together.
 */
using recursive_mutex = basic_mutex<true>;
} // namespace zklock

#endif // ZKLOCK_MUTEX_HPP
