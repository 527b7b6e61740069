/* Clients, locks, holds and calls in C++: their values, their exceptions, and their lifetimes. */

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "test.hpp"

namespace {

template <class Type>
constexpr bool moves = !std::is_copy_constructible_v<Type> && !std::is_copy_assignable_v<Type> &&
                       std::is_nothrow_move_constructible_v<Type> && std::is_nothrow_move_assignable_v<Type> &&
                       std::is_nothrow_destructible_v<Type>;

static_assert(moves<zklock::client> && moves<zklock::lock> && moves<zklock::hold>);
static_assert(std::is_copy_constructible_v<zklock::options>);
static_assert(moves<zklock::async_call<zklock::hold>> && moves<zklock::async_call<void>> && moves<zklock::observer>);
static_assert(moves<zklock::barrier> && moves<zklock::double_barrier> && moves<zklock::member>);
static_assert(moves<zklock::job> && moves<zklock::run>);
static_assert(!std::is_convertible_v<zklock_hold *, zklock::hold> && !std::is_convertible_v<std::string, zklock::client>);

} // namespace

TEST(every_error_is_of_one_base_and_has_its_status) {
    using zklock::misuse_error;
    auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    const auto lock = client.mutex(path);
    const auto busy = other.mutex(path).acquire_for(SOON);
    THROWS(lock.acquire_for(20ms), zklock::timeout_error, ZKLOCK_TIMEOUT);
    THROWS(zklock::client("127.0.0.1:1", zklock::options().set("connect-timeout", 100ms)), zklock::unreachable_error, ZKLOCK_UNREACHABLE);
    THROWS(zklock::client(std::string(servers()) + "/not/there"), zklock::error, ZKLOCK_REFUSED);
    /* If the path were cut off at the NUL, it would be another lock. */
    THROWS(client.mutex(path + std::string("\0/x", 3)), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    for (auto with : {+[] { zklock::client("zk1", zklock::options().set("ca", "/no such file")); },
                      +[] { zklock::client("zk1", zklock::options().set("sessiontimeout", 1s)); },
                      +[] { zklock::client("zk1", zklock::options().set("linger", 1s)); },
                      +[] { zklock::client("zk1", zklock::options().set("identity", std::string("a\0b", 3))); }}) {
        THROWS(with(), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    }
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
    const std::string path = fresh_path();
    auto copy = zklock::options().set("session-timeout", SESSION / 2);
    const auto options = copy.set("identity", "Zoë");
    copy.set("identity", "somebody");
    CHECK(!setenv("ZKLOCK_HOSTS", servers(), 1));
    const zklock::client client = zklock::client::from_env(options);
    CHECK(client.stats().session_timeout == SESSION_MS / 2);
    const auto hold = client.mutex(path).acquire_for(SOON);
    CHECK(client.mutex(path).contenders()[0].identity == "Zoë");
}

TEST(a_hold_says_how_it_stands) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const auto lock = client.mutex(fresh_path()), others = other.mutex(lock.path());
    std::optional<zklock::hold> held = lock.try_acquire();
    CHECK(held && !others.try_acquire() && !others.try_acquire_for(20ms) && !others.try_acquire_for(-1h));
    auto hold = std::move(*held);
    CHECK(hold.path() == lock.path() && hold.node().find(lock.path() + "/_c_") == 0);
    CHECK(hold.confirm() > 0ms && hold.valid_for() <= SESSION && hold.lost_reason() == zklock::reason::none);
    CHECK(!hold.wait_lost_for(0s) && !hold.wait_lost_for(1ms));
    becomes_valid(hold.get());
    hold.ensure(0s);
    THROWS(hold.ensure(SESSION), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    CHECK(client.ensemble_id().size() == 36 && client.ensemble_id() == other.ensemble_id());
    const std::string raise = fence_sql(zklock::database::mariadb, zklock::fence_statement::raise);
    CHECK(raise.find("ON DUPLICATE KEY UPDATE token") != std::string::npos);
    const auto waiting = others.start();
    EVENTUALLY(lock.contenders().size() == 2);
    const auto queue = lock.contenders();
    CHECK(hold.node() == lock.path() + "/" + queue[0].name && queue[0].token == hold.token() && queue[0].holds);
    CHECK(queue[0].session == client.stats().session_id && queue[1].session == other.stats().session_id);
    const auto age = std::chrono::system_clock::now() - queue[0].since;
    CHECK(age > -1min && age < 1min && queue[0].naming == "curator");
    hold.release();
    CHECK(hold.state() == zklock::state::released && hold.valid_for() == 0ms);
    THROWS(hold.release(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    THROWS(hold.wait_lost_for(1h), zklock::misuse_error, ZKLOCK_NOT_HELD);
}

TEST(what_was_moved_from_is_empty_and_what_is_assigned_to_lets_go) {
    using zklock::misuse_error;
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
    CHECK(!second_hold.token() && second_hold.state() == zklock::state::lost);
    THROWS(second_hold.on_lost([](zklock::reason) {}), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(second_hold.guarded().set("/x", "").commit(), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(acquiring.try_finish(), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(lock.contenders(), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(client.next_event(), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::lockable(client, "/x", [] {}), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    /* NOLINTEND(bugprone-use-after-move) */
    second_hold = std::move(hold);
    CHECK(second_hold.token() == token);
    /* A handle of C can be taken over and lent. */
    const zklock::client of_c(new_client());
    const zklock::hold taken(acquire(of_c.mutex(fresh_path()).get(), SOON_MS));
    CHECK(token_of(taken.get()) == taken.token());
}

TEST(a_loss_is_told_in_every_way) {
    const auto client = new_cpp_client();
    auto hold = client.mutex(fresh_path()).acquire();
    std::promise<zklock::reason> first, late;
    /* A callback need not ask why, nor be const. */
    std::promise<void> second, third;
    hold.on_lost([&](zklock::reason reason) { first.set_value(reason); });
    hold.on_lost([&] { second.set_value(); });
    hold.on_lost([&third, told = false]() mutable {
        if (!std::exchange(told, true)) third.set_value();
    });
    THROWS(hold.on_lost(nullptr), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(hold.on_lost(std::function<void()>()), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    zklock::hold moved = std::move(hold);
    auto waiting = in_background([&] { return moved.wait_lost_for(std::chrono::hours::max()); });
    delete_node(moved.node());
    CHECK(soon(waiting) == zklock::reason::node_deleted);
    CHECK(soon(first.get_future()) == zklock::reason::node_deleted);
    soon(second.get_future());
    soon(third.get_future());
    CHECK(moved.state() == zklock::state::lost && moved.lost_reason() == zklock::reason::node_deleted);
    CHECK(moved.valid_for() == 0ms);
    EVENTUALLY(client.stats().losses == 1);
    CHECK(client.stats().losses_by[ZKLOCK_REASON_NODE_DELETED] == 1);
    const zklock::histogram waits = client.histogram(zklock::measure::acquire_wait);
    CHECK(waits.count() == 1 && waits.sum > 0 && waits.buckets.size() == ZKLOCK_BUCKETS);
    CHECK(client.prometheus().find("\nzklock_losses_total{reason=\"node_deleted\"} 1\n") != std::string::npos);
    moved.on_lost([&](zklock::reason reason) { late.set_value(reason); });
    CHECK(soon(late.get_future()) == zklock::reason::node_deleted);
    THROWS(moved.confirm(), zklock::lost_error, ZKLOCK_LOST);
    THROWS(moved.wait_wanted_for(SOON), zklock::lost_error, ZKLOCK_LOST);
    THROWS(moved.release(), zklock::lost_error, ZKLOCK_LOST);
}

TEST(a_named_lock_and_several_clients_have_figures_of_their_own) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const auto hold = client.mutex(fresh_path(), zklock::options().set("metrics-name", "report")).acquire();
    CHECK(client.lock_stats("report").held == 1 && other.lock_stats("report").acquires_granted == 0);
    const std::string page = zklock::prometheus({{"orders", &client}, {"billing", &other}});
    CHECK(page.find("\nzklock_grants_total{client=\"orders\"} 1\n") != std::string::npos);
    CHECK(page.find("\nzklock_grants_total{client=\"billing\"} 0\n") != std::string::npos);
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
        THROWS(hold->release(), zklock::misuse_error, ZKLOCK_DEADLOCK);
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

TEST(a_file_is_published_by_the_last_holder_alone) {
    const auto client = new_cpp_client();
    const auto lock = client.mutex(fresh_path());
    char folder[] = "/tmp/zklock-XXXXXX";
    CHECK(mkdtemp(folder));
    const std::string staged = folder + std::string("/staged"), report = folder + std::string("/report");
    const auto publish = [&](const zklock::hold &hold, const char *text) {
        std::ofstream(staged) << text;
        hold.publish(staged, report);
    };
    auto late = lock.acquire();
    publish(late, "early");
    delete_node(late.node());
    const auto next = lock.acquire();
    publish(next, "next");
    THROWS(publish(late, "late"), zklock::stale_token_error, ZKLOCK_STALE_TOKEN);
    THROWS(next.publish(report, folder + std::string("/none/report")), zklock::error, ZKLOCK_REFUSED);
    std::string text;
    CHECK(std::ifstream(report) >> text && text == "next");
    std::filesystem::remove_all(folder);
}

TEST(guarded_writes_tell_versions_and_conflicts_and_end_with_their_hold) {
    using zklock::conflict_error, zklock::misuse_error;
    const auto client = new_cpp_client();
    auto hold = client.mutex(fresh_path()).acquire();
    const std::string node = fresh_path(), second = node + "-second";
    ground("create %s", node.c_str());
    CHECK((hold.guarded().set(node, "one", 0).create(second).commit() == std::vector<std::int32_t>{1, 0}));
    try {
        hold.guarded().set(node, "three").remove(second, 7).commit();
        CHECK(!"it throws");
    } catch (const conflict_error &error) {
        CHECK(error.status() == zklock::status::conflict && error.index() == 1 && error.path() == second);
    }
    /* Cut off to 32 bits, it would be the version of the node. */
    THROWS(hold.guarded().set(node, "three", (std::int64_t{1} << 40) + 1), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(hold.guarded().remove(node, zklock::no_node), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(hold.guarded().set(node + std::string(1, '\0'), "").commit(), misuse_error, ZKLOCK_INVALID_ARGUMENT);
    CHECK(hold.guarded().remove(second).commit() == std::vector<std::int32_t>{zklock::no_node});
    CHECK(!hold.read(second) && hold.read(node)->data == "one");
    /* What is read may be longer than the first buffer. */
    for (std::size_t size : {0, 1, 1023, 1024, 1025, 100000}) {
        const std::string data = size ? std::string(size - 1, 'x') + '\0' : "";
        const auto versions = hold.guarded().set(node, data).commit();
        const auto read = hold.read(node);
        CHECK(read && read->data == data && read->version == versions[0]);
    }
    auto writes = hold.guarded();
    writes.set(node, "never");
    delete_node(hold.node());
    THROWS(writes.commit(), zklock::lost_error, ZKLOCK_LOST);
    hold = client.mutex(fresh_path()).acquire();
    THROWS(writes.commit(), misuse_error, ZKLOCK_INVALID_HANDLE);
}

TEST_MAIN(STANDALONE " tick=200")
