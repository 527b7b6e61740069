/* The ends of a process: static destructors at exit, a fork, an exception that leaves a callback. */

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "program.h"
#include "test.hpp"

namespace {

/* Destroyed after main, in the opposite order, when nothing that uses them holds or waits any more. */
std::optional<zklock::client> the_client;
std::optional<zklock::lockable> the_mutex, the_busy_mutex;
std::optional<zklock::lock> the_lock;
std::optional<zklock::hold> the_hold;
std::optional<zklock::async_call<zklock::hold>> the_acquire;

void say(const std::string &line) {
    if (write(STDOUT_FILENO, (line + "\n").data(), line.size() + 1) < 0) _exit(9);
}

/* Another client holds the second of these paths. */
void connect(const std::string &hosts, const std::string &own) {
    the_client.emplace(hosts, zklock::options().set("session-timeout", SESSION));
    the_mutex.emplace(*the_client, own, [] {});
    the_busy_mutex.emplace(*the_client, own + "-busy", [] {});
    the_lock.emplace(the_client->mutex(own + "-second"));
}

void never(zklock::reason) { failed(__FILE__, __LINE__, "it was lost"); }

} // namespace

/* Exits while it holds, waits and expects callbacks. */
MODE(middle) {
    connect(words[0], words[1]);
    the_mutex->lock();
    the_hold.emplace(the_lock->acquire());
    the_hold->on_lost([](zklock::reason) {});
    the_acquire.emplace(the_lock->start());
    std::thread([] { the_busy_mutex->lock(); }).detach();
    go_ahead("waits");
    return 0;
}

TEST(a_program_may_exit_while_its_statics_hold_and_wait) {
    const auto client = new_cpp_client();
    const std::string own = fresh_path(), busy = own + "-busy";
    const auto held = client.mutex(busy).acquire_for(SOON);
    program process = start_program("middle", servers(), own.c_str());
    hear(&process, "waits");
    EVENTUALLY(client.mutex(busy).contenders().size() == 2);
    CHECK(!is_free(client, own) && !is_free(client, own + "-second"));
    let(&process);
    expect_end(&process, ENDS_MS, EXITED(0));
    /* At the latest when its session ends. */
    EVENTUALLY(is_free(client, own) && is_free(client, own + "-second") && client.mutex(busy).contenders().size() == 1);
}

MODE(throws) {
    std::set_terminate([] {
        try {
            if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
        } catch (const std::exception &thrown) {
            say(thrown.what());
        }
        _exit(42);
    });
    connect(words[0], words[1]);
    the_hold.emplace(the_lock->acquire());
    the_hold->on_lost([](zklock::reason) { throw std::runtime_error("nobody can catch it"); });
    go_ahead(the_hold->node().c_str());
    return 0;
}

TEST(an_exception_that_leaves_a_callback_ends_the_program_and_says_what_it_was) {
    program process = start_program("throws", servers(), fresh_path());
    hear(&process, "\n");
    const std::string node = std::string(process.said, strcspn(process.said, "\n"));
    delete_node(node);
    expect_end(&process, ENDS_MS, EXITED(42));
    CHECK(process.said == node + "\nnobody can catch it\n");
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
        zklock::lockable mutex{client, fresh_path(), never};
        std::unique_lock<zklock::lockable> guard{mutex};
        zklock::lockable left{client, fresh_path(), never}, right{client, fresh_path(), never};
        zklock::scoped_lock both{left, right};
        zklock::hold hold = client.mutex(fresh_path()).acquire();
        zklock::async_call<zklock::hold> acquiring = client.mutex(fresh_path()).start();
    };
    const auto other = new_cpp_client();
    const std::string of_child = fresh_path();
    auto all = std::make_unique<objects>();
    all->hold.on_lost(never);
    const pid_t id = fork();
    CHECK(id >= 0);
    if (id == 0) {
        alarm(60);
        const bool refused =
            !all->hold.token() && forked([&] { all->hold.release(); }) &&
            forked([&] { all->mutex.lock(); }) && forked([&] { (void)all->mutex.try_lock(); }) &&
            forked([&] { (void)all->mutex.current(); }) && forked([&] { zklock::scoped_lock(all->right, all->left); }) &&
            forked([&] { (void)all->client.mutex("/x"); }) &&
            forked([&] { all->client.close(); }) && forked([&] { (void)all->acquiring.try_finish(); });
        all.reset();
        /* Objects that the child makes belong to the child. */
        const auto own = new_cpp_client();
        zklock::lockable mutex{own, of_child, never};
        const std::lock_guard<zklock::lockable> guard(mutex);
        _exit(refused && mutex.current()->confirm() > 0ms ? 0 : 1);
    }
    CHECK(reaped(id, ENDS_MS) == EXITED(0));
    CHECK(all->hold.confirm() > 0ms && all->mutex.current()->confirm() > 0ms);
    CHECK(!is_free(other, all->mutex.path()) && !is_free(other, all->hold.path()));
    CHECK(all->both.current()->confirm() > 0ms && !is_free(other, all->left.path()) && !is_free(other, all->right.path()));
}

TEST(a_fork_in_the_middle_of_a_call_of_another_thread_does_not_hang_the_child) {
    const auto client = new_cpp_client();
    zklock::lockable mutex(client, fresh_path(), never);
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
        CHECK(reaped(id, ENDS_MS) == EXITED(0));
    }
    over = true;
    soon(one);
    soon(two);
}

TEST_OR_CHILD_MAIN(STANDALONE)
