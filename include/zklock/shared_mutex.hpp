/* A read/write lock for the locks of the standard library. */

#ifndef ZKLOCK_SHARED_MUTEX_HPP
#define ZKLOCK_SHARED_MUTEX_HPP

#include <chrono>
#include <memory>
#include <string>

#include "client.hpp"
#include "locked.hpp"

namespace zklock {
class scoped_lock;

/**
 * Like std::shared_timed_mutex. It meets the requirements of SharedTimedLockable: std::shared_lock takes its read side, and
 * all other locks of the standard library its write side.
 *
 *     zklock::shared_mutex catalogue(client, "/locks/catalogue");
 *     std::shared_lock reading(catalogue);
 *
 * It excludes other processes and other threads of this process, whether they share the object or have one each. It
 * cannot be moved, because the threads that locked it know it by its address.
 *
 * A thread that has locked the read side may lock it again, as another thread might, and must unlock it as often. If it
 * locks the write side, it waits for itself. So does a thread that has locked the write side and locks the read side. The
 * log has a warning about such a wait, and a try returns false. To go from writing to reading without a gap, use
 * client::write_lock() with lock_options().set("reentrant", "yes"), acquire client::read_lock(), and then release the write side:
 *
 *     zklock::hold writing = client.write_lock("/locks/catalogue", zklock::lock_options().set("reentrant", "yes")).acquire();
 *     zklock::hold reading = client.read_lock("/locks/catalogue").acquire();
 *     writing.release();
 */
class shared_mutex {
public:
    /** A shared_mutex is never reentrant, whatever the options say. */
    shared_mutex(const client &maker, const std::string &path, lock_options how = lock_options())
        : write_(maker.get(), maker.write_lock(path, how.set("reentrant", "no")), false), read_(maker.get(), maker.read_lock(path, how), false) {}

    /** Waits until the write side is held. */
    void lock() { write_.lock(); }
    /** Tries once; false if others or this thread hold it. Any other failure throws, for example an unreachable_error. */
    [[nodiscard]] bool try_lock() { return try_lock_for(detail::span(0)); }
    /** Waits for up to this time; false when the time is over. Any other failure throws. */
    [[nodiscard]] bool try_lock_for(detail::span wait) { return write_.try_lock_for(wait); }
    /** Waits until this time at the latest. */
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        return detail::try_until([this](detail::span wait) { return try_lock_for(wait); }, time);
    }
    /** Releases the write side, as zklock::mutex::unlock() does. */
    void unlock() noexcept { write_.unlock(); }
    /** The hold that unlock() would release. Throws a misuse_error if there is none. */
    std::shared_ptr<hold> current() const { return held(write_, "write"); }

    /** Waits until the read side is held. */
    void lock_shared() { read_.lock(); }
    /** Tries once; false if a writer holds it or waits for it. Any other failure throws. */
    [[nodiscard]] bool try_lock_shared() { return try_lock_shared_for(detail::span(0)); }
    /** Waits for up to this time; false when the time is over. Any other failure throws. */
    [[nodiscard]] bool try_lock_shared_for(detail::span wait) { return read_.try_lock_for(wait); }
    /** Waits until this time at the latest. */
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &time) {
        return detail::try_until([this](detail::span wait) { return try_lock_shared_for(wait); }, time);
    }
    /** Releases the read side that this thread has locked, or that of the oldest reader if this thread has not locked it. */
    void unlock_shared() noexcept { read_.unlock(); }
    /** The hold that unlock_shared() would release. Throws a misuse_error if there is none. */
    std::shared_ptr<hold> current_shared() const { return held(read_, "read"); }

    /** The path of the lock. */
    std::string path() const { return write_.path(); }
private:
    friend class scoped_lock;
    std::shared_ptr<hold> held(const detail::locked &side, const char *name) const {
        if (std::shared_ptr<hold> held = side.current()) return held;
        detail::fail(ZKLOCK_NOT_HELD, std::string("the ") + name + " side of " + path() + " is not locked: lock it first");
    }

    detail::locked write_, read_;
};
} // namespace zklock

#endif // ZKLOCK_SHARED_MUTEX_HPP
