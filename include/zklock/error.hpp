/* The exceptions that these files throw. */

#ifndef ZKLOCK_ERROR_HPP
#define ZKLOCK_ERROR_HPP

#if __cplusplus < 201703L
#error "zklock.hpp needs C++17 or later: compile with -std=c++17. With older C++, use zklock.h, the C interface."
#endif

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "../zklock.h"

namespace zklock {

/** The base class of all exceptions of zklock. */
class error : public std::runtime_error {
public:
    error(zklock_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
    /** The status that the function of zklock.h returned. */
    zklock_status status() const noexcept { return status_; }
private:
    zklock_status status_;
};

struct timeout_error : error { using error::error; };     ///< The time ran out: try again, or do without the lock.
struct unreachable_error : error { using error::error; }; ///< No server could be reached: try again later.
struct lost_error : error { using error::error; };        ///< Others may hold the lock: stop the work that it guarded.
struct closed_error : error { using error::error; };      ///< The client is closed: perhaps the program is ending.
struct uncertain_error : error { using error::error; };   ///< A guarded write may or may not be done: hold::read(), then decide.
struct misuse_error : error { using error::error; };      ///< A wrong argument or handle, or an endless wait: correct the program.

/** A node was not in the required state. Nothing was written. */
class conflict_error : public error {
public:
    conflict_error(const std::string &message, std::size_t index, std::string path)
        : error(ZKLOCK_CONFLICT, message), index_(index), path_(std::move(path)) {}
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
[[noreturn]] inline void fail(zklock_status status, const std::string &message) {
    switch (status) {
    case ZKLOCK_TIMEOUT: throw timeout_error(status, message);
    case ZKLOCK_UNREACHABLE: throw unreachable_error(status, message);
    case ZKLOCK_LOST: throw lost_error(status, message);
    case ZKLOCK_CLOSED: throw closed_error(status, message);
    case ZKLOCK_UNCERTAIN: throw uncertain_error(status, message);
    case ZKLOCK_INVALID_ARGUMENT: case ZKLOCK_INVALID_HANDLE: case ZKLOCK_DEADLOCK:
    case ZKLOCK_NOT_OWNER: case ZKLOCK_NOT_HELD: throw misuse_error(status, message);
    default: throw error(status, message);
    }
}

inline void check(zklock_status status) {
    if (status != ZKLOCK_OK) fail(status, zklock_last_error());
}
} // namespace detail
} // namespace zklock

#endif // ZKLOCK_ERROR_HPP
