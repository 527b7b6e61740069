/*
 * Promise 8: a plug-in may be closed at any time after dlopen. The code stays, because our threads run in it, and open
 * objects go on.
 */

#define _GNU_SOURCE
#include "guest.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

/* The functions, as dlsym gives them. */
#define FUNCTIONS(each)                                                                                            \
    each(zklock_client_new) each(zklock_client_close) each(zklock_client_free) each(zklock_mutex_new)               \
    each(zklock_lock_free) each(zklock_acquire) each(zklock_release) each(zklock_hold_free) each(zklock_hold_state) \
    each(zklock_hold_wait_lost) each(zklock_hold_on_lost) each(zklock_hold_node) each(zklock_last_error)                   \
    each(zklock_status_name) each(zklock_version) each(zklock_hold_confirm) each(zklock_set_log)

typedef struct {
    void *handle;
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
} library;

/* This program is linked with the library, so its file is loaded already. To the loader a copy is another library. */
static char copied[64];

static void copy_library(void) {
    Dl_info here;
    if (*copied) return;
    CHECK(dladdr((void *)(uintptr_t)zklock_version, &here));
    int from = open(here.dli_fname, O_RDONLY | O_CLOEXEC), to = memfd_create("copy", MFD_CLOEXEC);
    CHECK(from >= 0 && to >= 0);
    while (sendfile(to, from, NULL, 1 << 20) > 0) {
    }
    close(from);
    snprintf(copied, sizeof copied, "/proc/self/fd/%d", to);
}

static library open_library(void) {
    library opened;
    copy_library();
    opened.handle = dlopen(copied, RTLD_NOW | RTLD_LOCAL);
    if (!opened.handle) failed(__FILE__, __LINE__, "%s", dlerror());
    void *found;
#define FIND(name)                                                        \
    found = dlsym(opened.handle, #name);                                  \
    CHECK(found && found != (void *)(uintptr_t)name);                     \
    memcpy(&opened.name, &found, sizeof found);
    FUNCTIONS(FIND)
    return opened;
}

/* A client, a lock and a hold of a library. */
typedef struct {
    zklock_client *client;
    zklock_lock *lock;
    zklock_hold *hold;
} objects;

static objects hold_in(const library *opened, const char *hosts, const char *path) {
    objects made;
    OK(opened->zklock_client_new(hosts, NULL, &made.client));
    OK(opened->zklock_mutex_new(made.client, path, NULL, &made.lock));
    OK(opened->zklock_acquire(made.lock, SOON_MS, &made.hold));
    return made;
}

static int is_loaded(void) {
    void *handle = dlopen(copied, RTLD_NOW | RTLD_NOLOAD);
    if (handle) dlclose(handle);
    return handle != NULL;
}

TEST(a_library_that_is_not_used_starts_nothing) {
    size_t before = our_tasks();
    for (int round = 0; round < 20; round++) {
        library opened = open_library();
        CHECK(!strcmp(opened.zklock_version(), ZKLOCK_VERSION));
        CHECK(!dlclose(opened.handle));
        /* It stays loaded by itself, not just while a thread of ours keeps it. */
        CHECK(is_loaded());
    }
    CHECK(our_tasks() == before);
}

TEST(a_library_that_is_closed_while_it_holds_goes_on) {
    const char *path = fresh_path();
    library first = open_library();
    zklock_hold *again;
    int reason = 0;
    zklock_reason why;
    OK(first.zklock_set_log(ZKLOCK_LOG_TRACE, count_line, NULL));
    objects its = hold_in(&first, servers(), path);
    const char *node = first.zklock_hold_node(its.hold);
    OK(first.zklock_hold_on_lost(its.hold, note_loss, &reason));
    CHECK(!dlclose(first.handle));
    CHECK(is_loaded());
    /* Its threads go on: the session outlives its timeout, and the loss is reported. */
    IS(first.zklock_hold_wait_lost(its.hold, SESSION_MS * 5 / 4, &why), ZKLOCK_TIMEOUT);
    CHECK(contenders_at(path) == 1);

    library second = open_library();
    CHECK(second.zklock_acquire == first.zklock_acquire);
    CHECK(second.zklock_hold_state(its.hold, NULL) == ZKLOCK_STATE_HELD);
    OK(second.zklock_hold_confirm(its.hold, NULL));
    CHECK(second.zklock_acquire(its.lock, 100, &again) == ZKLOCK_TIMEOUT);
    CHECK(strstr(second.zklock_last_error(), "zklock_acquire"));
    CHECK(!dlclose(second.handle));
    ground("delete %s", node);
    EVENTUALLY(__atomic_load_n(&reason, __ATOMIC_ACQUIRE) == ZKLOCK_REASON_NODE_DELETED);

    library third = open_library();
    IS(third.zklock_release(its.hold), ZKLOCK_LOST);
    third.zklock_hold_free(its.hold);
    OK(third.zklock_acquire(its.lock, SOON_MS, &its.hold));
    OK(third.zklock_release(its.hold));
    third.zklock_hold_free(its.hold);
    third.zklock_lock_free(its.lock);
    OK(third.zklock_client_close(its.client));
    third.zklock_client_free(its.client);
    OK(third.zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    CHECK(!dlclose(third.handle));
    /* There is one I/O thread and one for callbacks, even if the library is opened three times. */
    EVENTUALLY(our_tasks() == 2);
}

/* A host that opens the library in a thread that then ends. */
static void *visit(void *given) {
    library opened = open_library();
    objects its = hold_in(&opened, servers(), given);
    IS(opened.zklock_acquire(its.lock, SOON_MS, NULL), ZKLOCK_INVALID_ARGUMENT);
    OK(opened.zklock_release(its.hold));
    opened.zklock_hold_free(its.hold);
    opened.zklock_lock_free(its.lock);
    opened.zklock_client_free(its.client);
    CHECK(!dlclose(opened.handle));
    return NULL;
}

TEST(threads_may_end_after_dlclose) {
    pthread_t threads[8];
    const char *path = fresh_path();
    for (int round = 0; round < 10; round++) {
        for (size_t at = 0; at < COUNT(threads); at++) threads[at] = start_thread(visit, (void *)path);
        for (size_t at = 0; at < COUNT(threads); at++) join_thread(threads[at]);
    }
}

TEST_ALONE(a_program_ends_with_the_library_closed_and_a_hold_open) {
    library opened = open_library();
    hold_in(&opened, words[0], words[1]);
    CHECK(!dlclose(opened.handle));
}

TEST_OR_CHILD_MAIN("standalone max-session=4000")
