/* What has happened to anything that a client made, through one descriptor. */

#ifndef ZKLOCK_EVENT_HPP
#define ZKLOCK_EVENT_HPP

#include "async_call.hpp"
#include "hold.hpp"
#include "ticket.hpp"

namespace zklock {

/**
 * Something that has happened, which client::next_event() gives: see zklock_event_kind. What it happened to stays yours, and is
 * found by its context, or asked with is_of().
 */
struct event {
    zklock_event_kind kind;
    /** What was given to set_context() of the ticket, the call or the hold. */
    void *context;
    zklock_ticket *ticket;
    zklock_call *call;
    zklock_hold *hold;
    /** Whether it happened to this. */
    bool is_of(const zklock::ticket &it) const noexcept { return ticket && ticket == it.get(); }
    bool is_of(const detail::running &it) const noexcept { return call && call == it.get(); }
    bool is_of(const zklock::hold &it) const noexcept { return hold && hold == it.get(); }
};
} // namespace zklock

#endif // ZKLOCK_EVENT_HPP
