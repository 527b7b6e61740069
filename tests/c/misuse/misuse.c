/*
 * Every function with every wrong argument, in every place where it can be called: each returns a status, never crashes
 * or hangs, and touches no result on failure.
 */

#define _GNU_SOURCE
#include "matrix.h"

#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CANARY 0xA5

/* One call and its outcome. */
typedef struct run {
    const cell *cell;
    value values[ARGUMENTS_AT_MOST];
    unsigned char blocks[ARGUMENTS_AT_MOST][BLOCK_BYTES] __attribute__((aligned(16)));
    answer answer;
    char sentence[256];
    sem_t done;
} run;

static _Atomic(const cell *) current_cell;
static _Atomic(int64_t) current_since;
static _Atomic(run *) for_the_log;
static int called[256];
static size_t wrong_count;

static const char *const places[PLACES] = {
    "here", "in another thread", "in a loss callback", "in a log callback", "in a visitor",
};

/* Report everything that is wrong, not only the first thing. */
#define WRONG(cell, ...)                                                                                       \
    do {                                                                                                       \
        fprintf(stderr, "WRONG %s, %s, %s: ", (cell)->function->name, (cell)->what, places[(cell)->where]); \
        fprintf(stderr, __VA_ARGS__);                                                                          \
        fputc('\n', stderr);                                                                                   \
        wrong_count++;                                                                                         \
    } while (0)

/* Names a cell that hangs or crashes. */
static void *watch(void *nothing) {
    for (;;) {
        const cell *cell = current_cell;
        if (cell && now_ms() - current_since > SOON_MS + 5000) {
            failed(__FILE__, __LINE__, "it hangs: %s, %s, %s", cell->function->name, cell->what,
                   places[cell->where]);
        }
        sleep_ms(100);
    }
    return nothing;
}

#ifndef __SANITIZE_ADDRESS__
static void crashed(int signal) {
    const cell *cell = current_cell;
    if (cell) failed(__FILE__, __LINE__, "signal %d: %s, %s", signal, cell->function->name, cell->what);
    failed(__FILE__, __LINE__, "signal %d", signal);
}
#endif

static void watch_cells(void) {
    pthread_t watcher;
#ifndef __SANITIZE_ADDRESS__
    const int faults[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t at = 0; at < sizeof faults / sizeof *faults; at++) signal(faults[at], crashed);
#endif
    CHECK(!pthread_create(&watcher, NULL, watch, NULL));
    CHECK(!pthread_detach(watcher));
}

static void prepare(run *run, const cell *cell, int is_forked) {
    run->cell = cell;
    current_since = now_ms();
    current_cell = cell;
    memset(run->blocks, CANARY, sizeof run->blocks);
    for (size_t at = 0; at < cell->arguments_count; at++) {
        run->values[at] = value_of(cell->arguments[at], is_forked);
        if (cell->arguments[at].from == OUTPUT) run->values[at].pointer = run->blocks[at];
    }
}

/* The message belongs to the thread that made the call. */
static void perform(run *run) {
    const function *function = run->cell->function;
    run->answer = function->call(run->values);
    called[function - functions]++;
    /* A call that succeeds leaves the message of an earlier one. */
    int is_good = !function->says_status || run->answer.status == ZKLOCK_OK;
    snprintf(run->sentence, sizeof run->sentence, "%s", is_good ? "" : zklock_last_error());
}

static int is_untouched(const unsigned char *from, size_t count) {
    for (size_t at = 0; at < count; at++) {
        if (from[at] != CANARY) return 0;
    }
    return 1;
}

static void judge(run *run, int64_t wanted) {
    const cell *cell = run->cell;
    const function *function = cell->function;
    if (run->answer.status != wanted) {
        const char *got = zklock_status_name((int32_t)run->answer.status);
        WRONG(cell, "%s, not %s: %s", got, zklock_status_name((int32_t)wanted), run->sentence);
    }
    if (cell->text && strcmp(cell->text, run->answer.text)) WRONG(cell, "'%s', not '%s'", run->answer.text, cell->text);
    int is_good = !function->says_status || run->answer.status == ZKLOCK_OK;
    if (!is_good && run->answer.status != ZKLOCK_PENDING && !strstr(run->sentence, function->name)) WRONG(cell, "no sentence of it: %s", run->sentence);
    for (size_t at = 0; at < function->outputs_count; at++) {
        const output *output = &function->outputs[at];
        const unsigned char *block = run->blocks[output->at];
        int is_written = is_good && cell->arguments[output->at].from == OUTPUT;
        size_t size = is_written ? output->size : 0;
        if (!is_untouched(block + size, BLOCK_BYTES - size)) WRONG(cell, "a result is touched");
        if (is_written && is_untouched(block, size)) WRONG(cell, "no result is written");
        if (is_written && output->kind != KINDS) free_handle(output->kind, *(void *const *)(const void *)block);
    }
    if (!wild_places_are_untouched()) WRONG(cell, "wild memory is touched");
}

static void *in_thread(void *given) {
    perform(given);
    return NULL;
}

static void in_loss_callback(zklock_hold *hold, zklock_reason reason, void *given) {
    run *run = given;
    CHECK(hold == closed_hold() && reason == ZKLOCK_REASON_CLIENT_CLOSED);
    perform(run);
    sem_post(&run->done);
}

static void in_log_callback(int32_t level, const char *message, void *context) {
    run *run = atomic_exchange(&for_the_log, NULL);
    CHECK(level && message && !context);
    if (!run) return;
    perform(run);
    sem_post(&run->done);
}

static void in_visitor(const zklock_contender *contender, void *given) {
    run **once = given;
    CHECK(contender->name && contender->identity);
    /* Only for the first, because the queue has more than one. */
    if (*once) perform(*once);
    *once = NULL;
}

static void make_call(run *run) {
    struct timespec until;
    struct run *once = run;
    switch (run->cell->where) {
    case HERE: perform(run); return;
    case OTHER_THREAD:
        join_thread(start_thread(in_thread, run));
        return;
    case VISITOR:
        OK(zklock_contenders(bystander_lock(), in_visitor, &once));
        CHECK(!once);
        return;
    case LOSS_CALLBACK: OK(zklock_hold_on_lost(closed_hold(), in_loss_callback, run)); break;
    case LOG_CALLBACK:
        OK(zklock_set_log(ZKLOCK_LOG_TRACE, in_log_callback, NULL));
        for_the_log = run;
        /* A new session is logged. */
        zklock_client_free(new_client());
        break;
    case PLACES: abort();
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SOON_MS / 1000;
    if (sem_timedwait(&run->done, &until)) failed(__FILE__, __LINE__, "no callback for %s", run->cell->function->name);
    if (run->cell->where == LOG_CALLBACK) OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
}

/* A guardian needs pidfds, which valgrind does not know, whatever the kernel has. */
static int has_pidfds(void) {
    int descriptor = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (descriptor >= 0) close(descriptor);
    return descriptor >= 0;
}

static int64_t wanted_here(const cell *cell) {
    int is_guarded = cell->wanted == ZKLOCK_OK && !strcmp(cell->function->name, "zklock_client_guard");
    return is_guarded && !has_pidfds() ? ZKLOCK_INVALID_ARGUMENT : cell->wanted;
}

/* In a child, a call reports the wrong argument, or that a handle is the parent's, whichever it finds first. If no argument
 * is wrong, it is refused, unless the handle is new or a plain value. */
static int64_t wanted_in_child(const run *run) {
    const function *function = run->cell->function;
    int64_t wanted = run->cell->wanted;
    const char *name = function->name;
    int is_misuse = wanted == ZKLOCK_INVALID_ARGUMENT || wanted == ZKLOCK_INVALID_HANDLE;
    int is_for_children = !strncmp(name, "zklock_options_", 15) ||
                          !strncmp(name, "zklock_client_new", 17) || !strcmp(name, "zklock_set_log") ||
                          !strcmp(name, "zklock_fence_sql");
    if (!function->says_status) return wanted;
    if (run->answer.status == ZKLOCK_FORKED) return ZKLOCK_FORKED;
    /* Here handles in all states are good handles of the parent: see value_of. */
    if (is_for_children && run->answer.status == ZKLOCK_OK && wanted == ZKLOCK_INVALID_HANDLE) return ZKLOCK_OK;
    return is_for_children || is_misuse ? wanted : ZKLOCK_FORKED;
}

static size_t in_child(void) {
    static run run;
    size_t count = 0;
    alarm(60);
    for (size_t at = 0; at < cells_count; at++) {
        if (cells[at].where != HERE) continue;
        prepare(&run, &cells[at], 1);
        perform(&run);
        judge(&run, wanted_in_child(&run));
        count++;
    }
    CHECK(!wrong_count);
    return count;
}

TEST(every_cell_has_its_status) {
    static run run;
    unsigned char stack[WILD_BYTES];
    size_t functions_called = 0;
    watch_cells();
    make_bystanders(stack);
    CHECK(!sem_init(&run.done, 0, 0));
    for (size_t at = 0; at < cells_count; at++) {
        prepare(&run, &cells[at], 0);
        make_call(&run);
        judge(&run, wanted_here(&cells[at]));
        free_made();
        const char *harm = harm_of_bystanders();
        if (harm) failed(__FILE__, __LINE__, "%s, %s: harms %s", cells[at].function->name, cells[at].what, harm);
        current_cell = NULL;
    }
    CHECK(!wrong_count);
    for (size_t at = 0; at < functions_count; at++) functions_called += called[at] != 0;
    printf("misuse: %zu functions, %zu cells\n", functions_called, cells_count);
    free_bystanders();
}

TEST(every_cell_has_its_status_after_a_fork) {
    unsigned char stack[WILD_BYTES];
    size_t count;
    int ends[2], status;
    make_bystanders(stack);
    CHECK(!harm_of_bystanders());
    CHECK(!pipe(ends));
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        count = in_child();
        _exit(write(ends[1], &count, sizeof count) != sizeof count);
    }
    close(ends[1]);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
    CHECK(read(ends[0], &count, sizeof count) == sizeof count);
    close(ends[0]);
    /* The child's calls do not affect the parent, whose session goes on. */
    CHECK(!harm_of_bystanders());
    zklock_client *client = value_of((argument){BYSTANDER, CLIENT}, 0).pointer;
    zklock_hold *hold = value_of((argument){BYSTANDER, HOLD}, 0).pointer;
    OK(zklock_hold_confirm(hold, NULL));
    CHECK(stats_of(client).sessions == 1);
    CHECK(stats_of(client).losses == 0);
    printf("misuse: %zu cells in a forked child\n", count);
    free_bystanders();
}

/* Timeouts that never end. */
static const int64_t for_ever[] = {ZKLOCK_FOREVER, INT64_MAX / 2, INT64_MAX, INT64_MAX - 1, INT64_MAX / 1000};
#define WAITS (sizeof for_ever / sizeof *for_ever)

typedef struct {
    zklock_status (*wait)(void *handle, int64_t timeout);
    void *handle;
    int64_t timeout;
    zklock_status status;
    atomic_int *begun;
} long_wait;

static zklock_status acquires(void *lock, int64_t timeout) {
    zklock_hold *hold;
    return zklock_acquire(lock, timeout, &hold);
}

static zklock_status waits_lost(void *hold, int64_t timeout) {
    zklock_reason reason;
    return zklock_hold_wait_lost(hold, timeout, &reason);
}

static zklock_status waits_wanted(void *hold, int64_t timeout) { return zklock_hold_wait_wanted(hold, timeout); }

static void *waits_for_ever(void *given) {
    long_wait *wait = given;
    ++*wait->begun;
    wait->status = wait->wait(wait->handle, wait->timeout);
    return NULL;
}

TEST(the_longest_waits_end_when_the_client_is_closed) {
    zklock_client *client = new_client(), *other = new_client();
    const char *path = fresh_path();
    zklock_lock *lock = new_mutex(client, path, 0), *other_lock = new_mutex(other, path, 0);
    zklock_lock *quiet_lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *unwanted = acquire(quiet_lock, SOON_MS), *never;
    void *const handles[] = {other_lock, hold, unwanted};
    zklock_status (*const calls[])(void *, int64_t) = {acquires, waits_lost, waits_wanted};
    thread threads[3 * WAITS];
    zklock_call *started[WAITS];
    atomic_int begun = 0;
    long_wait waits[3 * WAITS];
    for (size_t at = 0; at < 3 * WAITS; at++) {
        waits[at] = (long_wait){calls[at / WAITS], handles[at / WAITS], for_ever[at % WAITS], ZKLOCK_INTERNAL, &begun};
        threads[at] = start_thread(waits_for_ever, &waits[at]);
        if (at < WAITS) OK(zklock_acquire_start(other_lock, for_ever[at], &started[at]));
    }
    EVENTUALLY(begun == 3 * WAITS);
    for (size_t at = 0; at < WAITS; at++) IS(zklock_call_hold(started[at], &never), ZKLOCK_PENDING);
    OK(zklock_client_close(other));
    for (size_t at = 0; at < WAITS; at++) {
        join_thread(threads[at]);
        IS(waits[at].status, ZKLOCK_CLOSED);
        not_acquired(started[at], ZKLOCK_CLOSED);
    }
    OK(zklock_client_close(client));
    for (size_t at = WAITS; at < 3 * WAITS; at++) {
        join_thread(threads[at]);
        IS(waits[at].status, at < 2 * WAITS ? ZKLOCK_OK : ZKLOCK_LOST);
    }
    zklock_hold_free(hold);
    zklock_hold_free(unwanted);
    zklock_lock_free(lock);
    zklock_lock_free(quiet_lock);
    zklock_lock_free(other_lock);
    zklock_client_free(client);
    zklock_client_free(other);
}

TEST_MAIN("standalone max-session=60000")
