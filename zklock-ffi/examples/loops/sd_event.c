/* cc sd_event.c $(pkg-config --cflags --libs zklock libsystemd) */
#include <stdio.h>
#include <systemd/sd-event.h>
#include <zklock.h>

enum { WAIT_MS = 30000, WORK_MS = 100 };

static zklock_client *client;
static zklock_call *acquiring;
static zklock_hold *hold; /* NULL unless the lock is held */
static int status;
static sd_event *loop;
static sd_event_source *readable, *work;

static void leave(const char *problem) {
    if (problem) fprintf(stderr, "%s\n", problem), status = 1;
    sd_event_exit(loop, status);
}

static int end_work(sd_event_source *it, uint64_t time, void *data) {
    zklock_call *call;
    (void)it, (void)time, (void)data;
    if (zklock_release_start(hold, &call) != ZKLOCK_OK) leave(zklock_last_error());
    zklock_hold_free(hold); /* the release goes on without it */
    hold = NULL;
    return 0;
}

static void on_event(const zklock_event *event) {
    zklock_status result;
    if (event->kind == ZKLOCK_EVENT_CALL && event->call == acquiring) {
        result = zklock_call_hold(acquiring, &hold);
        zklock_call_free(acquiring);
        if (result != ZKLOCK_OK) { leave(zklock_last_error()); return; }
        puts("held");
        if (sd_event_add_time_relative(loop, &work, CLOCK_MONOTONIC, WORK_MS * 1000ULL, 0, end_work, NULL) < 0) leave("no timer");
    } else if (event->kind == ZKLOCK_EVENT_LOST) {
        sd_event_source_set_enabled(work, SD_EVENT_OFF);
        zklock_hold_free(hold);
        hold = NULL;
        leave("lost: the work has stopped, another may have the lock");
    } else if (event->kind == ZKLOCK_EVENT_CALL) { /* the release */
        result = zklock_call_finish(event->call, NULL);
        zklock_call_free(event->call);
        leave(result == ZKLOCK_OK ? NULL : zklock_last_error());
    } else if (event->kind == ZKLOCK_EVENT_DISCONNECTED) {
        fprintf(stderr, "disconnected: the lock is held as long as its lease lasts\n");
    }
}

static int on_readable(sd_event_source *it, int descriptor, uint32_t events, void *data) {
    zklock_event event;
    (void)it, (void)descriptor, (void)events, (void)data;
    while (zklock_client_next_event(client, &event) == ZKLOCK_OK) on_event(&event);
    return 0;
}

int main(void) {
    zklock_lock *lock;
    int descriptor;

    if (zklock_client_new_lazy("127.0.0.1:2181", NULL, &client) != ZKLOCK_OK ||
        zklock_client_fd(client, &descriptor) != ZKLOCK_OK ||
        zklock_mutex_new(client, "/locks/report", NULL, &lock) != ZKLOCK_OK ||
        zklock_acquire_start(lock, WAIT_MS, &acquiring) != ZKLOCK_OK) {
        fprintf(stderr, "%s\n", zklock_last_error());
        return 1;
    }
    zklock_lock_free(lock);
    if (sd_event_default(&loop) < 0 ||
        sd_event_add_io(loop, &readable, descriptor, EPOLLIN, on_readable, NULL) < 0) return 1;
    sd_event_loop(loop);
    sd_event_source_unref(work);
    sd_event_source_unref(readable);
    sd_event_unref(loop);
    zklock_client_close(client);
    zklock_client_free(client);
    return status;
}
