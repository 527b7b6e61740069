/* The proof that a lock is held, and what can be written under it. */

#ifndef ZKLOCK_HOLD_HPP
#define ZKLOCK_HOLD_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async_call.hpp"

namespace zklock {

/** What is in a node: what hold::read() gives. */
struct node_data {
    std::string data;
    std::int32_t version;
};

/**
 * Writes to ZooKeeper itself, all or nothing, and only if the lock is still held when the servers commit them.
 *
 *     hold.guarded().set("/report/state", "done").remove("/report/draft").commit();
 */
class [[nodiscard]] writes {
public:
    explicit writes(zklock_hold *hold) noexcept : hold_(hold) {}
    /** Create a persistent node. */
    writes &create(std::string path, std::string data = {}) {
        return add({ZKLOCK_WRITE_CREATE, ZKLOCK_ANY_VERSION, std::move(path), std::move(data)});
    }
    /** Set the data of a node, which must have this version. */
    writes &set(std::string path, std::string data, std::int32_t version = ZKLOCK_ANY_VERSION) {
        return add({ZKLOCK_WRITE_SET, version, std::move(path), std::move(data)});
    }
    /** Delete a node, which must have this version. */
    writes &remove(std::string path, std::int32_t version = ZKLOCK_ANY_VERSION) {
        return add({ZKLOCK_WRITE_DELETE, version, std::move(path), {}});
    }
    /**
     * Does them, in this order, and gives the version of each node after its write: 0 where it was created,
     * ZKLOCK_NO_NODE where it was deleted. It throws a lost_error, a conflict_error or an uncertain_error: see there.
     */
    std::vector<std::int32_t> commit() const {
        const std::vector<zklock_write> all = listed();
        std::vector<std::int32_t> versions(all.size());
        const zklock_status status = zklock_hold_commit(hold_, all.data(), all.size(), versions.data());
        if (status == ZKLOCK_CONFLICT) {
            const auto index = static_cast<std::size_t>(zklock_last_conflict());
            throw conflict_error(zklock_last_error(), index, index < all_.size() ? all_[index].path : "");
        }
        detail::check(status);
        return versions;
    }
    /**
     * As commit(), in the background. Keep the hold until the call has its result: its destructor releases the lock, and
     * the result may be a misuse_error then.
     */
    async_call<std::vector<std::int32_t>> start_commit() const {
        const std::vector<zklock_write> all = listed();
        return async_call<std::vector<std::int32_t>>(
            detail::ask<zklock_call *>(zklock_hold_commit_start, hold_, all.data(), all.size()));
    }
private:
    struct one {
        std::int32_t kind, version;
        std::string path, data;
    };
    std::vector<zklock_write> listed() const {
        std::vector<zklock_write> all;
        for (const one &it : all_) {
            all.push_back({it.kind, it.version, detail::text(it.path), it.data.data(), it.data.size(), {}});
        }
        return all;
    }
    writes &add(one write) {
        all_.push_back(std::move(write));
        return *this;
    }

    zklock_hold *hold_; // If the hold is gone, a call says so, since a handle is never followed.
    std::vector<one> all_;
};

/**
 * The proof that a lock is held.
 *
 * The destructor releases it in the background, and says nothing of a loss. Call release() if the work is good only if the
 * lock was held to its end.
 */
class [[nodiscard]] hold : public detail::owner<zklock_hold, zklock_hold_free> {
public:
    using owner::owner;
    /**
     * The fencing token: let what the lock guards refuse one that is smaller than it has seen, and accept an equal one. Of
     * two grants that exclude each other the later has the greater one, but grants on one node have the same: see
     * lock_options::linger(). Among readers, or permits, that hold together the order says nothing.
     */
    std::uint64_t token() const { return ask<std::uint64_t>(zklock_hold_token); }
    /** For how long the lock is certain to be held. Zero: others may hold it. */
    std::chrono::milliseconds valid_for() const {
        return std::chrono::milliseconds(ask<std::int64_t>(zklock_hold_valid_for));
    }
    /** How it stands. */
    zklock_state state() const { return stands().first; }
    /** Why it was lost; ZKLOCK_REASON_NONE if it is not. */
    zklock_reason lost_reason() const { return stands().second; }
    /** The path of the lock. */
    std::string path() const { return ask<const char *>(zklock_hold_path); }
    /** The path of the node that stands for this hold. */
    std::string node() const { return ask<const char *>(zklock_hold_node); }
    /** What its events give back, instead of what its ticket was given. Nobody looks behind it. */
    void set_context(void *context) { detail::check(zklock_hold_set_context(get(), context)); }
    /** For event loops: readable once the hold is lost. It lives as long as the hold; do not close it. */
    int fd() const { return ask<int>(zklock_hold_fd); }

    /**
     * Calls back when the hold is lost: once, on a thread of the library, and not if it is released before. Each call
     * adds a callback. It may ask the hold and destroy it; a call that waits throws a misuse_error there.
     *
     * An exception that leaves it ends the program (std::terminate), as in any thread: swallowed, the loss would be
     * untold. A thread that destroys the hold meanwhile waits for it: let that thread have nothing locked that the
     * callback locks.
     */
    void on_lost(std::function<void(zklock_reason)> callback) {
        add<std::function<void(zklock_reason)>>(std::move(callback), zklock_hold_on_lost, tell_lost);
    }

    /** Waits until it is lost, and says why; nothing if it is still held then. A release makes it a misuse_error. */
    std::optional<zklock_reason> wait_lost_for(detail::span wait) const {
        return ask_unless<zklock_reason, zklock_reason>(ZKLOCK_TIMEOUT, zklock_hold_wait_lost, detail::ms(wait));
    }
    /**
     * Whether somebody is known to wait for what this hold has: to finish early, or to let the lock go between two pieces of
     * work. It does not wait for the servers; the first call begins to look out. See zklock_hold_is_wanted.
     */
    bool is_wanted() const { return ask<int>(zklock_hold_is_wanted) != 0; }
    /** Waits until somebody waits; false if nobody does by then. A loss is a lost_error, a release a misuse_error. */
    bool wait_wanted_for(detail::span wait) const {
        const zklock_status status = zklock_hold_wait_wanted(get(), detail::ms(wait));
        if (status != ZKLOCK_TIMEOUT) detail::check(status);
        return status == ZKLOCK_OK;
    }
    /** For event loops: readable once others wait. It lives as long as the hold; do not close it. */
    int wanted_fd() const { return ask<int>(zklock_hold_wanted_fd); }
    /**
     * Calls back when others wait: once, and not if the hold is released or lost before. Each call adds a callback. What
     * on_lost() says of its callback holds here.
     *
     *     hold.on_wanted([&] { is_to_finish = true; });
     */
    void on_wanted(std::function<void()> callback) {
        add<std::function<void()>>(std::move(callback), zklock_hold_on_wanted, tell_wanted);
    }

    /** Asks the servers for how long the lock is certain to be held; if it is not, that is a lost_error. */
    std::chrono::milliseconds confirm() const {
        return std::chrono::milliseconds(ask<std::int64_t>(zklock_hold_confirm));
    }
    /**
     * As confirm(), in the background. Keep the hold until the call has its result: its destructor releases the lock, and
     * the result may be a misuse_error then.
     */
    async_call<std::chrono::milliseconds> start_confirm() const {
        return async_call<std::chrono::milliseconds>(ask<zklock_call *>(zklock_hold_confirm_start));
    }
    /**
     * What is in a node, as new as anything that the servers had committed; nothing if there is no such node. The outcome
     * of a commit of this hold is certain by then: so after an uncertain_error read, then decide. It works while the
     * client is open, also when the hold is lost or released.
     *
     *     const auto node = hold.read("/report/state");
     *     if (node) hold.guarded().set("/report/state", "done", node->version).commit();
     */
    std::optional<node_data> read(const std::string &path) const {
        node_data node{std::string(1024, '\0'), ZKLOCK_NO_NODE};
        for (;;) {
            const std::size_t room = node.data.size();
            std::size_t length = 0;
            detail::check(zklock_hold_read(get(), detail::text(path), node.data.data(), room, &length, &node.version));
            if (node.version == ZKLOCK_NO_NODE) return std::nullopt;
            node.data.resize(length);
            // It is read again if there was not room for all.
            if (length <= room) return node;
        }
    }
    /** Writes that are done only if the lock is held. */
    writes guarded() const noexcept { return writes(get()); }
    /** Releases it, and waits until the servers have confirmed that; a lost_error if it was lost meanwhile. */
    void release() { detail::check(zklock_release(get())); }
    /** As release(), in the background: it goes on without the call. */
    async_call<void> start_release() { return async_call<void>(ask<zklock_call *>(zklock_release_start)); }
private:
    std::pair<zklock_state, zklock_reason> stands() const {
        zklock_state state{};
        const auto reason = ask<zklock_reason>(zklock_hold_state, &state);
        return {state, reason};
    }

    /** Adds a callback, which is kept until the handle is freed. */
    template <class Function, class Call, class Tell>
    void add(Function callback, Call call, Tell how) {
        const bool usable = callback != nullptr;
        kept().push_front(std::make_shared<Function>(std::move(callback)));
        const zklock_status status = call(get(), usable ? how : nullptr, &kept().front());
        if (status != ZKLOCK_OK) kept().pop_front();
        detail::check(status);
    }
    template <class... News>
    static void tell(void *context, News... news) {
        // If it destroys the hold, it must not destroy itself.
        const std::shared_ptr<void> callback = *static_cast<std::shared_ptr<void> *>(context);
        (*static_cast<std::function<void(News...)> *>(callback.get()))(news...);
    }
    static void tell_lost(zklock_hold *, zklock_reason reason, void *context) noexcept { tell(context, reason); }
    static void tell_wanted(zklock_hold *, void *context) noexcept { tell(context); }
};
} // namespace zklock

#endif // ZKLOCK_HOLD_HPP
