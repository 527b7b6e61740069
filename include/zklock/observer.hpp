/* The holder of a lock, seen from outside. */

#ifndef ZKLOCK_OBSERVER_HPP
#define ZKLOCK_OBSERVER_HPP

#include <optional>

#include "contender.hpp"
#include "handle.hpp"

namespace zklock {

/**
 * Reports who holds a lock, without taking part: of an election, who leads.
 *
 *     zklock::observer observer = client.election("/election/scheduler").observe();
 *     while (const auto leader = observer.next()) greet(leader->identity);
 *
 * One thread at a time may ask it.
 */
class observer : public detail::owner<zklock_observer, zklock_observer_free> {
public:
    using owner::owner;
    /** The holder, nothing if there is none; when called again, as soon as that changes. */
    std::optional<contender> next() { return next_for(detail::span::max()); }
    /** The same, for this time at most: then it throws a timeout_error. A wait of 0 asks whether something is new. */
    std::optional<contender> next_for(detail::span wait) {
        const auto *holder = ask<const zklock_contender *>(zklock_observer_next, detail::ms(wait));
        if (!holder) return std::nullopt;
        return detail::copied(*holder);
    }
    /** Readable while something is new; then ask next_for(0s). It lives as long as the observer; do not close it. */
    int fd() const { return ask<int>(zklock_observer_fd); }
};
} // namespace zklock

#endif // ZKLOCK_OBSERVER_HPP
