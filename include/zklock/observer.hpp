/* Reports who holds a lock. */

#ifndef ZKLOCK_OBSERVER_HPP
#define ZKLOCK_OBSERVER_HPP

#include <optional>
#include <utility>
#include <vector>

#include "contender.hpp"
#include "handle.hpp"

namespace zklock {

/**
 * Reports who holds a lock or, for an election, who leads, without taking part.
 *
 *     zklock::observer observer = client.election("/election/scheduler").observe();
 *     while (const auto leader = observer.next()) greet(leader->identity);
 *
 * In an event loop, call next_for(0s) when the client has an event_kind::leader. Only one thread at a time may use it.
 */
class observer : public detail::owner<zklock_observer, zklock_observer_free> {
public:
    using owner::owner;
    /** The holder; nothing if there is none. Later calls wait until the holder changes. */
    std::optional<contender> next() { return next_for(detail::span::max()); }
    /** Like next(), but waits for up to this time. Then it throws a timeout_error. A wait of 0 gives what was found in the
        background. */
    std::optional<contender> next_for(detail::span wait) {
        std::vector<contender> holder = detail::shown_by(zklock_observer_next, get(), detail::ms(wait));
        if (holder.empty()) return std::nullopt;
        return std::move(holder.front());
    }
};
} // namespace zklock

#endif // ZKLOCK_OBSERVER_HPP
