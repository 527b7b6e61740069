/* A semaphore in the style of the standard library. */

#ifndef ZKLOCK_SEMAPHORE_HPP
#define ZKLOCK_SEMAPHORE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "client.hpp"
#include "locked.hpp"

namespace zklock {

/**
 * Like std::counting_semaphore, except that you can only release what was acquired through the same object.
 *
 *     zklock::semaphore licences(client, "/locks/licences", 5);
 *     licences.acquire();
 *
 * If you want each permit as a hold, with its own loss and release, see client::semaphore().
 */
class semaphore {
public:
    /** Every program that uses the semaphore must give the same limit. */
    semaphore(const client &maker, const std::string &path, std::uint32_t limit, const lock_options &how = lock_options())
        : locked_(maker.get(), maker.semaphore(path, limit, how), false) {}

    /** Waits until a permit is held, or as many permits as lock_options::permits() says. */
    void acquire() { locked_.lock(); }
    /** Tries once; false if no permit is free. Any other failure throws, for example an unreachable_error. */
    [[nodiscard]] bool try_acquire() { return try_acquire_for(detail::span(0)); }
    /** Waits for up to this time; false when the time is over. Any other failure throws. */
    [[nodiscard]] bool try_acquire_for(detail::span wait) { return locked_.try_lock_for(wait); }
    /** Waits until this time at the latest. */
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &time) {
        return detail::try_until([this](detail::span wait) { return try_acquire_for(wait); }, time);
    }
    /** Releases what this many acquires got, those of this thread first. If there are no more, it does nothing. */
    void release(std::ptrdiff_t times = 1) noexcept {
        while (times-- > 0) locked_.unlock();
    }
    /** The hold that release() would release. Throws a misuse_error if there is none. */
    std::shared_ptr<hold> current() const {
        if (std::shared_ptr<hold> held = locked_.current()) return held;
        detail::fail(ZKLOCK_NOT_HELD, "no permit of " + path() + " is held here: acquire one first");
    }
    /** The path of the semaphore. */
    std::string path() const { return locked_.path(); }
private:
    detail::locked locked_;
};
} // namespace zklock

#endif // ZKLOCK_SEMAPHORE_HPP
