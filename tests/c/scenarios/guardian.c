/* zklock_client_guard: its handles and its errors. (What a guardian does: the tests of the command.) */

#include "test.h"

#include <dirent.h>

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

TEST(the_guardian_ends_with_its_client) {
    int before = children();
    zklock_client *client = client_with(servers(), LONG_MS, 0);
    OK(zklock_client_guard(client, NULL));
    CHECK(children() == before + 1);
    OK(zklock_client_close(client));
    CHECK(children() == before);

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
    zklock_options *options = options_with(0, 300);
    zklock_client *client = MADE(zklock_client, zklock_client_new_lazy("127.0.0.1:1", options, &made));
    IS(zklock_client_guard(client, NULL), ZKLOCK_UNREACHABLE);
    zklock_client_free(client);
    client = MADE(zklock_client, zklock_client_new_lazy(servers(), options, &made));
    OK(zklock_client_guard(client, "zklock"));
    CHECK(stats_of(client).session_id);
    FAILS(zklock_client_guard(client, NULL), ZKLOCK_INVALID_ARGUMENT, "zklock_client_guard: this client has a guardian already");
    OK(zklock_client_close(client));
    IS(zklock_client_guard(client, NULL), ZKLOCK_CLOSED);
}

TEST(a_command_that_is_none_is_refused_with_what_to_do) {
    zklock_client *client = client_with(servers(), LONG_MS, 0);
    int before = children();
    IS(zklock_client_guard(client, "/nowhere/zklock"), ZKLOCK_INVALID_ARGUMENT);
    SAYS("there is no program \"/nowhere/zklock\": install the command zklock (cargo install --path zklock-cli)");
    FAILS(zklock_client_guard(client, "/dev/null"), ZKLOCK_INVALID_ARGUMENT, "this user may not execute \"/dev/null\"");
    FAILS(zklock_client_guard(client, "true"), ZKLOCK_INVALID_ARGUMENT, "it ended at once: \"true\" is to be the command zklock");
    char *path = strdup(getenv("PATH"));
    CHECK(!setenv("PATH", "/nowhere:/tmp", 1));
    IS(zklock_client_guard(client, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("there is no \"zklock\" in the directories of PATH (\"/nowhere:/tmp\")");
    CHECK(!setenv("PATH", path, 1));
    free(path);
    CHECK(children() == before);
    OK(zklock_client_guard(client, NULL));
    OK(zklock_client_close(client));
}

TEST_MAIN("standalone max-session=100000")
