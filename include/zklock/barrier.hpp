/* The barrier: programs that reach it wait until it is removed. */

#ifndef ZKLOCK_BARRIER_HPP
#define ZKLOCK_BARRIER_HPP

#include <string>

#include "client.hpp"

namespace zklock {

/**
 * A barrier at a path: while its node exists, wait() waits. The node does not belong to a client, and outlives the
 * client that set it.
 *
 *     zklock::barrier(client, "/barriers/migration").wait();
 */
class barrier : public detail::owner<zklock_barrier, zklock_barrier_free> {
public:
    using owner::owner;
    /** The barrier at a path. This sends no request and does not set the barrier. */
    barrier(const client &maker, const std::string &path)
        : owner(detail::ask<zklock_barrier *>(zklock_barrier_new, maker.get(), detail::text(path))) {}

    /** Sets the barrier; false if it was already set. */
    bool set() const { return ask<int>(zklock_barrier_set) != 0; }
    /** Removes the barrier, so that all waiters go on; false if it was not set. */
    bool remove() const { return ask<int>(zklock_barrier_remove) != 0; }
    /** Whether the barrier is set. */
    bool is_set() const { return !wait_for(detail::span::zero()); }
    /** Does what set() does, in the background. */
    async_call<bool> start_set() const { return begun<bool>(zklock_barrier_set_start); }
    /** Does what remove() does, in the background. */
    async_call<bool> start_remove() const { return begun<bool>(zklock_barrier_remove_start); }
    /** Waits in the background until the barrier is not set, for up to this time. Then the call gives a timeout_error. */
    async_call<void> start_wait(detail::span wait = detail::span::max()) const {
        return begun<void>(zklock_barrier_wait_start, detail::ms(wait));
    }
    /** Waits until the barrier is not set. */
    void wait() const { detail::check(zklock_barrier_wait(get(), ZKLOCK_FOREVER)); }
    /** Waits until the barrier is not set, for up to this time; false if it is still set. Any other failure throws. */
    [[nodiscard]] bool wait_for(detail::span wait) const { return detail::in_time(zklock_barrier_wait(get(), detail::ms(wait))); }
};
} // namespace zklock

#endif // ZKLOCK_BARRIER_HPP
