/* Several lockables, locked at once. */

#ifndef ZKLOCK_SCOPED_LOCK_HPP
#define ZKLOCK_SCOPED_LOCK_HPP

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lockable.hpp"

namespace zklock {

/**
 * Locks several lockables at once, and unlocks them together at the end of its scope. Name them in any order. Scoped
 * locks cannot deadlock each other, because none holds a lock while it waits for the others.
 *
 *     zklock::lockable accounts(client, "/locks/accounts", stop), orders(client, "/locks/orders", stop);
 *     zklock::scoped_lock both(accounts, orders);
 *
 * Use it in place of std::scoped_lock and std::lock, which lock one and try the others. A try fails while others wait, so
 * with several threads or processes they make little progress. It takes the write side of a shared_lockable. All of them
 * must be of one client, which must still exist; two of the same path count once. They share one hold, as a set of locks
 * does, and its loss calls on_lost of each. For a timeout, and for locks of other kinds, see client::all().
 */
class [[nodiscard]] scoped_lock {
public:
    /** Waits until all of them are held. If it throws, it leaves all of them unlocked. */
    template <class First, class... Others>
    explicit scoped_lock(First &first, Others &...others) : scoped_lock(std::vector<lockable *>{of(first), of(others)...}) {
        for (lockable *each : lockables_) each->keep({std::this_thread::get_id(), held_, on_lost_, true});
    }
    scoped_lock(const scoped_lock &) = delete;
    scoped_lock &operator=(const scoped_lock &) = delete;
    /** Releases all of them, and waits as lockable::unlock() does. */
    ~scoped_lock() {
        if (lockables_.front()->is_forked()) return;
        for (lockable *each : lockables_) {
            const std::lock_guard<std::mutex> guard(each->guard_);
            const auto is_this = [&](const lockable::entry &it) { return it.held == held_; };
            each->entries_.erase(std::remove_if(each->entries_.begin(), each->entries_.end(), is_this), each->entries_.end());
        }
        lockable::end(*held_, on_lost_);
    }
    /**
     * The hold of all of them, which current() of each gives too. If one of them is lost, the hold is lost. Until the end of
     * the scope, unlock() of one does nothing, so do not wait for a condition variable with it.
     */
    std::shared_ptr<hold> current() const noexcept { return held_; }
private:
    explicit scoped_lock(std::vector<lockable *> all)
        : lockables_(std::move(all)), held_(acquired()), on_lost_(lockable::told_once(*held_, [all = lockables_](reason why) {
              for (const lockable *each : all) each->on_lost_(why);
          })) {}

    static lockable *of(lockable &it) noexcept { return &it; }
    /** For locks that a thread may acquire again, use client::all() with the option reentrant. */
    static lockable *of(recursive_lockable &) = delete;

    std::shared_ptr<hold> acquired() const {
        std::vector<zklock_lock *> locks;
        for (const lockable *each : lockables_) locks.push_back(each->lock_.get());
        const lock all(detail::ask<zklock_lock *>(zklock_all_new, lockables_.front()->maker_, locks.data(), locks.size(), nullptr));
        return std::make_shared<hold>(all.acquire());
    }

    std::vector<lockable *> lockables_;
    std::shared_ptr<hold> held_;
    loss_callback on_lost_;
};
} // namespace zklock

#endif // ZKLOCK_SCOPED_LOCK_HPP
