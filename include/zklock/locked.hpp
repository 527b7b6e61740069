/* What the mutexes and semaphores have in common: they know which threads have locked them. */

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
/** Implements TimedLockable's try_lock_until with try_lock_for. */
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
 * another locks it again. So each thread has its own hold, which its unlock() releases.
 */
class locked {
public:
    /** If it is personal, a thread can only unlock what it has locked itself. */
    locked(zklock_client *maker, zklock::lock of, bool is_personal)
        : maker_(maker), lock_(std::move(of)), is_personal_(is_personal) {}

    void lock() { keep(lock_.acquire()); }
    bool try_lock_for(span wait) {
        std::optional<hold> held = lock_.try_acquire_for(wait);
        if (held) keep(std::move(*held));
        return held.has_value();
    }
    void unlock() noexcept {
        // In a forked child, guard_ may stay locked for ever by a thread that does not exist there.
        if (is_forked()) return;
        if (const std::shared_ptr<hold> held = find(true)) zklock_release(held->get());
    }
    /** Counts as locked by this thread, with a hold that is not of this lock alone. unlock() leaves it alone. */
    void lend(std::shared_ptr<hold> held) { keep({std::this_thread::get_id(), std::move(held), true}); }
    void take_back(const std::shared_ptr<hold> &held) noexcept {
        if (is_forked()) return;
        const std::lock_guard<std::mutex> guard(guard_);
        entries_.erase(std::remove_if(entries_.begin(), entries_.end(), [&](const entry &it) { return it.held == held; }),
                       entries_.end());
    }
    /** The hold that unlock() would release, or nullptr. */
    std::shared_ptr<hold> current() const {
        if (is_forked()) check(ZKLOCK_FORKED);
        return find(false);
    }
    std::string path() const { return lock_.path(); }
    zklock_lock *get() const noexcept { return lock_.get(); }
    /** The client that made the lock. It may have been freed: a handle is not dereferenced. */
    zklock_client *maker() const noexcept { return maker_; }
private:
    struct entry {
        std::thread::id thread;
        std::shared_ptr<hold> held;
        bool is_lent;
    };
    /** If there is no memory to store the hold, the exception releases it again. */
    void keep(hold held) { keep({std::this_thread::get_id(), std::make_shared<hold>(std::move(held)), false}); }
    void keep(entry kept) {
        const std::lock_guard<std::mutex> guard(guard_);
        entries_.push_back(std::move(kept));
    }
    /** The latest hold of this thread, otherwise the oldest hold of all. After a loss there may be several. */
    std::shared_ptr<hold> find(bool take) const {
        const std::lock_guard<std::mutex> guard(guard_);
        auto at = entries_.end();
        for (auto it = entries_.begin(); it != entries_.end(); ++it) {
            const bool is_own = it->thread == std::this_thread::get_id();
            const bool is_oldest = at == entries_.end() && !is_personal_;
            if ((is_own || is_oldest) && !(take && it->is_lent)) at = it;
        }
        if (at == entries_.end()) return nullptr;
        std::shared_ptr<hold> held = at->held;
        if (take) entries_.erase(at);
        return held;
    }
    bool is_forked() const noexcept {
        // Its handle is of the parent.
        return *zklock_lock_path(lock_.get()) == '\0';
    }

    zklock_client *maker_;
    zklock::lock lock_;
    bool is_personal_;
    mutable std::mutex guard_;
    mutable std::vector<entry> entries_;
};
} // namespace detail
} // namespace zklock

#endif // ZKLOCK_LOCKED_HPP
