/* One logical connection to an ensemble, which makes the locks. */

#ifndef ZKLOCK_CLIENT_HPP
#define ZKLOCK_CLIENT_HPP

#include <chrono>
#include <cstdint>
#include <string>

#include "lock.hpp"
#include "options.hpp"

namespace zklock {

/** What a client has done so far, and what it still owes: see zklock_stat. */
struct stats {
    std::uint64_t sessions, grants, losses, owed, session_id;
    std::chrono::milliseconds session_timeout;
};

/** One logical connection to an ensemble. It outlives sessions: when one expires it opens the next. */
class client : public detail::owner<zklock_client, zklock_client_free> {
public:
    using owner::owner;
    /** Opens a session: "host:port,host:port/chroot". After the connect timeout it throws an unreachable_error. */
    explicit client(const std::string &hosts, const options &how = options())
        : owner(detail::ask<zklock_client *>(zklock_client_new, detail::text(hosts), how.get())) {}
    /** Closes the sessions, which frees every lock, and waits for that, a second at most. Waits end: closed_error. */
    void close() { detail::check(zklock_client_close(get())); }
    /** The mutex at a path. It costs no request. The flags are a sum of zklock_flag. */
    lock mutex(const std::string &path, std::uint32_t flags = 0) const {
        return lock(ask<zklock_lock *>(zklock_mutex_new, detail::text(path), flags));
    }
    /** It costs no request. */
    zklock::stats stats() const {
        return {stat(ZKLOCK_STAT_SESSIONS), stat(ZKLOCK_STAT_GRANTS), stat(ZKLOCK_STAT_LOSSES), stat(ZKLOCK_STAT_OWED),
                stat(ZKLOCK_STAT_SESSION_ID), std::chrono::milliseconds(stat(ZKLOCK_STAT_SESSION_TIMEOUT))};
    }
private:
    std::uint64_t stat(std::int32_t which) const { return ask<std::uint64_t>(zklock_client_stat, which); }
};
} // namespace zklock

#endif // ZKLOCK_CLIENT_HPP
