/* Calls that run in the background, in C++. */

#include <optional>
#include <vector>

#include "test.hpp"

/* The result of the call, which must come soon. */
template <class Result>
Result soon(zklock::async_call<Result> call) {
    CHECK(readable(call.fd(), SOON_MS));
    if constexpr (std::is_void_v<Result>) {
        CHECK(call.try_finish());
    } else {
        std::optional<Result> result = call.try_finish();
        CHECK(result);
        return std::move(*result);
    }
}

TEST(each_gives_what_the_call_that_waits_gives) {
    auto client = zklock::client::lazy(servers());
    soon(client.start_connect());
    const std::string path = fresh_path();
    zklock::hold hold = client.mutex(path).acquire_for(SOON);
    CHECK(soon(hold.start_confirm()) > 0ms);
    const std::vector<zklock::contender> contenders = soon(client.mutex(path).start_contenders());
    CHECK(contenders.size() == 1 && contenders[0].holds && contenders[0].node == hold.node());
    const std::string node = path + "-written";
    const std::vector<std::int32_t> versions = soon(hold.guarded().create(node).set(node, "data", 0).start_commit());
    CHECK(versions == std::vector<std::int32_t>({0, 1}));
    soon(hold.start_release());
    CHECK(hold.state() == zklock::state::released);
    soon(client.start_close());
    THROWS(client.mutex(path).try_acquire(), zklock::closed_error, ZKLOCK_CLOSED);
}

TEST(barriers_are_set_waited_for_and_entered) {
    const auto client = new_cpp_client();
    const zklock::barrier barrier(client, fresh_path());
    CHECK(soon(barrier.start_set()) && !soon(barrier.start_set()));
    zklock::async_call<void> waiting = barrier.start_wait();
    CHECK(!readable(waiting.fd(), 30) && !waiting.try_finish());
    CHECK(soon(barrier.start_remove()));
    soon(std::move(waiting));
    soon(soon(zklock::double_barrier(client, fresh_path(), 1).start_enter(SOON)).start_leave());
}

TEST(failures_are_thrown_by_try_finish_and_a_result_is_given_once) {
    const auto client = new_cpp_client();
    const auto lock = client.mutex(fresh_path());
    {
        zklock::hold hold = lock.acquire_for(SOON);
        zklock::async_call commit = hold.guarded().create("/async-calls-cpp").remove("/there/is/none").start_commit();
        CHECK(readable(commit.fd(), SOON_MS));
        try {
            (void)commit.try_finish();
            failed(__FILE__, __LINE__, "it throws nothing");
        } catch (const zklock::conflict_error &error) {
            CHECK(error.index() == 1 && error.path().empty());
        }
        auto withdrawn = lock.start(1h);
        withdrawn.cancel();
        THROWS(withdrawn.try_finish(), zklock::error, ZKLOCK_INTERRUPTED);
        THROWS(soon(lock.start(30ms)), zklock::timeout_error, ZKLOCK_TIMEOUT);
    }
    zklock::async_call<zklock::hold> acquiring = lock.start();
    CHECK(readable(acquiring.fd(), SOON_MS));
    std::optional<zklock::hold> once = acquiring.try_finish();
    CHECK(once && once->confirm() > 0ms);
    THROWS(acquiring.try_finish(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    once.reset();
    /* A result that is not fetched is given up with its call. */
    CHECK(readable(lock.start(SOON).fd(), SOON_MS));
    CHECK(lock.try_acquire_for(SOON));
}

TEST(a_lazy_client_connects_when_it_is_needed) {
    zklock::client client = zklock::client::lazy(servers());
    zklock::lock lock = client.mutex(fresh_path());
    CHECK(client.stats().sessions == 0);
    lock.acquire_for(SOON).release();
    client.connect();
    client.connect_for(SOON);
    CHECK(client.stats().sessions == 1);
    zklock::client nowhere = zklock::client::lazy("127.0.0.1:1");
    THROWS(nowhere.connect_for(100ms), zklock::unreachable_error, ZKLOCK_UNREACHABLE);
}

/* The next event of the client, which must come soon. */
static zklock::event next(zklock::client &client) {
    CHECK(readable(client.fd(), SOON_MS));
    const std::optional<zklock::event> event = client.next_event();
    CHECK(event);
    return *event;
}

TEST(events_of_a_client_come_through_one_descriptor) {
    auto client = new_cpp_client();
    CHECK(next(client).kind == zklock::event_kind::connected);
    CHECK(!readable(client.fd(), 0) && !client.next_event());
    int of_acquire = 0;
    zklock::async_call<zklock::hold> acquiring = client.mutex(fresh_path()).start(SOON);
    acquiring.set_context(&of_acquire);
    zklock::event event = next(client);
    CHECK(event.kind == zklock::event_kind::call && event.is_of(acquiring) && event.context == &of_acquire);
    std::optional<zklock::hold> hold = acquiring.try_finish();
    CHECK(hold && !event.is_of(*hold));
    hold->set_context(&client);
    zklock::async_call<void> releasing = hold->start_release();
    event = next(client);
    CHECK(event.kind == zklock::event_kind::call && event.is_of(releasing) && event.is_of(*hold));
    CHECK(event.context == &client && !event.is_of(acquiring));
    {
        zklock::observer observer = client.election(fresh_path()).observe();
        event = next(client);
        CHECK(event.kind == zklock::event_kind::leader && event.is_of(observer) && !event.is_of(*hold));
        CHECK(!observer.next_for(0s));
    }
    client.close();
    CHECK(next(client).kind == zklock::event_kind::closed);
}

TEST_MAIN(STANDALONE)
