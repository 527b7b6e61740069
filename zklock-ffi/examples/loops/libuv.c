/* cc libuv.c $(pkg-config --cflags --libs zklock libuv) */
#include <stdio.h>
#include <uv.h>
#include <zklock.h>

enum { WAIT_MS = 30000, WORK_MS = 100 };

static zklock_client *client;
static zklock_call *acquiring;
static zklock_hold *hold; /* NULL unless the lock is held */
static int status;
static uv_poll_t readable;
static uv_timer_t work;

static void leave(const char *problem) {
    if (problem) fprintf(stderr, "%s\n", problem), status = 1;
    uv_stop(uv_default_loop());
}

static void end_work(uv_timer_t *it) {
    zklock_call *call;
    (void)it;
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
        uv_timer_start(&work, end_work, WORK_MS, 0);
    } else if (event->kind == ZKLOCK_EVENT_LOST) {
        uv_timer_stop(&work);
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

static void on_readable(uv_poll_t *it, int error, int events) {
    zklock_event event;
    (void)it, (void)events;
    if (error) leave(uv_strerror(error));
    while (zklock_client_next_event(client, &event) == ZKLOCK_OK) on_event(&event);
}

int main(void) {
    uv_loop_t *loop = uv_default_loop();
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
    uv_timer_init(loop, &work);
    if (uv_poll_init(loop, &readable, descriptor)) return 1;
    uv_poll_start(&readable, UV_READABLE, on_readable);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&readable, NULL);
    uv_close((uv_handle_t *)&work, NULL);
    uv_run(loop, UV_RUN_DEFAULT); /* until both are closed */
    zklock_client_close(client);
    zklock_client_free(client);
    return status;
}
