/* Clients, locks, holds and calls in C++: their values, their exceptions, and their lifetimes. */

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "test.hpp"

TEST(every_error_is_of_one_base_and_has_its_status) {
    auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    const auto lock = client.mutex(path);
    const auto busy = other.mutex(path).acquire_for(SOON);
    THROWS(lock.acquire_for(20ms), zklock::timeout_error, ZKLOCK_TIMEOUT);
    THROWS(zklock::client("127.0.0.1:1", zklock::options().connect_timeout(100ms)), zklock::unreachable_error,
           ZKLOCK_UNREACHABLE);
    THROWS(zklock::client(""), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::client(std::string(servers()) + "/not/there"), zklock::error, ZKLOCK_REFUSED);
    for (auto with : {+[] { zklock::options().tls("/no such file"); },
                      +[] { zklock::options().tls_system("/no such file", "/no such file"); },
                      +[] { zklock::options().pass_phrase(""); },
                      +[] { zklock::options().pass_phrase_from_file("/no such file"); },
                      +[] { zklock::options().pass_phrase_from_env("ZKLOCK_NOT_SET"); }}) {
        THROWS(with(), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    }
    THROWS(zklock::options().session_timeout(-1s), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::options().connect_timeout(-1ms), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::options().try_timeout(0ms), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::options().try_timeout(-1ms), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::options().server_version(3, 3), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::options().chroot("no-slash"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::options().identity(std::string(2000, 'x')), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.mutex("no-slash"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.mutex(path, zklock::lock_options().permits(2)), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    /* If the path were cut off at the NUL, it would be another lock. */
    THROWS(client.mutex(path + std::string("\0/x", 3)), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    auto waiting = in_background([&] { THROWS(lock.acquire(), zklock::closed_error, ZKLOCK_CLOSED); });
    EVENTUALLY(other.mutex(path).contenders().size() == 2);
    client.close();
    soon(waiting);
    try {
        (void)lock.try_acquire();
        failed(__FILE__, __LINE__, "a closed client goes on");
    } catch (const std::runtime_error &error) {
        CHECK(std::string(error.what()).find("zklock_acquire") != std::string::npos);
    }
}

TEST(options_reach_the_client) {
    ground("create /cpp-root");
    const std::string path = fresh_path();
    zklock::options options;
    options.session_timeout(5s).connect_timeout(SOON).try_timeout(SOON).server_version(3, 5).identity("Zoë").chroot("/cpp-root");
    const zklock::client client(servers(), options), other = new_cpp_client();
    CHECK(client.stats().session_timeout == 5s);
    const auto hold = client.mutex(path).acquire_for(SOON);
    const auto queue = other.mutex("/cpp-root" + path).contenders();
    CHECK(queue.size() == 1 && queue[0].identity == "Zoë" && queue[0].dialect == "curator");
}

TEST(without_a_heartbeat_a_hold_is_held_though_nothing_proves_it) {
    const zklock::client client(servers(), zklock::options().session_timeout(SESSION).heartbeat(false));
    const auto hold = client.mutex(fresh_path()).acquire_for(SOON);
    EVENTUALLY(hold.valid_for() == 0ms);
    CHECK(hold.state() == zklock::state::held);
    ground("delete %s", hold.node().c_str());
    EVENTUALLY(hold.state() == zklock::state::lost);
}

TEST(a_hold_says_how_it_stands) {
    const auto client = new_cpp_client();
    const auto lock = client.mutex(fresh_path());
    std::uint64_t token = 0;
    {
        auto hold = lock.acquire();
        token = hold.token();
        CHECK(hold.path() == lock.path() && hold.node().find(lock.path() + "/_c_") == 0);
        CHECK(hold.state() == zklock::state::held && hold.lost_reason() == zklock::reason::none);
        CHECK(hold.valid_for() > 0ms && hold.valid_for() <= SESSION);
        CHECK(hold.confirm() > 0ms && hold.confirm() <= SESSION);
        CHECK(!hold.wait_lost_for(0s) && !hold.wait_lost_for(1ms) && !readable(hold.fd(), 0));
        hold.release();
        CHECK(hold.state() == zklock::state::released && hold.valid_for() == 0ms && hold.token() == token);
        THROWS(hold.release(), zklock::misuse_error, ZKLOCK_NOT_HELD);
        THROWS(hold.confirm(), zklock::misuse_error, ZKLOCK_NOT_HELD);
        THROWS(hold.wait_lost_for(1h), zklock::misuse_error, ZKLOCK_NOT_HELD);
    }
    CHECK(lock.acquire_for(1s).token() > token);
}

TEST(trying_gives_nothing_while_others_hold_the_lock) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const auto lock = client.mutex(fresh_path());
    std::optional<zklock::hold> held = lock.try_acquire();
    CHECK(held && !other.mutex(lock.path()).try_acquire() && !other.mutex(lock.path()).try_acquire_for(20ms));
    CHECK(!other.mutex(lock.path()).try_acquire_for(-1h));
    /* The same if the thread itself holds it. */
    CHECK(!lock.try_acquire() && !lock.try_acquire_for(20ms));
    THROWS(lock.acquire_for(20ms), zklock::timeout_error, ZKLOCK_TIMEOUT);
    held.reset();
    CHECK(other.mutex(lock.path()).try_acquire_for(SOON));
}

TEST(a_reentrant_lock_belongs_to_its_thread) {
    const auto client = new_cpp_client();
    const auto lock = client.mutex(fresh_path(), zklock::lock_options().reentrant());
    auto outer = lock.acquire(), inner = lock.acquire();
    CHECK(outer.token() == inner.token());
    soon(in_background([&] { THROWS(inner.release(), zklock::misuse_error, ZKLOCK_NOT_OWNER); }));
    inner.release();
    CHECK(outer.state() == zklock::state::held);
    outer.release();
}

TEST(what_was_moved_from_is_empty_and_what_is_assigned_to_lets_go) {
    auto client = new_cpp_client();
    const auto other = new_cpp_client();
    auto lock = client.mutex(fresh_path()), second = client.mutex(fresh_path());
    const std::string path = lock.path(), second_path = second.path();
    auto hold = lock.acquire(), second_hold = second.acquire();
    auto acquiring = client.mutex(fresh_path()).start(1h);

    const auto token = second_hold.token();
    hold = std::move(second_hold);
    EVENTUALLY(is_free(other, path));
    CHECK(!is_free(other, second_path) && hold.token() == token);

    const zklock::async_call<zklock::hold> moved_acquire = std::move(acquiring);
    const zklock::lock moved_lock = std::move(lock);
    const zklock::client moved_client = std::move(client);
    CHECK(moved_acquire.fd() >= 0 && moved_lock.path() == path && moved_client.stats().sessions == 1);
    /* NOLINTBEGIN(bugprone-use-after-move): that is what this tests. */
    THROWS(second_hold.token(), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(second_hold.release(), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(second_hold.on_lost([](zklock::reason) {}), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(second_hold.guarded().set("/x", "").commit(), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(acquiring.try_finish(), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(lock.acquire(), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(lock.contenders(), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.stats(), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::mutex(client, "/x"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    /* NOLINTEND(bugprone-use-after-move) */
    second_hold = std::move(hold);
    CHECK(second_hold.token() == token);
}

TEST(a_handle_of_c_can_be_taken_over_and_lent) {
    const zklock::client client(new_client());
    const zklock::lock lock(new_mutex(client.get(), fresh_path(), 0));
    const zklock::hold hold(acquire(lock.get(), SOON_MS));
    CHECK(state_of(hold.get()) == ZKLOCK_STATE_HELD);
}

TEST(a_loss_is_told_in_every_way) {
    const auto client = new_cpp_client();
    auto hold = client.mutex(fresh_path()).acquire();
    std::promise<zklock::reason> first, second, late;
    hold.on_lost([&](zklock::reason reason) { first.set_value(reason); });
    hold.on_lost([&](zklock::reason reason) { second.set_value(reason); });
    /* A callback need not ask why, nor be const. */
    std::promise<void> third, fourth;
    hold.on_lost([&] { third.set_value(); });
    hold.on_lost([&fourth, told = false]() mutable {
        if (!std::exchange(told, true)) fourth.set_value();
    });
    THROWS(hold.on_lost(nullptr), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(hold.on_lost(std::function<void()>()), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    zklock::hold moved = std::move(hold);
    auto waiting = in_background([&] { return moved.wait_lost_for(std::chrono::hours::max()); });
    delete_node(moved.node());
    CHECK(soon(waiting) == zklock::reason::node_deleted && readable(moved.fd(), SOON_MS));
    CHECK(soon(first.get_future()) == zklock::reason::node_deleted);
    CHECK(soon(second.get_future()) == zklock::reason::node_deleted);
    soon(third.get_future());
    soon(fourth.get_future());
    CHECK(moved.state() == zklock::state::lost && moved.lost_reason() == zklock::reason::node_deleted);
    CHECK(moved.valid_for() == 0ms && client.stats().grants == 1);
    EVENTUALLY(client.stats().losses == 1);
    const zklock::stats stats = client.stats();
    CHECK(stats.losses_by(zklock::reason::node_deleted) == 1 && stats.losses_by(zklock::reason::lease_lapsed) == 0);
    CHECK(client.stats().acquires.granted == 1 && client.stats().reconnects == 0);
    const zklock::histogram waits = client.histogram(zklock::measure::acquire_wait);
    CHECK(waits.count() == 1 && waits.sum > 0 && waits.buckets.size() == ZKLOCK_BUCKETS);
    CHECK(client.histogram(zklock::measure::queue_length).buckets.size() == 13);
    CHECK(client.prometheus().find("\nzklock_losses_total{reason=\"node_deleted\"} 1\n") != std::string::npos);
    moved.on_lost([&](zklock::reason reason) { late.set_value(reason); });
    CHECK(soon(late.get_future()) == zklock::reason::node_deleted);
    THROWS(moved.confirm(), zklock::lost_error, ZKLOCK_LOST);
    THROWS(moved.release(), zklock::lost_error, ZKLOCK_LOST);
}

TEST(a_holder_is_told_that_others_wait) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    const auto lock = client.mutex(path, zklock::lock_options().linger(1h).local_turns(2));
    auto first = lock.acquire();
    first.release();
    auto hold = lock.acquire();
    CHECK(hold.token() == first.token() && hold.node() == first.node());
    CHECK(!hold.is_wanted() && !hold.wait_wanted_for(0s) && !hold.wait_wanted_for(1ms));
    auto waiting = in_background([&] { return other.mutex(path).acquire_for(SOON); });
    CHECK(hold.wait_wanted_for(std::chrono::hours::max()) && hold.is_wanted());
    CHECK(!readable(hold.fd(), 0));
    hold.release();
    THROWS(hold.wait_wanted_for(1h), zklock::misuse_error, ZKLOCK_NOT_HELD);
    const auto next = soon(waiting);
    CHECK(next.token() > hold.token());
    delete_node(next.node());
    THROWS(next.wait_wanted_for(SOON), zklock::lost_error, ZKLOCK_LOST);
    using zklock::lock_options;
    THROWS(client.mutex(path, lock_options().linger(-1s)), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.mutex(path, lock_options().local_turns(0)), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.election(path, lock_options().linger(1s)), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST(a_callback_that_destroys_its_hold_lives_to_its_end) {
    struct last_words {
        std::atomic<bool> *dead;
        ~last_words() { *dead = true; }
    };
    const auto client = new_cpp_client();
    std::atomic<bool> dead{false};
    std::promise<bool> ended;
    std::optional<zklock::hold> hold = client.mutex(fresh_path()).acquire();
    const std::string node = hold->node();
    hold->on_lost([&, kept = std::make_shared<last_words>(last_words{&dead})](zklock::reason) {
        hold.reset();
        ended.set_value(!*kept->dead);
    });
    dead = false; /* It was moved to its place. */
    delete_node(node);
    CHECK(soon(ended.get_future()) && !hold);
    EVENTUALLY(dead);
}

TEST(a_hold_that_is_destroyed_waits_for_its_callback_and_keeps_nothing) {
    const auto client = new_cpp_client();
    std::promise<void> begun, finish;
    std::atomic<bool> finished{false};
    auto kept = std::make_shared<int>(1);
    const std::weak_ptr<int> alive = kept;
    std::optional<zklock::hold> hold = client.mutex(fresh_path()).acquire();
    hold->on_lost([&, kept = std::move(kept)](zklock::reason) {
        begun.set_value();
        soon(finish.get_future());
        finished = true;
    });
    delete_node(hold->node());
    soon(begun.get_future());
    auto destroyed = in_background([&] {
        hold.reset();
        return finished.load();
    });
    CHECK(destroyed.wait_for(50ms) == std::future_status::timeout && !alive.expired());
    finish.set_value();
    CHECK(soon(destroyed));
    EVENTUALLY(alive.expired());
}

TEST(what_is_released_or_destroyed_or_assigned_over_calls_nobody_back) {
    auto client = new_cpp_client();
    std::atomic<int> called{0};
    const auto count = [&](zklock::reason) { called++; };
    auto released = client.mutex(fresh_path()).acquire(), replaced = client.mutex(fresh_path()).acquire();
    std::optional<zklock::hold> destroyed = client.mutex(fresh_path()).acquire();
    released.on_lost(count);
    replaced.on_lost(count);
    destroyed->on_lost(count);
    released.release();
    destroyed.reset();
    replaced = client.mutex(fresh_path()).acquire();
    /* Callbacks run one at a time: when this one has run, the others would have too. */
    std::promise<zklock::reason> told;
    replaced.on_lost([&](zklock::reason reason) { told.set_value(reason); });
    client.close();
    CHECK(soon(told.get_future()) == zklock::reason::client_closed && called == 0);
}

TEST(a_callback_must_not_wait) {
    const auto client = new_cpp_client();
    const auto lock = client.mutex(fresh_path()), another = client.mutex(fresh_path());
    auto hold = lock.acquire();
    std::promise<void> tried;
    hold.on_lost([&](zklock::reason) {
        THROWS(another.acquire(), zklock::misuse_error, ZKLOCK_DEADLOCK);
        THROWS(hold.release(), zklock::misuse_error, ZKLOCK_DEADLOCK);
        CHECK(hold.state() == zklock::state::lost);
        tried.set_value();
    });
    delete_node(hold.node());
    soon(tried.get_future());
}

static std::string data_of(const std::string &node) { return ground("data %s", node.c_str()); }

TEST(guarded_writes_are_done_all_or_none_and_only_while_the_lock_is_held) {
    const auto client = new_cpp_client();
    auto hold = client.mutex(fresh_path()).acquire();
    const std::string node = fresh_path(), second = node + "-second";
    ground("create %s", node.c_str());
    CHECK((hold.guarded().set(node, "one", 0).create(second).commit() == std::vector<std::int32_t>{1, 0}));
    CHECK(data_of(node) == "one");
    const std::string with_nul("a\0b", 3);
    hold.guarded().set(second, with_nul).set(node, "two", 1).commit();
    CHECK(!memcmp(ground("data %s", second.c_str()), with_nul.data(), with_nul.size()));
    THROWS(hold.guarded().set(second, "").set(node, "three", 1).commit(), zklock::conflict_error, ZKLOCK_CONFLICT);
    THROWS(hold.guarded().create(second, "").commit(), zklock::conflict_error, ZKLOCK_CONFLICT);
    THROWS(hold.guarded().remove(second, 7).commit(), zklock::conflict_error, ZKLOCK_CONFLICT);
    try {
        hold.guarded().set(node, "three").remove(second, 7).commit();
        CHECK(!"it throws");
    } catch (const zklock::conflict_error &error) {
        CHECK(error.index() == 1 && error.path() == second);
    }
    CHECK(data_of(node) == "two");
    /* Cut off to 32 bits, it would be the version of the node. */
    THROWS(hold.guarded().set(node, "three", (std::int64_t{1} << 40) + 2), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(hold.guarded().remove(node, zklock::no_node), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(hold.guarded().set(node + std::string(1, '\0'), "").commit(), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    CHECK(hold.guarded().remove(second).commit() == std::vector<std::int32_t>{zklock::no_node});
    CHECK(std::string(ground("exists %s", second.c_str())) == "false");
    auto writes = hold.guarded();
    writes.set(node, "never");
    delete_node(hold.node());
    THROWS(writes.commit(), zklock::lost_error, ZKLOCK_LOST);
    hold = client.mutex(fresh_path()).acquire();
    THROWS(writes.commit(), zklock::misuse_error, ZKLOCK_INVALID_HANDLE);
    CHECK(data_of(node) == "two");
}

TEST(a_hold_reads_what_is_in_a_node_however_long_it_is) {
    const auto client = new_cpp_client();
    auto hold = client.mutex(fresh_path()).acquire();
    const std::string node = fresh_path();
    CHECK(!hold.read(node));
    for (std::size_t size : {0, 1, 1023, 1024, 1025, 100000}) {
        const std::string data = size ? std::string(size - 1, 'x') + '\0' : "";
        const bool is_new = !hold.read(node);
        if (is_new) hold.guarded().create(node, data).commit();
        else hold.guarded().set(node, data).commit();
        const auto read = hold.read(node);
        CHECK(read && read->data == data && read->version >= 0);
        CHECK(hold.guarded().set(node, data, read->version).commit() == std::vector{read->version + 1});
    }
    THROWS(hold.read("relative"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    /* A commit reports its result even if the hold is lost. */
    delete_node(hold.node());
    THROWS(hold.guarded().remove(node).commit(), zklock::lost_error, ZKLOCK_LOST);
    CHECK(hold.read(node).has_value());
    auto moved = std::move(hold);
    THROWS(hold.read(node), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    CHECK(moved.read(node).has_value());
}

TEST(an_acquire_waits_in_the_background) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const auto lock = client.mutex(fresh_path());
    auto held = other.mutex(lock.path()).acquire();
    auto acquiring = lock.start(), withdrawn = lock.start(1h), short_one = lock.start(30ms);
    CHECK(!acquiring.try_finish() && !readable(acquiring.fd(), 0));
    CHECK(readable(short_one.fd(), SOON_MS));
    THROWS(short_one.try_finish(), zklock::timeout_error, ZKLOCK_TIMEOUT);
    withdrawn.cancel();
    CHECK(readable(withdrawn.fd(), SOON_MS));
    THROWS(withdrawn.try_finish(), zklock::error, ZKLOCK_INTERRUPTED);
    held.release();
    CHECK(readable(acquiring.fd(), SOON_MS));
    std::optional<zklock::hold> hold = acquiring.try_finish();
    CHECK(hold && hold->valid_for() > 0ms && !is_free(other, lock.path()));
    THROWS(acquiring.try_finish(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    hold.reset();
    {
        auto unfetched = lock.start(SOON);
        CHECK(readable(unfetched.fd(), SOON_MS) && !is_free(other, lock.path()));
    }
    EVENTUALLY(is_free(other, lock.path()));
}

TEST(the_queue_is_shown_in_its_order) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const auto lock = client.mutex(fresh_path());
    CHECK(lock.contenders().empty());
    const auto hold = lock.acquire();
    const auto waiting = other.mutex(lock.path()).start();
    EVENTUALLY(lock.contenders().size() == 2);
    const auto queue = lock.contenders();
    CHECK(hold.node() == lock.path() + "/" + queue[0].name && queue[0].token == hold.token());
    CHECK(queue[0].session == client.stats().session_id && queue[1].session == other.stats().session_id);
    CHECK(queue[1].token > queue[0].token && queue[0].identity.find('/') != std::string::npos);
    const auto age = std::chrono::system_clock::now() - queue[0].since;
    CHECK(age > -1min && age < 1min);
}

TEST_MAIN("standalone max-session=5000",
          LISTED(every_error_is_of_one_base_and_has_its_status),
          LISTED(options_reach_the_client),
          LISTED(without_a_heartbeat_a_hold_is_held_though_nothing_proves_it), LISTED(a_hold_says_how_it_stands),
          LISTED(trying_gives_nothing_while_others_hold_the_lock),
          LISTED(a_reentrant_lock_belongs_to_its_thread),
          LISTED(what_was_moved_from_is_empty_and_what_is_assigned_to_lets_go),
          LISTED(a_handle_of_c_can_be_taken_over_and_lent),
          LISTED(a_loss_is_told_in_every_way),
          LISTED(a_holder_is_told_that_others_wait),
          LISTED(a_callback_that_destroys_its_hold_lives_to_its_end),
          LISTED(a_hold_that_is_destroyed_waits_for_its_callback_and_keeps_nothing),
          LISTED(what_is_released_or_destroyed_or_assigned_over_calls_nobody_back),
          LISTED(a_callback_must_not_wait),
          LISTED(guarded_writes_are_done_all_or_none_and_only_while_the_lock_is_held),
          LISTED(a_hold_reads_what_is_in_a_node_however_long_it_is), LISTED(an_acquire_waits_in_the_background),
          LISTED(the_queue_is_shown_in_its_order))
