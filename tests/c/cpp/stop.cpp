/* The stop token of a hold, which C++20 has. */

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "test.hpp"

TEST(a_loss_stops_what_waits_with_the_token_of_the_hold) {
    const auto client = new_cpp_client();
    auto hold = client.mutex(fresh_path()).acquire();
    const std::stop_token token = hold.stop_token(), again = hold.stop_token();
    CHECK(token.stop_possible() && !token.stop_requested());
    std::atomic<bool> called = false, woken = false;
    const std::stop_callback on_stop(again, [&] { called = true; });
    const std::jthread waits([&] {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        woken = !std::condition_variable_any().wait(lock, token, [] { return false; });
    });
    delete_node(hold.node());
    EVENTUALLY(called && woken);
    CHECK(token.stop_requested());
    /* After the loss a token is stopped from the beginning, or soon. */
    const std::stop_token late = hold.stop_token();
    EVENTUALLY(late.stop_requested());
}

TEST(a_release_stops_nothing) {
    const auto client = new_cpp_client();
    std::stop_token token;
    {
        auto hold = client.mutex(fresh_path()).acquire();
        token = hold.stop_token();
        hold.release();
    }
    CHECK(!token.stop_requested());
    /* With the hold goes what could stop it. */
    EVENTUALLY(!token.stop_possible());
    THROWS(zklock::hold(nullptr).stop_token(), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST_MAIN(STANDALONE " tick=200")
