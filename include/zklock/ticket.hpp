/* Waits for event loops. */

#ifndef ZKLOCK_TICKET_HPP
#define ZKLOCK_TICKET_HPP

#include <optional>

#include "hold.hpp"

namespace zklock {

/**
 * A wait for a lock that goes on in the background, for event loops. The destructor cancels it. When fd() is readable:
 *
 *     if (std::optional<zklock::hold> hold = ticket.try_finish()) work_with(std::move(*hold));
 */
class [[nodiscard]] ticket : public detail::owner<zklock_ticket, zklock_ticket_free> {
public:
    using owner::owner;
    /** A descriptor: readable when there is a result. It is valid until the ticket is destroyed; do not close it. */
    int fd() const { return ask<int>(zklock_ticket_fd); }
    /** Sets the pointer that its event gives back, and those of the hold that it gives. The library never follows it. */
    void set_context(void *context) { detail::check(zklock_ticket_set_context(get(), context)); }
    /** The result, which can be taken once; nothing as long as the wait goes on. It throws what acquire_for() throws, or
        an error with ZKLOCK_INTERRUPTED if the wait was cancelled. */
    [[nodiscard]] std::optional<hold> try_finish() {
        return ask_unless<hold, zklock_hold *>(ZKLOCK_PENDING, zklock_acquire_finish);
    }
    /** Cancels the wait, unless there already is a result. Nothing is left behind in the queue. */
    void cancel() { detail::check(zklock_acquire_cancel(get())); }
};
} // namespace zklock

#endif // ZKLOCK_TICKET_HPP
