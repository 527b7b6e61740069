/* Every kind of lock in C++, with its options, and as others see it; barriers and jobs. */

#include <optional>
#include <vector>

#include "test.hpp"

using zklock::options, zklock::misuse_error;

TEST(every_kind_comes_from_the_client_and_is_acquired_in_the_same_way) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const auto held_once = [&](const zklock::lock &lock, const zklock::lock &rival, const char *node) {
        auto hold = lock.acquire_for(SOON);
        CHECK(hold.node().find(node) != std::string::npos && !rival.try_acquire());
        hold.release();
        auto next = rival.try_acquire_for(SOON);
        CHECK(next && next->token() > hold.token());
    };
    const std::string path = fresh_path(), table = fresh_path(), election = fresh_path(), single = fresh_path(),
                      permits = fresh_path(), writer = fresh_path();
    held_once(client.mutex(path), other.mutex(path), "-lock-");
    held_once(client.read_lock(table), other.write_lock(table), "-__READ__");
    held_once(client.write_lock(writer), other.read_lock(writer), "-__WRIT__");
    held_once(client.election(election), other.election(election), "-latch-");
    held_once(client.single_node(single), other.single_node(single), "/lock");
    held_once(client.semaphore(permits, 3, options().set("permits", "2")), other.semaphore(permits, 3, options().set("permits", "2")), "/leases/");
}

TEST(options_can_be_copied_and_say_how_a_lock_behaves) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path(), limit = path + "-limit";
    const options kazoo = options().set("naming", "kazoo");
    {
        options copy = kazoo;
        const auto lock = client.mutex(path, copy.set("reentrant", "yes")), same = client.mutex(path, copy);
        auto hold = lock.acquire();
        CHECK(hold.node().find("__lock__") != std::string::npos && same.acquire().token() == hold.token());
        soon(in_background([&] { THROWS(hold.release(), misuse_error, ZKLOCK_NOT_OWNER); }));
        THROWS(other.mutex(path).acquire_for(SOON), zklock::error, ZKLOCK_FOREIGN_CONTENDER);
        hold.release();
    }
    THROWS(client.mutex(path, options().set("permits", "2")), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.semaphore(path, 2, options().set("limit-at", std::string("/a\0b", 4))), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    auto hold = client.mutex(fresh_path(), options().set("linger", 1h)).acquire();
    CHECK(!hold.is_wanted() && !hold.wait_wanted_for(0s));
    auto waiting = in_background([&] { return other.mutex(hold.path()).acquire_for(SOON); });
    CHECK(hold.wait_wanted_for(std::chrono::hours::max()) && hold.is_wanted());
    hold.release();
    CHECK(soon(waiting).token() > 0);
    const auto semaphore = client.semaphore(fresh_path(), 1, options().set("limit-at", limit));
    const auto first = semaphore.acquire();
    CHECK(!semaphore.try_acquire());
    client.set_limit(limit, 2);
    CHECK(semaphore.try_acquire_for(SOON));
}

TEST(sets_and_choices_are_made_of_locks_that_are_named_or_listed) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    std::vector<zklock::lock> locks;
    for (int at = 0; at < 2; at++) locks.push_back(client.mutex(fresh_path()));
    {
        const auto both = client.all({locks[0], locks[1]}, options().set("reentrant", "yes"));
        const auto outer = both.acquire(), inner = both.acquire();
        CHECK(outer.token() == inner.token() && !is_free(other, locks[0].path()) && !is_free(other, locks[1].path()));
    }
    { const auto all = client.all({locks.begin(), locks.end()}).acquire(); }
    const auto any = client.any({locks.begin(), locks.end()});
    const auto first = any.acquire_for(SOON), second = any.acquire_for(SOON);
    CHECK(first.path() == locks[0].path() && second.path() == locks[1].path());
    THROWS(client.all({}), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.any({}), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(any.observe(), misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST(an_observer_tells_who_leads) {
    auto client = new_cpp_client(), audience = new_cpp_client();
    const auto election = client.election(fresh_path());
    zklock::observer observer = audience.election(election.path()).observe();
    CHECK(!observer.next_for(SOON));
    THROWS(observer.next_for(20ms), zklock::timeout_error, ZKLOCK_TIMEOUT);
    auto told = in_background([&] { return observer.next(); });
    const auto lead = election.acquire();
    const std::optional<zklock::contender> leader = soon(told);
    CHECK(leader && leader->node == lead.node() && leader->holds && leader->token == lead.token());
    CHECK(leader->role == zklock::role::exclusive && leader->identity.find('/') != std::string::npos);
    audience.close();
    THROWS(observer.next(), zklock::closed_error, ZKLOCK_CLOSED);
}

TEST(an_operator_can_evict_and_break_and_a_client_has_one_guardian) {
    auto client = zklock::client(servers(), zklock::options().set("session-timeout", SESSION)), desk = new_cpp_client();
    const auto lock = client.mutex(fresh_path()), seen = desk.mutex(lock.path());
    CHECK(seen.break_lock().empty());
    auto hold = lock.acquire();
    CHECK(seen.request_release().size() == 1 && hold.wait_wanted_for(SOON));
    CHECK(seen.evict(hold.node()) && !seen.evict(hold.node()));
    hold = lock.acquire();
    const auto broken = seen.break_lock();
    CHECK(broken.size() == 1 && broken[0].node == hold.node() && broken[0].session == client.stats().session_id);
    CHECK(hold.wait_lost_for(SOON) == zklock::reason::node_deleted);
    THROWS(seen.evict("/nobody"), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    client.guard("zklock");
    THROWS(client.guard(), misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST(barriers_are_waited_for_and_entered) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path(), round = fresh_path();
    const zklock::barrier barrier(client, path), others(other, path);
    CHECK(!barrier.is_set() && barrier.set() && !others.set() && others.is_set());
    CHECK(!others.wait_for(0s) && !others.wait_for(50ms));
    auto waiting = in_background([&] { others.wait(); });
    CHECK(barrier.remove() && !others.remove());
    soon(waiting);
    CHECK(others.wait_for(SOON));

    const zklock::double_barrier doors(client, round, 2), rivals(other, round, 2);
    CHECK(!doors.enter_for(50ms));
    auto entering = in_background([&] { return doors.enter(); });
    std::optional<zklock::member> second = rivals.enter_for(SOON);
    zklock::member first = soon(entering);
    CHECK(second && first.node().find(round) == 0 && first.lost_reason() == zklock::reason::none);
    CHECK(!first.leave_for(50ms));
    THROWS(first.leave(), misuse_error, ZKLOCK_NOT_HELD);
    delete_node(second->node());
    THROWS(second->leave(), zklock::lost_error, ZKLOCK_LOST);
    /* A member that is destroyed leaves. */
    const zklock::double_barrier alone(client, round, 1);
    { const zklock::member left = alone.enter(); }
    alone.enter().leave();
    THROWS(zklock::barrier(client, "no-slash"), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::double_barrier(client, round, 0), misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST(a_job_runs_once_in_its_period_and_again_after_a_failure) {
    const auto client = new_cpp_client();
    const auto period = 24h * 365'000;
    const zklock::job job(client, fresh_path(), period, options().set("offset", 1h));
    CHECK(!job.last());
    {
        /* A run that is destroyed counts as failed, and keeps its hold when it is moved. */
        zklock::run moved = std::move(*job.begin());
        CHECK(moved.hold().valid_for() > 0ms);
        THROWS(job.begin_for(50ms), zklock::timeout_error, ZKLOCK_TIMEOUT);
        CHECK(job.last()->outcome == zklock::run_outcome::running && !job.last()->ended);
    }
    job.begin_for(SOON)->failed("on purpose");
    CHECK(job.last()->failure == "on purpose" && job.last()->ended);
    auto beginning = job.start_begin();
    CHECK(readable(beginning.fd(), SOON_MS));
    std::optional<zklock::run> run = beginning.try_finish();
    const std::uint64_t token = run->hold().token();
    auto ending = run->start_done();
    CHECK(readable(ending.fd(), SOON_MS) && ending.try_finish());
    CHECK(!job.begin() && !job.begin_for(0s));
    auto again = job.start_begin();
    CHECK(readable(again.fd(), SOON_MS));
    THROWS(again.try_finish(), zklock::done_error, ZKLOCK_DONE);
    THROWS(run->done(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    const auto last = job.last();
    CHECK(last && last->outcome == zklock::run_outcome::done && last->token == token && last->period == 0);
    CHECK(last->began.time_since_epoch() > 0s && *last->ended >= last->began && last->next.time_since_epoch() == period + 1h);
    CHECK(!last->identity.empty() && last->failure.empty());
}

TEST_MAIN(STANDALONE)
