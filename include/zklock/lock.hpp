/* A thing that can be acquired. */

#ifndef ZKLOCK_LOCK_HPP
#define ZKLOCK_LOCK_HPP

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hold.hpp"
#include "ticket.hpp"

namespace zklock {

/** One in the queue of a lock: see zklock_contender. */
struct contender {
    std::string name, identity, dialect;
    std::uint64_t session, token;
    std::chrono::system_clock::time_point since;
};

/** A lock at a path, which a client makes. It holds nothing itself; any number of threads may acquire it. */
class lock : public detail::owner<zklock_lock, zklock_lock_free> {
public:
    using owner::owner;
    /** Waits until the lock is held. It throws a misuse_error if this thread holds it, and it is not reentrant. */
    hold acquire() const { return acquire_for(detail::span::max()); }
    /** The same, for this time at most: then it throws a timeout_error, whatever the network does. */
    hold acquire_for(detail::span wait) const { return hold(ask<zklock_hold *>(zklock_acquire, detail::ms(wait))); }
    /** Tries once: nothing if the lock is held; an unreachable_error if no server answers. */
    [[nodiscard]] std::optional<hold> try_acquire() const { return try_acquire_for(detail::span(0)); }
    /** As acquire_for(), but nothing when the time is over. */
    [[nodiscard]] std::optional<hold> try_acquire_for(detail::span wait) const {
        return ask_unless<hold, zklock_hold *>(ZKLOCK_TIMEOUT, zklock_acquire, detail::ms(wait));
    }
    /** Begins to wait, for this time at most, and returns at once. */
    ticket start(detail::span wait = detail::span::max()) const {
        return ticket(ask<zklock_ticket *>(zklock_acquire_start, detail::ms(wait)));
    }
    /** Who is in the queue, the holder first, of whatever library. */
    std::vector<contender> contenders() const {
        std::pair<std::vector<contender>, std::exception_ptr> seen;
        const zklock_status status = zklock_contenders(get(), see, &seen);
        if (seen.second) std::rethrow_exception(seen.second);
        detail::check(status);
        return std::move(seen.first);
    }
    /** The path. */
    std::string path() const { return ask<const char *>(zklock_lock_path); }
private:
    // No exception may pass through the library: it is not C++.
    static void see(const zklock_contender *it, void *context) noexcept {
        auto &seen = *static_cast<std::pair<std::vector<contender>, std::exception_ptr> *>(context);
        try {
            const std::chrono::system_clock::time_point since{std::chrono::milliseconds(it->since)};
            seen.first.push_back({it->name, it->identity, it->dialect, it->session, it->token, since});
        } catch (...) {
            seen.second = std::current_exception();
        }
    }
};
} // namespace zklock

#endif // ZKLOCK_LOCK_HPP
