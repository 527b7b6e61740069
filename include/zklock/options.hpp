/* How a client connects, a lock behaves, or a job runs. */

#ifndef ZKLOCK_OPTIONS_HPP
#define ZKLOCK_OPTIONS_HPP

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "handle.hpp"

namespace zklock {

/**
 * How a client connects, a lock behaves, or a job runs. The defaults suit most programs. zklock_options_set lists the options.
 * If one is wrong, what is made with it throws.
 *
 *     zklock::client client(hosts, zklock::options().set("session-timeout", 4s).set("identity", "billing"));
 *     zklock::lock lock = client.mutex("/locks/report", zklock::options().set("naming", "kazoo").set("linger", 10s));
 */
class options {
public:
    /** Sets an option. */
    options &set(std::string option, std::string value) {
        set_.emplace_back(std::move(option), std::move(value));
        return *this;
    }
    options &set(std::string option, std::chrono::milliseconds value) {
        return set(std::move(option), std::to_string(value.count()) + "ms");
    }

    /** The same options as a handle for functions of zklock.h. */
    detail::owner<zklock_options, zklock_options_free> made() const {
        detail::owner<zklock_options, zklock_options_free> made(detail::ask<zklock_options *>(zklock_options_new));
        for (const auto &[option, value] : set_)
            detail::check(zklock_options_set(made.get(), detail::text(option), detail::text(value)));
        return made;
    }
private:
    std::vector<std::pair<std::string, std::string>> set_;
};
} // namespace zklock

#endif // ZKLOCK_OPTIONS_HPP
