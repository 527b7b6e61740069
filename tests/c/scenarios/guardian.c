/* zklock_client_guard: a killed process frees its locks at once, and a living one never loses its session because of that. */

#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The session timeout, longer than any test, because SOON_MS limits all waits. */
#define LONG_MS 100000
#define STOPS 200
#define FORKS 200

/* The number of children of all threads of this process. */
static int children(void) {
    int count = 0;
    DIR *threads = opendir("/proc/self/task");
    CHECK(threads);
    for (struct dirent *entry; (entry = readdir(threads));) {
        char name[300];
        snprintf(name, sizeof name, "/proc/self/task/%s/children", entry->d_name);
        FILE *file = fopen(name, "r");
        for (int child; file && fscanf(file, "%d", &child) == 1;) count++;
        if (file) fclose(file);
    }
    closedir(threads);
    return count;
}

/* A process that holds the lock under a guardian, and has a child that stays. Returns both. */
static pid_t new_holder(const char *path, pid_t *child, int *orders, int *answers) {
    int to[2], from[2];
    CHECK(!pipe(to) && !pipe(from));
    pid_t holder = fork();
    CHECK(holder >= 0);
    if (!holder) {
        char order;
        zklock_client *client = client_with(servers(), LONG_MS, 0);
        OK(zklock_client_guard(client, NULL));
        zklock_hold *hold = acquire(new_mutex(client, path, 0), SOON_MS);
        /* It has all descriptors of its parent, because it is not exec'd. */
        pid_t stays = fork();
        while (!stays) pause();
        do {
            CHECK(write(from[1], &stays, sizeof stays) == sizeof stays);
            CHECK(read(to[0], &order, 1) == 1);
            for (int at = 0; at < FORKS; at++) {
                pid_t ends = fork();
                if (!ends) _exit(0);
                CHECK(waitpid(ends, NULL, 0) == ends);
            }
        } while (state_of(hold) != ZKLOCK_STATE_LOST);
        _exit(1);
    }
    CHECK(readable(from[0], SOON_MS) && read(from[0], child, sizeof *child) == sizeof *child);
    *orders = to[1], *answers = from[0];
    return holder;
}

TEST(a_living_process_keeps_its_session_and_a_killed_one_frees_its_lock_at_once) {
    char path[64];
    int orders, answers, status;
    pid_t child, again, holder;
    snprintf(path, sizeof path, "%s", fresh_path());
    holder = new_holder(path, &child, &orders, &answers);
    for (int at = 0; at < STOPS; at++) {
        CHECK(!kill(holder, SIGSTOP));
        CHECK(waitpid(holder, &status, WUNTRACED) == holder && WIFSTOPPED(status));
        CHECK(!kill(holder, SIGCONT));
    }
    CHECK(write(orders, "f", 1) == 1);
    CHECK(readable(answers, SOON_MS) && read(answers, &again, sizeof again) == sizeof again);
    CHECK(again == child && contenders_at(path) == 1);
    /* Nor does its child, which lives on, hide its death, be it stopped or not. */
    CHECK(!kill(holder, SIGSTOP));
    CHECK(!kill(holder, SIGKILL) && waitpid(holder, NULL, 0) == holder);
    /* The next client has the lock long before the session could time out. */
    zklock_client *client = client_with(servers(), LONG_MS, 0);
    zklock_lock *lock = new_mutex(client, path, 0);
    give_back(acquire(lock, SOON_MS));
    CHECK(!kill(child, SIGKILL));
    close(orders);
    close(answers);
    free_all(NULL, lock, client);
}

TEST(the_guardian_ends_with_its_client) {
    int before = children();
    zklock_client *client = client_with(servers(), LONG_MS, 0);
    OK(zklock_client_guard(client, NULL));
    CHECK(children() == before + 1);
    OK(zklock_client_close(client));
    CHECK(children() == before);
    zklock_client_free(client);

    /* A freed client is guarded as long as the objects that were made from it. */
    client = client_with(servers(), LONG_MS, 0);
    OK(zklock_client_guard(client, NULL));
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_client_free(client);
    CHECK(children() == before + 1);
    zklock_lock_free(lock);
    EVENTUALLY(children() == before);
}

TEST(a_client_has_one_guardian_and_connects_first) {
    zklock_client *client;
    zklock_options *options = options_with(0, 300);
    OK(zklock_client_new_lazy("127.0.0.1:1", options, &client));
    IS(zklock_client_guard(client, NULL), ZKLOCK_UNREACHABLE);
    zklock_client_free(client);
    OK(zklock_client_new_lazy(servers(), options, &client));
    zklock_options_free(options);
    OK(zklock_client_guard(client, "zklock"));
    CHECK(stats_of(client).session_id);
    IS(zklock_client_guard(client, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("zklock_client_guard: this client has a guardian already");
    OK(zklock_client_close(client));
    IS(zklock_client_guard(client, NULL), ZKLOCK_CLOSED);
    zklock_client_free(client);
}

TEST(a_command_that_is_none_is_refused_with_what_to_do) {
    zklock_client *client = client_with(servers(), LONG_MS, 0);
    int before = children();
    IS(zklock_client_guard(client, "/nowhere/zklock"), ZKLOCK_INVALID_ARGUMENT);
    SAYS("there is no program \"/nowhere/zklock\": install the command zklock (cargo install --path zklock-cli)");
    IS(zklock_client_guard(client, "/dev/null"), ZKLOCK_INVALID_ARGUMENT);
    SAYS("this user may not execute \"/dev/null\"");
    IS(zklock_client_guard(client, "true"), ZKLOCK_INVALID_ARGUMENT);
    SAYS("it ended at once: \"true\" is to be the command zklock");
    char *path = strdup(getenv("PATH"));
    CHECK(!setenv("PATH", "/nowhere:/tmp", 1));
    IS(zklock_client_guard(client, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("there is no \"zklock\" in the directories of PATH (\"/nowhere:/tmp\")");
    CHECK(!setenv("PATH", path, 1));
    free(path);
    CHECK(children() == before);
    OK(zklock_client_guard(client, NULL));
    OK(zklock_client_close(client));
    zklock_client_free(client);
}

TEST_MAIN("standalone max-session=100000")
