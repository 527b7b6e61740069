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
#define FUNCTIONS(each)                                                                                                    \
    each(zklock_version) each(zklock_set_log) each(zklock_client_new) each(zklock_mutex_new) each(zklock_acquire)           \
    each(zklock_hold_node) each(zklock_hold_on_lost) each(zklock_hold_wait_lost) each(zklock_evict) each(zklock_release)    \
    each(zklock_last_error)

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

TEST_ALONE(a_library_that_is_closed_while_it_holds_goes_on) {
    library its = open_library();
    zklock_client *client;
    zklock_lock *lock;
    zklock_hold *hold;
    int reason = 0;
    zklock_reason why;
    OK(its.zklock_set_log(ZKLOCK_LOG_TRACE, count_line, NULL));
    OK(its.zklock_client_new(words[0], NULL, &client));
    OK(its.zklock_mutex_new(client, words[1], NULL, &lock));
    OK(its.zklock_acquire(lock, SOON_MS, &hold));
    OK(its.zklock_hold_on_lost(hold, note_loss, &reason));
    CHECK(!dlclose(its.handle));
    CHECK(is_loaded());
    /* Its threads go on: the session outlives its timeout, and the loss is reported. */
    IS(its.zklock_hold_wait_lost(hold, SESSION_MS * 5 / 4, &why), ZKLOCK_TIMEOUT);
    CHECK(open_library().zklock_acquire == its.zklock_acquire);
    OK(its.zklock_evict(lock, its.zklock_hold_node(hold), NULL));
    EVENTUALLY(__atomic_load_n(&reason, __ATOMIC_ACQUIRE) == ZKLOCK_REASON_NODE_DELETED);
    IS(its.zklock_release(hold), ZKLOCK_LOST);
    CHECK(strstr(its.zklock_last_error(), "zklock_release"));
    OK(its.zklock_acquire(lock, SOON_MS, &hold));
    /* There is one I/O thread and one for callbacks, even if the library is opened twice. The program ends with the hold. */
    EVENTUALLY(our_tasks() == 2);
}

TEST_OR_CHILD_MAIN("standalone max-session=4000")
