/* zklock::scoped_lock: several mutexes, locked at once. */

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <vector>

#include "test.hpp"

namespace {

static_assert(!std::is_copy_constructible_v<zklock::scoped_lock> && !std::is_move_constructible_v<zklock::scoped_lock>);
static_assert(!std::is_copy_assignable_v<zklock::scoped_lock> && !std::is_move_assignable_v<zklock::scoped_lock>);
static_assert(!std::is_default_constructible_v<zklock::scoped_lock>);

} // namespace

/* Each thread has a client of its own, or shares one. Some lock one mutex alone, or the set that client::all() makes. */
TEST(six_threads_that_name_them_in_opposite_orders_all_get_on) {
    constexpr int SECTIONS = 25;
    const std::string left_path = fresh_path(), right_path = fresh_path();
    const auto client = new_cpp_client();
    zklock::mutex left(client, left_path), right(client, right_path);
    std::atomic<int> in_left{0}, in_right{0}, sections{0};
    const auto work = [&](zklock::mutex &first, zklock::mutex &second) {
        for (int section = 0; section < SECTIONS; section++) {
            zklock::scoped_lock both(first, second);
            CHECK(++in_left == 1 && ++in_right == 1);
            sections++;
            in_left--, in_right--;
        }
    };
    const auto work_alone = [&](bool is_reversed) {
        const auto own = new_cpp_client();
        zklock::mutex my_left(own, left_path), my_right(own, right_path);
        is_reversed ? work(my_right, my_left) : work(my_left, my_right);
    };
    std::atomic<bool> over{false};
    auto single = in_background([&] {
        while (!over) {
            const std::lock_guard guard(right);
            CHECK(++in_right == 1);
            in_right--;
        }
    });
    auto set = in_background([&] {
        const auto own = new_cpp_client();
        const auto all = own.all({own.mutex(right_path), own.mutex(left_path)});
        while (!over) {
            auto hold = all.acquire();
            CHECK(++in_left == 1 && ++in_right == 1);
            in_left--, in_right--;
            hold.release();
        }
    });
    std::vector<std::future<void>> threads;
    for (int thread = 0; thread < 4; thread++) {
        threads.push_back(in_background([&, thread] { thread % 2 ? work(right, left) : work(left, right); }));
    }
    for (const bool is_reversed : {false, true}) {
        threads.push_back(in_background([&, is_reversed] { work_alone(is_reversed); }));
    }
    for (auto &each : threads) soon(each);
    over = true;
    soon(single);
    soon(set);
    CHECK(sections == 6 * SECTIONS);
}

TEST(each_mutex_counts_as_locked_until_the_end_of_the_scope) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    zklock::mutex mutex(client, fresh_path()), second(client, fresh_path());
    zklock::shared_mutex third(client, fresh_path());
    const auto is_held = [&](const std::string &path) { return !is_free(other, path); };
    std::shared_ptr<zklock::hold> kept;
    {
        zklock::scoped_lock all(third, second, mutex);
        kept = all.current();
        CHECK(mutex.current() == kept && second.current() == kept && third.current() == kept);
        CHECK(kept->state() == zklock::state::held && kept->valid_for() > 0ms && kept->token() > 0);
        CHECK(is_held(mutex.path()) && is_held(second.path()));
        CHECK(!other.read(third.path()).try_acquire());
        CHECK(!mutex.try_lock());
        mutex.unlock();
        soon(in_background([&] { mutex.unlock(); }));
        CHECK(mutex.current() == kept && is_held(mutex.path()));
    }
    CHECK(kept->state() == zklock::state::released);
    THROWS(mutex.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    THROWS(third.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    CHECK(!is_held(mutex.path()) && !is_held(second.path()) && other.read(third.path()).try_acquire());
    /* One is enough, and the mutex works alone again. */
    CHECK(zklock::scoped_lock(mutex).current()->token() > kept->token());
    const std::lock_guard alone(mutex);
    CHECK(is_held(mutex.path()) && !is_held(second.path()));
}

TEST(an_exception_unlocks_all_of_them) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    zklock::mutex left(client, fresh_path()), right(client, fresh_path());
    try {
        zklock::scoped_lock both(left, right);
        throw std::runtime_error("the work has failed");
    } catch (const std::runtime_error &) {
    }
    CHECK(is_free(other, left.path()) && is_free(other, right.path()));
}

TEST(a_loss_of_one_is_a_loss_of_all_and_is_told) {
    const auto client = new_cpp_client();
    zklock::mutex left(client, fresh_path()), right(client, fresh_path());
    zklock::scoped_lock both(left, right);
    delete_node(client.mutex(right.path()).contenders()[0].node);
    CHECK(left.current()->wait_lost_for(SOON) == zklock::reason::node_deleted);
    THROWS(both.current()->release(), zklock::lost_error, ZKLOCK_LOST);
}

TEST(what_cannot_be_locked_throws_and_leaves_all_unlocked) {
    auto client = new_cpp_client();
    const auto other = new_cpp_client();
    zklock::mutex mutex(client, fresh_path()), same(client, mutex.path()), of_another(other, fresh_path());
    {
        zklock::scoped_lock twice(mutex, same);
        CHECK(!is_free(other, mutex.path()));
    }
    THROWS(zklock::scoped_lock(mutex, of_another), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(mutex.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    CHECK(is_free(other, mutex.path()) && is_free(other, of_another.path()));
    client.close();
    THROWS(zklock::scoped_lock(mutex), zklock::closed_error, ZKLOCK_CLOSED);
}

TEST_MAIN("standalone max-session=4000",
          LISTED(six_threads_that_name_them_in_opposite_orders_all_get_on),
          LISTED(each_mutex_counts_as_locked_until_the_end_of_the_scope),
          LISTED(an_exception_unlocks_all_of_them),
          LISTED(a_loss_of_one_is_a_loss_of_all_and_is_told),
          LISTED(what_cannot_be_locked_throws_and_leaves_all_unlocked))
