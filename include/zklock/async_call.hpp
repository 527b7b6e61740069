/* Calls that run in the background, for event loops. */

#ifndef ZKLOCK_ASYNC_CALL_HPP
#define ZKLOCK_ASYNC_CALL_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "handle.hpp"

namespace zklock {

/** Not for use outside these files. */
namespace detail {
/** The number that a finished call gives. */
inline std::int64_t number_of(zklock_call *done) { return ask<std::int64_t>(zklock_call_finish, done, 0); }

/** Gets the result of a finished call, by type. A class that owns a handle which a call can give has a function for it. */
template <class Result>
struct given {
    static Result by(zklock_call *done) { return Result::taken_from(done); }
};
template <>
struct given<bool> {
    static bool by(zklock_call *done) { return number_of(done) != 0; }
};
template <>
struct given<std::chrono::milliseconds> {
    static std::chrono::milliseconds by(zklock_call *done) { return std::chrono::milliseconds(number_of(done)); }
};
template <>
struct given<std::vector<std::int32_t>> {
    static std::vector<std::int32_t> by(zklock_call *done) {
        std::vector<std::int32_t> versions(static_cast<std::size_t>(number_of(done)));
        check(zklock_call_versions(done, versions.data()));
        return versions;
    }
};

/** What all calls have in common. */
class running : public owner<zklock_call, zklock_call_free> {
public:
    using owner::owner;
    /** A descriptor: readable when there is a result. It is valid until the call is destroyed; do not close it. */
    int fd() const { return ask<int>(zklock_call_fd); }
    /** Sets the pointer that its event gives back. The library never follows it. */
    void set_context(void *context) { check(zklock_call_set_context(get(), context)); }
    /** Stops waiting, unless there already is a result. Work that has begun, such as a release, goes on. */
    void cancel() { check(zklock_call_cancel(get())); }
protected:
    bool is_done() const {
        const zklock_status status = zklock_call_finish(get(), 0, nullptr);
        if (status == ZKLOCK_PENDING) return false;
        // The paths of the writes are no longer known here.
        if (status == ZKLOCK_CONFLICT) throw conflict_error(zklock_last_error(), static_cast<std::size_t>(zklock_last_conflict()), "");
        check(status);
        return true;
    }
};
} // namespace detail

/**
 * A call that runs in the background, started by a function with start in its name. The destructor stops waiting for it.
 * Work that has begun, such as a release, goes on. When fd() is readable:
 *
 *     if (const auto valid_for = confirming.try_finish()) work_for(*valid_for);
 */
template <class Result>
class [[nodiscard]] async_call : public detail::running {
public:
    using running::running;
    /** The result; nothing while the call is running. It throws what the function that waits would throw. A result that
        owns a handle, such as a client, can be taken only once. */
    [[nodiscard]] std::optional<Result> try_finish() {
        if (!is_done()) return std::nullopt;
        return detail::given<Result>::by(get());
    }
};

/** A call that gives no value. */
template <>
class [[nodiscard]] async_call<void> : public detail::running {
public:
    using running::running;
    /** Whether the call is finished. It throws what the function that waits would throw. */
    [[nodiscard]] bool try_finish() { return is_done(); }
};
} // namespace zklock

#endif // ZKLOCK_ASYNC_CALL_HPP
