/* zklock_client_guard: its handles and its errors. (What a guardian does: the tests of the command. What is said of
 * a command that is none: the core.) */

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

TEST_MAIN("standalone max-session=100000")
