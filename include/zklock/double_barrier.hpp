/* The double barrier: its members begin together and end together. */

#ifndef ZKLOCK_DOUBLE_BARRIER_HPP
#define ZKLOCK_DOUBLE_BARRIER_HPP

#include <cstdint>
#include <optional>
#include <string>

#include "client.hpp"

namespace zklock {

/** A member inside a double barrier. The destructor leaves in the background, without waiting for the others. */
class [[nodiscard]] member : public detail::owner<zklock_member, zklock_member_free> {
public:
    using owner::owner;
    /** Not for use outside these files. */
    static member taken_from(zklock_call *done) { return member(detail::ask<zklock_member *>(zklock_call_member, done)); }
    /** Leaves, and waits until all members have left. Throws a lost_error if the others may have gone on without this one. */
    void leave() { detail::check(zklock_member_leave(get(), ZKLOCK_FOREVER)); }
    /** Leaves, and waits for up to this time; false if others are still inside. Any other failure throws. */
    bool leave_for(detail::span wait) { return detail::in_time(zklock_member_leave(get(), detail::ms(wait))); }
    /** Leaves and waits in the background, for up to this time. Then the call gives a timeout_error. */
    async_call<void> start_leave(detail::span wait = detail::span::max()) {
        return begun<void>(zklock_member_leave_start, detail::ms(wait));
    }
    /** Why the member was lost; reason::none if it is not lost. */
    reason lost_reason() const noexcept { return static_cast<reason>(zklock_member_loss(get())); }
    /** The path of the member's node. */
    std::string node() const { return zklock_member_node(get()); }
};

/**
 * A double barrier, whose members begin together and end together.
 *
 *     zklock::double_barrier round(client, "/barriers/round", 3);
 *     zklock::member member = round.enter(); // all three have come
 *     member.leave();                        // and all three are done
 */
class double_barrier : public detail::owner<zklock_double_barrier, zklock_double_barrier_free> {
public:
    using owner::owner;
    /** The double barrier at a path, which opens when this many members have come. This sends no request. */
    double_barrier(const client &maker, const std::string &path, std::uint32_t members)
        : owner(detail::ask<zklock_double_barrier *>(zklock_double_barrier_new, maker.get(), detail::text(path),
                                                     members)) {}

    /** Enters as a new member, and waits until the barrier is open. Every call makes another member. */
    member enter() const { return member(ask<zklock_member *>(zklock_double_barrier_enter, ZKLOCK_FOREVER)); }
    /** Enters as a new member and waits in the background, for up to this time. Then the call gives a timeout_error. */
    async_call<member> start_enter(detail::span wait = detail::span::max()) const {
        return begun<member>(zklock_double_barrier_enter_start, detail::ms(wait));
    }
    /** Like enter(), but waits for up to this time; nothing when the time is over. */
    [[nodiscard]] std::optional<member> enter_for(detail::span wait) const {
        return ask_unless<member, zklock_member *>(ZKLOCK_TIMEOUT, zklock_double_barrier_enter, detail::ms(wait));
    }
};
} // namespace zklock

#endif // ZKLOCK_DOUBLE_BARRIER_HPP
