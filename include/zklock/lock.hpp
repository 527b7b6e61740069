/* A lock, of any kind. */

#ifndef ZKLOCK_LOCK_HPP
#define ZKLOCK_LOCK_HPP

#include <optional>
#include <string>
#include <vector>

#include "contender.hpp"
#include "hold.hpp"
#include "observer.hpp"

namespace zklock {

/** A lock at a path, made by a client. The object itself holds nothing. Any number of threads may acquire it. */
class lock : public detail::owner<zklock_lock, zklock_lock_free> {
public:
    using owner::owner;
    /** Waits until the lock is held. If this thread holds it already, it waits until another thread releases that hold. */
    hold acquire() const { return acquire_for(detail::span::max()); }
    /** Waits until the lock is held, for up to this time, whatever the network does. Then it throws a timeout_error, or an
        unreachable_error if there is no connection. */
    hold acquire_for(detail::span wait) const { return hold(ask<zklock_hold *>(zklock_acquire, detail::ms(wait))); }
    /** Tries once. Nothing if the lock is held; throws an unreachable_error if no server answers within the try timeout. Repeated
        tries of a busy lock send no request, so a try just after another client's release may still fail: see zklock_acquire. */
    [[nodiscard]] std::optional<hold> try_acquire() const { return try_acquire_for(detail::span(0)); }
    /** Like acquire_for(), but returns nothing when the time is over. */
    [[nodiscard]] std::optional<hold> try_acquire_for(detail::span wait) const {
        return ask_unless<hold, zklock_hold *>(ZKLOCK_TIMEOUT, zklock_acquire, detail::ms(wait));
    }
    /** Starts to wait for the lock, for up to this time, and returns at once. */
    async_call<hold> start(detail::span wait = detail::span::max()) const {
        return begun<hold>(zklock_acquire_start, detail::ms(wait));
    }
    /** The contenders in the queue, holders first. Those of other libraries are included. */
    std::vector<contender> contenders() const { return detail::shown_by(zklock_contenders, get()); }
    /** Does what contenders() does, in the background. */
    async_call<std::vector<contender>> start_contenders() const { return begun<std::vector<contender>>(zklock_contenders_start); }
    /** Takes the contender with this node out of the queue; false if the node no longer existed. See zklock_evict. */
    bool evict(const std::string &node) const { return ask<int>(zklock_evict, detail::text(node)) != 0; }
    /** Takes the lock away from all its holders, and returns them. See zklock_evict for what this breaks. */
    std::vector<contender> break_lock() const { return detail::shown_by(zklock_break_lock, get()); }
    /** Asks all holders to release the lock, and returns them. See zklock_request_release. */
    std::vector<contender> request_release() const { return detail::shown_by(zklock_request_release, get()); }
    /** Observes who holds the lock. Throws a misuse_error for a semaphore or a set, which have no single holder. */
    zklock::observer observe() const { return zklock::observer(ask<zklock_observer *>(zklock_observe)); }
    /** The path of the lock, or all the paths of a set of locks. */
    std::string path() const { return zklock_lock_path(get()); }
};
} // namespace zklock

#endif // ZKLOCK_LOCK_HPP
