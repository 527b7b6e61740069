/* Jobs that run once in each period, on one of many hosts. */

#ifndef ZKLOCK_JOB_HPP
#define ZKLOCK_JOB_HPP

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "client.hpp"

namespace zklock {

/** What is recorded of the last run of a job: see zklock_record. Times are those of the servers. */
struct record {
    std::chrono::system_clock::time_point began;
    /** Nothing if the run has not ended, or nobody could record that. */
    std::optional<std::chrono::system_clock::time_point> ended;
    /** When the next period begins. */
    std::chrono::system_clock::time_point next;
    std::int64_t period;
    std::uint64_t token;
    run_outcome outcome;
    std::string identity, failure;
};

/**
 * A run of a job, which holds the job's lock. End it with done() or failed(). A run that is destroyed without either counts
 * as failed: if your work throws, there is nothing to do.
 */
class [[nodiscard]] run {
public:
    explicit run(zklock_hold *owned) noexcept : hold_(owned) {}
    /** Not for use outside these files. */
    static run taken_from(zklock_call *done) { return run(detail::ask<zklock_hold *>(zklock_call_hold, done)); }
    /** The hold of the job's lock, for its token and its loss. If you release it, the run cannot be recorded as done. */
    const zklock::hold &hold() const noexcept { return hold_; }
    zklock::hold &hold() noexcept { return hold_; }
    /** Records that the job is done in this period, and releases its lock. Throws a lost_error if the lock was lost: the run
        counts as failed then, and another process may have begun to run the job again. */
    void done() { detail::check(zklock_job_end(hold_.get(), nullptr)); }
    /** Records that the job has failed, and why, and releases its lock. It throws what done() throws. */
    void failed(const std::string &why) { detail::check(zklock_job_end(hold_.get(), detail::text(why))); }
    /** Does what done() does, in the background. Keep the run and the call until there is a result. */
    async_call<void> start_done() { return ending(nullptr); }
    /** Does what failed() does, in the background. Keep the run and the call until there is a result. */
    async_call<void> start_failed(const std::string &why) { return ending(detail::text(why)); }
private:
    async_call<void> ending(const char *failure) {
        return async_call<void>(detail::ask<zklock_call *>(zklock_job_end_start, hold_.get(), failure));
    }

    zklock::hold hold_;
};

/**
 * A job, which runs on one of many hosts, once in each period.
 *
 *     zklock::job job(client, "/jobs/report", 24h, zklock::options().set("offset", 12h));
 *     if (auto run = job.begin()) {
 *         write_the_report(run->hold().token());
 *         run->done();
 *     }
 */
class job : public detail::owner<zklock_job, zklock_job_free> {
public:
    using owner::owner;
    /** The job at a path. Its periods are counted from 1970, and begin later by the option offset. This sends no request. */
    job(const client &maker, const std::string &path, detail::span every, const options &how = options())
        : owner(detail::ask<zklock_job *>(zklock_job_new, maker.get(), detail::text(path), detail::ms(every),
                                          how.made().get())) {}

    /** Begins a run; nothing if the job has run in this period. It waits while another process runs the job. */
    [[nodiscard]] std::optional<run> begin() const { return begin_for(detail::span::max()); }
    /** Like begin(), but waits for up to this time. Then it throws a timeout_error. */
    [[nodiscard]] std::optional<run> begin_for(detail::span wait) const {
        return ask_unless<run, zklock_hold *>(ZKLOCK_DONE, zklock_job_begin, detail::ms(wait));
    }
    /** Begins a run in the background, and waits for up to this time. Then the call gives a timeout_error. If the job has run
        in this period, it gives a done_error. */
    async_call<run> start_begin(detail::span wait = detail::span::max()) const {
        return begun<run>(zklock_job_begin_start, detail::ms(wait));
    }
    /** What is recorded of the last run; nothing if the job has never run. It neither waits for a run nor disturbs it. */
    std::optional<record> last() const {
        const auto it = ask<zklock_record>(zklock_job_last);
        if (it.outcome == ZKLOCK_RUN_NEVER) return std::nullopt;
        const auto at = [](std::int64_t since_1970) {
            return std::chrono::system_clock::time_point(std::chrono::milliseconds(since_1970));
        };
        record result{at(it.began), std::nullopt, at(it.next), it.period, it.token, static_cast<run_outcome>(it.outcome),
                      it.identity, it.failure};
        if (it.ended >= 0) result.ended = at(it.ended);
        return result;
    }
};
} // namespace zklock

#endif // ZKLOCK_JOB_HPP
