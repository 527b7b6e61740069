/*
 * Promise 8: while a shared object is being loaded, the loader keeps new threads from starting. The first client needs
 * one. Connecting must then fail, in time and with the reason, instead of hanging.
 */

#define _GNU_SOURCE
#include "guest.h"

#include <dlfcn.h>

static void *plugin(void) {
    char path[512];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof ".plugin.so");
    CHECK(length > 0);
    strcpy(path + length, ".plugin.so");
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) failed(__FILE__, __LINE__, "%s", dlerror());
    return handle;
}

static zklock_status status_of(void *handle) { return *(zklock_status *)dlsym(handle, "plugin_status"); }
static const char *said_by(void *handle) { return dlsym(handle, "plugin_said"); }

/* The first use of the library is in the constructor. */
TEST_ALONE(a_constructor_that_connects_first_is_told_why_it_cannot) {
    CHECK(!setenv("PLUGIN_HOSTS", words[0], 1));
    void *handle = plugin();
    IS(status_of(handle), ZKLOCK_UNREACHABLE);
    CHECK(strstr(said_by(handle), "constructor"));
    /* The thread has started since. */
    lock_once(words[0], words[1]);
}

/* The host has used the library before, so its thread exists, and serves the constructor as well. */
TEST_ALONE(a_constructor_may_connect_where_the_host_has_connected) {
    lock_once(words[0], words[1]);
    CHECK(!setenv("PLUGIN_HOSTS", words[0], 1));
    void *handle = plugin();
    if (status_of(handle)) failed(__FILE__, __LINE__, "%s", said_by(handle));
    lock_once(words[0], words[1]);
}

static void *loads(void *nothing) {
    (void)nothing;
    plugin();
    return NULL;
}

/* Another thread is inside dlopen, and only returns when the thread that connects has its answer. */
TEST_ALONE(a_thread_connects_in_its_time_while_another_loads_a_plugin) {
    int inside[2], go[2];
    char numbers[32], byte = 0;
    zklock_client *client;
    /* The first calls of a thread would themselves wait for the loader, which registers its thread-locals. */
    lock_once(words[0], words[1]);
    CHECK(!pipe2(inside, O_CLOEXEC) && !pipe2(go, O_CLOEXEC));
    snprintf(numbers, sizeof numbers, "%d %d", inside[1], go[0]);
    CHECK(!setenv("PLUGIN_PIPES", numbers, 1));
    zklock_options *options = options_with(0, 500);
    pthread_t loading = start_thread(loads, NULL);
    CHECK(read(inside[0], &byte, 1) == 1);
    IS(zklock_client_new("127.0.0.1:1", options, &client), ZKLOCK_UNREACHABLE);
    lock_once(words[0], words[1]);
    CHECK(write(go[1], &byte, 1) == 1);
    join_thread(loading);
}

TEST_OR_CHILD_MAIN("standalone max-session=4000")
