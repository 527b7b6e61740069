/* A slow or full disk, for a server that is started with this in LD_PRELOAD. The file that CHAOS_DISK names says whether its writes
 * to files wait or fail: "slow 50" (milliseconds for each write), "full", or nothing. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Waits as long as ordered, and returns whether the write may go on. */
static int may_write(int to) {
    const char *orders = getenv("CHAOS_DISK");
    struct stat file;
    struct timespec time;
    char order[16] = "";
    long milliseconds;
    FILE *read;
    /* Only regular files are on the disk, not connections and pipes. */
    if (!orders || fstat(to, &file) != 0 || !S_ISREG(file.st_mode)) return 1;
    read = fopen(orders, "re");
    if (!read) return 1;
    if (!fgets(order, sizeof order, read)) order[0] = 0;
    fclose(read);
    if (strncmp(order, "full", 4) == 0) {
        errno = ENOSPC;
        return 0;
    }
    if (sscanf(order, "slow %ld", &milliseconds) == 1) {
        time.tv_sec = milliseconds / 1000;
        time.tv_nsec = milliseconds % 1000 * 1000000;
        nanosleep(&time, NULL);
    }
    return 1;
}

ssize_t write(int to, const void *bytes, size_t count) {
    static ssize_t (*next)(int, const void *, size_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "write");
    return may_write(to) ? next(to, bytes, count) : -1;
}

ssize_t pwrite64(int to, const void *bytes, size_t count, off64_t at) {
    static ssize_t (*next)(int, const void *, size_t, off64_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "pwrite64");
    return may_write(to) ? next(to, bytes, count, at) : -1;
}
