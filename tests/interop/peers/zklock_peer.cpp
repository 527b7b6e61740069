// A peer with zklock's C++ face: CONNECT KIND PATH SESSION_MS REGISTER NAME [OPTIONS]

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>
#include <zklock.hpp>

#include "line.h"

namespace {
/** The longest rest between two turns. Without a rest somebody always waits. */
std::chrono::duration<double> rest{0};

/** One turn. Returns whether to go on. */
using turn = std::function<bool()>;

bool leave(zklock::hold &hold) {
    // The machine may stand still before the register hears of it.
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    const bool goes_on =
        hold.valid_for().count() > 0 ? line_ask("leave", std::to_string(now.count()).c_str()) : line_ask("lost", "lease");
    try {
        hold.release();
    } catch (const zklock::lost_error &error) {
        line_tell("note", error.what());
    }
    return goes_on;
}

turn simply(zklock::lock lock, std::string mode) {
    auto kept = std::make_shared<zklock::lock>(std::move(lock));
    return [kept, mode] {
        zklock::hold hold = kept->acquire();
        line_enter(mode.c_str(), hold.node().c_str(), hold.token());
        return leave(hold);
    };
}

/** --rest=SECONDS, and any option of a lock, such as --naming=kazoo */
zklock::options options_of(const std::vector<std::string> &words) {
    zklock::options options;
    for (const std::string &word : words) {
        const std::string name = word.substr(2, word.find('=') - 2), value = word.substr(word.find('=') + 1);
        if (name == "rest") rest = std::chrono::duration<double>(std::stod(value));
        else options.set(name, value);
    }
    return options;
}

turn choose(const zklock::client &client, const std::string &kind, const std::string &path, zklock::options how) {
    if (kind == "mutex") return simply(client.mutex(path, how), "x");
    if (kind == "election") return simply(client.election(path, how), "x");
    if (kind == "semaphore-mutex") return simply(client.semaphore(path, 1, how), "x");
    unsigned limit = 0, permits = 1;
    if (std::sscanf(kind.c_str(), "semaphore:%u:%u", &limit, &permits) >= 1) {
        return simply(client.semaphore(path, limit, how.set("permits", std::to_string(permits))), "s:" + std::to_string(permits));
    }
    const turn read = simply(client.read_lock(path, how), "r"), write = simply(client.write_lock(path, how), "x");
    if (kind == "rw") {
        auto random = std::make_shared<std::mt19937>(std::random_device{}());
        return [=] { return (*random)() % 4 == 0 ? write() : read(); };
    }
    throw std::invalid_argument("no kind: " + kind);
}
} // namespace

int main(int count, char **words) try {
    if (count < 7) return 2;
    line_open(words[5], words[6]);
    zklock::options options;
    options.set("session-timeout", std::chrono::milliseconds(std::stoi(words[4]))).set("identity", words[6]);
    zklock::client client(words[1], options);
    const turn next = choose(client, words[2], words[3], options_of({words + 7, words + count}));
    bool goes_on = line_ask("hello", "");
    while (goes_on) {
        try {
            goes_on = next();
            std::this_thread::sleep_for(rest * std::rand() / RAND_MAX);
        } catch (const zklock::error &error) {
            if (error.status() == zklock::status::foreign_contender) throw;
            line_tell("note", error.what());
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
    }
    client.close();
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
