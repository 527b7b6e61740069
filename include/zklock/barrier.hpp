/* The barrier: programs that come to it wait until it is removed. */

#ifndef ZKLOCK_BARRIER_HPP
#define ZKLOCK_BARRIER_HPP

#include <string>

#include "client.hpp"

namespace zklock {

/**
 * A node that is there or not: as long as it is there, wait() waits. It belongs to nobody, and outlives the client that
 * set it.
 *
 *     zklock::barrier(client, "/barriers/migration").wait();
 */
class barrier : public detail::owner<zklock_barrier, zklock_barrier_free> {
public:
    using owner::owner;
    /** The barrier at a path. It costs no request, and sets nothing. */
    barrier(const client &maker, const std::string &path)
        : owner(detail::ask<zklock_barrier *>(zklock_barrier_new, maker.get(), detail::text(path))) {}

    /** Sets it; false: it was set already. */
    bool set() const { return ask<int>(zklock_barrier_set) != 0; }
    /** Removes it, and all waiters go on; false: it was not set. */
    bool remove() const { return ask<int>(zklock_barrier_remove) != 0; }
    /** Whether it is set. */
    bool is_set() const { return ask<int>(zklock_barrier_is_set) != 0; }
    /** As set(), in the background. */
    async_call<bool> start_set() const { return async_call<bool>(ask<zklock_call *>(zklock_barrier_set_start)); }
    /** As remove(), in the background. */
    async_call<bool> start_remove() const { return async_call<bool>(ask<zklock_call *>(zklock_barrier_remove_start)); }
    /** As is_set(), in the background. */
    async_call<bool> start_is_set() const { return async_call<bool>(ask<zklock_call *>(zklock_barrier_is_set_start)); }
    /** Waits in the background until it is not set, for this time at most: then it gives a timeout_error. */
    async_call<void> start_wait(detail::span wait = detail::span::max()) const {
        return async_call<void>(ask<zklock_call *>(zklock_barrier_wait_start, detail::ms(wait)));
    }
    /** Waits until it is not set. */
    void wait() const { detail::check(zklock_barrier_wait(get(), ZKLOCK_FOREVER)); }
    /** The same, for this time at most. False: it is still set then. All else throws. */
    [[nodiscard]] bool wait_for(detail::span wait) const {
        const zklock_status status = zklock_barrier_wait(get(), detail::ms(wait));
        if (status == ZKLOCK_TIMEOUT) return false;
        detail::check(status);
        return true;
    }
};
} // namespace zklock

#endif // ZKLOCK_BARRIER_HPP
