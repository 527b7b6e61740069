/* The ends of a process: static destructors at exit, a fork, an exception that leaves a callback. */

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "test.hpp"

namespace {

/* The arguments of a child process: its name, the hosts, a path to use, and a path that its parent holds. */
struct orders {
    const char *hosts;
    std::string own, busy;
};

/* Destroyed after main, in the opposite order, when nothing that uses them holds or waits any more. */
std::optional<zklock::client> the_client;
std::optional<zklock::mutex> the_mutex, the_busy_mutex;
std::optional<zklock::lock> the_lock;
std::optional<zklock::hold> the_hold;
std::optional<zklock::async_call<zklock::hold>> the_acquire;

void say(const std::string &line) {
    if (write(STDOUT_FILENO, (line + "\n").data(), line.size() + 1) < 0) _exit(9);
}

void connect(const orders &given) {
    the_client.emplace(given.hosts, zklock::options().session_timeout(SESSION));
    the_mutex.emplace(*the_client, given.own);
    the_busy_mutex.emplace(*the_client, given.busy);
    the_lock.emplace(the_client->mutex(given.own + "-second"));
}

/* Exits while it holds, waits and expects callbacks. */
int exits_in_the_middle(const orders &given) {
    connect(given);
    the_mutex->lock();
    the_hold.emplace(the_lock->acquire());
    the_hold->on_lost([](zklock::reason) {});
    the_acquire.emplace(the_lock->start());
    std::thread([] { the_busy_mutex->lock(); }).detach();
    say("waits");
    if (getchar() == EOF) return 8;
    return 0;
}

int throws_in_a_callback(const orders &given) {
    std::set_terminate([] {
        try {
            if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
        } catch (const std::exception &thrown) {
            say(thrown.what());
        }
        _exit(42);
    });
    connect(given);
    the_hold.emplace(the_lock->acquire());
    the_hold->on_lost([](zklock::reason) { throw std::runtime_error("nobody can catch it"); });
    say(the_hold->node());
    return getchar() == EOF ? 8 : 0;
}

constexpr struct {
    const char *name;
    int (*run)(const orders &);
} children[] = {{"middle", exits_in_the_middle},
                {"throws", throws_in_a_callback}};

/* A child process of this program, with pipes to it and from it. */
class child {
public:
    child(const char *name, const std::string &own, const std::string &busy) {
        int to[2], from[2];
        CHECK(!pipe(to) && !pipe(from));
        id_ = fork();
        CHECK(id_ >= 0);
        if (id_ == 0) {
            dup2(to[0], STDIN_FILENO);
            dup2(from[1], STDOUT_FILENO);
            for (int descriptor = 3; descriptor < 64; descriptor++) close(descriptor);
            execl("/proc/self/exe", "child", "child", name, servers(), own.c_str(), busy.c_str(), nullptr);
            _exit(127);
        }
        close(to[0]);
        close(from[1]);
        to_ = to[1];
        from_ = from[0];
    }
    child(const child &) = delete;
    child &operator=(const child &) = delete;
    ~child() {
        close(to_);
        close(from_);
    }

    std::string line() const {
        std::string all;
        for (char one = 0;; all += one) {
            if (!readable(from_, SOON_MS)) failed(__FILE__, __LINE__, "the child says only: %s", all.c_str());
            if (read(from_, &one, 1) != 1 || one == '\n') return all;
        }
    }

    void go_on() const { CHECK(write(to_, "\n", 1) == 1); }

    /* Its exit status, or the negative number of the signal that killed it. */
    int end() const { return ended(id_); }

    static int ended(pid_t id) {
        int status = 0;
        EVENTUALLY(waitpid(id, &status, WNOHANG) == id);
        return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    }

private:
    pid_t id_ = 0;
    int to_ = -1, from_ = -1;
};

} // namespace

TEST(a_program_may_exit_while_its_statics_hold_and_wait) {
    const auto client = new_cpp_client();
    const std::string own = fresh_path(), busy = fresh_path();
    const auto held = client.mutex(busy).acquire_for(SOON);
    const child process("middle", own, busy);
    CHECK(process.line() == "waits");
    EVENTUALLY(client.mutex(busy).contenders().size() == 2);
    CHECK(!is_free(client, own) && !is_free(client, own + "-second"));
    process.go_on();
    CHECK(process.end() == 0);
    /* At the latest when its session ends. */
    EVENTUALLY(is_free(client, own) && is_free(client, own + "-second") && client.mutex(busy).contenders().size() == 1);
}

TEST(an_exception_that_leaves_a_callback_ends_the_program_and_says_what_it_was) {
    const std::string path = fresh_path();
    const child process("throws", path, path);
    delete_node(process.line());
    CHECK(process.line() == "nobody can catch it");
    CHECK(process.end() == 42);
}

/* In the child of a fork: whether the call was refused. */
template <class Call>
static bool forked(Call call) {
    try {
        call();
    } catch (const zklock::error &error) {
        return error.status() == zklock::status::forked;
    }
    return false;
}

TEST(a_forked_child_is_refused_what_is_its_parents_and_its_destructors_do_nothing) {
    struct objects {
        zklock::client client = new_cpp_client();
        zklock::mutex mutex{client, fresh_path()};
        std::unique_lock<zklock::mutex> guard{mutex};
        zklock::mutex left{client, fresh_path()}, right{client, fresh_path()};
        zklock::scoped_lock both{left, right};
        zklock::hold hold = client.mutex(fresh_path()).acquire();
        zklock::async_call<zklock::hold> acquiring = client.mutex(fresh_path()).start();
    };
    const auto other = new_cpp_client();
    const std::string of_child = fresh_path();
    auto all = std::make_unique<objects>();
    all->hold.on_lost([](zklock::reason) { failed(__FILE__, __LINE__, "it was lost"); });
    const pid_t id = fork();
    CHECK(id >= 0);
    if (id == 0) {
        alarm(60);
        const bool refused =
            forked([&] { (void)all->hold.token(); }) && forked([&] { all->hold.release(); }) &&
            forked([&] { all->mutex.lock(); }) && forked([&] { (void)all->mutex.try_lock(); }) &&
            forked([&] { (void)all->mutex.current(); }) && forked([&] { zklock::scoped_lock(all->right, all->left); }) &&
            forked([&] { (void)all->client.mutex("/x"); }) &&
            forked([&] { all->client.close(); }) && forked([&] { (void)all->acquiring.try_finish(); });
        all.reset();
        /* Objects that the child makes belong to the child. */
        const auto own = new_cpp_client();
        zklock::mutex mutex{own, of_child};
        const std::lock_guard<zklock::mutex> guard(mutex);
        _exit(refused && mutex.current()->confirm() > 0ms ? 0 : 1);
    }
    CHECK(child::ended(id) == 0);
    CHECK(all->hold.confirm() > 0ms && all->mutex.current()->confirm() > 0ms);
    CHECK(!is_free(other, all->mutex.path()) && !is_free(other, all->hold.path()));
    CHECK(all->both.current()->confirm() > 0ms && !is_free(other, all->left.path()) && !is_free(other, all->right.path()));
}

TEST(a_fork_in_the_middle_of_a_call_of_another_thread_does_not_hang_the_child) {
    const auto client = new_cpp_client();
    zklock::mutex mutex(client, fresh_path());
    std::atomic<bool> over{false};
    std::unique_lock guard(mutex);
    const auto hammer = [&] {
        while (!over) (void)mutex.current();
    };
    auto one = in_background(hammer), two = in_background(hammer);
    for (int round = 0; round < 100; round++) {
        const pid_t id = fork();
        CHECK(id >= 0);
        if (id == 0) {
            alarm(60);
            guard.unlock();
            _exit(forked([&] { (void)mutex.current(); }) ? 0 : 1);
        }
        const int status = child::ended(id);
        if (status != 0) failed(__FILE__, __LINE__, "the child of round %d ended with %d", round, status);
    }
    over = true;
    soon(one);
    soon(two);
}

int main(int count, char **words) {
    if (count == 6 && words[1] == std::string("child")) {
        /* Nothing may hang, not even if its parent has died. */
        alarm(60);
        for (const auto &known : children) {
            if (words[2] == std::string(known.name)) return known.run({words[3], words[4], words[5]});
        }
        return 7;
    }
    return run_tests(STANDALONE, count, words);
}
