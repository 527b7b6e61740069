/* Replaces the parts of the kernel that would bring in chance. It is preloaded into a program that plays the seed of `--one SEED`.
 *
 * Time only passes while the process waits, and then by as much as it would wait. Random bytes from the kernel come from the seed.
 * Sockets, epolls and eventfds are in the memory of the process: see the other files here. */
#define _GNU_SOURCE
#include "kernel.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* How many seconds of processor time a seed may take, though it needs a hundredth of a second. Then SIGPROF ends it. If a seed only
 * waits, SIGALRM ends it, after a time that is long enough even on a busy machine, where each switch between threads may take long. */
enum { PROCESSOR_TIME = 20, PATIENCE = 600, SECOND = 1000000000 };

static int64_t now = (int64_t)1000 * SECOND;
static uint64_t state;

__attribute__((constructor)) static void begin(int count, char **words) {
    /* Some code hashes addresses, so they must be the same in each run. Containers may not allow that. */
    const int old = personality(0xffffffff);
    if (old >= 0 && (old & ADDR_NO_RANDOMIZE) == 0) {
        if (personality((unsigned long)old | ADDR_NO_RANDOMIZE) >= 0) {
            execv("/proc/self/exe", words);
        }
        setenv("SIMULATION_ADDRESSES", "random", 1);
    }
    /* The name must take the same memory, however the program was called. */
    static char name[] = "simulation";
    words[0] = name;
    state = count > 2 ? strtoull(words[2], NULL, 10) : 0;
    const struct itimerval processor_time = {.it_value.tv_sec = PROCESSOR_TIME};
    (void)setitimer(ITIMER_PROF, &processor_time, NULL);
    alarm(PATIENCE);
}

long ask(long number, long a, long b, long c, long d, long e, long f) {
    static long (*next)(long, ...);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    return next(number, a, b, c, d, e, f);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    /* No two readings are the same. */
    now += 1;
    const int64_t since = clock == CLOCK_REALTIME ? (int64_t)1700000000 * SECOND : 0;
    time->tv_sec = (since + now) / SECOND;
    time->tv_nsec = (since + now) % SECOND;
    return 0;
}

ssize_t getrandom(void *into, size_t length, unsigned flags) {
    (void)flags;
    for (size_t at = 0; at < length; at++) {
        /* SplitMix64. Only its highest byte is used. */
        uint64_t mixed = state += 0x9e3779b97f4a7c15;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
        ((unsigned char *)into)[at] = (unsigned char)((mixed ^ (mixed >> 31)) >> 56);
    }
    return (ssize_t)length;
}

/* Some code asks for random bytes in this way. */
long syscall(long number, ...) {
    va_list rest;
    va_start(rest, number);
    long word[6];
    for (int at = 0; at < 6; at++) {
        word[at] = va_arg(rest, long);
    }
    va_end(rest);
    if (number == SYS_getrandom) {
        return getrandom((void *)word[0], (size_t)word[1], (unsigned)word[2]);
    }
    return ask(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    (void)clock, (void)left;
    if (flags != 0) {
        give_up("a sleep until a time is not simulated");
    }
    wait_for(time->tv_sec * SECOND + time->tv_nsec);
    return 0;
}

void wait_for(int64_t nanoseconds) {
    now += nanoseconds;
}

void give_up(const char *why) {
    for (const char *part, *const *next = (const char *const[]){"VIOLATION: ", why, "\n", NULL}; (part = *next); next++) {
        (void)ask(SYS_write, STDOUT_FILENO, (long)part, (long)strlen(part), 0, 0, 0);
    }
    _exit(1);
}

/* The order in which threads run is chance, and the sockets here are not made for threads. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *with) {
    (void)thread, (void)attributes, (void)run, (void)with;
    give_up("a thread is started");
}
