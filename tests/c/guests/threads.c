/* Promise 8: threads of the host come and go, are many, have small stacks, and are cancelled. */

#define _GNU_SOURCE
#include "guest.h"

#include "calls.h"

#include <link.h>
#include <sys/resource.h>

/* A call needs no more than 64 KiB, of which a quarter is left for the next compiler. */
#define SMALL_STACK (48 << 10)

static zklock_lock *lock;

static void *holds(void *given) {
    (void)given;
    return acquire(lock, SOON_MS);
}

static void *releases(void *given) { return (void *)(intptr_t)zklock_release(given); }

TEST(a_hold_stays_when_its_thread_ends) {
    zklock_client *client = new_client();
    lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = join_thread(start_thread(holds, NULL)), *again;
    becomes_valid(hold);
    IS(zklock_acquire(lock, 50, &again), ZKLOCK_TIMEOUT);
    give_back(hold);

    /* A later thread is not the owner, even if it has the identity of the thread that is gone. */
    lock = new_mutex(client, fresh_path(), IS_REENTRANT);
    hold = join_thread(start_thread(holds, NULL));
    IS(zklock_release(hold), ZKLOCK_NOT_OWNER);
    becomes_valid(hold);
    for (int round = 0; round < 10; round++) IS(join_status(start_thread(releases, hold)), ZKLOCK_NOT_OWNER);
    IS(zklock_acquire(lock, 50, &again), ZKLOCK_TIMEOUT);
    zklock_hold_free(hold);
    give_back(acquire(lock, SOON_MS));
}

static void *makes_calls(void *given) {
    make_every_call(given, fresh_path());
    return NULL;
}

/* Thread-local variables of this program take room on each stack. The library does not cause that. */
static int add_variables(struct dl_phdr_info *object, size_t size, void *total) {
    (void)size;
    for (int at = 0; !*object->dlpi_name && at < object->dlpi_phnum; at++) {
        if (object->dlpi_phdr[at].p_type == PT_TLS) *(size_t *)total += object->dlpi_phdr[at].p_memsz;
    }
    return 0;
}

static pthread_t small_thread(void *(*run)(void *), void *given) {
    pthread_attr_t attributes;
    pthread_t thread;
    size_t size = SMALL_STACK;
    dl_iterate_phdr(add_variables, &size);
    pthread_attr_init(&attributes);
    CHECK(!pthread_attr_setstacksize(&attributes, (size + 4095) / 4096 * 4096));
    int error = pthread_create(&thread, &attributes, run, given);
    if (error) failed(__FILE__, __LINE__, "no thread: %s", strerror(error));
    pthread_attr_destroy(&attributes);
    pthread_setname_np(thread, "host small");
    return thread;
}

/* The first use of the library, in a thread with such a stack, and every other call, while everything is logged. */
TEST_ALONE(a_small_stack_is_enough) {
    int lines = 0;
    char by_name[64];
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, count_line, &lines));
    join_thread(small_thread(makes_calls, words[0]));
    CHECK(lines > 0);
    for (int round = 0; round < 20; round++) {
        OK(zklock_set_log(ZKLOCK_LOG_TRACE, count_line, &lines));
        pthread_t several[4];
        snprintf(by_name, sizeof by_name, "localhost%s", strrchr(words[0], ':'));
        for (size_t at = 0; at < COUNT(several); at++) {
            several[at] = small_thread(makes_calls, at % 2 ? words[0] : by_name);
        }
        for (size_t at = 0; at < COUNT(several); at++) join_thread(several[at]);
    }
}

/* ---- Cancellation, while a thread is in different calls. ---- */

static int is_in;

static void *waits(void *given) {
    zklock_hold *hold;
    int type;
    pthread_setcancelstate(given ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE, &type);
    zklock_status status = zklock_acquire(lock, 1500, &hold);
    if (status == ZKLOCK_OK) give_back(hold);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &type);
    /* The cancellation takes effect here at the latest. */
    pthread_testcancel();
    return (void *)1;
}

/* A cancelled thread still waits to the end of its call: to interrupt the call would end the process. */
TEST_ALONE(a_thread_that_is_cancelled_in_a_wait_ends_after_it) {
    zklock_lock *held = new_mutex(connect_to(words[0]), words[1], 0);
    lock = new_mutex(connect_to(words[0]), words[1], 0);
    for (int disabled = 0; disabled < 2; disabled++) {
        zklock_hold *hold = acquire(held, SOON_MS);
        pthread_t waiting = start_thread(waits, disabled ? &is_in : NULL);
        EVENTUALLY(queue_of(held) == 2);
        int64_t begun = now_ms();
        CHECK(!pthread_cancel(waiting));
        CHECK(join_thread(waiting) == PTHREAD_CANCELED);
        CHECK(now_ms() - begun > 1000);
        give_back(hold);
    }
}

static void *locks_for_ever(void *given) {
    for (;;) {
        zklock_hold *hold;
        __atomic_store_n(&is_in, 1, __ATOMIC_RELEASE);
        if (zklock_acquire(given, 1000, &hold)) continue;
        zklock_release(hold);
        zklock_hold_free(hold);
        pthread_testcancel();
    }
    return NULL;
}

TEST_ALONE(a_thread_may_be_cancelled_anywhere) {
    zklock_client *client = connect_to(words[0]);
    for (int round = 0; round < 300; round++) {
        lock = new_mutex(client, words[1], 0);
        is_in = 0;
        pthread_t busy = start_thread(locks_for_ever, lock);
        EVENTUALLY(__atomic_load_n(&is_in, __ATOMIC_ACQUIRE));
        usleep((unsigned)(round * 37 % 1500));
        CHECK(!pthread_cancel(busy));
        CHECK(join_thread(busy) == PTHREAD_CANCELED);
        /* It left nothing behind. */
        give_back(acquire(lock, SOON_MS));
    }
}

#define CANCELLED_AT_ONCE 8

static void frees(void *hold) { zklock_hold_free(*(zklock_hold **)hold); }

/* A thread that may be cancelled at any instruction. */
static void *calls_for_ever(void *given) {
    int type;
    zklock_hold *volatile kept = NULL;
    pthread_cleanup_push(frees, (void *)&kept);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    for (;;) {
        zklock_hold *hold;
        zklock_version();
        zklock_last_error();
        if (zklock_hold_valid_for(NULL)) return (void *)1;
        /* Half of them only make calls that take no time, so that the code around a call is hit. */
        if (!given || zklock_acquire(given, 20, &hold)) continue;
        kept = hold;
        zklock_release(hold);
        zklock_hold_free(hold);
        kept = NULL;
    }
    pthread_cleanup_pop(1);
}

TEST_ALONE(a_thread_may_be_cancelled_at_any_instruction) {
    zklock_client *client = connect_to(words[0]);
    for (int round = 0; round < 40; round++) {
        pthread_t busy[CANCELLED_AT_ONCE];
        lock = new_mutex(client, fresh_path(), 0);
        for (size_t at = 0; at < COUNT(busy); at++) busy[at] = start_thread(calls_for_ever, at % 2 ? lock : NULL);
        usleep((unsigned)(round * 97 % 4000));
        for (size_t at = 0; at < COUNT(busy); at++) CHECK(!pthread_cancel(busy[at]));
        for (size_t at = 0; at < COUNT(busy); at++) CHECK(join_thread(busy[at]) == PTHREAD_CANCELED);
    }
    /* A result that nobody took is released with the client. Everything else still works. */
    give_back(acquire(new_mutex(client, fresh_path(), 0), SOON_MS));
    zklock_client_free(client);
}

/* Makes objects until no memory is left: the process then ends without output. */
MODE(no_memory) {
    unsigned long pages;
    FILE *size = fopen("/proc/self/statm", "re");
    struct rlimit none = {0, 0}, some;
    zklock_options *options;
    CHECK(size && fscanf(size, "%lu", &pages) == 1 && !fclose(size));
    some.rlim_cur = some.rlim_max = pages * 4096 + (16 << 20);
    CHECK(!setrlimit(RLIMIT_CORE, &none) && !setrlimit(RLIMIT_AS, &some));
    printf("%s", words[0]);
    fflush(stdout);
    while (zklock_options_new(&options) == ZKLOCK_OK) continue;
    return 1;
}

TEST(where_memory_runs_out_the_process_ends_without_a_word) { run_program("no_memory", "", NULL, KILLED(SIGABRT)); }

TEST_OR_CHILD_MAIN("standalone max-session=4000")
