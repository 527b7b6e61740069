/* What the mutexes have in common: the threads that have locked them. */

#ifndef ZKLOCK_LOCKED_HPP
#define ZKLOCK_LOCKED_HPP

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lock.hpp"

namespace zklock {
/** Not for use outside these files. */
namespace detail {
/** The members of TimedLockable that follow from one, which tries for a time. */
template <class Try, class Clock, class Duration>
bool try_until(Try try_for, const std::chrono::time_point<Clock, Duration> &time) {
    do {
        const span now = Clock::now().time_since_epoch();
        if (try_for(time.time_since_epoch() - now)) return true;
    } while (Clock::now() < time);
    return false;
}

/**
 * A lock, and the threads that have locked it through this object. After a loss, one thread may still have it locked when
 * another locks it anew: so each has a hold of its own, which its unlock() gives up.
 */
class locked {
public:
    /** If it is personal, nobody unlocks it for another thread. */
    locked(zklock::lock of, bool is_personal) : lock_(std::move(of)), is_personal_(is_personal) {}

    void lock() { keep(lock_.acquire()); }
    bool try_lock_for(span wait) {
        std::optional<hold> held = lock_.try_acquire_for(wait);
        if (held) keep(std::move(*held));
        return held.has_value();
    }
    void unlock() noexcept {
        // In a forked child there may be nobody to unlock our own mutex.
        if (is_forked()) return;
        if (const std::shared_ptr<hold> held = find(true)) zklock_release(held->get());
    }
    /** The hold that unlock() would release; nothing if there is none. */
    std::shared_ptr<hold> current() const {
        if (is_forked()) check(ZKLOCK_FORKED);
        return find(false);
    }
    std::string path() const { return lock_.path(); }
private:
    struct entry {
        std::thread::id thread;
        std::shared_ptr<hold> held;
    };
    /** If there is no memory for it, it is released again on the way out. */
    void keep(hold held) {
        entry kept{std::this_thread::get_id(), std::make_shared<hold>(std::move(held))};
        const std::lock_guard<std::mutex> guard(guard_);
        entries_.push_back(std::move(kept));
    }
    /** The latest hold of this thread, otherwise the oldest of all. After a loss there may be several. */
    std::shared_ptr<hold> find(bool take) const {
        const std::lock_guard<std::mutex> guard(guard_);
        const auto is_own = [](const entry &it) { return it.thread == std::this_thread::get_id(); };
        const auto own = std::find_if(entries_.rbegin(), entries_.rend(), is_own);
        if (own == entries_.rend() && (entries_.empty() || is_personal_)) return nullptr;
        const auto at = own == entries_.rend() ? entries_.begin() : own.base() - 1;
        std::shared_ptr<hold> held = at->held;
        if (take) entries_.erase(at);
        return held;
    }
    bool is_forked() const noexcept {
        const char *path = nullptr;
        return zklock_lock_path(lock_.get(), &path) == ZKLOCK_FORKED;
    }

    zklock::lock lock_;
    bool is_personal_;
    mutable std::mutex guard_;
    mutable std::vector<entry> entries_;
};
} // namespace detail
} // namespace zklock

#endif // ZKLOCK_LOCKED_HPP
