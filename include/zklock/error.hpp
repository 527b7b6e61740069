/* The exceptions that these files throw. */

#ifndef ZKLOCK_ERROR_HPP
#define ZKLOCK_ERROR_HPP

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "enums.hpp"

namespace zklock {

/** The base class of all exceptions of zklock. */
class error : public std::runtime_error {
public:
    error(zklock::status why, const std::string &message) : std::runtime_error(message), status_(why) {}
    /** The status of the call. */
    zklock::status status() const noexcept { return status_; }
    /** Its name in C, such as "ZKLOCK_TIMEOUT". */
    const char *status_name() const noexcept { return zklock_status_name(static_cast<std::int32_t>(status_)); }
private:
    zklock::status status_;
};

struct timeout_error : error { using error::error; };     ///< The time ran out: try again, or do without the lock.
struct unreachable_error : error { using error::error; }; ///< No server could be reached: try again later.
struct lost_error : error { using error::error; };        ///< Others may hold the lock: stop the work that it guarded.
struct at_risk_error : error { using error::error; };     ///< The lease is too short for it: begin nothing, and ask again.
struct stale_token_error : error { using error::error; }; ///< A fence refused the write: a later holder has written, so stop.
struct closed_error : error { using error::error; };      ///< The client is closed: perhaps the program is ending.
struct uncertain_error : error { using error::error; };   ///< A guarded write may or may not be done: hold::read(), then decide.
struct done_error : error { using error::error; };        ///< The job has run in this period: nothing is left to do.
struct misuse_error : error { using error::error; };      ///< A wrong argument or handle, or an endless wait: correct the program.

/** A node was not in the required state. Nothing was written. */
class conflict_error : public error {
public:
    conflict_error(const std::string &message, std::size_t index, std::string path)
        : error(zklock::status::conflict, message), index_(index), path_(std::move(path)) {}
    /** Which of the writes was refused, counting from 0. */
    std::size_t index() const noexcept { return index_; }
    /** The path of the node; "" if the writes were committed in the background. */
    const std::string &path() const noexcept { return path_; }
private:
    std::size_t index_;
    std::string path_;
};

/** Not for use outside these files. */
namespace detail {
[[noreturn]] inline void fail(zklock_status returned, const std::string &message) {
    const auto why = static_cast<status>(returned);
    switch (why) {
    case status::timeout: throw timeout_error(why, message);
    case status::unreachable: throw unreachable_error(why, message);
    case status::lost: throw lost_error(why, message);
    case status::at_risk: throw at_risk_error(why, message);
    case status::stale_token: throw stale_token_error(why, message);
    case status::closed: throw closed_error(why, message);
    case status::uncertain: throw uncertain_error(why, message);
    case status::done: throw done_error(why, "the job has run in this period");
    case status::invalid_argument: case status::invalid_handle: case status::deadlock:
    case status::not_owner: case status::not_held: throw misuse_error(why, message);
    default: throw error(why, message);
    }
}

inline void check(zklock_status status) {
    if (status != ZKLOCK_OK) fail(status, zklock_last_error());
}
} // namespace detail
} // namespace zklock

#endif // ZKLOCK_ERROR_HPP
