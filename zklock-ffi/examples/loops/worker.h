/* What the programs for each loop share: a worker that works once under a lock. Its work is a timer. */
#include <stdio.h>
#include <zklock.h>

enum { WAIT_MS = 30000, WORK_MS = 100 };

/* These are of the loop. */
static int start_timer(void); /* it calls end_work after WORK_MS; 0, or what the loop says is wrong */
static void stop_timer(void);
static void stop_loop(void);

static zklock_client *client;
static zklock_call *acquiring;
static zklock_hold *hold; /* NULL unless the lock is held */
static int status;

static void leave(const char *problem) {
    if (problem) fprintf(stderr, "%s\n", problem), status = 1;
    stop_loop();
}

static void end_work(void) {
    zklock_call *call;
    if (zklock_release_start(hold, &call) != ZKLOCK_OK) leave(zklock_last_error());
    zklock_hold_free(hold); /* the release goes on without it */
    hold = NULL;
}

static void on_event(const zklock_event *event) {
    zklock_status result;
    if (event->kind == ZKLOCK_EVENT_CALL && event->call == acquiring) {
        result = zklock_call_hold(acquiring, &hold);
        zklock_call_free(acquiring);
        if (result != ZKLOCK_OK) { leave(zklock_last_error()); return; }
        puts("held");
        if (start_timer()) leave("no timer");
    } else if (event->kind == ZKLOCK_EVENT_LOST) {
        stop_timer();
        zklock_hold_free(hold);
        hold = NULL;
        leave("lost: the work has stopped, another may have the lock");
    } else if (event->kind == ZKLOCK_EVENT_CALL) { /* the release */
        result = zklock_call_finish(event->call, 0, NULL);
        zklock_call_free(event->call);
        leave(result == ZKLOCK_OK ? NULL : zklock_last_error());
    } else if (event->kind == ZKLOCK_EVENT_DISCONNECTED) {
        fprintf(stderr, "disconnected: the lock is held as long as its lease lasts\n");
    }
}

/* The client's descriptor is readable. */
static void take_events(void) {
    zklock_event event;
    while (zklock_client_next_event(client, &event) == ZKLOCK_OK) on_event(&event);
}

/* Starts to wait for the lock. Returns the client's descriptor, or -1. */
static int begin(void) {
    zklock_lock *lock = NULL;
    int descriptor = -1;
    if (zklock_client_new_lazy("127.0.0.1:2181", NULL, &client) != ZKLOCK_OK ||
        zklock_client_fd(client, &descriptor) != ZKLOCK_OK ||
        zklock_mutex_new(client, "/locks/report", NULL, &lock) != ZKLOCK_OK ||
        zklock_acquire_start(lock, WAIT_MS, &acquiring) != ZKLOCK_OK) {
        fprintf(stderr, "%s\n", zklock_last_error());
        descriptor = -1;
    }
    zklock_lock_free(lock);
    return descriptor;
}

/* Call it when the loop no longer has the descriptor. Returns the status of the program. */
static int end(void) {
    zklock_client_close(client);
    zklock_client_free(client);
    return status;
}
