/* cc sd_event.c $(pkg-config --cflags --libs zklock libsystemd) */
#include <systemd/sd-event.h>

#include "worker.h"

static sd_event *loop;
static sd_event_source *readable, *work;

static int on_time(sd_event_source *it, uint64_t time, void *data) {
    (void)it, (void)time, (void)data;
    end_work();
    return 0;
}

static int start_timer(void) {
    return sd_event_add_time_relative(loop, &work, CLOCK_MONOTONIC, WORK_MS * 1000ULL, 0, on_time, NULL) < 0;
}
static void stop_timer(void) { sd_event_source_set_enabled(work, SD_EVENT_OFF); }
static void stop_loop(void) { sd_event_exit(loop, status); }

static int on_readable(sd_event_source *it, int descriptor, uint32_t events, void *data) {
    (void)it, (void)descriptor, (void)events, (void)data;
    take_events();
    return 0;
}

int main(void) {
    int descriptor = begin();

    if (descriptor < 0 || sd_event_default(&loop) < 0 ||
        sd_event_add_io(loop, &readable, descriptor, EPOLLIN, on_readable, NULL) < 0) return 1;
    sd_event_loop(loop);
    sd_event_source_unref(work);
    sd_event_source_unref(readable);
    sd_event_unref(loop);
    return end();
}
