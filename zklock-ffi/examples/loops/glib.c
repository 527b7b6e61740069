/* cc glib.c $(pkg-config --cflags --libs zklock glib-2.0) */
#include <glib-unix.h>

#include "worker.h"

static GMainLoop *loop;
static guint work; /* a timer */

static void stop_loop(void) { g_main_loop_quit(loop); }
static void stop_timer(void) { g_source_remove(work); }

static gboolean on_time(gpointer data) {
    (void)data;
    end_work();
    return G_SOURCE_REMOVE;
}

static int start_timer(void) {
    work = g_timeout_add(WORK_MS, on_time, NULL);
    return 0;
}

static gboolean on_readable(gint descriptor, GIOCondition condition, gpointer data) {
    (void)descriptor, (void)condition, (void)data;
    take_events();
    return G_SOURCE_CONTINUE;
}

int main(void) {
    int descriptor = begin();
    guint readable;

    if (descriptor < 0) return 1;
    loop = g_main_loop_new(NULL, FALSE);
    readable = g_unix_fd_add(descriptor, G_IO_IN, on_readable, NULL);
    g_main_loop_run(loop);
    g_source_remove(readable);
    g_main_loop_unref(loop);
    return end();
}
