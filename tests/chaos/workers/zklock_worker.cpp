// zklock's C library under chaos, as C++ calls it: see ../README.md for its arguments and its lines.

#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <random>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>
#include <zklock.hpp>

namespace {
using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto LINGER = 2s, PATIENCE = 10s;
std::mt19937_64 dice;
/** How long a lock is held at most, and now and then, and how often that is said, in microseconds. */
long usual, rare, step;

bool one_in(unsigned many) { return dice() % many == 0; }

microseconds up_to(microseconds most) {
    return microseconds(std::uniform_int_distribution<long>(0, most.count())(dice));
}

/** The clock that all processes of a machine share, in nanoseconds. */
std::int64_t now() {
    std::timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * std::int64_t{1000000000} + time.tv_nsec;
}

/** The connection to the register. The end of a turn is still reported after its end, as long as that works. */
class line {
public:
    explicit line(const std::string &address) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const int yes = 1;
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (connect(socket_, reinterpret_cast<const sockaddr *>(&at), sizeof at) != 0) throw std::runtime_error("no register");
        setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }

    template <class... Words> void say(const Words &...words) {
        std::ostringstream said;
        ((said << words << ' '), ...);
        std::string text = said.str();
        text.back() = '\n';
        if (!is_broken_) is_broken_ = send(socket_, text.data(), text.size(), MSG_NOSIGNAL) != ssize_t(text.size());
    }

    /** The register never sends anything: whatever comes, or an error, is the end. */
    bool is_over() const {
        char nothing;
        return is_broken_ || recv(socket_, &nothing, 1, MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
    }

private:
    int socket_;
    bool is_broken_ = false;
};

/** The lock of a word such as semaphore=2:/a. */
zklock::lock lock_of(const zklock::client &client, const std::string &word) {
    const std::string kind = word.substr(0, word.find(':')), path = word.substr(word.find(':') + 1);
    if (kind == "mutex") return client.mutex(path);
    if (kind == "lingering") return client.mutex(path, zklock::options().set("linger", LINGER));
    if (kind == "read") return client.read_lock(path);
    if (kind == "write") return client.write_lock(path);
    if (kind == "exclusive") return client.single_node(path);
    if (kind.rfind("semaphore=", 0) == 0) return client.semaphore(path, unsigned(std::stoul(kind.substr(10))));
    throw std::invalid_argument("no kind: " + word);
}

/** Relies on what was named to its end, as a program does that looks once and then works. Only an operator may end it sooner. */
void rely(line &line, const zklock::hold &hold, unsigned turn, std::int64_t named) {
    const zklock::reason why = hold.lost_reason();
    if (why == zklock::reason::node_deleted || why == zklock::reason::session_expired) return;
    while (now() < named && !line.is_over()) std::this_thread::sleep_for(1ms);
    line.say("still", turn, std::min(named, now()));
}

/** Claims the lock, as far as that is certain, until the turn is over. */
void claim(line &line, const zklock::hold &hold, unsigned turn) {
    // It may be at risk first: its lease is over, but the servers have not yet said what became of it.
    const auto lose = [&] { line.say("lost", turn, now(), "reason-" + std::to_string(int(hold.lost_reason()))); };
    // Here the clock is read after the check, so that the claim does not begin before the hold.
    if (hold.valid_for() <= 0ms) return lose();
    line.say("have", turn, hold.token(), hold.node(), now());
    const std::int64_t end = now() + std::chrono::nanoseconds(up_to(microseconds(one_in(10) ? rare : usual))).count();
    std::int64_t named = 0;
    for (bool is_last = false; !is_last;) {
        // And here before the check, so that the claim does not last longer than the hold.
        const std::int64_t seen = now();
        const milliseconds valid = hold.valid_for();
        if (valid <= 0ms) {
            rely(line, hold, turn, named);
            return lose();
        }
        named = std::max<std::int64_t>(named, seen + std::chrono::nanoseconds(valid).count());
        is_last = seen >= end || line.is_over();
        line.say(is_last ? "done" : "still", turn, seen);
        if (!is_last) std::this_thread::sleep_for(microseconds(step));
    }
}

void take(line &line, const zklock::lock &lock, const std::string &word, unsigned turn) {
    const bool tries = one_in(5);
    line.say("want", turn, word, now());
    try {
        std::optional<zklock::hold> hold = lock.try_acquire_for(tries ? 0s : PATIENCE);
        if (!hold) return line.say("gave", turn, now(), tries ? "busy" : "timeout");
        claim(line, *hold, turn);
        try {
            hold->release();
        } catch (const zklock::error &) { // It does not matter here: the claim is over.
        }
        line.say("free", turn, now());
    } catch (const zklock::error &error) {
        line.say("gave", turn, now(), "status-" + std::to_string(int(error.status())));
        std::this_thread::sleep_for(100ms);
    }
}
} // namespace

int main(int count, char **words) try {
    if (count < 8 || std::sscanf(words[6], "%ld,%ld,%ld", &usual, &rare, &step) != 3) throw std::invalid_argument("arguments: see ../README.md");
    const milliseconds session(std::stoi(words[2]));
    dice.seed(std::stoull(words[5]));
    // It connects on first use, and tries as often as that takes.
    auto client = zklock::client::lazy(words[1], zklock::options().set("session-timeout", session).set("identity", words[4]));
    std::vector<std::pair<std::string, zklock::lock>> locks;
    for (int at = 7; at < count; at++) locks.emplace_back(words[at], lock_of(client, words[at]));
    line line(words[3]);
    line.say("hello", words[4], getpid());
    for (unsigned turn = 1; !line.is_over(); turn++) {
        const auto &[word, lock] = locks[dice() % locks.size()];
        take(line, lock, word, turn);
        if (one_in(3)) std::this_thread::sleep_for(up_to(20ms));
    }
    client.close();
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
