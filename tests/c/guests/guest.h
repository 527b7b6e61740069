/* Helpers for the tests of a library as a guest in its process: its threads, as the system sees them, and programs. */

#ifndef ZKLOCK_GUEST_H
#define ZKLOCK_GUEST_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "program.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A thread of this process, and the signals that it blocks. */
typedef struct {
    int id;
    char name[32];
    uint64_t blocked;
} task;

static inline uint64_t bit(int signal) { return UINT64_C(1) << (signal - 1); }

/* 0 if the thread has ended meanwhile. For a moment it is still listed then. Linux says that it blocks no signal, and that the process
   has no threads. */
static inline int look_at(int id, task *found) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/status", id);
    FILE *status = fopen(path, "re");
    int seen = 0, threads = 0;
    if (!status) return 0;
    *found = (task){.id = id};
    while (fgets(line, sizeof line, status)) {
        unsigned long long mask;
        sscanf(line, "Name: %31[^\n]", found->name);
        sscanf(line, "Threads: %d", &threads);
        if (sscanf(line, "SigBlk: %llx", &mask) == 1) found->blocked = mask, seen = 1;
    }
    fclose(status);
    return seen && threads;
}

/* All threads. */
static inline size_t tasks(task *found, size_t most) {
    DIR *folder = opendir("/proc/self/task");
    size_t count = 0;
    CHECK(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        CHECK(count < most);
        if (atoi(entry->d_name) > 0) count += look_at(atoi(entry->d_name), &found[count]) != 0;
    }
    closedir(folder);
    return count;
}

/* The thread of this name, which must exist. */
static inline task the_task(const char *name) {
    task found[512];
    size_t count = tasks(found, COUNT(found));
    for (size_t at = 0; at < count; at++) {
        if (!strcmp(found[at].name, name)) return found[at];
    }
    failed(__FILE__, __LINE__, "there is no thread %s", name);
}

/* The number of the library's threads. The names of the host's threads in these tests begin with the host's name. */
static inline size_t our_tasks(void) {
    task found[512];
    size_t count = tasks(found, COUNT(found)), ours = 0;
    for (size_t at = 0; at < count; at++) ours += strncmp(found[at].name, "host", 4) && found[at].id != getpid();
    return ours;
}

static inline size_t descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;
    CHECK(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* Callbacks: lines of the log are counted if there is a number, and the reason of a loss is noted. */
static inline void count_line(int32_t level, const char *line, void *number) {
    (void)level, (void)line;
    if (number) __atomic_add_fetch((int *)number, 1, __ATOMIC_ACQ_REL);
}
static inline void note_loss(zklock_hold *hold, zklock_reason reason, void *noted) {
    (void)hold;
    __atomic_store_n((int *)noted, (int)reason, __ATOMIC_RELEASE);
}
static inline void count_contender(const zklock_contender *contender, void *number) {
    (void)contender;
    ++*(int *)number;
}

static inline int queue_of(zklock_lock *lock) {
    int count = 0;
    OK(zklock_contenders(lock, count_contender, &count));
    return count;
}

/* Locks with a client of its own. */
static inline void lock_once(const char *hosts, const char *path) {
    zklock_client *client = connect_to(hosts);
    zklock_hold *hold = acquire(new_mutex(client, path, 0), SOON_MS);
    OK(zklock_hold_confirm(hold, NULL));
    give_back(hold);
    zklock_client_free(client);
}

#endif
