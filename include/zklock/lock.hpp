/* A thing that can be acquired. */

#ifndef ZKLOCK_LOCK_HPP
#define ZKLOCK_LOCK_HPP

#include <optional>
#include <string>
#include <vector>

#include "contender.hpp"
#include "hold.hpp"
#include "observer.hpp"
#include "ticket.hpp"

namespace zklock {

/** A lock at a path, which a client makes. It holds nothing itself; any number of threads may acquire it. */
class lock : public detail::owner<zklock_lock, zklock_lock_free> {
public:
    using owner::owner;
    /** Waits until the lock is held, even if this thread holds it itself, since another may release that hold. */
    hold acquire() const { return acquire_for(detail::span::max()); }
    /** The same, for this time at most, whatever the network does: then it throws a timeout_error, or without a connection
        an unreachable_error. */
    hold acquire_for(detail::span wait) const { return hold(ask<zklock_hold *>(zklock_acquire, detail::ms(wait))); }
    /** Tries once: nothing if the lock is held; an unreachable_error if no server answers within the try timeout. Further tries of
        a busy lock cost no request, see zklock_acquire; so one right after another client's release may come too early. */
    [[nodiscard]] std::optional<hold> try_acquire() const { return try_acquire_for(detail::span(0)); }
    /** As acquire_for(), but nothing when the time is over. */
    [[nodiscard]] std::optional<hold> try_acquire_for(detail::span wait) const {
        return ask_unless<hold, zklock_hold *>(ZKLOCK_TIMEOUT, zklock_acquire, detail::ms(wait));
    }
    /** Begins to wait, for this time at most, and returns at once. */
    ticket start(detail::span wait = detail::span::max()) const {
        return ticket(ask<zklock_ticket *>(zklock_acquire_start, detail::ms(wait)));
    }
    /** The contenders in the queue, of any library, the holders first. */
    std::vector<contender> contenders() const { return detail::shown_by(zklock_contenders, get()); }
    /** As contenders(), in the background. */
    async_call<std::vector<contender>> start_contenders() const {
        return async_call<std::vector<contender>>(ask<zklock_call *>(zklock_contenders_start));
    }
    /** Takes any contender out of the queue by its node; false: it was gone. See zklock_evict. */
    bool evict(const std::string &node) const { return ask<int>(zklock_evict, detail::text(node)) != 0; }
    /** Takes the lock away from all its holders, and returns them. See zklock_evict for what that breaks. */
    std::vector<contender> break_lock() const { return detail::shown_by(zklock_break_lock, get()); }
    /** Asks all holders to let the lock go, and returns them. See zklock_revoke. */
    std::vector<contender> revoke() const { return detail::shown_by(zklock_revoke, get()); }
    /** Observes who holds it. A misuse_error for a semaphore and for a set, which have no single holder. */
    zklock::observer observe() const { return zklock::observer(ask<zklock_observer *>(zklock_observe)); }
    /** The path; of a set of locks, the paths of all. */
    std::string path() const { return ask<const char *>(zklock_lock_path); }
};
} // namespace zklock

#endif // ZKLOCK_LOCK_HPP
