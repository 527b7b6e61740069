/* zklock_client_guard: a killed process frees its locks at once. */

#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The session timeout, longer than any test, because SOON_MS limits all waits. */
#define LONG_MS 100000
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

TEST(a_killed_process_frees_its_lock_at_once_whatever_its_child_has_inherited) {
    char path[64];
    int pipes[2];
    pid_t held, holder, child;
    snprintf(path, sizeof path, "%s", fresh_path());
    CHECK(!pipe(pipes));
    holder = fork();
    CHECK(holder >= 0);
    if (!holder) {
        zklock_client *client = client_with(servers(), LONG_MS, 0);
        OK(zklock_client_guard(client, NULL));
        acquire(new_mutex(client, path, 0), SOON_MS);
        /* The child has all descriptors of its parent, because it is not exec'd. */
        child = fork();
        if (child) CHECK(write(pipes[1], &child, sizeof child) == sizeof child);
        for (;;) pause();
    }
    CHECK(readable(pipes[0], SOON_MS) && read(pipes[0], &held, sizeof held) == sizeof held);
    CHECK(!kill(holder, SIGKILL) && waitpid(holder, NULL, 0) == holder);
    /* The next client has the lock long before the session could time out. */
    zklock_client *client = client_with(servers(), LONG_MS, 0);
    zklock_lock *lock = new_mutex(client, path, 0);
    give_back(acquire(lock, SOON_MS));
    CHECK(!kill(held, SIGKILL));
    close(pipes[0]);
    close(pipes[1]);
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
    zklock_options *options;
    zklock_client *client;
    OK(zklock_options_new(&options));
    OK(zklock_options_set_connect_timeout(options, 300));
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

TEST_MAIN("standalone max-session=100000", LISTED(a_killed_process_frees_its_lock_at_once_whatever_its_child_has_inherited),
          LISTED(the_guardian_ends_with_its_client),
          LISTED(a_client_has_one_guardian_and_connects_first), LISTED(a_command_that_is_none_is_refused_with_what_to_do))
