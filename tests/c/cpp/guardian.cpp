/* zklock::client::guard: a process that is killed frees its locks at once. */

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "test.hpp"

namespace {

/* Longer than any test, however slow the machine is. */
constexpr std::chrono::milliseconds LONG = 100s;

zklock::client long_client() { return zklock::client(servers(), zklock::options().session_timeout(LONG)); }

TEST(a_killed_process_frees_its_lock_at_once) {
    const std::string path = fresh_path();
    int pipes[2];
    CHECK(!pipe(pipes));
    const pid_t holder = fork();
    CHECK(holder >= 0);
    if (!holder) {
        zklock::client client = long_client();
        client.guard();
        auto hold = client.mutex(path).acquire();
        CHECK(write(pipes[1], "h", 1) == 1);
        for (;;) pause();
    }
    CHECK(readable(pipes[0], SOON_MS));
    CHECK(!kill(holder, SIGKILL));
    CHECK(waitpid(holder, nullptr, 0) == holder);
    zklock::client client = long_client();
    auto hold = client.mutex(path).try_acquire_for(SOON);
    CHECK(hold);
    hold->release();
    client.close();
}

TEST(what_cannot_be_guarded_throws) {
    zklock::client client = long_client();
    THROWS(client.guard("/nowhere/zklock"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    client.guard("zklock");
    THROWS(client.guard(), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    client.close();
    THROWS(client.guard(), zklock::closed_error, ZKLOCK_CLOSED);
}

} // namespace

TEST_MAIN("standalone max-session=100000", LISTED(a_killed_process_frees_its_lock_at_once), LISTED(what_cannot_be_guarded_throws))
