/* A date that is wrong by CHAOS_DATE seconds, for a worker that is started with this in LD_PRELOAD. The monotonic clock, by which
 * claims are compared, stays right. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*next)(clockid_t, struct timespec *);
    const char *wrong = getenv("CHAOS_DATE");
    int status;
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    status = next(clock, time);
    if (status == 0 && clock == CLOCK_REALTIME && wrong) time->tv_sec += atol(wrong);
    return status;
}
