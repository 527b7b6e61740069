/* Every kind of lock in C++, with its options, and as others see it. */

#include <optional>
#include <vector>

#include "test.hpp"

using zklock::lock_options;

TEST(every_kind_comes_from_the_client_and_is_acquired_in_the_same_way) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const auto held_once = [&](const zklock::lock &lock, const zklock::lock &rival, const char *node) {
        auto hold = lock.acquire_for(SOON);
        CHECK(hold.node().find(node) != std::string::npos && !rival.try_acquire());
        hold.release();
        auto next = rival.try_acquire();
        CHECK(next && next->token() > hold.token());
    };
    const std::string path = fresh_path(), table = fresh_path(), election = fresh_path(), single = fresh_path(),
                      permits = fresh_path();
    held_once(client.mutex(path), other.mutex(path), "-lock-");
    held_once(client.read(table), other.write(table), "-__READ__");
    held_once(client.write(table), other.read(table), "-__WRIT__");
    held_once(client.election(election), other.election(election), "-latch-");
    held_once(client.exclusive(single), other.exclusive(single), "/lock");
    held_once(client.semaphore(permits, 1), other.semaphore(permits, 1), "/leases/");
}

TEST(options_can_be_copied_and_say_how_a_lock_behaves) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    const lock_options kazoo = lock_options().dialect(zklock::dialect::kazoo);
    {
        lock_options copy = kazoo;
        const auto lock = client.mutex(path, copy.reentrant().reentrant(false));
        const auto hold = lock.acquire();
        CHECK(hold.node().find("__lock__") != std::string::npos);
        CHECK(lock.contenders()[0].dialect == "kazoo");
        CHECK(!lock.try_acquire_for(20ms));
        THROWS(other.mutex(path).acquire_for(SOON), zklock::error, ZKLOCK_FOREIGN_CONTENDER);
        CHECK(!other.mutex(path, lock_options().allow_foreign()).try_acquire());
    }
    THROWS(client.semaphore(path, 2, kazoo), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.mutex(path, lock_options().permits(0)), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.semaphore(path, 2, lock_options().limit_at("no-slash")), zklock::misuse_error,
           ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.semaphore(path, 2, lock_options().limit_at(std::string("/a\0b", 4))), zklock::misuse_error,
           ZKLOCK_INVALID_ARGUMENT);
    EVENTUALLY(client.mutex(path).contenders().empty());
    /* It works with the locks of the standard library as well. */
    zklock::mutex mutex(client, path, kazoo);
    mutex.lock();
    CHECK(mutex.current()->node().find("__lock__") != std::string::npos);
    CHECK(!mutex.try_lock_for(20ms));
    mutex.unlock();
    const auto watching = client.mutex(path, lock_options().watch_children());
    CHECK(watching.try_acquire());
}

TEST(who_logs_in_may_keep_what_it_creates_to_itself) {
    const auto as = [](const char *user) {
        return zklock::client(servers(), zklock::options().digest(user, "s3cret").access(zklock::access::creator_all));
    };
    const auto ann = as("ann"), again = as("ann"), bob = as("bob");
    const std::string path = fresh_path();
    ann.mutex(path).acquire().release();
    again.mutex(path).acquire_for(SOON).release();
    THROWS(bob.mutex(path).acquire_for(SOON), zklock::error, ZKLOCK_REFUSED);
    THROWS(zklock::client(servers(), zklock::options().access(zklock::access::read_open)), zklock::misuse_error,
           ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::options().digest_from_file("/no/such/file"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::options().digest_from_env("ZKLOCK_NOT_SET"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::options().sasl_from_file("/no/such/file"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::options().sasl_from_env("ZKLOCK_NOT_SET"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    /* This library is built as most are. */
    THROWS(zklock::options().kerberos(), zklock::error, ZKLOCK_REFUSED);
    THROWS(zklock::options().kerberos("zookeeper", "zk1"), zklock::error, ZKLOCK_REFUSED);
    /* These servers are not set up for SASL. */
    THROWS(zklock::client(servers(), zklock::options().sasl("ann", "s3cret")), zklock::error, ZKLOCK_REFUSED);
}

TEST(the_limit_of_a_semaphore_can_be_changed) {
    const auto client = new_cpp_client();
    const std::string path = fresh_path(), limit = path + "-limit";
    const auto semaphore = client.semaphore(path, 1, lock_options().limit_at(limit));
    const auto first = semaphore.acquire();
    CHECK(!semaphore.try_acquire());
    auto acquiring = semaphore.start(SOON);
    client.set_limit(limit, 2);
    CHECK(readable(acquiring.fd(), SOON_MS) && acquiring.try_finish());
    THROWS(client.set_limit(limit, 1u << 31), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST(a_set_is_made_of_locks_that_are_named_or_listed) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string one = fresh_path(), two = fresh_path();
    const auto left = client.mutex(one), right = client.mutex(two);
    {
        const auto both = client.all({left, right}).acquire_for(SOON);
        CHECK(!is_free(other, one) && !is_free(other, two));
    }
    EVENTUALLY(is_free(other, one) && is_free(other, two));
    std::vector<zklock::lock> locks;
    for (int at = 0; at < 5; at++) locks.push_back(client.mutex(fresh_path()));
    const auto every = client.all({locks.begin(), locks.end()});
    auto hold = every.acquire();
    for (const auto &lock : locks) CHECK(!is_free(other, lock.path()));
    hold.release();
    const auto again = client.all({client.mutex(one), client.read(two)}, lock_options().reentrant());
    const auto outer = again.acquire(), inner = again.acquire();
    CHECK(outer.token() == inner.token());
    THROWS(client.all({}), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    CHECK(client.all({left, left}).path() == client.all({left}).path());
    THROWS(client.all({left, other.mutex(two)}), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(every.observe(), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST(any_of_several_locks_is_whichever_comes_first) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    std::vector<zklock::lock> jobs;
    for (int at = 0; at < 3; at++) jobs.push_back(client.mutex(fresh_path()));
    const auto any = client.any({jobs.begin(), jobs.end()});
    auto first = any.acquire(), second = any.acquire_for(SOON);
    CHECK(first.path() == jobs[0].path() && second.path() == jobs[1].path());
    {
        const auto theirs = other.mutex(jobs[2].path()).acquire();
        CHECK(!any.try_acquire());
        auto acquiring = any.start(SOON);
        second.release();
        CHECK(readable(acquiring.fd(), SOON_MS));
        const auto again = acquiring.try_finish();
        CHECK(again && again->path() == jobs[1].path());
    }
    first.release();
    for (const auto &job : jobs) EVENTUALLY(is_free(other, job.path()));
    THROWS(client.any({}), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.any({jobs[0], other.mutex(fresh_path())}), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.any({jobs[0], client.exclusive(fresh_path())}), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST(an_observer_tells_who_leads) {
    auto client = zklock::client(servers(), zklock::options().session_timeout(SESSION).identity("the leader"));
    auto audience = new_cpp_client();
    const auto election = client.election(fresh_path());
    zklock::observer observer = audience.election(election.path()).observe();
    static_assert(!std::is_copy_constructible_v<zklock::observer> &&
                  std::is_nothrow_move_constructible_v<zklock::observer>);
    CHECK(!observer.next_for(SOON));
    THROWS(observer.next_for(20ms), zklock::timeout_error, ZKLOCK_TIMEOUT);
    auto told = in_background([&] { return observer.next(); });
    {
        const auto lead = election.acquire();
        const std::optional<zklock::contender> leader = soon(told);
        CHECK(leader && leader->identity == "the leader" && leader->node == lead.node() && leader->holds);
        CHECK(leader->token == lead.token() && leader->role == zklock::role::exclusive);
    }
    CHECK(!observer.next_for(SOON));
    audience.close();
    THROWS(observer.next(), zklock::closed_error, ZKLOCK_CLOSED);
}

TEST(an_operator_can_evict_and_break) {
    const auto client = new_cpp_client(), other = new_cpp_client(), desk = new_cpp_client();
    const auto lock = client.mutex(fresh_path()), seen = desk.mutex(lock.path());
    CHECK(seen.break_lock().empty() && seen.revoke().empty());
    const auto hold = lock.acquire();
    auto waiting = other.mutex(lock.path()).start();
    EVENTUALLY(seen.contenders().size() == 2);
    const auto asked = seen.revoke();
    CHECK(asked.size() == 1 && asked[0].node == hold.node());
    const auto queue = seen.contenders();
    CHECK(queue[0].holds && queue[0].node == hold.node() && !queue[1].holds);
    CHECK(seen.evict(queue[0].node) && !seen.evict(queue[0].node));
    CHECK(hold.wait_lost_for(SOON) == zklock::reason::node_deleted);
    CHECK(readable(waiting.fd(), SOON_MS));
    const auto next = waiting.try_finish();
    const auto broken = seen.break_lock();
    CHECK(broken.size() == 1 && broken[0].node == next->node() && broken[0].session == other.stats().session_id);
    CHECK(next->wait_lost_for(SOON) == zklock::reason::node_deleted);
    THROWS(seen.evict("/nobody"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST_MAIN("standalone max-session=4000", LISTED(every_kind_comes_from_the_client_and_is_acquired_in_the_same_way),
          LISTED(options_can_be_copied_and_say_how_a_lock_behaves), LISTED(the_limit_of_a_semaphore_can_be_changed),
          LISTED(a_set_is_made_of_locks_that_are_named_or_listed),
          LISTED(any_of_several_locks_is_whichever_comes_first), LISTED(an_observer_tells_who_leads),
          LISTED(an_operator_can_evict_and_break), LISTED(who_logs_in_may_keep_what_it_creates_to_itself))
