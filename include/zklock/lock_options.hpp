/* How a lock behaves. */

#ifndef ZKLOCK_LOCK_OPTIONS_HPP
#define ZKLOCK_LOCK_OPTIONS_HPP

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "handle.hpp"

namespace zklock {

/**
 * How a lock behaves. The defaults suit most programs. zklock_lock_options_set lists the options. If one is wrong, making
 * the lock throws.
 *
 *     zklock::lock lock = client.mutex("/locks/report", zklock::lock_options().set("naming", "kazoo").set("linger", 10s));
 */
class lock_options {
public:
    /** Sets an option. */
    lock_options &set(std::string option, std::string value) {
        set_.emplace_back(std::move(option), std::move(value));
        return *this;
    }
    lock_options &set(std::string option, std::chrono::milliseconds value) {
        return set(std::move(option), std::to_string(value.count()) + "ms");
    }

    /** The same options as a handle for functions of zklock.h. */
    detail::owner<zklock_lock_options, zklock_lock_options_free> made() const {
        detail::owner<zklock_lock_options, zklock_lock_options_free> made(
            detail::ask<zklock_lock_options *>(zklock_lock_options_new));
        for (const auto &[option, value] : set_)
            detail::check(zklock_lock_options_set(made.get(), detail::text(option), detail::text(value)));
        return made;
    }
private:
    std::vector<std::pair<std::string, std::string>> set_;
};
} // namespace zklock

#endif // ZKLOCK_LOCK_OPTIONS_HPP
