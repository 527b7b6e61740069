/* A semaphore as the standard library has it. */

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
 * As std::counting_semaphore, but that nobody can release what was not acquired through the same object.
 *
 *     zklock::semaphore licences(client, "/locks/licences", 5);
 *     licences.acquire();
 *
 * With permits that are holds, each with its own loss and end, see client::semaphore().
 */
class semaphore {
public:
    /** All who use it must agree on the limit. */
    semaphore(const client &maker, const std::string &path, std::uint32_t limit, const lock_options &how = lock_options())
        : locked_(maker.semaphore(path, limit, how), false) {}

    /** Waits until a permit is held: as many as lock_options::permits() says. */
    void acquire() { locked_.lock(); }
    /** Tries once. False: no permit is free. All else throws, such as an unreachable_error. */
    [[nodiscard]] bool try_acquire() { return try_acquire_for(detail::span(0)); }
    /** Waits for this time at most. False: the time is over. All else throws. */
    [[nodiscard]] bool try_acquire_for(detail::span wait) { return locked_.try_lock_for(wait); }
    /** Waits until then at most. */
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &time) {
        return detail::try_until([this](detail::span wait) { return try_acquire_for(wait); }, time);
    }
    /** Gives up what so many acquires got, its own first; if there are no more it does nothing. */
    void release(std::ptrdiff_t times = 1) noexcept {
        while (times-- > 0) locked_.unlock();
    }
    /** The hold that release() would give up; a misuse_error if there is none. */
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
