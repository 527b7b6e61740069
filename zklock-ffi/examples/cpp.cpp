// How to use the classes of zklock.hpp: cpp [HOSTS [PIECES]]

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <zklock.hpp>

using namespace std::chrono_literals;

namespace {

// A hold has a token, which the resource can check, and reports a loss.
void with_a_hold(const zklock::client &client, long pieces) {
    std::atomic<bool> lost{false}; // before the hold, so that it outlives the callback
    zklock::hold hold = client.mutex("/locks/cpp/report").acquire_for(5s);
    hold.on_lost([&] { lost = true; });
    std::cout << "works with token " << hold.token() << std::endl;
    for (; pieces > 0 && !lost; pieces--) std::this_thread::sleep_for(20ms); // a piece of the work
    // This throws if the lock was lost. The destructor would release it without reporting that.
    hold.release();
    std::cout << "done" << std::endl;
}

// With the locks of the standard library. Their unlock() cannot report a loss, so this comes first.
void under_standard_locks(const zklock::client &client) {
    std::atomic<bool> lost{false};
    const auto stop = [&] { lost = true; };
    zklock::lockable accounts(client, "/locks/cpp/accounts", stop), orders(client, "/locks/cpp/orders", stop);

    if (std::unique_lock guard(accounts, 5s); guard && !lost) std::cout << "works under a unique_lock" << std::endl;
    // This cannot deadlock, whatever order other programs lock the two in.
    zklock::scoped_lock both(accounts, orders);
    if (!lost) std::cout << "works under both locks" << std::endl;
}

} // namespace

int main(int count, char **words) {
    try {
        zklock::client client(count > 1 ? words[1] : "127.0.0.1:2181");
        with_a_hold(client, count > 2 ? std::atol(words[2]) : 5);
        under_standard_locks(client);
        client.close();
        return 0;
    } catch (const zklock::lost_error &error) {
        std::cerr << "the work is void: " << error.what() << std::endl;
    } catch (const zklock::error &error) {
        std::cerr << error.status_name() << ": " << error.what() << std::endl;
    }
    return 1;
}
