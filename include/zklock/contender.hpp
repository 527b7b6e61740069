/* A contender in the queue of a lock. */

#ifndef ZKLOCK_CONTENDER_HPP
#define ZKLOCK_CONTENDER_HPP

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "async_call.hpp"

namespace zklock {

/** A contender in the queue of a lock: see zklock_contender. */
struct contender {
    std::string name, identity, naming;
    std::uint64_t session, token;
    std::chrono::system_clock::time_point since;
    std::string node;
    zklock::role role;
    bool holds;
};

/** Not for use outside these files. */
namespace detail {
inline contender copied(const zklock_contender &it) {
    const std::chrono::system_clock::time_point since{std::chrono::milliseconds(it.since)};
    return {it.name, it.identity, it.naming, it.session, it.token, since, it.node, static_cast<role>(it.role), it.holds != 0};
}

/** All contenders that a call passes to its visitor. */
template <class Call, class Handle, class... Given>
std::vector<contender> shown_by(Call call, Handle *shower, Given... given) {
    using all = std::pair<std::vector<contender>, std::exception_ptr>;
    // No exception may pass through the library: it is not C++.
    const auto see = [](const zklock_contender *it, void *context) noexcept {
        auto &seen = *static_cast<all *>(context);
        try {
            seen.first.push_back(copied(*it));
        } catch (...) {
            seen.second = std::current_exception();
        }
    };
    all seen;
    const zklock_status status = call(shower, given..., see, &seen);
    if (seen.second) std::rethrow_exception(seen.second);
    check(status);
    return std::move(seen.first);
}

template <>
struct given<std::vector<contender>> {
    static std::vector<contender> by(zklock_call *done) { return shown_by(zklock_call_contenders, done); }
};
} // namespace detail
} // namespace zklock

#endif // ZKLOCK_CONTENDER_HPP
