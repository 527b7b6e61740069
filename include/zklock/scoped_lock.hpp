/* Several mutexes, locked at once. */

#ifndef ZKLOCK_SCOPED_LOCK_HPP
#define ZKLOCK_SCOPED_LOCK_HPP

#include <memory>
#include <utility>
#include <vector>

#include "mutex.hpp"
#include "shared_mutex.hpp"

namespace zklock {

/**
 * Locks several mutexes at once, and unlocks them together at the end of its scope. Name them in any order. Scoped
 * locks cannot deadlock each other, because none holds a mutex while it waits for the others.
 *
 *     zklock::mutex accounts(client, "/locks/accounts"), orders(client, "/locks/orders");
 *     zklock::scoped_lock both(accounts, orders);
 *
 * Use it in place of std::scoped_lock and std::lock, which lock one mutex and try the others. A try fails while others
 * wait, so with several threads or processes they make little progress. It takes the write side of a shared_mutex. All
 * of the mutexes must be of one client, which must still exist; two of the same path count once. They share one hold,
 * as a set of locks does: see client::all(), which also has a timeout, for locks of other kinds.
 */
class [[nodiscard]] scoped_lock {
public:
    /** Waits until all of them are held. If it throws, it leaves all of them unlocked. */
    template <class First, class... Others>
    explicit scoped_lock(First &first, Others &...others)
        : scoped_lock(std::vector<detail::locked *>{of(first), of(others)...}) {
        for (detail::locked *each : mutexes_) each->lend(held_);
    }
    scoped_lock(const scoped_lock &) = delete;
    scoped_lock &operator=(const scoped_lock &) = delete;
    /** Releases all of them, and waits as basic_mutex::unlock() does. It does not report a loss. */
    ~scoped_lock() {
        for (detail::locked *each : mutexes_) each->take_back(held_);
        zklock_release(held_->get());
    }
    /**
     * The hold of all of them, which current() of each mutex gives too. If one of them is lost, the hold is lost. Until
     * the end of the scope, unlock() of a mutex does nothing, so do not wait for a condition variable with it.
     */
    std::shared_ptr<hold> current() const noexcept { return held_; }
private:
    explicit scoped_lock(std::vector<detail::locked *> mutexes) : mutexes_(std::move(mutexes)), held_(acquired()) {}

    static detail::locked *of(mutex &it) noexcept { return &it.locked_; }
    static detail::locked *of(shared_mutex &it) noexcept { return &it.write_; }
    /** For locks that a thread may acquire again, use client::all() with the option reentrant. */
    static detail::locked *of(recursive_mutex &) = delete;

    std::shared_ptr<hold> acquired() const {
        std::vector<zklock_lock *> locks;
        for (const detail::locked *each : mutexes_) locks.push_back(each->get());
        const lock all(detail::ask<zklock_lock *>(zklock_all_new, mutexes_.front()->maker(), locks.data(), locks.size(), nullptr));
        return std::make_shared<hold>(all.acquire());
    }

    std::vector<detail::locked *> mutexes_;
    std::shared_ptr<hold> held_;
};
} // namespace zklock

#endif // ZKLOCK_SCOPED_LOCK_HPP
