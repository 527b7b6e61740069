/*
 * Every function with every wrong argument, in every place where it can be called: each returns a status, never crashes
 * or hangs, touches no result on failure, and changes neither handlers nor masks of signals.
 */

#define _GNU_SOURCE
#include "matrix.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
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
    int keeps_signals;
    sem_t done;
} run;

static _Atomic(const cell *) current_cell;
static _Atomic(int64_t) current_since;
static _Atomic(run *) for_the_log;
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

static void prepare(run *run, const cell *cell) {
    run->cell = cell;
    current_since = now_ms();
    current_cell = cell;
    memset(run->blocks, CANARY, sizeof run->blocks);
    for (size_t at = 0; at < cell->arguments_count; at++) {
        run->values[at] = value_of(cell->arguments[at]);
        if (cell->arguments[at].from == OUTPUT) run->values[at].pointer = run->blocks[at];
    }
}

/* The handlers of this program. */
static struct sigaction handlers[NSIG];

static int is_same_mask(const sigset_t *one, const sigset_t *other) { return !memcmp(one, other, NSIG / 8); }

/* Whether this thread has that mask, and the program has its handlers. */
static int signals_are_kept(const sigset_t *mask) {
    sigset_t now;
    CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &now));
    int are_kept = is_same_mask(mask, &now);
    for (int signal = 1; signal < NSIG; signal++) {
        struct sigaction handler = {0};
        sigaction(signal, NULL, &handler);
        are_kept &= handler.sa_handler == handlers[signal].sa_handler && handler.sa_flags == handlers[signal].sa_flags &&
                    is_same_mask(&handler.sa_mask, &handlers[signal].sa_mask);
    }
    return are_kept;
}

/* The message belongs to the thread that made the call. */
static void perform(run *run) {
    const function *function = run->cell->function;
    sigset_t mask;
    CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &mask));
    run->answer = function->call(run->values);
    run->keeps_signals = signals_are_kept(&mask);
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
        /* Every call in the background has its event; that of a client which is closed then is in scenarios/events. */
        if (is_written && output->kind == CALL && !strcmp(cell->what, "good arguments") && strncmp(function->name, "zklock_client_close", 19)) {
            if (!has_its_event(*(zklock_call *const *)(const void *)block)) WRONG(cell, "its event does not come");
        }
        if (is_written && output->kind != KINDS) free_handle(output->kind, *(void *const *)(const void *)block);
    }
    if (!wild_places_are_untouched()) WRONG(cell, "wild memory is touched");
    if (!run->keeps_signals) WRONG(cell, "it changes a handler, or the mask of its thread");
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

TEST(every_cell_has_its_status) {
    static run run;
    unsigned char stack[WILD_BYTES];
    sigset_t mask;
    watch_cells();
    /* Some signals are blocked, and others are not. */
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    CHECK(!pthread_sigmask(SIG_SETMASK, &mask, NULL));
    for (int signal = 1; signal < NSIG; signal++) sigaction(signal, NULL, &handlers[signal]);
    /* This starts the library's threads. */
    make_bystanders(stack);
    CHECK(signals_are_kept(&mask));
    CHECK(!sem_init(&run.done, 0, 0));
    for (size_t at = 0; at < cells_count; at++) {
        prepare(&run, &cells[at]);
        make_call(&run);
        judge(&run, wanted_here(&cells[at]));
        free_made();
        const char *harm = harm_of_bystanders();
        if (harm) failed(__FILE__, __LINE__, "%s, %s: harms %s", cells[at].function->name, cells[at].what, harm);
        current_cell = NULL;
    }
    CHECK(!wrong_count);
    printf("misuse: %zu functions, %zu cells\n", functions_count, cells_count);
    free_bystanders();
}

/* Every wait gets its timeout in the same way. */
TEST(the_longest_waits_end_when_the_client_is_closed) {
    static const int64_t for_ever[] = {ZKLOCK_FOREVER, INT64_MAX / 2, INT64_MAX, INT64_MAX - 1, INT64_MAX / 1000};
    enum { WAITS = sizeof for_ever / sizeof *for_ever };
    rivals all = new_rivals();
    zklock_hold *held = acquire(all.others, SOON_MS), *never;
    zklock_call *waits[WAITS];
    for (size_t at = 0; at < WAITS; at++) waits[at] = start_acquire(all.lock, for_ever[at]);
    wait_for_contenders(all.path, 2);
    for (size_t at = 0; at < WAITS; at++) IS(zklock_call_hold(waits[at], &never), ZKLOCK_PENDING);
    OK(zklock_client_close(all.client));
    for (size_t at = 0; at < WAITS; at++) {
        await_call(waits[at]);
        IS(zklock_call_hold(waits[at], &never), ZKLOCK_CLOSED);
    }
    give_back(held);
}

TEST_MAIN("standalone max-session=60000")
