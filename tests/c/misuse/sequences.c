/*
 * Threads make all calls, in random order, with handles that are good, of another kind, freed, or in use by another thread. Each
 * returns a status that the function lists, and never crashes or hangs.
 *
 *   sequences [SEED [SECONDS]]
 */

#define _GNU_SOURCE
#include "matrix.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 4
#define POOL_SIZE 24
#define ROOM_BYTES 1024

/* The handles that all threads know, including freed ones. */
static struct {
    void *handles[KINDS][POOL_SIZE];
    size_t count[KINDS];
} pool;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;

static const cell *usable[1 << 14];
static size_t usable_count;
static atomic_bool is_enough, has_succeeded[256];
static uint64_t seed;

/* A thread, and its random number. */
typedef struct {
    uint64_t random;
} caller;

static uint64_t below(caller *caller, uint64_t bound) {
    caller->random ^= caller->random << 13;
    caller->random ^= caller->random >> 7;
    caller->random ^= caller->random << 17;
    return caller->random % bound;
}

/* Stores a handle, in the place of another if there is no more room. */
static void put(caller *caller, kind kind, void *handle) {
    void *old = NULL;
    pthread_mutex_lock(&pool_lock);
    if (pool.count[kind] < POOL_SIZE) {
        pool.handles[kind][pool.count[kind]++] = handle;
    } else {
        void **place = &pool.handles[kind][below(caller, POOL_SIZE)];
        old = *place;
        *place = handle;
    }
    pthread_mutex_unlock(&pool_lock);
    /* It may be freed already, which does no harm. */
    if (old) free_handle(kind, old);
}

static void *pick(caller *caller, kind kind) {
    void *handle = NULL;
    pthread_mutex_lock(&pool_lock);
    if (pool.count[kind]) handle = pool.handles[kind][below(caller, pool.count[kind])];
    pthread_mutex_unlock(&pool_lock);
    return handle;
}

/* A handle that is mostly of the right kind. */
static void *any_handle(caller *caller, kind kind) {
    return pick(caller, below(caller, 20) ? kind : (enum kind)below(caller, KINDS));
}

static int is_handle(argument argument) { return argument.from >= BYSTANDER; }

/* Whether threads can use a cell. Objects that are made for one cell at a time are not for threads. A call that ends a
 * client would end everything that others try with it. And each guardian would start a process. */
static int is_usable(const cell *cell) {
    static const char *const left_out[] = {"zklock_client_new", "zklock_set_log", "zklock_client_free", "zklock_client_close", "zklock_client_guard"};
    if (cell->where != HERE) return 0;
    for (size_t at = 0; at < sizeof left_out / sizeof *left_out; at++) {
        if (!strncmp(cell->function->name, left_out[at], strlen(left_out[at]))) return 0;
    }
    for (size_t at = 0; at < cell->arguments_count; at++) {
        source from = cell->arguments[at].from;
        if (from >= WILD && from < BYSTANDER) return 0;
    }
    return 1;
}

static void call(caller *caller, const cell *cell) {
    static const char *const paths[] = {"/sequences/a", "/sequences/b", "/sequences/c"};
    const function *function = cell->function;
    unsigned char blocks[ARGUMENTS_AT_MOST][BLOCK_BYTES] __attribute__((aligned(16))) = {{0}};
    char room[ROOM_BYTES] __attribute__((aligned(16)));
    void *locks[] = {any_handle(caller, LOCK), any_handle(caller, LOCK), NULL};
    void *clients[] = {any_handle(caller, CLIENT), any_handle(caller, CLIENT), NULL};
    value values[ARGUMENTS_AT_MOST] = {{NULL, 0}};
    for (size_t at = 0; at < cell->arguments_count; at++) {
        argument argument = cell->arguments[at];
        values[at].number = argument.number;
        if (is_handle(argument)) {
            values[at].pointer = any_handle(caller, (kind)argument.number);
        } else if (argument.from == PATH) {
            values[at].pointer = (void *)(uintptr_t)paths[below(caller, 3)];
        } else if (argument.from == OUTPUT) {
            values[at].pointer = blocks[at];
        } else if (argument.from == LOCKS) {
            values[at].pointer = locks;
        } else if (argument.from == CLIENTS) {
            values[at].pointer = clients;
        } else if (argument.from == ROOM) {
            values[at].pointer = room;
        } else {
            values[at] = value_of(argument);
        }
        /* A call that would not wait with the handle of the cell may wait with this one. */
        if ((int)at == function->waits) values[at].number = (int64_t)below(caller, 30);
    }
    answer answer = function->call(values);
    /* These return the result of the call that was started. */
    int is_listed = !function->says_status || !strncmp(function->name, "zklock_call_", 12);
    for (size_t at = 0; at < function->listed_count; at++) is_listed |= function->listed[at] == answer.status;
    if (!is_listed) {
        failed(__FILE__, __LINE__, "seed %llu: %s (%s): %s, which it does not list: %s", (unsigned long long)seed, function->name,
               cell->what, zklock_status_name((int32_t)answer.status), zklock_last_error());
    }
    if (function->says_status && answer.status != ZKLOCK_OK) return;
    has_succeeded[function - functions] = 1;
    for (size_t at = 0; at < function->outputs_count; at++) {
        const output *output = &function->outputs[at];
        if (output->kind == KINDS || cell->arguments[output->at].from != OUTPUT) continue;
        put(caller, output->kind, *(void *const *)(const void *)blocks[output->at]);
    }
}

static void *call_on(void *given) {
    caller *caller = given;
    while (!is_enough) {
        call(caller, usable[below(caller, usable_count)]);
        if (below(caller, 200) == 0) put(caller, CLIENT, new_client());
        if (below(caller, 400) == 0) zklock_client_close(pick(caller, CLIENT));
    }
    return NULL;
}

static int64_t seconds = 10;

static size_t good_functions(void) {
    size_t count = 0;
    for (size_t at = 0; at < functions_count; at++) count += has_succeeded[at];
    return count;
}

TEST(any_sequence_of_calls_comes_to_statuses_that_are_listed) {
    static caller callers[THREADS];
    thread threads[THREADS];
    for (size_t at = 0; at < cells_count; at++) {
        if (is_usable(&cells[at]) && usable_count < sizeof usable / sizeof *usable) usable[usable_count++] = &cells[at];
    }
    for (size_t at = 0; at < THREADS; at++) callers[at].random = (seed * THREADS + at + 1) * 0x9E3779B97F4A7C15U;
    for (size_t at = 0; at < 4; at++) put(&callers[0], CLIENT, new_client());
    printf("sequences: seed %llu\n", (unsigned long long)seed);
    /* On a busy machine, or under valgrind, it may take longer until most functions have succeeded. */
    int64_t until = now_ms() + seconds * 1000, at_last = until + 90000;
    for (size_t at = 0; at < THREADS; at++) threads[at] = start_thread(call_on, &callers[at]);
    while (now_ms() < until || (good_functions() <= functions_count / 2 && now_ms() < at_last)) sleep_ms(20);
    is_enough = 1;
    for (size_t at = 0; at < THREADS; at++) join_thread(threads[at]);
    for (size_t kind = KINDS; kind-- > 0;) {
        for (size_t at = 0; at < pool.count[kind]; at++) free_handle((enum kind)kind, pool.handles[kind][at]);
    }
    printf("sequences: %zu of %zu functions with success\n", good_functions(), functions_count);
    CHECK(good_functions() > functions_count / 2);
}

int main(int count, char **words) {
    seed = count > 1 ? strtoull(words[1], NULL, 10) : (uint64_t)now_ms();
    if (count > 2) seconds = strtoll(words[2], NULL, 10);
    return run_tests("standalone max-session=60000", 0, words);
}
