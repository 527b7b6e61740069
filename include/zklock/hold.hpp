/* The proof that a lock is held, and writes that depend on it. */

#ifndef ZKLOCK_HOLD_HPP
#define ZKLOCK_HOLD_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L && __has_include(<stop_token>)
#include <stop_token>
#endif

#include "async_call.hpp"

namespace zklock {

/** The contents of a node, as hold::read() returns them. */
struct node_data {
    std::string data;
    std::int32_t version;
};

/**
 * Writes to ZooKeeper itself: either all or none of them are done, and only if the lock is still held when the servers
 * commit them.
 *
 *     hold.guarded().set("/report/state", "done").remove("/report/draft").commit();
 */
class [[nodiscard]] writes {
public:
    /** Adds a write that creates a persistent node. */
    writes &create(std::string path, std::string data = {}) {
        return add({ZKLOCK_WRITE_CREATE, any_version, std::move(path), std::move(data)});
    }
    /** Adds a write that sets the data of a node, which must have this version. Throws a misuse_error if no node can have it. */
    writes &set(std::string path, std::string data, std::int64_t version = any_version) {
        return add({ZKLOCK_WRITE_SET, checked(version), std::move(path), std::move(data)});
    }
    /** Adds a write that deletes a node, which must have this version. Throws a misuse_error if no node can have it. */
    writes &remove(std::string path, std::int64_t version = any_version) {
        return add({ZKLOCK_WRITE_DELETE, checked(version), std::move(path), {}});
    }
    /**
     * Does all the writes, in order, and returns the version of each node after its write: 0 for a node that was created,
     * no_node for a node that was deleted. May throw a lost_error, a conflict_error or an uncertain_error: see
     * their comments.
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
     * Does what commit() does, in the background. Keep the hold until the call has its result: its destructor releases the
     * lock, and the result may then be a misuse_error.
     */
    async_call<std::vector<std::int32_t>> start_commit() const {
        const std::vector<zklock_write> all = listed();
        return async_call<std::vector<std::int32_t>>(
            detail::ask<zklock_call *>(zklock_hold_commit_start, hold_, all.data(), all.size()));
    }
private:
    friend class hold;
    explicit writes(zklock_hold *of) noexcept : hold_(of) {}

    struct one {
        zklock_write_kind kind;
        std::int32_t version;
        std::string path, data;
    };
    /** Cut off to 32 bits, it could be the version of another write. */
    static std::int32_t checked(std::int64_t version) {
        if (version >= any_version && version <= INT32_MAX) return static_cast<std::int32_t>(version);
        detail::fail(ZKLOCK_INVALID_ARGUMENT, "no node has the version " + std::to_string(version) +
                                                  ": pass the one that hold::read() gave, or any_version");
    }
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

    zklock_hold *hold_; // It may dangle: a handle is not dereferenced, and a call with a freed one throws.
    std::vector<one> all_;
};

/** What to do at a loss: any function that takes the reason, or nothing. */
class loss_callback {
public:
    template <class Callback,
              class = std::enable_if_t<std::is_invocable_v<Callback &> || std::is_invocable_v<Callback &, reason>>>
    loss_callback(Callback callback) {
        if constexpr (std::is_invocable_v<Callback &, reason>) {
            tell_ = std::move(callback);
        } else if (std::function<void()> tell = std::move(callback)) {
            tell_ = [tell](reason) { tell(); };
        }
    }
    loss_callback(std::nullptr_t) noexcept {}
    explicit operator bool() const noexcept { return static_cast<bool>(tell_); }
    void operator()(reason why) const { tell_(why); }
private:
    std::function<void(reason)> tell_;
};

/**
 * The proof that a lock is held.
 *
 * The destructor releases it in the background, and does not report a loss. If your work is only valid when the lock was
 * held to the end, call release().
 */
class [[nodiscard]] hold : public detail::owner<zklock_hold, zklock_hold_free> {
public:
    using owner::owner;
    /** Not for use outside these files. */
    static hold taken_from(zklock_call *done) { return hold(detail::ask<zklock_hold *>(zklock_call_hold, done)); }
    /**
     * The fencing token. Have the resource that the lock guards refuse any token smaller than the largest it has seen, and
     * accept an equal one. If two grants exclude each other, the later one has the larger token, except that grants on
     * one node share a token: see the option linger. Among readers, or permits, that can be held at the same time,
     * the order of tokens means nothing.
     */
    std::uint64_t token() const noexcept { return zklock_hold_token(get()); }
    /** How long the lock is certain to be held. Zero means that others may hold it. */
    std::chrono::milliseconds valid_for() const noexcept {
        return std::chrono::milliseconds(zklock_hold_valid_for(get()));
    }
    /**
     * Checks that the lock is certain to be held for this time plus a margin. Call it before work that takes this long.
     * Throws an at_risk_error if the lease is shorter, or a lost_error after a loss. It sends no request: see
     * zklock_hold_ensure.
     *
     *     hold.ensure(2s);
     *     send_the_request(2s);
     */
    void ensure(detail::span needs) const { detail::check(zklock_hold_ensure(get(), detail::ms(needs))); }
    /** The state of the hold. */
    zklock::state state() const noexcept { return static_cast<zklock::state>(zklock_hold_state(get(), nullptr)); }
    /** Why it was lost; reason::none if it is not. */
    reason lost_reason() const noexcept {
        zklock_reason why{};
        zklock_hold_state(get(), &why);
        return static_cast<reason>(why);
    }
    /** The path of the lock. */
    std::string path() const { return zklock_hold_path(get()); }
    /** The path of this hold's node. */
    std::string node() const { return zklock_hold_node(get()); }
    /** Sets the pointer that its events give back, in place of the one from its call. The library never follows it. */
    void set_context(void *context) { detail::check(zklock_hold_set_context(get(), context)); }
    /**
     * Registers a callback for the loss of the hold. It is called once, on a thread of the library, and not at all if the
     * hold is released first. You may register several. The callback may query the hold and destroy it; a call that
     * would wait throws a misuse_error there.
     *
     * An exception that leaves the callback ends the program (std::terminate), as in any thread: if it were swallowed,
     * the loss would go unnoticed. A std::terminate_handler finds it in std::current_exception(), and the default one
     * prints its what(). A thread that destroys the hold while the callback runs waits for it, so that thread must not
     * have a mutex locked that the callback locks.
     */
    void on_lost(loss_callback callback) {
        const bool usable = static_cast<bool>(callback);
        kept().push_front(std::make_shared<loss_callback>(std::move(callback)));
        // It is kept until the handle is freed.
        const zklock_status status = zklock_hold_on_lost(get(), usable ? tell_lost : nullptr, &kept().front());
        if (status != ZKLOCK_OK) kept().pop_front();
        detail::check(status);
    }

#ifdef __cpp_lib_jthread
    /**
     * A token whose stop is requested when the hold is lost, for std::condition_variable_any, std::stop_callback, and
     * threads that poll it. No stop is requested if the hold is released first. It needs C++20. Ask once and copy the
     * token: each call registers a callback, and needs what on_lost() needs.
     *
     *     std::jthread worker([token = hold.stop_token()] {
     *         while (!token.stop_requested()) work_on_a_piece();
     *     });
     */
    std::stop_token stop_token() {
        std::stop_source source;
        on_lost([source](reason) mutable { source.request_stop(); });
        return source.get_token();
    }
#endif

    /** Waits until the hold is lost, and returns why; nothing if it is still held at the end. Throws a misuse_error if it is
        released. */
    std::optional<reason> wait_lost_for(detail::span wait) const {
        return ask_unless<reason, zklock_reason>(ZKLOCK_TIMEOUT, zklock_hold_wait_lost, detail::ms(wait));
    }
    /**
     * Whether others are known to be waiting for what this hold has. Use it to finish early, or to release the lock
     * between two pieces of work. It does not wait for the servers: the first call starts to watch. Afterwards the
     * client has an event when others wait. See zklock_hold_is_wanted.
     */
    bool is_wanted() const noexcept { return zklock_hold_is_wanted(get()) != 0; }
    /** Waits until others wait for it; false if none do in that time. Throws a lost_error after a loss, and a
        misuse_error after a release. */
    bool wait_wanted_for(detail::span wait) const { return detail::in_time(zklock_hold_wait_wanted(get(), detail::ms(wait))); }

    /** Asks the servers how long the lock is certain to be held. Throws a lost_error if it is not held. */
    std::chrono::milliseconds confirm() const {
        return std::chrono::milliseconds(ask<std::int64_t>(zklock_hold_confirm));
    }
    /**
     * Does what confirm() does, in the background. Keep the hold until the call has its result: its destructor releases the
     * lock, and the result may then be a misuse_error.
     */
    async_call<std::chrono::milliseconds> start_confirm() const {
        return begun<std::chrono::milliseconds>(zklock_hold_confirm_start);
    }
    /**
     * Reads a node; nothing if it does not exist. The answer is at least as recent as everything that the servers had
     * committed when this was called. If it does not show a commit that ended with an uncertain_error, commit again with the
     * version that it shows: see zklock_hold_read. It works while the client is open, even if the hold is lost or released.
     *
     *     const auto node = hold.read("/report/state");
     *     if (node) hold.guarded().set("/report/state", "done", node->version).commit();
     */
    std::optional<node_data> read(const std::string &path) const {
        node_data node{std::string(1024, '\0'), no_node};
        for (;;) {
            const std::size_t room = node.data.size();
            std::size_t length = 0;
            detail::check(zklock_hold_read(get(), detail::text(path), node.data.data(), room, &length, &node.version));
            if (node.version == no_node) return std::nullopt;
            node.data.resize(length);
            // If the data did not fit, read again with more room.
            if (length <= room) return node;
        }
    }
    /** Replaces a file with a new one that is ready, unless a later holder has written to that folder: see
        zklock_hold_publish. Throws a stale_token_error then. */
    void publish(const std::string &staged, const std::string &target) const {
        detail::check(zklock_hold_publish(get(), detail::text(staged), detail::text(target)));
    }
    /** Starts a list of writes that are only done if the lock is held: see writes. */
    writes guarded() const noexcept { return writes(get()); }
    /** Releases the hold, and waits until the servers have confirmed it. Throws a lost_error if the hold was lost. */
    void release() { detail::check(zklock_release(get())); }
    /** Does what release() does, in the background. It goes on even if the call is destroyed. */
    async_call<void> start_release() { return begun<void>(zklock_release_start); }
private:
    static void tell_lost(zklock_hold *, zklock_reason why, void *context) noexcept {
        // The callback may destroy the hold, but must not destroy itself while it runs.
        const std::shared_ptr<void> callback = *static_cast<std::shared_ptr<void> *>(context);
        try {
            (*static_cast<loss_callback *>(callback.get()))(static_cast<reason>(why));
        } catch (...) {
            // A noexcept alone ends the program too, but some compilers then lose the exception on the way.
            std::terminate();
        }
    }
};

/** A statement with which a database refuses the write of a late holder: see zklock_fence_sql. */
inline const char *fence_sql(database of, fence_statement which) {
    return detail::ask<const char *>(zklock_fence_sql, static_cast<zklock_database>(of), static_cast<zklock_fence_statement>(which));
}

} // namespace zklock

#endif // ZKLOCK_HOLD_HPP
