/* zklock::shared_mutex and zklock::semaphore in place of those of the standard library. */

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "test.hpp"

namespace {

/* Whether a type meets the requirements of the standard: these expressions must compile. */
template <class Type, class = void>
struct is_shared_timed_lockable : std::false_type {};

using steady = std::chrono::steady_clock;
using wall = std::chrono::system_clock;

template <class Type>
struct is_shared_timed_lockable<
    Type, std::void_t<decltype(std::declval<Type &>().lock_shared()), decltype(std::declval<Type &>().unlock_shared()),
                      decltype(bool(std::declval<Type &>().try_lock_shared())),
                      decltype(bool(std::declval<Type &>().try_lock_shared_for(1ns))),
                      decltype(bool(std::declval<Type &>().try_lock_shared_until(steady::now()))),
                      decltype(bool(std::declval<Type &>().try_lock_shared_until(wall::now()))),
                      decltype(std::declval<Type &>().lock()), decltype(std::declval<Type &>().unlock()),
                      decltype(bool(std::declval<Type &>().try_lock())),
                      decltype(bool(std::declval<Type &>().try_lock_for(1ns))),
                      decltype(bool(std::declval<Type &>().try_lock_until(steady::now())))>> : std::true_type {};

template <class Type>
constexpr bool stays = !std::is_copy_constructible_v<Type> && !std::is_copy_assignable_v<Type> &&
                       !std::is_move_constructible_v<Type> && !std::is_move_assignable_v<Type>;

static_assert(is_shared_timed_lockable<std::shared_timed_mutex>::value);
static_assert(!is_shared_timed_lockable<std::shared_mutex>::value);
static_assert(is_shared_timed_lockable<zklock::shared_mutex>::value);
static_assert(!is_shared_timed_lockable<zklock::mutex>::value);
static_assert(stays<zklock::shared_mutex> && stays<zklock::semaphore>);
static_assert(noexcept(std::declval<zklock::shared_mutex &>().unlock()));
static_assert(noexcept(std::declval<zklock::shared_mutex &>().unlock_shared()));

/* Whether another client can hold the lock at once. It releases it again. */
bool can_read(const zklock::client &other, const std::string &path) {
    auto hold = other.read(path).try_acquire();
    if (hold) hold->release();
    return hold.has_value();
}

bool can_write(const zklock::client &other, const std::string &path) {
    auto hold = other.write(path).try_acquire();
    if (hold) hold->release();
    return hold.has_value();
}

} // namespace

TEST(every_lock_of_the_standard_library_takes_its_side) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::shared_mutex mutex(client, path);
    CHECK(mutex.path() == path);
    const auto is_read = [&] { return can_read(other, path) && !can_write(other, path); };
    const auto is_written = [&] { return !can_read(other, path) && !can_write(other, path); };
    const auto is_free_now = [&] { return can_write(other, path); };
    {
        std::shared_lock reading(mutex);
        CHECK(is_read());
    }
    CHECK(is_free_now());
    {
        std::shared_lock reading(mutex, std::defer_lock);
        CHECK(!reading && is_free_now());
        CHECK(reading.try_lock() && is_read());
        reading.unlock();
        CHECK(reading.try_lock_for(1s) && is_read());
        reading.unlock();
        CHECK(reading.try_lock_until(steady::now() + 1s) && is_read());
        reading.unlock();
        CHECK(reading.try_lock_until(wall::now() + 1s) && is_read());
    }
    CHECK(is_free_now());
    CHECK(std::shared_lock(mutex, std::try_to_lock).owns_lock() && is_read());
    CHECK(std::shared_lock(mutex, 1s).owns_lock() && is_read());
    CHECK(std::shared_lock(mutex, steady::now() + 1s).owns_lock() && is_read());
    mutex.lock_shared();
    {
        std::shared_lock adopted(mutex, std::adopt_lock), moved(std::move(adopted));
        CHECK(moved.owns_lock() && is_read());
    }
    CHECK(is_free_now());
    {
        std::lock_guard writing(mutex);
        CHECK(is_written());
    }
    CHECK(std::unique_lock(mutex, 1s).owns_lock() && is_written());
    CHECK(std::unique_lock(mutex, steady::now() + 1s).owns_lock() && is_written());
    CHECK(is_free_now());
    {
        zklock::shared_mutex second(client, fresh_path());
        std::shared_lock one(mutex, std::defer_lock), two(second, std::defer_lock);
        std::lock(one, two);
        CHECK(one.owns_lock() && two.owns_lock() && is_read());
    }
    CHECK(is_free_now());
}

TEST(a_wait_in_vain_is_false_when_its_time_is_over_and_not_before) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::shared_mutex mutex(client, path);
    const zklock::hold written = other.write(path).acquire_for(SOON);
    auto begun = steady::now();
    CHECK(!mutex.try_lock_shared() && !mutex.try_lock());
    CHECK(!mutex.try_lock_shared_for(-1h) && !mutex.try_lock_shared_until(steady::time_point::min()));
    CHECK(steady::now() - begun < SOON);
    begun = steady::now();
    CHECK(!mutex.try_lock_shared_for(100ms));
    CHECK(steady::now() - begun >= 100ms && steady::now() - begun < SOON);
    const auto until = steady::now() + 100500us;
    CHECK(!mutex.try_lock_shared_until(until) && steady::now() >= until);
    THROWS(mutex.current_shared(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    THROWS(mutex.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
}

TEST(each_thread_unlocks_its_own_side) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::shared_mutex mutex(client, path);
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
    CHECK(mutex.current_shared() == mine && mine->state() == zklock::state::held);
    mutex.unlock_shared();
    CHECK(mine->state() == zklock::state::released && !can_write(other, path));
    unlock.set_value();
    soon(second);
    CHECK(can_write(other, path));
}

TEST(a_thread_may_lock_the_read_side_in_two_places) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::shared_mutex mutex(client, path), same(client, path);
    {
        std::shared_lock outer(mutex);
        const auto first = mutex.current_shared();
        {
            /* By waiting and by trying, and through either object. */
            std::shared_lock inner(mutex), timed(mutex, SOON), tried(mutex, std::try_to_lock), another(same);
            CHECK(timed.owns_lock() && tried.owns_lock() && mutex.current_shared() != first);
            CHECK(other.write(path).contenders().size() == 5 && !mutex.try_lock() && !mutex.try_lock_for(20ms));
        }
        CHECK(mutex.current_shared() == first && first->state() == zklock::state::held && !can_write(other, path));
    }
    CHECK(can_write(other, path));
}

TEST(a_writer_does_not_read_beside_itself_nor_a_reader_write) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    /* Even if it should be reentrant: any thread may call unlock(). */
    zklock::shared_mutex mutex(client, path, zklock::lock_options().reentrant());
    std::unique_lock writing(mutex);
    CHECK(!mutex.try_lock_shared() && !mutex.try_lock_shared_for(20ms));
    THROWS(mutex.current_shared(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    CHECK(!client.read(path).try_acquire() && mutex.current()->valid_for() > 0ms);
    writing.unlock();
    std::shared_lock reading(mutex);
    const auto rival = other.write(path).start();
    EVENTUALLY(other.write(path).contenders().size() == 2);
    /* Nobody gets in, because the rival waits. Tries fail as well. */
    CHECK(!mutex.try_lock() && !mutex.try_lock_for(20ms));
    CHECK(!mutex.try_lock_shared() && !mutex.try_lock_shared_for(20ms));
    reading.unlock();
    CHECK(readable(rival.fd(), SOON_MS));
}

TEST(a_thread_that_hands_the_write_side_on_reads_when_it_is_unlocked) {
    const auto client = new_cpp_client();
    const std::string path = fresh_path();
    zklock::shared_mutex mutex(client, path);
    mutex.lock();
    const auto written = mutex.current();
    std::promise<void> unlock;
    auto writing = in_background([&] {
        soon(unlock.get_future());
        const bool was_held = written->valid_for() > 0ms;
        mutex.unlock();
        return was_held;
    });
    CHECK(!mutex.try_lock_shared() && !mutex.try_lock_shared_for(20ms));
    unlock.set_value();
    mutex.lock_shared();
    CHECK(soon(writing) && mutex.current_shared()->token() > written->token());
    mutex.unlock_shared();
}

/* As in the documentation of shared_mutex. */
TEST(a_reentrant_writer_becomes_a_reader_without_a_gap) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::hold writing = client.write(path, zklock::lock_options().reentrant()).acquire();
    const auto rival = other.write(path).start();
    EVENTUALLY(other.write(path).contenders().size() == 2);
    zklock::hold reading = client.read(path).acquire();
    CHECK(writing.node() != reading.node() && writing.token() == reading.token());
    writing.release();
    CHECK(reading.state() == zklock::state::held && reading.valid_for() > 0ms && !readable(rival.fd(), 0));
    reading.release();
    CHECK(readable(rival.fd(), SOON_MS));
}

TEST(readers_and_writers_of_many_threads_keep_apart) {
    const auto client = new_cpp_client();
    const std::string path = fresh_path();
    zklock::shared_mutex shared(client, path), same(client, path);
    std::atomic<int> readers{0}, writers{0}, turns{0};
    const auto work = [&](zklock::shared_mutex &mutex, bool writes) {
        for (int round = 0; round < 10; round++) {
            if (writes) {
                std::lock_guard guard(mutex);
                CHECK(++writers == 1 && readers == 0);
                writers--;
            } else {
                std::shared_lock guard(mutex);
                readers++;
                CHECK(writers == 0);
                readers--;
            }
            turns++;
        }
    };
    std::vector<std::future<void>> all;
    for (int at = 0; at < 6; at++) {
        all.push_back(in_background([&, at] { work(at % 2 ? shared : same, at % 3 == 0); }));
    }
    for (auto &each : all) soon(each);
    CHECK(turns == 60);
}

TEST(a_semaphore_lets_in_as_many_as_it_has_permits) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    zklock::semaphore semaphore(client, path, 2), others(other, path, 2);
    CHECK(semaphore.path() == path);
    THROWS(semaphore.current(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    semaphore.acquire();
    CHECK(semaphore.try_acquire() && semaphore.current()->valid_for() > 0ms);
    CHECK(!semaphore.try_acquire() && !others.try_acquire_for(20ms));
    CHECK(!others.try_acquire_until(steady::now() + 20ms));
    auto waiting = in_background([&] { others.acquire(); });
    EVENTUALLY(other.semaphore(path, 2).contenders().size() >= 3);
    semaphore.release();
    soon(waiting);
    CHECK(!others.try_acquire());
    /* Any thread may release a permit. */
    soon(in_background([&] { semaphore.release(); }));
    CHECK(others.try_acquire());
    others.release(2);
    CHECK(semaphore.try_acquire() && semaphore.try_acquire());
    semaphore.release(5);
    zklock::semaphore both(client, path, 2, zklock::lock_options().permits(2));
    CHECK(both.try_acquire() && !others.try_acquire());
    both.release();
    CHECK(others.try_acquire());
    others.release();
    THROWS(zklock::semaphore(client, path, 0), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST_MAIN("standalone max-session=4000", LISTED(every_lock_of_the_standard_library_takes_its_side),
          LISTED(a_wait_in_vain_is_false_when_its_time_is_over_and_not_before),
          LISTED(each_thread_unlocks_its_own_side),
          LISTED(a_thread_may_lock_the_read_side_in_two_places),
          LISTED(a_writer_does_not_read_beside_itself_nor_a_reader_write),
          LISTED(a_thread_that_hands_the_write_side_on_reads_when_it_is_unlocked),
          LISTED(a_reentrant_writer_becomes_a_reader_without_a_gap),
          LISTED(readers_and_writers_of_many_threads_keep_apart),
          LISTED(a_semaphore_lets_in_as_many_as_it_has_permits))
