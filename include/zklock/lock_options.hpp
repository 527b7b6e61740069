/* How a lock behaves. */

#ifndef ZKLOCK_LOCK_OPTIONS_HPP
#define ZKLOCK_LOCK_OPTIONS_HPP

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "handle.hpp"

namespace zklock {

/**
 * How a lock behaves. The defaults suit most programs. If an option is wrong, making the lock throws.
 *
 *     zklock::lock lock = client.mutex("/locks/report", zklock::lock_options().dialect(zklock::dialect::kazoo));
 */
class lock_options {
public:
    /** Whether a thread that holds the lock may acquire it again. That thread must then release each hold itself. */
    lock_options &reentrant(bool is_so = true) { return flag(ZKLOCK_REENTRANT, is_so); }
    /** Ignore contenders of home-made locks. Both may end up holding the lock: see ZKLOCK_IGNORE_UNKNOWN. */
    lock_options &ignore_unknown(bool is_so = true) { return flag(ZKLOCK_IGNORE_UNKNOWN, is_so); }
    /** Watch all other contenders, instead of only the one that matters. This is the naive method, for comparisons. */
    lock_options &watch_children(bool is_so = true) { return flag(ZKLOCK_WATCH_CHILDREN, is_so); }
    /** How the lock's nodes are named, which decides the libraries that it can share a queue with. */
    lock_options &dialect(zklock::dialect name) { return pattern_.reset(), dialect_ = name, *this; }
    /**
     * Makes the lock a member of the queue of a home-made lock: see zklock_lock_options_set_dialect_pattern. It replaces the
     * dialect.
     *
     *     const auto lock = client.mutex("/locks/report", zklock::lock_options().dialect_pattern("{name}_lock_{sequence}"));
     */
    lock_options &dialect_pattern(std::string pattern) { return pattern_ = std::move(pattern), *this; }
    /** How many permits of a semaphore to acquire at once. Default: 1. */
    lock_options &permits(std::uint32_t count) { return permits_ = count, *this; }
    /** The node that holds the number of permits of a semaphore: see client::set_limit(). */
    lock_options &limit_at(std::string path) { return limit_at_ = std::move(path), *this; }
    /**
     * How long the node of a mutex or a side of a read/write lock stays after a release while no other contender wants
     * the lock. Meanwhile the client can acquire the lock again without a request, and gets the same token. Default: 0.
     * See zklock_lock_options_set_linger.
     *
     *     const auto lock = client.mutex("/locks/report", zklock::lock_options().linger(10s));
     */
    lock_options &linger(std::chrono::milliseconds t) { return linger_ = t, *this; }
    /** How many holders of this client may follow one another on one node while other clients wait. Default: 1. */
    lock_options &local_turns(std::uint32_t turns) { return local_turns_ = turns, *this; }
    /**
     * A name under which the client counts the lock separately: see client::lock_stats() and
     * zklock_lock_options_set_figures.
     *
     *     const auto lock = client.mutex("/tenants/17/report", zklock::lock_options().figures("report"));
     */
    lock_options &figures(std::string name) { return figures_ = std::move(name), *this; }

    /** The same options as a handle for functions of zklock.h. */
    detail::owner<zklock_lock_options, zklock_lock_options_free> made() const {
        detail::owner<zklock_lock_options, zklock_lock_options_free> made(
            detail::ask<zklock_lock_options *>(zklock_lock_options_new));
        detail::check(zklock_lock_options_set_flags(made.get(), flags_));
        detail::check(zklock_lock_options_set_dialect(made.get(), static_cast<std::int32_t>(dialect_)));
        if (pattern_) detail::check(zklock_lock_options_set_dialect_pattern(made.get(), detail::text(*pattern_)));
        detail::check(zklock_lock_options_set_permits(made.get(), permits_));
        detail::check(zklock_lock_options_set_linger(made.get(), linger_.count()));
        detail::check(zklock_lock_options_set_local_turns(made.get(), local_turns_));
        if (limit_at_) detail::check(zklock_lock_options_set_limit_at(made.get(), detail::text(*limit_at_)));
        if (figures_) detail::check(zklock_lock_options_set_figures(made.get(), detail::text(*figures_)));
        return made;
    }
private:
    lock_options &flag(zklock_flag which, bool is_so) {
        const auto bit = static_cast<std::uint32_t>(which);
        flags_ = is_so ? flags_ | bit : flags_ & ~bit;
        return *this;
    }

    std::uint32_t flags_ = 0, permits_ = 1, local_turns_ = 1;
    std::chrono::milliseconds linger_{0};
    zklock::dialect dialect_ = zklock::dialect::curator;
    std::optional<std::string> pattern_, limit_at_, figures_;
};
} // namespace zklock

#endif // ZKLOCK_LOCK_OPTIONS_HPP
