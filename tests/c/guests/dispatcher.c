/* Promise 8: one thread of the host acquires for others, which release. So it waits for locks that it acquired itself. */

#define _GNU_SOURCE
#include "guest.h"

#include <sched.h>

enum { JOBS = 200, WORKERS = 4 };

static zklock_lock *lock;
static int inside, done;

/* The holds of jobs, for the workers. NULL ends one. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    zklock_hold *holds[JOBS + WORKERS];
    int first, last;
} jobs = {.mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static void hand_over(zklock_hold *hold) {
    pthread_mutex_lock(&jobs.mutex);
    jobs.holds[jobs.last++] = hold;
    pthread_cond_signal(&jobs.filled);
    pthread_mutex_unlock(&jobs.mutex);
}

static zklock_hold *next_job(void) {
    pthread_mutex_lock(&jobs.mutex);
    while (jobs.first == jobs.last) pthread_cond_wait(&jobs.filled, &jobs.mutex);
    zklock_hold *hold = jobs.holds[jobs.first++];
    pthread_mutex_unlock(&jobs.mutex);
    return hold;
}

static void *works(void *given) {
    (void)given;
    for (zklock_hold *hold; (hold = next_job()) != NULL;) {
        CHECK(__atomic_fetch_add(&inside, 1, __ATOMIC_ACQ_REL) == 0);
        becomes_valid(hold);
        sched_yield();
        __atomic_fetch_sub(&inside, 1, __ATOMIC_ACQ_REL);
        __atomic_fetch_add(&done, 1, __ATOMIC_ACQ_REL);
        give_back(hold);
    }
    return NULL;
}

/* Counts the warnings that somebody waits for a lock that it holds itself, at this path. */
typedef struct {
    const char *path;
    int lines;
} told;

static void tells(int32_t level, const char *line, void *context) {
    told *told = context;
    if (!strstr(line, told->path) || !strstr(line, "waits for it again")) return;
    CHECK(level == ZKLOCK_LOG_WARN && strstr(line, "release it first"));
    __atomic_add_fetch(&told->lines, 1, __ATOMIC_ACQ_REL);
}

static int lines(told *told) { return __atomic_load_n(&told->lines, __ATOMIC_ACQUIRE); }

TEST(a_dispatcher_hands_each_hold_to_a_worker) {
    zklock_client *client = new_client();
    told told = {fresh_path(), 0};
    pthread_t workers[WORKERS];
    OK(zklock_set_log(ZKLOCK_LOG_WARN, tells, &told));
    lock = new_mutex(client, told.path, 0);
    for (int at = 0; at < WORKERS; at++) workers[at] = start_thread(works, NULL);
    for (int job = 0; job < JOBS; job++) hand_over(acquire(lock, ZKLOCK_FOREVER));
    for (int at = 0; at < WORKERS; at++) hand_over(NULL);
    for (int at = 0; at < WORKERS; at++) join_thread(workers[at]);
    CHECK(done == JOBS && stats_of(client).grants == JOBS);
    wait_for_contenders(told.path, 0);
    /* After another thread has released the first hold, there is no more reason to warn. */
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    CHECK(lines(&told) <= 1);
    free_all(NULL, lock, client);
}

static void *waits(void *given) {
    zklock_hold *none;
    (void)given;
    return (void *)(intptr_t)zklock_acquire(lock, 100, &none);
}

TEST(a_thread_that_waits_for_itself_is_told_of_and_comes_back_in_time) {
    zklock_client *client = new_client();
    told told = {fresh_path(), 0};
    OK(zklock_set_log(ZKLOCK_LOG_WARN, tells, &told));
    lock = new_mutex(client, told.path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *none;
    /* There is no warning about another waiter, or a client that only tries. */
    IS(join_status(start_thread(waits, NULL)), ZKLOCK_TIMEOUT);
    IS(zklock_acquire(lock, 0, &none), ZKLOCK_TIMEOUT);
    IS(zklock_acquire(lock, 100, &none), ZKLOCK_TIMEOUT);
    SAYS("this thread or task holds it itself");
    EVENTUALLY(lines(&told) == 1);
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    CHECK(lines(&told) == 1);
    give_back(hold);
    free_all(NULL, lock, client);
}

TEST_MAIN("standalone max-session=4000")
