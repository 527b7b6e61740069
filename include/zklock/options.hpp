/* How a client connects. */

#ifndef ZKLOCK_OPTIONS_HPP
#define ZKLOCK_OPTIONS_HPP

#include <chrono>
#include <string>

#include "handle.hpp"

namespace zklock {

/**
 * How a client connects. The defaults suit most programs. zklock_options_set lists the options.
 *
 *     zklock::client client(hosts, zklock::options().set("session-timeout", 4s).set("identity", "billing"));
 */
class options : public detail::owner<zklock_options, zklock_options_free> {
public:
    options() : owner(detail::ask<zklock_options *>(zklock_options_new)) {}
    /** Sets an option. Throws if there is no such option, or it cannot have this value. */
    options &set(const std::string &option, const std::string &value) {
        detail::check(zklock_options_set(get(), detail::text(option), detail::text(value)));
        return *this;
    }
    options &set(const std::string &option, std::chrono::milliseconds value) {
        return set(option, std::to_string(value.count()) + "ms");
    }
};
} // namespace zklock

#endif // ZKLOCK_OPTIONS_HPP
