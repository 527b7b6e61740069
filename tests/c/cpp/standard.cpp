/* zklock::mutex under the locks of the standard library. */

#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "test.hpp"

namespace {

/* Whether a type meets the requirements of the standard: these expressions must compile. */
template <class Type, class = void>
struct is_timed_lockable : std::false_type {};

template <class Type>
struct is_timed_lockable<
    Type, std::void_t<decltype(std::declval<Type &>().lock()), decltype(std::declval<Type &>().unlock()),
                      decltype(bool(std::declval<Type &>().try_lock())),
                      decltype(bool(std::declval<Type &>().try_lock_for(1ns))),
                      decltype(bool(std::declval<Type &>().try_lock_until(std::chrono::steady_clock::now()))),
                      decltype(bool(std::declval<Type &>().try_lock_until(std::chrono::system_clock::now())))>>
    : std::true_type {};

template <class Type>
constexpr bool stays = !std::is_copy_constructible_v<Type> && !std::is_copy_assignable_v<Type> &&
                       !std::is_move_constructible_v<Type> && !std::is_move_assignable_v<Type>;

template <class Type>
constexpr bool moves = !std::is_copy_constructible_v<Type> && !std::is_copy_assignable_v<Type> &&
                       std::is_nothrow_move_constructible_v<Type> && std::is_nothrow_move_assignable_v<Type> &&
                       std::is_nothrow_destructible_v<Type>;

/* Any clock is allowed. This one counts how often it was read. */
struct counting_clock {
    using duration = std::chrono::microseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<counting_clock>;
    [[maybe_unused]] static constexpr bool is_steady = true;
    static inline int reads = 0;

    static time_point now() {
        reads++;
        return time_point(std::chrono::duration_cast<duration>(std::chrono::steady_clock::now().time_since_epoch()));
    }
};

static_assert(is_timed_lockable<std::timed_mutex>::value && !is_timed_lockable<std::mutex>::value);
static_assert(is_timed_lockable<zklock::mutex>::value && is_timed_lockable<zklock::recursive_mutex>::value);
static_assert(stays<zklock::mutex> && stays<zklock::recursive_mutex>);
static_assert(noexcept(std::declval<zklock::mutex &>().unlock()));
static_assert(moves<zklock::client> && moves<zklock::lock> && moves<zklock::hold> && moves<zklock::async_call<zklock::hold>> &&
              moves<zklock::options>);
static_assert(!std::is_convertible_v<zklock_hold *, zklock::hold>);
static_assert(!std::is_convertible_v<std::string, zklock::client>);

constexpr std::int64_t rounded(zklock::detail::span wait) { return zklock::detail::ms(wait); }

static_assert(rounded(0s) == 0 && rounded(-1ns) == 0 && rounded(-1h) == 0 && rounded(std::chrono::hours::min()) == 0);
static_assert(rounded(1ns) == 1 && rounded(1ms) == 1 && rounded(1000001ns) == 2 && rounded(1999999ns) == 2);
static_assert(rounded(5s) == 5000 && rounded(2h) == 7200000 && rounded(std::chrono::duration<double>(0.0001)) == 1);
static_assert(rounded(std::chrono::milliseconds::max()) == ZKLOCK_FOREVER);
static_assert(rounded(std::chrono::milliseconds::max() / 2) == std::numeric_limits<std::int64_t>::max() / 2);
static_assert(rounded(std::chrono::hours::max()) == ZKLOCK_FOREVER && rounded(std::chrono::nanoseconds::max()) > 0);
static_assert(rounded(zklock::detail::span(std::numeric_limits<long double>::infinity())) == ZKLOCK_FOREVER);
static_assert(rounded(zklock::detail::span(std::numeric_limits<long double>::quiet_NaN())) == 0);

} // namespace

TEST(every_lock_of_the_standard_library_holds_and_releases) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path(), second_path = fresh_path(), third_path = fresh_path();
    zklock::mutex mutex(client, path), second(client, second_path), third(client, third_path);
    CHECK(mutex.path() == path);
    const auto held = [&] { return !is_free(other, path); };
    {
        std::lock_guard guard(mutex);
        CHECK(held());
    }
    CHECK(!held());
    {
        std::unique_lock guard(mutex, std::defer_lock);
        CHECK(!guard && !held());
        CHECK(guard.try_lock() && held());
        guard.unlock();
        CHECK(!held());
        CHECK(guard.try_lock_for(1s) && held());
        guard.unlock();
        CHECK(guard.try_lock_until(std::chrono::steady_clock::now() + 1s) && held());
        guard.unlock();
        CHECK(guard.try_lock_until(std::chrono::system_clock::now() + 1s) && held());
    }
    CHECK(!held());
    CHECK(std::unique_lock(mutex, std::try_to_lock).owns_lock() && held());
    CHECK(std::unique_lock(mutex, 1s).owns_lock() && held());
    CHECK(std::unique_lock(mutex, std::chrono::steady_clock::now() + 1s).owns_lock() && held());
    CHECK(!held());
    {
        std::scoped_lock all(mutex, second, third);
        CHECK(held() && !is_free(other, second_path) && !is_free(other, third_path));
    }
    CHECK(!held() && is_free(other, second_path) && is_free(other, third_path));
    {
        std::lock(third, second, mutex);
        std::scoped_lock all(std::adopt_lock, mutex, second, third);
        CHECK(held() && !is_free(other, third_path));
    }
    CHECK(!held() && is_free(other, third_path));
    CHECK(std::try_lock(mutex, second) == -1 && held());
    mutex.unlock();
    second.unlock();
}

TEST(a_wait_in_vain_is_false_when_its_time_is_over_and_not_before) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    const zklock::hold held = other.mutex(path).acquire_for(SOON);
    zklock::mutex mutex(client, path);
    const auto steady = [] { return std::chrono::steady_clock::now(); };
    const auto system = [] { return std::chrono::system_clock::now(); };
    auto begun = steady();
    CHECK(!mutex.try_lock());
    CHECK(!mutex.try_lock_for(-1h) && !mutex.try_lock_for(0s));
    CHECK(!mutex.try_lock_until(steady() - 1h) && !mutex.try_lock_until(system() - 1h));
    CHECK(!mutex.try_lock_until(std::chrono::steady_clock::time_point::min()));
    CHECK(!mutex.try_lock_until(std::chrono::system_clock::time_point::min()));
    CHECK(steady() - begun < SOON);
    begun = steady();
    CHECK(!mutex.try_lock_for(100ms));
    CHECK(steady() - begun >= 100ms && steady() - begun < SOON);
    const auto until = steady() + 100500us;
    CHECK(!mutex.try_lock_until(until));
    CHECK(steady() >= until && steady() - until < SOON);
    const auto wall = system() + 100500us;
    CHECK(!mutex.try_lock_until(wall));
    CHECK(system() >= wall && system() - wall < SOON);
    /* It waits in the queue, and does not poll. */
    CHECK(!mutex.try_lock_until(counting_clock::now() + 100500us));
    CHECK(counting_clock::reads <= 5);
}

TEST(a_wait_for_ever_ends_with_the_grant) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::mutex mutex(client, path);
    using std::chrono::steady_clock, std::chrono::system_clock;
    const auto waits = {+[](zklock::mutex &it) { return it.try_lock_for(std::chrono::hours::max()); },
                        +[](zklock::mutex &it) { return it.try_lock_until(steady_clock::time_point::max()); },
                        +[](zklock::mutex &it) { return it.try_lock_until(system_clock::time_point::max()); },
                        +[](zklock::mutex &it) { return it.lock(), true; }};
    for (const auto wait : waits) {
        zklock::hold held = other.mutex(path).acquire_for(SOON);
        auto locked = in_background([&] { return wait(mutex); });
        EVENTUALLY(other.mutex(path).contenders().size() == 2);
        CHECK(locked.wait_for(0s) == std::future_status::timeout);
        held.release();
        CHECK(soon(locked));
        mutex.unlock();
    }
}

TEST(threads_exclude_each_other_through_one_object_and_through_several) {
    const auto client = new_cpp_client();
    const std::string path = fresh_path();
    zklock::mutex shared(client, path), same(client, path);
    int inside = 0, rounds = 0; /* Only the lock guards them. */
    const auto work = [&](zklock::mutex &mutex) {
        for (int round = 0; round < 20; round++) {
            std::lock_guard guard(mutex);
            CHECK(++inside == 1);
            rounds++;
            std::this_thread::yield();
            inside--;
        }
    };
    std::vector<std::future<void>> all;
    for (auto *mutex : {&shared, &same, &shared, &same}) all.push_back(in_background([&, mutex] { work(*mutex); }));
    for (auto &each : all) soon(each);
    CHECK(rounds == 80);
}

TEST(a_condition_variable_waits_with_the_lock_released) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::mutex mutex(client, path);
    std::condition_variable_any changed;
    int turn = 0;
    const auto player = [&](int mine) {
        std::unique_lock guard(mutex);
        for (int round = 0; round < 5; round++) {
            CHECK(changed.wait_for(guard, SOON, [&] { return turn % 2 == mine; }));
            CHECK(mutex.current()->valid_for() > 0ms);
            turn++;
            changed.notify_all();
        }
    };
    auto odd = in_background([&] { player(1); });
    auto even = in_background([&] { player(0); });
    soon(odd);
    soon(even);
    CHECK(turn == 10);

    std::unique_lock guard(mutex);
    auto notifier = in_background([&] {
        /* This can only be locked while the other thread waits. */
        std::lock_guard inner(mutex);
        turn = 0;
        changed.notify_one();
    });
    changed.wait(guard, [&] { return turn == 0; });
    soon(notifier);
    CHECK(!is_free(other, path));
}

TEST(a_thread_waits_for_itself_until_its_time_is_over_or_another_unlocks) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::mutex mutex(client, path);
    std::unique_lock guard(mutex);
    CHECK(!mutex.try_lock() && !mutex.try_lock_for(100ms));
    CHECK(!is_free(other, path));
    /* The guard may be handed to another thread, while this one locks for the next turn. */
    auto worker = in_background([&, handed = std::move(guard)]() mutable {
        EVENTUALLY(other.mutex(path).contenders().size() == 2);
        handed.unlock();
    });
    mutex.lock();
    soon(worker);
    CHECK(!is_free(other, path));
    mutex.unlock();
    CHECK(is_free(other, path));
}

TEST(a_recursive_mutex_is_released_with_the_last_unlock_of_its_thread) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::recursive_mutex mutex(client, path);
    {
        std::lock_guard outer(mutex);
        const auto token = mutex.current()->token();
        {
            std::unique_lock inner(mutex, 1s);
            CHECK(inner && mutex.try_lock() && mutex.current()->token() == token);
            mutex.unlock();
        }
        soon(in_background([&] {
            mutex.unlock();
            THROWS(mutex.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
            CHECK(!mutex.try_lock());
        }));
        CHECK(!is_free(other, path) && mutex.current()->state() == zklock::state::held);
    }
    CHECK(is_free(other, path));
}

TEST(a_lock_may_be_handed_to_another_thread) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::mutex mutex(client, path);
    std::unique_lock guard(mutex);
    const auto token = mutex.current()->token();
    soon(in_background([&, guard = std::move(guard)]() mutable {
        CHECK(mutex.current()->token() == token && !is_free(other, path));
        guard.unlock();
    }));
    CHECK(is_free(other, path));
    THROWS(mutex.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    mutex.unlock();
    CHECK(is_free(other, path));
    std::lock_guard again(mutex);
    CHECK(mutex.current()->token() > token);
}

TEST(after_a_loss_nobody_unlocks_what_another_has_locked_since) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::mutex mutex(client, path);
    std::promise<void> locked_anew, look;
    auto is_locked = locked_anew.get_future();
    std::unique_lock guard(mutex);
    const auto lost = mutex.current();
    delete_node(lost->node());
    CHECK(lost->wait_lost_for(SOON) == zklock::reason::node_deleted);
    auto second = in_background([&] {
        std::unique_lock mine(mutex);
        const auto kept = mutex.current();
        locked_anew.set_value();
        soon(look.get_future());
        CHECK(mutex.current() == kept && kept->state() == zklock::state::held && kept->token() > lost->token());
        CHECK(!is_free(other, path));
        mine.unlock();
        CHECK(kept->state() == zklock::state::released);
    });
    soon(is_locked);
    CHECK(mutex.current() == lost);
    guard.unlock();
    CHECK(lost->state() == zklock::state::lost && lost->lost_reason() == zklock::reason::node_deleted);
    look.set_value();
    soon(second);
    CHECK(is_free(other, path));
}

TEST(a_loss_does_not_end_the_program_and_is_thrown_where_it_is_asked_for) {
    const auto client = new_cpp_client();
    zklock::mutex mutex(client, fresh_path());
    {
        std::lock_guard guard(mutex);
        delete_node(mutex.current()->node());
        CHECK(mutex.current()->wait_lost_for(SOON).has_value());
    }
    {
        std::lock_guard guard(mutex);
        delete_node(mutex.current()->node());
        THROWS(mutex.current()->release(), zklock::lost_error, ZKLOCK_LOST);
    }
    std::lock_guard guard(mutex);
    mutex.current()->release();
}

TEST(what_cannot_be_had_throws_and_leaves_a_lock_unlocked) {
    auto client = new_cpp_client();
    const std::string path = fresh_path();
    zklock::mutex mutex(client, path);
    std::unique_lock guard(mutex, std::defer_lock);
    client.close();
    THROWS(guard.lock(), zklock::closed_error, ZKLOCK_CLOSED);
    THROWS(guard.try_lock(), zklock::closed_error, ZKLOCK_CLOSED);
    THROWS(guard.try_lock_for(1s), zklock::closed_error, ZKLOCK_CLOSED);
    CHECK(!guard);
    THROWS(zklock::mutex(client, "no-slash"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST(unlocking_in_a_callback_does_not_wait_and_does_not_end_the_program) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::mutex mutex(client, path);
    zklock::hold hold = client.mutex(fresh_path()).acquire_for(SOON);
    std::promise<void> told;
    mutex.lock();
    hold.on_lost([&](zklock::reason) {
        mutex.unlock();
        told.set_value();
    });
    delete_node(hold.node());
    soon(told.get_future());
    EVENTUALLY(is_free(other, path));
}

TEST_MAIN("standalone max-session=4000",
          LISTED(every_lock_of_the_standard_library_holds_and_releases),
          LISTED(a_wait_in_vain_is_false_when_its_time_is_over_and_not_before),
          LISTED(a_wait_for_ever_ends_with_the_grant),
          LISTED(threads_exclude_each_other_through_one_object_and_through_several),
          LISTED(a_condition_variable_waits_with_the_lock_released),
          LISTED(a_thread_waits_for_itself_until_its_time_is_over_or_another_unlocks),
          LISTED(a_recursive_mutex_is_released_with_the_last_unlock_of_its_thread),
          LISTED(a_lock_may_be_handed_to_another_thread),
          LISTED(after_a_loss_nobody_unlocks_what_another_has_locked_since),
          LISTED(a_loss_does_not_end_the_program_and_is_thrown_where_it_is_asked_for),
          LISTED(what_cannot_be_had_throws_and_leaves_a_lock_unlocked),
          LISTED(unlocking_in_a_callback_does_not_wait_and_does_not_end_the_program))
