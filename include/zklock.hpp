/*
 * zklock.hpp - distributed locks on Apache ZooKeeper, for C++17 and later
 *
 * The classes of this file keep the handles of zklock.h and turn its statuses into exceptions. What a hold promises,
 * and what threads, signals and fork do, is said at the top of zklock.h, and holds here as well.
 *
 *     zklock::client client("zk1:2181,zk2:2181,zk3:2181");
 *     zklock::mutex mutex(client, "/locks/report");
 *     {
 *         std::lock_guard guard(mutex);
 *         write_the_report();
 *     }
 *
 * A zklock::mutex goes where a std::timed_mutex goes: std::unique_lock, std::scoped_lock (with several),
 * std::condition_variable_any. Unlike that, it can be lost. Who wants to know takes the hold:
 *
 *     zklock::hold hold = client.mutex("/locks/report").acquire_for(5s);
 *     hold.on_lost([&](zklock_reason) { stop = true; });
 *     write_the_report(hold.token());
 *     hold.release(); // throws a lost_error
 *
 * Errors and times
 * ----------------
 *
 * What fails throws a zklock::error, which has the zklock_status and the sentence to it; what a caller may want to
 * catch apart has a class of its own. Destructors and unlock() do not throw.
 *
 * A wait is any duration of std::chrono, rounded up to whole milliseconds. One that is not positive tries once; one
 * that is too long for milliseconds to say waits for ever.
 *
 * Objects
 * -------
 *
 * None can be copied, and all but the mutexes can be moved. One that was moved from can be assigned to and destroyed;
 * all else throws a misuse_error. They may be destroyed in any order. No destructor waits for a server: a hold is
 * released in the background, and a client closed when all that it made is gone as well. So statics do no harm at the
 * end of the process; in a forked child destructors do nothing.
 *
 * Several threads may call the const members of one object at once, and all members of a mutex.
 */

#ifndef ZKLOCK_HPP
#define ZKLOCK_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <forward_list>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "zklock.h"

namespace zklock {

/** What all functions here throw. */
class error : public std::runtime_error {
public:
    error(zklock_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
    /** What the function of zklock.h returned. */
    zklock_status status() const noexcept { return status_; }
private:
    zklock_status status_;
};

struct timeout_error : error { using error::error; };     ///< The time was over: try again, or do without.
struct unreachable_error : error { using error::error; }; ///< No server could be reached: try again later.
struct lost_error : error { using error::error; };        ///< Stop what the hold guarded; others may hold the lock.
struct closed_error : error { using error::error; };      ///< The client is closed: the program ends, perhaps.
struct conflict_error : error { using error::error; };    ///< A node was not as it had to be: nothing was written.
struct uncertain_error : error { using error::error; };   ///< A guarded write may be done: read, then decide.
struct misuse_error : error { using error::error; };      ///< Correct the program: an argument, or a self-deadlock.

/** Not for use outside this file. */
namespace detail {
[[noreturn]] inline void fail(zklock_status status, const std::string &message) {
    switch (status) {
    case ZKLOCK_TIMEOUT: throw timeout_error(status, message);
    case ZKLOCK_UNREACHABLE: throw unreachable_error(status, message);
    case ZKLOCK_LOST: throw lost_error(status, message);
    case ZKLOCK_CLOSED: throw closed_error(status, message);
    case ZKLOCK_CONFLICT: throw conflict_error(status, message);
    case ZKLOCK_UNCERTAIN: throw uncertain_error(status, message);
    case ZKLOCK_INVALID_ARGUMENT: case ZKLOCK_INVALID_HANDLE: case ZKLOCK_DEADLOCK:
    case ZKLOCK_NOT_OWNER: case ZKLOCK_NOT_HELD: throw misuse_error(status, message);
    default: throw error(status, message);
    }
}

inline void check(zklock_status status) {
    if (status != ZKLOCK_OK) fail(status, zklock_last_error());
}

/** What a call gives whose last argument says where to put it. */
template <class Value, class Call, class... Given>
Value ask(Call call, Given... given) {
    Value value{};
    check(call(given..., &value));
    return value;
}

/** Refused rather than cut off at its NUL: that would be the path of another lock. */
inline const char *text(const std::string &text) {
    if (text.find('\0') != std::string::npos) fail(ZKLOCK_INVALID_ARGUMENT, "there is a NUL in a text: " + text);
    return text.c_str();
}

/** Wide enough for the difference of any two times, where integers would overflow. */
using span = std::chrono::duration<long double, std::milli>;

/** A wait as zklock.h has it. A positive one must not become 0, nor a negative one wait for ever. */
constexpr std::int64_t ms(span wait) noexcept {
    if (!(wait.count() > 0)) return 0;
    if (wait.count() >= static_cast<long double>(INT64_MAX)) return ZKLOCK_FOREVER;
    const auto whole = static_cast<std::int64_t>(wait.count());
    return static_cast<long double>(whole) < wait.count() ? whole + 1 : whole;
}

/** What owns a handle of zklock.h, and calls its functions. */
template <class Handle, void (*Free)(Handle *)>
class owner {
public:
    explicit owner(Handle *owned) noexcept : handle_(owned) {}
    /** The handle, which stays owned by this object. */
    Handle *get() const noexcept { return handle_.get(); }
protected:
    template <class Value, class Call, class... Given>
    Value ask(Call call, Given... given) const {
        return detail::ask<Value>(call, get(), given...);
    }

    /** The same where one status is no error, but means nothing. */
    template <class Result, class Value, class Call, class... Given>
    std::optional<Result> ask_unless(zklock_status nothing, Call call, Given... given) const {
        Value value{};
        const zklock_status status = call(get(), given..., &value);
        if (status == nothing) return std::nullopt;
        check(status);
        return Result(value);
    }

    /** What the library may use until the handle is freed. Its place stays when this object is moved. */
    std::forward_list<std::shared_ptr<void>> &kept() noexcept { return handle_.get_deleter().kept; }
private:
    /** Here, since a unique_ptr lets go of its deleter after its pointer, when it is destroyed and when assigned to. */
    struct freed {
        void operator()(Handle *handle) const noexcept { Free(handle); }
        std::forward_list<std::shared_ptr<void>> kept;
    };
    std::unique_ptr<Handle, freed> handle_;
};
} // namespace detail

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
    /** Does them, in this order. It throws a lost_error, a conflict_error or an uncertain_error: see there. */
    void commit() const {
        std::vector<zklock_write> all;
        for (const one &it : all_) {
            all.push_back({it.kind, it.version, detail::text(it.path), it.data.data(), it.data.size()});
        }
        detail::check(zklock_hold_commit(hold_, all.data(), all.size()));
    }
private:
    struct one {
        std::int32_t kind, version;
        std::string path, data;
    };
    writes &add(one write) {
        all_.push_back(std::move(write));
        return *this;
    }

    zklock_hold *hold_; // If the hold is gone that is told, since a handle is never followed.
    std::vector<one> all_;
};

/**
 * The proof that a lock is held.
 *
 * The destructor releases it in the background, and says nothing of a loss. Call release() where the work is good only
 * if the lock was held to its end.
 */
class [[nodiscard]] hold : public detail::owner<zklock_hold, zklock_hold_free> {
public:
    using owner::owner;
    /** The fencing token: let what the lock guards refuse one that is smaller than it has seen. */
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
    /** For event loops: readable once the hold is lost. It lives as long as the hold; do not close it. */
    int fd() const { return ask<int>(zklock_hold_fd); }

    /**
     * Calls back when the hold is lost: once, on a thread of the library, and not if it is released before. Each call
     * adds a callback. It may ask the hold and destroy it; a call that waits throws a misuse_error there.
     *
     * An exception that leaves it ends the program (std::terminate), as in any thread: swallowed, the loss would be
     * untold. Who destroys the hold meanwhile waits for it, so let that be done with nothing locked that it locks.
     */
    void on_lost(std::function<void(zklock_reason)> callback) {
        const bool usable = callback != nullptr;
        kept().push_front(std::make_shared<function>(std::move(callback)));
        const zklock_status status = zklock_hold_on_lost(get(), usable ? tell : nullptr, &kept().front());
        if (status != ZKLOCK_OK) kept().pop_front();
        detail::check(status);
    }

    /** Waits until it is lost, and says why; nothing if it is still held then. A release makes it a misuse_error. */
    std::optional<zklock_reason> wait_lost_for(detail::span wait) const {
        return ask_unless<zklock_reason, zklock_reason>(ZKLOCK_TIMEOUT, zklock_hold_wait_lost, detail::ms(wait));
    }
    /** Asks the servers for how long the lock is certain to be held; if it is not, that is a lost_error. */
    std::chrono::milliseconds confirm() const {
        return std::chrono::milliseconds(ask<std::int64_t>(zklock_hold_confirm));
    }
    /** Writes that are done only if the lock is held. */
    writes guarded() const noexcept { return writes(get()); }
    /** Releases it, and waits until the servers have confirmed that; a lost_error if it was lost meanwhile. */
    void release() { detail::check(zklock_release(get())); }
private:
    using function = std::function<void(zklock_reason)>;
    std::pair<zklock_state, zklock_reason> stands() const {
        zklock_state state{};
        const auto reason = ask<zklock_reason>(zklock_hold_state, &state);
        return {state, reason};
    }

    static void tell(zklock_hold *, zklock_reason reason, void *context) noexcept {
        // If it destroys the hold, it must not destroy itself.
        const std::shared_ptr<void> callback = *static_cast<std::shared_ptr<void> *>(context);
        (*static_cast<function *>(callback.get()))(reason);
    }
};

/**
 * A wait for a lock that goes on by itself, for event loops. The destructor ends it. When fd() is readable:
 *
 *     if (std::optional<zklock::hold> hold = ticket.try_finish()) work_with(std::move(*hold));
 */
class [[nodiscard]] ticket : public detail::owner<zklock_ticket, zklock_ticket_free> {
public:
    using owner::owner;
    /** Readable when there is a result. It lives as long as the ticket; do not close it. */
    int fd() const { return ask<int>(zklock_ticket_fd); }
    /** The result, once; nothing as long as the wait goes on. It throws what acquire_for() does, or was cancelled. */
    [[nodiscard]] std::optional<hold> try_finish() {
        return ask_unless<hold, zklock_hold *>(ZKLOCK_PENDING, zklock_acquire_finish);
    }
    /** Ends the wait, unless there is a result already. Nothing is left behind in the queue. */
    void cancel() { detail::check(zklock_acquire_cancel(get())); }
};

/** One in the queue of a lock: see zklock_contender. */
struct contender {
    std::string name, identity, dialect;
    std::uint64_t session, token;
    std::chrono::system_clock::time_point since;
};

/** A lock at a path, which a client makes. It holds nothing itself; any number of threads may acquire it. */
class lock : public detail::owner<zklock_lock, zklock_lock_free> {
public:
    using owner::owner;
    /** Waits until the lock is held. It throws a misuse_error if this thread holds it, and it is not reentrant. */
    hold acquire() const { return acquire_for(detail::span::max()); }
    /** The same, for this time at most: then it throws a timeout_error, whatever the network does. */
    hold acquire_for(detail::span wait) const { return hold(ask<zklock_hold *>(zklock_acquire, detail::ms(wait))); }
    /** Tries once: nothing if the lock is held; an unreachable_error if no server answers. */
    [[nodiscard]] std::optional<hold> try_acquire() const { return try_acquire_for(detail::span(0)); }
    /** As acquire_for(), but nothing when the time is over. */
    [[nodiscard]] std::optional<hold> try_acquire_for(detail::span wait) const {
        return ask_unless<hold, zklock_hold *>(ZKLOCK_TIMEOUT, zklock_acquire, detail::ms(wait));
    }
    /** Begins to wait, for this time at most, and returns at once. */
    ticket start(detail::span wait = detail::span::max()) const {
        return ticket(ask<zklock_ticket *>(zklock_acquire_start, detail::ms(wait)));
    }
    /** Who is in the queue, the holder first, of whatever library. */
    std::vector<contender> contenders() const {
        std::pair<std::vector<contender>, std::exception_ptr> seen;
        const zklock_status status = zklock_contenders(get(), see, &seen);
        if (seen.second) std::rethrow_exception(seen.second);
        detail::check(status);
        return std::move(seen.first);
    }
    /** The path. */
    std::string path() const { return ask<const char *>(zklock_lock_path); }
private:
    // No exception may pass through the library: it is not C++.
    static void see(const zklock_contender *it, void *context) noexcept {
        auto &seen = *static_cast<std::pair<std::vector<contender>, std::exception_ptr> *>(context);
        try {
            const std::chrono::system_clock::time_point since{std::chrono::milliseconds(it->since)};
            seen.first.push_back({it->name, it->identity, it->dialect, it->session, it->token, since});
        } catch (...) {
            seen.second = std::current_exception();
        }
    }
};

/**
 * How a client connects. The defaults are good for most; what is wrong is thrown by the setter.
 *
 *     zklock::client client(hosts, zklock::options().session_timeout(4s).identity("billing"));
 */
class options : public detail::owner<zklock_options, zklock_options_free> {
public:
    options() : owner(detail::ask<zklock_options *>(zklock_options_new)) {}
    /** The session timeout to ask for: when it is over, the locks of a crashed holder are free. Default: 10 s. */
    options &session_timeout(std::chrono::milliseconds t) { return set(zklock_options_set_session_timeout, t.count()); }
    /** How long to try to reach a server before client(), or an acquire that tries once, fails. Default: 10 s. */
    options &connect_timeout(std::chrono::milliseconds t) { return set(zklock_options_set_connect_timeout, t.count()); }
    /** Put all paths below this node, which must exist. */
    options &chroot(const std::string &path) { return set(zklock_options_set_chroot, detail::text(path)); }
    /** What others see as the contender's name. Default: "host/pid". */
    options &identity(const std::string &name) { return set(zklock_options_set_identity, detail::text(name)); }
    /** Speak TLS with servers whose certificates come from these authorities: a PEM file. */
    options &tls(const std::string &authorities) {
        return set(zklock_options_set_tls, detail::text(authorities), nullptr, nullptr);
    }
    /** The same, with a certificate and its key, each a PEM file, for servers that ask who this is. */
    options &tls(const std::string &authorities, const std::string &certificate, const std::string &key) {
        return set(zklock_options_set_tls, detail::text(authorities), detail::text(certificate), detail::text(key));
    }
private:
    template <class Call, class... Values>
    options &set(Call call, Values... values) {
        detail::check(call(get(), values...));
        return *this;
    }
};

/** What a client has done so far, and what it still owes: see zklock_stat. */
struct stats {
    std::uint64_t sessions, grants, losses, owed, session_id;
    std::chrono::milliseconds session_timeout;
};

/** One logical connection to an ensemble. It outlives sessions: when one expires it opens the next. */
class client : public detail::owner<zklock_client, zklock_client_free> {
public:
    using owner::owner;
    /** Opens a session: "host:port,host:port/chroot". After the connect timeout it throws an unreachable_error. */
    explicit client(const std::string &hosts, const options &how = options())
        : owner(detail::ask<zklock_client *>(zklock_client_new, detail::text(hosts), how.get())) {}
    /** Closes the sessions, which frees every lock, and waits for that, a second at most. Waits end: closed_error. */
    void close() { detail::check(zklock_client_close(get())); }
    /** The mutex at a path. It costs no request. The flags are a sum of zklock_flag. */
    lock mutex(const std::string &path, std::uint32_t flags = 0) const {
        return lock(ask<zklock_lock *>(zklock_mutex_new, detail::text(path), flags));
    }
    /** It costs no request. */
    zklock::stats stats() const {
        return {stat(ZKLOCK_STAT_SESSIONS), stat(ZKLOCK_STAT_GRANTS), stat(ZKLOCK_STAT_LOSSES), stat(ZKLOCK_STAT_OWED),
                stat(ZKLOCK_STAT_SESSION_ID), std::chrono::milliseconds(stat(ZKLOCK_STAT_SESSION_TIMEOUT))};
    }
private:
    std::uint64_t stat(std::int32_t which) const { return ask<std::uint64_t>(zklock_client_stat, which); }
};

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

#endif // ZKLOCK_HPP
