/* Locks for the locks of the standard library, such as std::unique_lock. */

#ifndef ZKLOCK_LOCKABLE_HPP
#define ZKLOCK_LOCKABLE_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client.hpp"

namespace zklock {
class scoped_lock;

/**
 * A mutex for the locks of the standard library. It meets the requirements of TimedLockable, as a std::timed_mutex does.
 *
 *     zklock::lockable report(client, "/locks/report", [&] { stop = true; });
 *     std::unique_lock guard(report);
 *
 * It excludes other processes and other threads of this process, whether they share the object or have one each. It
 * cannot be moved, because the threads that locked it know it by its address. As with a std::mutex, a thread must not lock
 * it twice: it would wait for itself. The log has a warning if one does.
 */
class lockable {
public:
    /**
     * The mutex at a path, and what to do if it is lost while it is locked, because unlock() cannot report that. It is called
     * once for each lock() that is lost, at the latest in its unlock(): see hold::on_lost() for what it may do. The option
     * reentrant is ignored: the class decides.
     */
    lockable(const client &maker, const std::string &path, loss_callback on_lost, options how = options())
        : lockable(maker, maker.mutex(path, how.set("reentrant", "no")), std::move(on_lost), false) {}

    /** Waits until it is held. */
    void lock() { keep(lock_.acquire()); }
    /** Tries once; false if others or this thread hold it. Any other failure throws, for example an unreachable_error. */
    [[nodiscard]] bool try_lock() { return try_lock_for(detail::span(0)); }
    /** Waits for up to this time; false when the time is over. Any other failure throws. */
    [[nodiscard]] bool try_lock_for(detail::span wait) {
        std::optional<hold> held = lock_.try_acquire_for(wait);
        if (held) keep(std::move(*held));
        return held.has_value();
    }
    /** Waits until this time at the latest. Setting the clock back prolongs the wait; setting it forward does not end it. */
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        do {
            const detail::span now = Clock::now().time_since_epoch();
            if (try_lock_for(time.time_since_epoch() - now)) return true;
        } while (Clock::now() < time);
        return false;
    }

    /**
     * Releases it, and waits until the servers have confirmed that, for up to a session timeout. After that the release goes
     * on in the background. In a callback it does not wait, and the lock is released in the background once the last copy
     * of current() is destroyed. A thread that has not locked it unlocks it for the thread that has, because a
     * std::unique_lock can be handed over.
     */
    void unlock() noexcept {
        // In a forked child, guard_ may stay locked for ever by a thread that does not exist there.
        if (is_forked()) return;
        if (const std::optional<entry> ended = find(true)) end(*ended->held, ended->on_lost);
    }

    /**
     * The hold that unlock() would release. It has the token and the lease. Throws a misuse_error if it is not locked.
     *
     *     write_the_report(report.current()->token());
     *
     * You may keep the hold: after unlock(), its state is either released or lost.
     */
    std::shared_ptr<hold> current() const {
        if (is_forked()) detail::check(ZKLOCK_FORKED);
        if (const std::optional<entry> it = find(false)) return it->held;
        detail::fail(ZKLOCK_NOT_HELD, path() + " is not locked here: lock it first");
    }
    /** The path of the lock. */
    std::string path() const { return lock_.path(); }
protected:
    /** If it is personal, a thread can only unlock what it has locked itself. */
    lockable(const client &maker, zklock::lock of, loss_callback on_lost, bool is_personal)
        : maker_(maker.get()), lock_(std::move(of)), on_lost_(std::move(on_lost)), is_personal_(is_personal) {
        if (!on_lost_) detail::fail(ZKLOCK_INVALID_ARGUMENT, "on_lost is empty: say what to do if " + path() + " is lost");
    }
private:
    friend class scoped_lock;
    /** What a thread has locked. After a loss, one thread may still have it locked when another locks it again. */
    struct entry {
        std::thread::id thread;
        std::shared_ptr<hold> held;
        loss_callback on_lost;
        bool is_lent;
    };

    /** Makes the callback of a hold, which calls on_lost once: at the loss, or in end(). */
    static loss_callback told_once(hold &held, const loss_callback &on_lost) {
        const auto once = [on_lost, told = std::make_shared<std::atomic<bool>>(false)](reason why) {
            if (!told->exchange(true)) on_lost(why);
        };
        held.on_lost(once);
        return once;
    }
    static void end(hold &held, const loss_callback &on_lost) noexcept {
        zklock_release(held.get());
        if (held.state() == state::lost) on_lost(held.lost_reason());
    }
    /** If it cannot be kept, the exception releases the hold again. */
    void keep(hold held) {
        loss_callback once = told_once(held, on_lost_);
        keep({std::this_thread::get_id(), std::make_shared<hold>(std::move(held)), std::move(once), false});
    }
    void keep(entry kept) {
        const std::lock_guard<std::mutex> guard(guard_);
        entries_.push_back(std::move(kept));
    }
    /** The latest of this thread, otherwise the oldest of all. After a loss there may be several. */
    std::optional<entry> find(bool take) const {
        const std::lock_guard<std::mutex> guard(guard_);
        auto at = entries_.end();
        for (auto it = entries_.begin(); it != entries_.end(); ++it) {
            const bool is_own = it->thread == std::this_thread::get_id();
            const bool is_oldest = at == entries_.end() && !is_personal_;
            // unlock() leaves alone what a scoped_lock has lent.
            if ((is_own || is_oldest) && !(take && it->is_lent)) at = it;
        }
        if (at == entries_.end()) return std::nullopt;
        std::optional<entry> found = *at;
        if (take) entries_.erase(at);
        return found;
    }
    bool is_forked() const noexcept {
        // Its handle is of the parent.
        return *zklock_lock_path(lock_.get()) == '\0';
    }

    zklock_client *maker_; // It may have been freed: a handle is not dereferenced.
    zklock::lock lock_;
    loss_callback on_lost_;
    bool is_personal_;
    mutable std::mutex guard_;
    mutable std::vector<entry> entries_;
};

/**
 * Like a std::recursive_timed_mutex: the thread that locked it may lock it again, and must unlock it as often, and no other
 * thread can. Do not use it if a thread may switch to other work while it holds it, as a thread that runs coroutines does:
 * both pieces of work would hold it together.
 */
class recursive_lockable : public lockable {
public:
    /** As for a lockable. */
    recursive_lockable(const client &maker, const std::string &path, loss_callback on_lost, options how = options())
        : lockable(maker, maker.mutex(path, how.set("reentrant", "yes")), std::move(on_lost), true) {}
};

/**
 * A read/write lock for the locks of the standard library, like a std::shared_timed_mutex: std::shared_lock takes its read
 * side, and all other locks its write side, which is a lockable.
 *
 *     zklock::shared_lockable catalogue(client, "/locks/catalogue", [&] { stop = true; });
 *     std::shared_lock reading(catalogue);
 *
 * A thread that has locked the read side may lock it again, as another thread might, and must unlock it as often. If it
 * locks the write side, it waits for itself. So does a thread that has locked the write side and locks the read side. The
 * log has a warning about such a wait, and a try returns false. To go from writing to reading without a gap, acquire
 * client::read_lock() while you hold a client::write_lock() with the option reentrant, and then release that.
 */
class shared_lockable : public lockable {
public:
    /** As for a lockable. It is never reentrant. */
    shared_lockable(const client &maker, const std::string &path, const loss_callback &on_lost, options how = options())
        : lockable(maker, maker.write_lock(path, how.set("reentrant", "no")), on_lost, false),
          read_(maker, maker.read_lock(path, how), on_lost) {}

    /** Waits until the read side is held. */
    void lock_shared() { read_.lock(); }
    /** Tries once; false if a writer holds it or waits for it. Any other failure throws. */
    [[nodiscard]] bool try_lock_shared() { return read_.try_lock(); }
    /** Waits for up to this time; false when the time is over. Any other failure throws. */
    [[nodiscard]] bool try_lock_shared_for(detail::span wait) { return read_.try_lock_for(wait); }
    /** Waits until this time at the latest. */
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &time) {
        return read_.try_lock_until(time);
    }
    /** Releases the read side that this thread has locked, or that of the oldest reader if this thread has not locked it. */
    void unlock_shared() noexcept { read_.unlock(); }
    /** The hold that unlock_shared() would release. Throws a misuse_error if there is none. */
    std::shared_ptr<hold> current_shared() const { return read_.current(); }
private:
    struct reading : lockable {
        reading(const client &maker, zklock::lock of, const loss_callback &on_lost)
            : lockable(maker, std::move(of), on_lost, false) {}
    };

    reading read_;
};
} // namespace zklock

#endif // ZKLOCK_LOCKABLE_HPP
