// Promise 8: destructors that C++ runs at the end, of statics, of thread-locals, and of objects that are static within a
// function, may make every call: no hang, no crash, and the right exit code.

#include <cstdlib>
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

void begin(char **words) { hosts = words[0], path = words[1]; }

} // namespace

// A thread that calls exit destroys its own objects first, then the statics.
ENDS(those_of_a_thread_that_exits, 1, "thread_local\nstatic\n") {
    begin(words);
    of_the_program.hold();
    std::thread([] {
        of_the_thread.hold();
        std::exit(3);
    }).join();
    return 1;
}

ENDS(statics_those_of_functions_and_of_threads, 1, "thread_local\nthread_local\nfunction\nstatic\n") {
    begin(words);
    of_the_program.hold();
    of_the_function().hold();
    std::thread([] { of_the_thread.hold(); }).join();
    of_the_thread.hold();
    return 3;
}

TEST_OR_CHILD_MAIN("standalone max-session=4000")
