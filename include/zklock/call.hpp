/* Helpers to call zklock.h: converting arguments and results. */

#ifndef ZKLOCK_CALL_HPP
#define ZKLOCK_CALL_HPP

#include <chrono>
#include <cstdint>
#include <string>

#include "error.hpp"

namespace zklock {
/** Not for use outside these files. */
namespace detail {
/** Makes a call whose last argument is an output parameter, and returns what it was set to. */
template <class Value, class Call, class... Given>
Value ask(Call call, Given... given) {
    Value value{};
    check(call(given..., &value));
    return value;
}

/** Whether it was done in time. Any other failure throws. */
inline bool in_time(zklock_status status) {
    if (status != ZKLOCK_TIMEOUT) check(status);
    return status == ZKLOCK_OK;
}

/** A string for C. One with a NUL inside is refused: cut off there, it would be the path of another lock. */
inline const char *text(const std::string &text) {
    if (text.find('\0') != std::string::npos) fail(ZKLOCK_INVALID_ARGUMENT, "there is a NUL in a text: leave it out");
    return text.c_str();
}

/** Wide enough for the difference between any two times. Integers would overflow. */
using span = std::chrono::duration<long double, std::milli>;

/** A wait as zklock.h takes it. A positive wait must not become 0, and a negative one must not wait for ever. */
constexpr std::int64_t ms(span wait) noexcept {
    if (!(wait.count() > 0)) return 0;
    if (wait.count() >= static_cast<long double>(INT64_MAX)) return ZKLOCK_FOREVER;
    const auto whole = static_cast<std::int64_t>(wait.count());
    return static_cast<long double>(whole) < wait.count() ? whole + 1 : whole;
}
} // namespace detail
} // namespace zklock

#endif // ZKLOCK_CALL_HPP
