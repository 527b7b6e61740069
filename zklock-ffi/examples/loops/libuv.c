/* cc libuv.c $(pkg-config --cflags --libs zklock libuv) */
#include <uv.h>

#include "worker.h"

static uv_poll_t readable;
static uv_timer_t work;

static void on_time(uv_timer_t *it) {
    (void)it;
    end_work();
}

static int start_timer(void) { return uv_timer_start(&work, on_time, WORK_MS, 0); }
static void stop_timer(void) { uv_timer_stop(&work); }
static void stop_loop(void) { uv_stop(uv_default_loop()); }

static void on_readable(uv_poll_t *it, int error, int events) {
    (void)it, (void)events;
    if (error) leave(uv_strerror(error));
    take_events();
}

int main(void) {
    uv_loop_t *loop = uv_default_loop();
    int descriptor = begin();

    if (descriptor < 0) return 1;
    uv_timer_init(loop, &work);
    if (uv_poll_init(loop, &readable, descriptor)) return 1;
    uv_poll_start(&readable, UV_READABLE, on_readable);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&readable, NULL);
    uv_close((uv_handle_t *)&work, NULL);
    uv_run(loop, UV_RUN_DEFAULT); /* until both are closed */
    return end();
}
