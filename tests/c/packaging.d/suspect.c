/* Under ThreadSanitizer and valgrind: threads that take turns under one lock, and write the data that it guards. With a second
 * word they also write what nothing guards; with a third, the program loses memory. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <zklock.h>

#define THREADS 4
#define TURNS 25

static zklock_lock *lock;
static int is_told, turns, unguarded;
static void *volatile lost_at_once;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static void fail(void) {
    fprintf(stderr, "%s\n", zklock_last_error());
    exit(1);
}

static void lost(zklock_hold *hold, zklock_reason reason, void *context) {
    (void)hold, (void)reason, (void)context;
    pthread_mutex_lock(&guard);
    is_told++;
    pthread_mutex_unlock(&guard);
}

static void *take_turns(void *races) {
    for (int turn = 0; turn < TURNS; turn++) {
        zklock_hold *hold;
        if (zklock_acquire(lock, 60000, &hold) || zklock_hold_on_lost(hold, lost, NULL)) fail();
        pthread_mutex_lock(&guard);
        turns++;
        pthread_mutex_unlock(&guard);
        if (zklock_release(hold)) fail();
        zklock_hold_free(hold);
        if (races) unguarded++;
    }
    return NULL;
}

static void log_line(int32_t level, const char *message, void *context) {
    (void)level, (void)message, (void)context;
}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    zklock_client *client;
    if (count < 2 || zklock_set_log(ZKLOCK_LOG_DEBUG, log_line, NULL) || zklock_client_new(words[1], NULL, &client) ||
        zklock_mutex_new(client, "/locks/suspect", NULL, &lock)) {
        fail();
    }
    for (int at = 0; at < THREADS; at++) pthread_create(&threads[at], NULL, take_turns, count > 2 && *words[2] ? client : NULL);
    for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    if (count > 3) lost_at_once = malloc(7), lost_at_once = NULL;
    zklock_lock_free(lock);
    zklock_client_close(client);
    zklock_client_free(client);
    puts(turns == THREADS * TURNS ? "done" : "turns are missing");
    return 0;
}
