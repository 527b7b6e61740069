// c++ -std=c++20 asio_coroutines.cpp -pthread $(pkg-config --cflags --libs zklock)
#include <asio.hpp> // with Boost 1.77 or later: <boost/asio.hpp>, and so on
#include <asio/experimental/awaitable_operators.hpp>
#include <iostream>
#include <utility>
#include <zklock.hpp>

using namespace asio::experimental::awaitable_operators;
constexpr std::chrono::milliseconds WAIT_MS{30000}, WORK_MS{100};

struct lent : asio::posix::stream_descriptor {
    using basic_stream_descriptor::basic_stream_descriptor;
    ~lent() { release(); } // otherwise Asio closes the descriptor, which is zklock's
};

asio::awaitable<void> readable(int descriptor) {
    lent here(co_await asio::this_coro::executor, descriptor);
    co_await here.async_wait(lent::wait_read, asio::use_awaitable);
}

asio::awaitable<zklock::hold> acquire(const zklock::lock &lock) {
    auto acquiring = lock.start(WAIT_MS);
    co_await readable(acquiring.fd());
    co_return std::move(*acquiring.try_finish()); // it throws what acquire_for() does
}

asio::awaitable<void> release(zklock::hold hold) {
    auto releasing = hold.start_release();
    co_await readable(releasing.fd());
    (void)releasing.try_finish(); // it throws if the hold was lost before
}

asio::awaitable<void> work() {
    asio::steady_timer piece(co_await asio::this_coro::executor, WORK_MS);
    co_await piece.async_wait(asio::use_awaitable);
}

asio::awaitable<void> lost(zklock::client &client, const zklock::hold &hold) {
    for (;;) {
        co_await readable(client.fd());
        while (const auto event = client.next_event())
            if (event->kind == zklock::event_kind::lost && event->is_of(hold)) co_return;
    }
}

asio::awaitable<void> report(zklock::client &client) {
    const auto lock = client.mutex("/locks/report");
    client.fd(); // holds that are acquired from now on have events
    for (;;) {
        zklock::hold hold = co_await acquire(lock);
        std::cout << "held" << std::endl;
        const auto ended = co_await (work() || lost(client, hold)); // the first to end cancels the other
        if (ended.index() == 0) co_return co_await release(std::move(hold));
        std::cerr << "lost: the work has stopped, another may have the lock\n";
    }
}

int main() try {
    auto client = zklock::client::lazy("127.0.0.1:2181");
    asio::io_context loop;
    asio::co_spawn(loop, report(client), [](std::exception_ptr problem) {
        if (problem) std::rethrow_exception(problem); // out of run()
    });
    loop.run();
    client.close();
    return 0;
} catch (const std::exception &problem) {
    std::cerr << problem.what() << '\n';
    return 1;
}
