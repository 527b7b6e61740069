// A peer with zklock's C++ face: CONNECT KIND PATH SESSION_MS REGISTER NAME [OPTIONS]

#include <chrono>
#include <cmath>
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
    const bool goes_on = hold.valid_for().count() > 0 ? line_ask("leave", "") : line_ask("lost", "lease");
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

/** --dialect=kazoo, --dialect=writelock, --foreign=ignore-unknown, --linger=SECONDS, --rest=SECONDS */
zklock::lock_options options_of(const std::vector<std::string> &words) {
    zklock::lock_options options;
    for (const std::string &word : words) {
        if (word == "--dialect=kazoo") options.dialect(zklock::dialect::kazoo);
        else if (word == "--dialect=writelock") options.dialect(zklock::dialect::writelock);
        else if (word == "--foreign=ignore-unknown") options.ignore_unknown();
        else if (word.rfind("--linger=", 0) == 0) {
            options.linger(std::chrono::milliseconds(std::lround(std::stod(word.substr(9)) * 1000)));
        } else if (word.rfind("--rest=", 0) == 0) rest = std::chrono::duration<double>(std::stod(word.substr(7)));
        else throw std::invalid_argument("no option: " + word);
    }
    return options;
}

turn choose(const zklock::client &client, const std::string &kind, const std::string &path, zklock::lock_options how) {
    if (kind == "mutex") return simply(client.mutex(path, how), "x");
    if (kind == "election") return simply(client.election(path, how), "x");
    if (kind == "semaphore-mutex") return simply(client.semaphore(path, 1, how), "x");
    unsigned limit = 0, permits = 1;
    if (std::sscanf(kind.c_str(), "semaphore:%u:%u", &limit, &permits) >= 1) {
        return simply(client.semaphore(path, limit, how.permits(permits)), "s:" + std::to_string(permits));
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
    options.session_timeout(std::chrono::milliseconds(std::stoi(words[4]))).identity(words[6]);
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
