// Promise 8: destructors that C++ runs at the end, of statics, of thread-locals, and of objects that are static within a
// function, may make every call: no hang, no crash, and the right exit code.

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "program.h"

namespace {

const char *hosts, *path;

void say(const char *word) {
    std::string line = std::string(word) + "\n";
    CHECK(write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
}

// A lock that is held until its destructor, which makes every kind of call.
class guarded {
public:
    explicit guarded(const char *name) : name_(name) {}

    void hold() {
        client_ = connect_to(hosts);
        lock_ = new_mutex(client_, (std::string(path) + "/" + name_).c_str(), 0);
        hold_ = acquire(lock_, SOON_MS);
        OK(zklock_hold_on_lost(hold_, told, this));
    }

    ~guarded() {
        if (!client_) return;
        zklock_hold *again;
        CHECK(state_of(hold_) == ZKLOCK_STATE_HELD);
        OK(zklock_hold_confirm(hold_, nullptr));
        IS(zklock_acquire(lock_, 100, &again), ZKLOCK_TIMEOUT);
        OK(zklock_release(hold_));
        zklock_hold_free(hold_);
        hold_ = acquire(lock_, SOON_MS);
        OK(zklock_client_close(client_));
        IS(zklock_release(hold_), ZKLOCK_LOST);
        // A client that is made this late.
        free_all(hold_, lock_, client_);
        hold();
        free_all(hold_, lock_, client_);
        CHECK(*zklock_last_error());
        say(name_);
    }

private:
    static void told(zklock_hold *, zklock_reason, void *) {}

    const char *name_;
    zklock_client *client_ = nullptr;
    zklock_lock *lock_ = nullptr;
    zklock_hold *hold_ = nullptr;
};

guarded of_the_program("static");
thread_local guarded of_the_thread("thread_local");

guarded &of_the_function() {
    static guarded held("function");
    return held;
}

int run(const std::string &mode) {
    if (mode == "exit in a thread") {
        of_the_program.hold();
        std::thread([] {
            of_the_thread.hold();
            std::exit(3);
        }).join();
    }
    if (mode == "all") {
        of_the_program.hold();
        of_the_function().hold();
        std::thread([] { of_the_thread.hold(); }).join();
        of_the_thread.hold();
    }
    return 3;
}

bool says(const char *mode, const char *words) {
    return !std::strcmp(run_program(mode, servers(), fresh_path(), EXITED(3)), words);
}

} // namespace

// A thread that calls exit destroys its own objects first, then the statics.
TEST(those_of_a_thread_that_exits) { CHECK(says("exit in a thread", "thread_local\nstatic\n")); }
TEST(statics_those_of_functions_and_of_threads) { CHECK(says("all", "thread_local\nthread_local\nfunction\nstatic\n")); }

int main(int count, char **words) {
    if (count == 5 && !std::strcmp(words[1], "child")) {
        hosts = words[3], path = words[4];
        alarm(60);
        return run(words[2]);
    }
    return run_tests("standalone max-session=4000", count, words);
}
