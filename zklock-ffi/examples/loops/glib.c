/* cc glib.c $(pkg-config --cflags --libs zklock glib-2.0) */
#include <glib-unix.h>
#include <stdio.h>
#include <zklock.h>

enum { WAIT_MS = 30000, WORK_MS = 100 };

static zklock_client *client;
static zklock_call *acquiring;
static zklock_hold *hold; /* NULL unless the lock is held */
static int status;
static GMainLoop *loop;
static guint work; /* a timer */

static void leave(const char *problem) {
    if (problem) fprintf(stderr, "%s\n", problem), status = 1;
    g_main_loop_quit(loop);
}

static gboolean end_work(gpointer data) {
    zklock_call *call;
    (void)data;
    if (zklock_release_start(hold, &call) != ZKLOCK_OK) leave(zklock_last_error());
    zklock_hold_free(hold); /* the release goes on without it */
    hold = NULL;
    return G_SOURCE_REMOVE;
}

static void on_event(const zklock_event *event) {
    zklock_status result;
    if (event->kind == ZKLOCK_EVENT_CALL && event->call == acquiring) {
        result = zklock_call_hold(acquiring, &hold);
        zklock_call_free(acquiring);
        if (result != ZKLOCK_OK) { leave(zklock_last_error()); return; }
        puts("held");
        work = g_timeout_add(WORK_MS, end_work, NULL);
    } else if (event->kind == ZKLOCK_EVENT_LOST) {
        g_source_remove(work);
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

static gboolean on_readable(gint descriptor, GIOCondition condition, gpointer data) {
    zklock_event event;
    (void)descriptor, (void)condition, (void)data;
    while (zklock_client_next_event(client, &event) == ZKLOCK_OK) on_event(&event);
    return G_SOURCE_CONTINUE;
}

int main(void) {
    zklock_lock *lock;
    int descriptor;
    guint readable;

    if (zklock_client_new_lazy("127.0.0.1:2181", NULL, &client) != ZKLOCK_OK ||
        zklock_client_fd(client, &descriptor) != ZKLOCK_OK ||
        zklock_mutex_new(client, "/locks/report", NULL, &lock) != ZKLOCK_OK ||
        zklock_acquire_start(lock, WAIT_MS, &acquiring) != ZKLOCK_OK) {
        fprintf(stderr, "%s\n", zklock_last_error());
        return 1;
    }
    zklock_lock_free(lock);
    loop = g_main_loop_new(NULL, FALSE);
    readable = g_unix_fd_add(descriptor, G_IO_IN, on_readable, NULL);
    g_main_loop_run(loop);
    g_source_remove(readable);
    g_main_loop_unref(loop);
    zklock_client_close(client);
    zklock_client_free(client);
    return status;
}
