/* A client: a logical connection to an ensemble. It makes the locks. */

#ifndef ZKLOCK_CLIENT_HPP
#define ZKLOCK_CLIENT_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "event.hpp"
#include "lock.hpp"
#include "options.hpp"

namespace zklock {

/** What a client has counted so far, and what it still has to clean up. */
using stats = zklock_stats;
/** The figures of the locks with one name in a client. */
using lock_stats = zklock_lock_stats;
/** One bucket of a histogram: how many values were not larger than its bound. The last bound is infinite. */
using bucket = zklock_bucket;

/** The distribution of what a client has counted: see zklock_client_histogram. */
struct histogram {
    /** How many values were counted. */
    std::uint64_t count() const noexcept { return buckets.empty() ? 0 : buckets.back().count; }
    double sum;
    std::vector<bucket> buckets;
};

/** Not for use outside these files. */
namespace detail {
/** A text, for which there is enough room at the end. */
template <class Get>
std::string grown(Get get) {
    std::string text(8192, '\0');
    for (;;) {
        const std::size_t room = text.size();
        std::size_t length = 0;
        check(get(text.data(), room, &length));
        text.resize(length);
        // If the text did not fit, ask again with more room.
        if (length <= room) return text;
    }
}
/** The handle of a lock, borrowed for the length of a call. */
struct borrowed {
    borrowed(const lock &it) noexcept : handle(it.get()) {}
    zklock_lock *handle;
};
} // namespace detail

/** A logical connection to an ensemble. It outlives sessions: when one expires, it opens the next. */
class client : public detail::owner<zklock_client, zklock_client_free> {
public:
    using owner::owner;
    /** Opens a session with "host:port,host:port/chroot". Throws an unreachable_error after the connect timeout. */
    explicit client(const std::string &hosts, const options &how = options())
        : owner(detail::ask<zklock_client *>(zklock_client_new, detail::text(hosts), how.made().get())) {}
    /** The same with the servers that the environment variable ZKLOCK_HOSTS names. */
    static client from_env(const options &how = options()) {
        return client(detail::ask<zklock_client *>(zklock_client_new, nullptr, how.made().get()));
    }
    /** Makes a client that connects on first use. Until then it does nothing, so you can make it and its locks before you fork. */
    static client lazy(const std::string &hosts, const options &how = options()) {
        return client(detail::ask<zklock_client *>(zklock_client_new_lazy, detail::text(hosts), how.made().get()));
    }
    /** Connects a lazy client now, and waits for up to the connect timeout. */
    void connect() { connect_for(detail::span::max()); }
    /** Connects a lazy client now, and waits for up to this time. Then it throws an unreachable_error. */
    void connect_for(detail::span wait) {
        const async_call<void> connecting = start_connect(wait);
        detail::check(zklock_call_finish(connecting.get(), ZKLOCK_FOREVER, nullptr));
    }
    /** Does what connect_for() does, in the background. */
    async_call<void> start_connect(detail::span wait = detail::span::max()) {
        return begun<void>(zklock_client_connect_start, detail::ms(wait));
    }
    /**
     * Starts a guardian until the client is closed: if this process is killed, its locks are free at once. See zklock_client_guard.
     *
     *     client.guard();
     *     client.guard("/opt/zklock/bin/zklock");
     */
    void guard() { detail::check(zklock_client_guard(get(), nullptr)); }
    /** The same with the command zklock at this path. */
    void guard(const std::string &command) { detail::check(zklock_client_guard(get(), detail::text(command))); }
    /** Closes the sessions, which frees every lock, and waits for that, for up to a second. Other waits throw a closed_error. */
    void close() { detail::check(zklock_client_close(get())); }
    /** Does what close() does, in the background. It goes on even if the call is destroyed. */
    async_call<void> start_close() { return begun<void>(zklock_client_close_start); }
    /** One descriptor for everything: readable while next_event() has an event. Valid until the client is destroyed; do
        not close it. */
    int fd() { return ask<int>(zklock_client_fd); }
    /** The next event; nothing if there is none. It does not wait. See zklock_client_next_event. */
    [[nodiscard]] std::optional<event> next_event() {
        const std::optional<zklock_event> it = ask_unless<zklock_event, zklock_event>(ZKLOCK_PENDING, zklock_client_next_event);
        if (!it) return std::nullopt;
        return event{static_cast<event_kind>(it->kind), it->context, it->call, it->hold, it->observer};
    }
    /** The mutex at a path. As with every kind of lock, making it sends no request. */
    lock mutex(const std::string &path, const options &how = options()) const {
        return made(zklock_mutex_new, path, how);
    }
    /** The read side of the read/write lock at a path: any number of readers may hold it at once. */
    lock read_lock(const std::string &path, const options &how = options()) const {
        return made(zklock_read_lock_new, path, how);
    }
    /** The write side of the read/write lock at a path. */
    lock write_lock(const std::string &path, const options &how = options()) const {
        return made(zklock_write_lock_new, path, how);
    }
    /** The election at a path: the client that acquires it leads until it releases it. */
    lock election(const std::string &path, const options &how = options()) const {
        return made(zklock_election_new, path, how);
    }
    /** The single-node lock at a path: one node and no queue, shared with programs that create that node. */
    lock single_node(const std::string &path, const options &how = options()) const {
        return made(zklock_single_node_new, path, how);
    }
    /** The semaphore at a path, with this many permits. Every program that uses it must give the same limit. */
    lock semaphore(const std::string &path, std::uint32_t limit, const options &how = options()) const {
        return lock(ask<zklock_lock *>(zklock_semaphore_new, detail::text(path), limit, how.made().get()));
    }
    /**
     * A set of these locks, which are acquired and released together. They may be of any kind that has a queue.
     *
     *     auto both = client.all({from, to}).acquire();
     *     auto every = client.all({locks.begin(), locks.end()}).acquire();
     */
    lock all(const std::vector<detail::borrowed> &locks, const options &how = options()) const {
        const std::vector<zklock_lock *> given = handles(locks);
        return lock(ask<zklock_lock *>(zklock_all_new, given.data(), given.size(), how.made().get()));
    }
    /**
     * A choice of these locks: acquiring it gives a hold of whichever is free first. The path of the hold says which it is.
     *
     *     auto hold = client.any({jobs.begin(), jobs.end()}).acquire();
     *     run(hold.path());
     */
    lock any(const std::vector<detail::borrowed> &locks) const {
        const std::vector<zklock_lock *> given = handles(locks);
        return lock(ask<zklock_lock *>(zklock_any_new, given.data(), given.size(), nullptr));
    }
    /** Writes a number of permits to the node that the option limit-at names. Waiters notice. */
    void set_limit(const std::string &path, std::uint32_t limit) const {
        detail::check(zklock_client_set_limit(get(), detail::text(path), limit));
    }
    /** The identity of the ensemble, which a fence keeps together with the token: see zklock_client_ensemble_id. */
    std::string ensemble_id() const {
        std::string id(64, '\0');
        std::size_t length = 0;
        detail::check(zklock_client_ensemble_id(get(), id.data(), id.size(), &length));
        id.resize(length);
        return id;
    }
    /**
     * What this client has done so far. It sends no request.
     *
     *     if (client.stats().losses_by[ZKLOCK_REASON_NODE_DELETED] > 0) std::cerr << "an operator breaks our locks\n";
     */
    zklock::stats stats() const { return ask<zklock_stats>(zklock_client_stats); }
    /**
     * The figures of the locks with this name: see the option metrics-name. It sends no request.
     *
     *     if (client.lock_stats("report").oldest_hold > 3600000) std::cerr << "somebody has been writing the report for an hour\n";
     */
    zklock::lock_stats lock_stats(const std::string &name) const {
        return ask<zklock_lock_stats>(zklock_client_lock_stats, detail::text(name));
    }
    /**
     * The distribution of what the client has counted. It sends no request.
     *
     *     auto waits = client.histogram(zklock::measure::acquire_wait);
     *     if (waits.count() > 0) std::cout << waits.sum / static_cast<double>(waits.count()) << " s on average\n";
     */
    zklock::histogram histogram(measure of) const {
        zklock::histogram all{0, std::vector<bucket>(ZKLOCK_BUCKETS)};
        const auto which = static_cast<zklock_histogram>(of);
        for (;;) {
            const std::size_t room = all.buckets.size();
            std::size_t length = 0;
            detail::check(zklock_client_histogram(get(), which, all.buckets.data(), room, &length, &all.sum));
            all.buckets.resize(length);
            // A later version of the library may have more of them.
            if (length <= room) return all;
        }
    }
    /**
     * All figures as text for Prometheus: see zklock_prometheus. It sends no request.
     *
     *     response.set("Content-Type", "text/plain; version=0.0.4");
     *     response.send(client.prometheus());
     */
    std::string prometheus() const {
        return detail::grown([this](char *page, std::size_t room, std::size_t *length) {
            zklock_client *const handle = get();
            return zklock_prometheus(&handle, nullptr, 1, page, room, length);
        });
    }
private:
    static std::vector<zklock_lock *> handles(const std::vector<detail::borrowed> &locks) {
        std::vector<zklock_lock *> given;
        for (const detail::borrowed &each : locks) given.push_back(each.handle);
        return given;
    }
    template <class Constructor>
    lock made(Constructor constructor, const std::string &path, const options &how) const {
        return lock(ask<zklock_lock *>(constructor, detail::text(path), how.made().get()));
    }
};

/**
 * The figures of several clients as one text for Prometheus, each with its key as the label `client`: see zklock_prometheus. It
 * sends no request.
 *
 *     response.send(zklock::prometheus({{"orders", &orders}, {"billing", &billing}}));
 */
inline std::string prometheus(const std::map<std::string, const client *> &clients) {
    std::vector<zklock_client *> handles;
    std::vector<const char *> names;
    for (const auto &[name, each] : clients) {
        handles.push_back(each->get());
        names.push_back(detail::text(name));
    }
    return detail::grown([&](char *page, std::size_t room, std::size_t *length) {
        return zklock_prometheus(handles.data(), names.data(), handles.size(), page, room, length);
    });
}
} // namespace zklock

#endif // ZKLOCK_CLIENT_HPP
