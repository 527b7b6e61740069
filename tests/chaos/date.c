/* A wrong date, for a worker or a server that is started with this in LD_PRELOAD: by CHAOS_DATE seconds, or by those in the file of
 * that name, if there is one. The monotonic clock, by which claims are compared, stays right. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long wrong(void) {
    const char *date = getenv("CHAOS_DATE");
    char seconds[32] = "";
    int from;
    if (!date || *date != '/') return date ? atol(date) : 0;
    from = open(date, O_RDONLY | O_CLOEXEC);
    if (from < 0) return 0;
    if (read(from, seconds, sizeof seconds - 1) < 0) seconds[0] = 0;
    close(from);
    return atol(seconds);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*next)(clockid_t, struct timespec *);
    int status;
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    status = next(clock, time);
    if (status == 0 && clock == CLOCK_REALTIME) time->tv_sec += wrong();
    return status;
}
