/* A mutex for the locks of the standard library. */

#ifndef ZKLOCK_MUTEX_HPP
#define ZKLOCK_MUTEX_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client.hpp"

namespace zklock {

/**
 * A mutex for the locks of the standard library: it meets TimedLockable. See mutex and recursive_mutex.
 *
 * It excludes other processes and the threads of this one, which may share the object or have one each. It cannot be
 * moved, because those who locked it know it by its address. After a loss, one thread may have it locked still when
 * another locks it anew: so each has a hold of its own here, which its unlock() gives up.
 */
template <std::uint32_t Flags>
class basic_mutex {
public:
    basic_mutex(const client &maker, const std::string &path) : lock_(maker.mutex(path, Flags)) {}

    /** Waits until it is held. It throws a misuse_error where a std::mutex would wait for its own thread. */
    void lock() { keep(lock_.acquire()); }
    /** Tries once. False: it is held, by others or this thread. All else throws, such as an unreachable_error. */
    [[nodiscard]] bool try_lock() { return try_lock_for(detail::span(0)); }
    /** Waits for this time at most. False: the time is over. All else throws. */
    [[nodiscard]] bool try_lock_for(detail::span wait) {
        std::optional<hold> held = lock_.try_acquire_for(wait);
        if (held) keep(std::move(*held));
        return held.has_value();
    }
    /** Waits until then at most. A clock that is set back prolongs it; one that is set forward does not end it. */
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        do {
            const detail::span now = Clock::now().time_since_epoch();
            if (try_lock_for(time.time_since_epoch() - now)) return true;
        } while (Clock::now() < time);
        return false;
    }

    /**
     * Releases it, and waits until the servers have confirmed that, for a session timeout at most; then it goes on in
     * the background. In a callback it does not wait, and ends with the last copy of current(). A thread that has not
     * locked it unlocks it for the one that has, as a std::unique_lock may be handed over, but not if it is recursive.
     * Since destructors call this it does not throw: a loss is told by current() alone.
     */
    void unlock() noexcept {
        // In a forked child there may be nobody to unlock our own mutex.
        if (is_forked()) return;
        if (const std::shared_ptr<hold> held = find(true)) zklock_release(held->get());
    }

    /**
     * The hold that unlock() would release; a misuse_error if there is none. It has the token, the lease and the loss:
     *
     *     std::unique_lock guard(mutex);
     *     write_the_report(mutex.current()->token());
     *     mutex.current()->release(); // throws if it was lost; the guard then finds nothing more to do
     *
     * It may be kept: after unlock(), its state is either ZKLOCK_STATE_RELEASED or ZKLOCK_STATE_LOST.
     */
    std::shared_ptr<hold> current() const {
        if (is_forked()) detail::check(ZKLOCK_FORKED);
        if (std::shared_ptr<hold> held = find(false)) return held;
        detail::fail(ZKLOCK_NOT_HELD, "nobody has locked the mutex " + path() + ": lock it first");
    }
    /** The path of the lock. */
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
    /** The latest of this thread; else the oldest of all: others can have locked it since only if that was lost. */
    std::shared_ptr<hold> find(bool take) const {
        const std::lock_guard<std::mutex> guard(guard_);
        const auto is_own = [](const entry &it) { return it.thread == std::this_thread::get_id(); };
        const auto own = std::find_if(entries_.rbegin(), entries_.rend(), is_own);
        if (own == entries_.rend() && (entries_.empty() || (Flags & ZKLOCK_REENTRANT) != 0)) return nullptr;
        const auto at = own == entries_.rend() ? entries_.begin() : own.base() - 1;
        std::shared_ptr<hold> held = at->held;
        if (take) entries_.erase(at);
        return held;
    }
    bool is_forked() const noexcept {
        const char *path = nullptr;
        return zklock_lock_path(lock_.get(), &path) == ZKLOCK_FORKED;
    }

    ::zklock::lock lock_;
    mutable std::mutex guard_;
    mutable std::vector<entry> entries_;
};

/** As std::timed_mutex. See basic_mutex. */
using mutex = basic_mutex<0>;
/** As std::recursive_timed_mutex: its thread may lock it again, and unlocks it as often. See basic_mutex. */
using recursive_mutex = basic_mutex<ZKLOCK_REENTRANT>;
} // namespace zklock

#endif // ZKLOCK_MUTEX_HPP
