/* Waits for event loops. */

#ifndef ZKLOCK_TICKET_HPP
#define ZKLOCK_TICKET_HPP

#include <optional>

#include "hold.hpp"

namespace zklock {

/**
 * A wait for a lock that goes on by itself, for event loops. The destructor ends it. When fd() is readable:
 *
 *     if (std::optional<zklock::hold> hold = ticket.try_finish()) work_with(std::move(*hold));
 */
class [[nodiscard]] ticket : public detail::owner<zklock_ticket, zklock_ticket_free> {
public:
    using owner::owner;
    /** Readable when there is a result. It lives as long as the ticket; do not close it. */
    int fd() const { return ask<int>(zklock_ticket_fd); }
    /** What its event gives back, and that of the hold that comes of it. Nobody looks behind it. */
    void set_context(void *context) { detail::check(zklock_ticket_set_context(get(), context)); }
    /** The result, once; nothing as long as the wait goes on. It throws what acquire_for() does, or was cancelled. */
    [[nodiscard]] std::optional<hold> try_finish() {
        return ask_unless<hold, zklock_hold *>(ZKLOCK_PENDING, zklock_acquire_finish);
    }
    /** Ends the wait, unless there is a result already. Nothing is left behind in the queue. */
    void cancel() { detail::check(zklock_acquire_cancel(get())); }
};
} // namespace zklock

#endif // ZKLOCK_TICKET_HPP
