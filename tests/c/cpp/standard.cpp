/* zklock's lockables in place of the mutexes of the standard library, and under its locks. */

#include <atomic>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <type_traits>

#include "test.hpp"

namespace {

using steady = std::chrono::steady_clock;
using wall = std::chrono::system_clock;

template <class Type>
constexpr bool stays = !std::is_copy_constructible_v<Type> && !std::is_copy_assignable_v<Type> &&
                       !std::is_move_constructible_v<Type> && !std::is_move_assignable_v<Type>;

static_assert(stays<zklock::lockable> && stays<zklock::recursive_lockable> && stays<zklock::shared_lockable>);
static_assert(stays<zklock::scoped_lock> && !std::is_default_constructible_v<zklock::scoped_lock>);
static_assert(noexcept(std::declval<zklock::lockable &>().unlock()) && noexcept(std::declval<zklock::shared_lockable &>().unlock()) &&
              noexcept(std::declval<zklock::shared_lockable &>().unlock_shared()));

constexpr std::int64_t rounded(zklock::detail::span wait) { return zklock::detail::ms(wait); }

static_assert(rounded(0s) == 0 && rounded(-1ns) == 0 && rounded(-1h) == 0 && rounded(std::chrono::hours::min()) == 0);
static_assert(rounded(1ns) == 1 && rounded(1ms) == 1 && rounded(1000001ns) == 2 && rounded(1999999ns) == 2);
static_assert(rounded(5s) == 5000 && rounded(2h) == 7200000 && rounded(std::chrono::duration<double>(0.0001)) == 1);
static_assert(rounded(std::chrono::milliseconds::max()) == ZKLOCK_FOREVER);
static_assert(rounded(std::chrono::milliseconds::max() / 2) == std::numeric_limits<std::int64_t>::max() / 2);
static_assert(rounded(std::chrono::hours::max()) == ZKLOCK_FOREVER && rounded(std::chrono::nanoseconds::max()) > 0);
static_assert(rounded(zklock::detail::span(std::numeric_limits<long double>::infinity())) == ZKLOCK_FOREVER);
static_assert(rounded(zklock::detail::span(std::numeric_limits<long double>::quiet_NaN())) == 0);

void never(zklock::reason) { failed(__FILE__, __LINE__, "it was lost"); }

/* Two clients and a path. Each test is about one mutex of the first. */
struct scene {
    zklock::client client = new_cpp_client(), other = new_cpp_client();
    std::string path = fresh_path();

    bool is_held() const { return !is_free(other, path); }
    bool can_read() const { return is_had(other.read_lock(path)); }
    bool can_write() const { return is_had(other.write_lock(path)); }
    bool is_read() const { return can_read() && !can_write(); }
};

} // namespace

TEST(every_lock_of_the_standard_library_holds_and_releases) {
    const scene at;
    zklock::lockable mutex(at.client, at.path, never), second(at.client, fresh_path(), never);
    CHECK(mutex.path() == at.path);
    {
        std::lock_guard guard(mutex);
        CHECK(at.is_held());
    }
    {
        std::unique_lock guard(mutex, std::defer_lock);
        CHECK(!guard && !at.is_held());
        CHECK(guard.try_lock() && at.is_held());
        guard.unlock();
        CHECK(!at.is_held());
        CHECK(guard.try_lock_until(wall::now() + SOON) && at.is_held());
    }
    CHECK(std::unique_lock(mutex, std::try_to_lock).owns_lock());
    CHECK(std::unique_lock(mutex, SOON).owns_lock() && at.is_held());
    CHECK(std::unique_lock(mutex, steady::now() + SOON).owns_lock() && at.is_held());
    CHECK(!at.is_held());
    {
        std::scoped_lock both(mutex, second);
        CHECK(at.is_held() && !is_free(at.other, second.path()));
    }
    CHECK(std::try_lock(mutex, second) == -1);
    std::scoped_lock both(std::adopt_lock, mutex, second);
    CHECK(at.is_held() && !is_free(at.other, second.path()));
}

TEST(every_shared_lock_takes_its_side) {
    const scene at;
    zklock::shared_lockable mutex(at.client, at.path, never), second(at.client, fresh_path(), never);
    CHECK(mutex.path() == at.path);
    {
        std::shared_lock reading(mutex, std::defer_lock);
        CHECK(reading.try_lock() && at.is_read());
        reading.unlock();
        CHECK(at.can_write());
        CHECK(reading.try_lock_until(wall::now() + SOON) && at.is_read());
    }
    CHECK(std::shared_lock(mutex, std::try_to_lock).owns_lock());
    CHECK(std::shared_lock(mutex, SOON).owns_lock() && std::shared_lock(mutex, steady::now() + SOON).owns_lock());
    CHECK(at.can_write());
    {
        std::shared_lock one(mutex, std::defer_lock), two(second, std::defer_lock);
        std::lock(one, two);
        std::shared_lock moved(std::move(one));
        CHECK(moved.owns_lock() && two.owns_lock() && at.is_read());
    }
    CHECK(std::unique_lock(mutex, SOON).owns_lock());
    CHECK(std::unique_lock(mutex, steady::now() + SOON).owns_lock());
    std::lock_guard writing(mutex);
    CHECK(!at.can_read() && !at.can_write());
}

/* Checks a function that waits in vain for a time, and one that waits until then. */
template <class For, class Until>
static void waits_in_vain(For wait_for, Until wait_until) {
    auto begun = steady::now();
    CHECK(!wait_for(-1h) && !wait_for(0s) && !wait_until(steady::now() - 1h) && !wait_until(steady::time_point::min()));
    CHECK(steady::now() - begun < SOON);
    begun = steady::now();
    CHECK(!wait_for(100ms));
    CHECK(steady::now() - begun >= 100ms && steady::now() - begun < SOON);
    const auto until = steady::now() + 100500us;
    CHECK(!wait_until(until));
    CHECK(steady::now() >= until && steady::now() - until < SOON);
}

TEST(a_wait_in_vain_is_false_when_its_time_is_over_and_not_before) {
    const scene at;
    const zklock::hold held = at.other.write_lock(at.path).acquire_for(SOON);
    zklock::shared_lockable mutex(at.client, at.path, never);
    CHECK(!mutex.try_lock() && !mutex.try_lock_shared());
    waits_in_vain([&](auto time) { return mutex.try_lock_for(time); }, [&](auto time) { return mutex.try_lock_until(time); });
    waits_in_vain([&](auto time) { return mutex.try_lock_shared_for(time); }, [&](auto time) { return mutex.try_lock_shared_until(time); });
    THROWS(mutex.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    THROWS(mutex.current_shared(), zklock::misuse_error, ZKLOCK_NOT_HELD);
}

TEST(a_wait_for_ever_ends_with_the_grant) {
    const scene at;
    zklock::lockable mutex(at.client, at.path, never);
    const auto waits = {+[](zklock::lockable &it) { return it.try_lock_until(steady::time_point::max()); },
                        +[](zklock::lockable &it) { return it.try_lock_until(wall::time_point::max()); },
                        +[](zklock::lockable &it) { return it.lock(), true; }};
    for (const auto wait : waits) {
        zklock::hold held = at.other.mutex(at.path).acquire_for(SOON);
        auto locked = in_background([&] { return wait(mutex); });
        EVENTUALLY(at.other.mutex(at.path).contenders().size() == 2);
        CHECK(locked.wait_for(0s) == std::future_status::timeout);
        held.release();
        CHECK(soon(locked));
        mutex.unlock();
    }
}

TEST(a_recursive_lockable_is_released_with_the_last_unlock_of_its_thread) {
    const scene at;
    zklock::recursive_lockable mutex(at.client, at.path, never);
    {
        std::lock_guard outer(mutex);
        const auto token = mutex.current()->token();
        {
            std::unique_lock inner(mutex, SOON);
            CHECK(inner && mutex.try_lock() && mutex.current()->token() == token);
            mutex.unlock();
        }
        soon(in_background([&] {
            mutex.unlock();
            THROWS(mutex.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
            CHECK(!mutex.try_lock());
        }));
        CHECK(at.is_held() && mutex.current()->state() != zklock::state::released);
    }
    CHECK(!at.is_held());
}

TEST(a_lock_may_be_handed_to_another_thread) {
    const scene at;
    zklock::lockable mutex(at.client, at.path, never);
    std::unique_lock guard(mutex);
    const auto token = mutex.current()->token();
    soon(in_background([&, guard = std::move(guard)]() mutable {
        CHECK(mutex.current()->token() == token && at.is_held());
        guard.unlock();
    }));
    CHECK(!at.is_held());
    mutex.unlock();
    THROWS(mutex.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    std::lock_guard again(mutex);
    CHECK(mutex.current()->token() > token);
}

TEST(each_thread_unlocks_its_own_side) {
    const scene at;
    /* It is not reentrant, whatever the options say: any thread may call unlock(). */
    zklock::shared_lockable mutex(at.client, at.path, never, zklock::options().set("reentrant", "yes"));
    mutex.lock();
    CHECK(!mutex.try_lock_shared() && !mutex.try_lock_shared_for(20ms));
    mutex.unlock();
    /* Two readers through one object: each has a hold of its own. */
    mutex.lock_shared();
    const auto mine = mutex.current_shared();
    std::promise<void> locked, unlock;
    auto second = in_background([&] {
        std::shared_lock reading(mutex);
        CHECK(mutex.current_shared() != mine);
        locked.set_value();
        soon(unlock.get_future());
        CHECK(mutex.current_shared() != mine);
    });
    soon(locked.get_future());
    /* There is no writer, so this does nothing. */
    mutex.unlock();
    CHECK(mutex.current_shared() == mine);
    {
        /* A thread may lock the read side in two places. */
        std::shared_lock inner(mutex);
        CHECK(mutex.current_shared() != mine && !mutex.try_lock());
    }
    CHECK(mutex.current_shared() == mine && mine->confirm() > 0ms);
    mutex.unlock_shared();
    CHECK(mine->state() == zklock::state::released && !at.can_write());
    unlock.set_value();
    soon(second);
    CHECK(at.can_write());
}

TEST(each_loss_is_told_once_and_at_the_latest_when_it_is_unlocked) {
    const scene at;
    std::atomic<int> told = 0;
    const auto tells = [&](zklock::reason why) { told += why == zklock::reason::node_deleted ? 1 : 100; };
    zklock::lockable mutex(at.client, at.path, tells), second(at.client, fresh_path(), [&] { told += 10; });
    zklock::shared_lockable table(at.client, fresh_path(), tells);
    const auto loses = [&](const zklock::hold &hold) {
        delete_node(hold.node());
        CHECK(hold.wait_lost_for(SOON));
    };
    std::promise<void> begun, finish;
    zklock::hold busy = at.client.mutex(fresh_path()).acquire();
    busy.on_lost([&] {
        begun.set_value();
        soon(finish.get_future());
    });
    /* By itself, and by unlock() while another callback runs. */
    for (int round = 1; round <= 2; round++) {
        mutex.lock();
        loses(*mutex.current());
        if (round == 1) EVENTUALLY(told == 1);
        mutex.unlock();
        CHECK(told == round);
        if (round == 1) delete_node(busy.node()), soon(begun.get_future());
    }
    finish.set_value();
    {
        const std::shared_lock reading(table);
        loses(*table.current_shared());
    }
    CHECK(told == 3);
    {
        const zklock::scoped_lock both(mutex, second);
        loses(*both.current());
    }
    CHECK(told == 14);
    mutex.lock();
    mutex.unlock();
    CHECK(told == 14);
}

TEST(after_a_loss_nobody_unlocks_what_another_has_locked_since) {
    const scene at;
    std::atomic<int> told = 0;
    zklock::lockable mutex(at.client, at.path, [&] { told++; });
    std::promise<void> locked_anew, look;
    std::unique_lock guard(mutex);
    const auto lost = mutex.current();
    delete_node(lost->node());
    CHECK(lost->wait_lost_for(SOON) == zklock::reason::node_deleted);
    auto second = in_background([&] {
        std::unique_lock mine(mutex);
        const auto kept = mutex.current();
        locked_anew.set_value();
        soon(look.get_future());
        CHECK(mutex.current() == kept && kept->confirm() > 0ms && at.is_held());
        mine.unlock();
        CHECK(kept->state() == zklock::state::released);
    });
    soon(locked_anew.get_future());
    CHECK(mutex.current() == lost);
    THROWS(lost->release(), zklock::lost_error, ZKLOCK_LOST);
    guard.unlock();
    CHECK(lost->state() == zklock::state::lost && told == 1);
    look.set_value();
    soon(second);
    CHECK(!at.is_held());
}

TEST(what_cannot_be_had_throws_and_leaves_a_lock_unlocked) {
    scene at;
    zklock::lockable mutex(at.client, at.path, never), of_another(at.other, fresh_path(), never);
    THROWS(zklock::scoped_lock(mutex, of_another), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(mutex.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    CHECK(!at.is_held());
    std::unique_lock guard(mutex, std::defer_lock);
    at.client.close();
    THROWS(guard.lock(), zklock::closed_error, ZKLOCK_CLOSED);
    THROWS(guard.try_lock(), zklock::closed_error, ZKLOCK_CLOSED);
    THROWS(zklock::scoped_lock(mutex), zklock::closed_error, ZKLOCK_CLOSED);
    CHECK(!guard);
    THROWS(zklock::lockable(at.client, "no-slash", never), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    THROWS(zklock::lockable(at.client, at.path, nullptr), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST(unlocking_in_a_callback_does_not_wait_and_does_not_end_the_program) {
    const scene at;
    zklock::lockable mutex(at.client, at.path, never);
    zklock::hold hold = at.client.mutex(fresh_path()).acquire_for(SOON);
    std::promise<void> told;
    mutex.lock();
    hold.on_lost([&] {
        mutex.unlock();
        told.set_value();
    });
    delete_node(hold.node());
    soon(told.get_future());
    EVENTUALLY(!at.is_held());
}

TEST(each_of_a_scoped_lock_counts_as_locked_until_the_end_of_the_scope) {
    const scene at;
    zklock::lockable mutex(at.client, at.path, never), same(at.client, at.path, never), second(at.client, fresh_path(), never);
    zklock::shared_lockable third(at.client, fresh_path(), never);
    std::shared_ptr<zklock::hold> kept;
    try {
        zklock::scoped_lock all(third, second, mutex, same);
        kept = all.current();
        CHECK(mutex.current() == kept && second.current() == kept && third.current() == kept);
        CHECK(kept->confirm() > 0ms && at.is_held() && !is_free(at.other, second.path()));
        CHECK(!is_had(at.other.read_lock(third.path())));
        mutex.unlock();
        soon(in_background([&] { mutex.unlock(); }));
        CHECK(mutex.current() == kept && at.is_held());
        throw std::runtime_error("the work has failed");
    } catch (const std::runtime_error &) {
    }
    CHECK(kept->state() == zklock::state::released);
    THROWS(mutex.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    THROWS(third.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    CHECK(!at.is_held() && is_free(at.other, second.path()) && is_had(at.other.read_lock(third.path())));
    /* One is enough, and the mutex works alone again. */
    CHECK(zklock::scoped_lock(mutex).current()->token() > kept->token());
    const std::lock_guard alone(mutex);
    CHECK(at.is_held() && is_free(at.other, second.path()));
}

TEST_MAIN(STANDALONE)
