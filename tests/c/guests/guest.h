/*
 * Helpers for the tests of a library as a guest in its process: the threads of this process as the system sees them, and
 * programs that end in some way.
 */

#ifndef ZKLOCK_GUEST_H
#define ZKLOCK_GUEST_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* How long a program may take to end, whatever it is doing. */
#define ENDS_MS 30000

/* The time limit for a call that is refused at once. */
#define AT_ONCE_MS 50

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A thread of this process, and its signal masks. */
typedef struct {
    int id;
    char name[32];
    uint64_t pending, blocked;
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
        if (sscanf(line, "SigPnd: %llx", &mask) == 1) found->pending = mask;
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

static inline int queue_of(const zklock_lock *lock) {
    int count = 0;
    OK(zklock_contenders(lock, count_contender, &count));
    return count;
}

/* Locks with a client of its own. */
static inline void lock_once(const char *hosts, const char *path) {
    zklock_client *client = connect_to(hosts);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    OK(zklock_hold_confirm(hold, NULL));
    give_back(hold);
    free_all(NULL, lock, client);
}

static inline pthread_t host_thread(void *(*run)(void *), void *given) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, run, given));
    pthread_setname_np(thread, "host");
    return thread;
}

/* Waits until the thread ends, for SOON_MS at most. */
static inline void *thread_end(pthread_t thread) {
    struct timespec until;
    void *result;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SOON_MS / 1000;
    CHECK(!pthread_timedjoin_np(thread, &result, &until));
    return result;
}

/* Waits until a child ends. Returns its wait status. */
static inline int reaped(pid_t child, int64_t bound) {
    int64_t until = now_ms() + bound;
    int status;
    while (!waitpid(child, &status, WNOHANG)) {
        if (now_ms() > until) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            failed(__FILE__, __LINE__, "the child hangs");
        }
        sleep_ms(1);
    }
    return status;
}

/* A started program: this one, with the arguments "child", a mode, and the arguments of the mode. */
typedef struct {
    pid_t id;
    int64_t begun;
    int in, out, err;
    char said[4096], complained[4096];
} program;

static inline program start_program(const char *mode, const char *first, const char *second) {
    int in[2], out[2], err[2];
    program started = {.begun = now_ms()};
    CHECK(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC) && !pipe2(err, O_CLOEXEC));
    started.id = fork();
    CHECK(started.id >= 0);
    if (!started.id) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        execl("/proc/self/exe", "guest", "child", mode, first, second, (char *)NULL);
        _exit(127);
    }
    close(in[0]), close(out[1]), close(err[1]);
    started.in = in[1], started.out = out[0], started.err = err[0];
    return started;
}

/* Adds the available output to the text. Never waits. */
static inline void drain(int from, char *text, size_t size) {
    while (readable(from, 0)) {
        size_t length = strlen(text);
        ssize_t more = read(from, text + length, size - 1 - length);
        if (more <= 0) return;
        text[length + (size_t)more] = 0;
    }
}

/* Waits until the program has printed this word. */
static inline void hear(program *from, const char *word) {
    int64_t until = now_ms() + 2 * SOON_MS;
    while (!strstr(from->said, word)) {
        struct pollfd more = {.fd = from->out, .events = POLLIN};
        drain(from->err, from->complained, sizeof from->complained);
        if (now_ms() > until || poll(&more, 1, 100) < 0 || (more.revents && !(more.revents & POLLIN))) {
            failed(__FILE__, __LINE__, "never said: %s, but: %s%s", word, from->said, from->complained);
        }
        drain(from->out, from->said, sizeof from->said);
    }
}

/* Lets the program go on from go_ahead(). */
static inline void let(program *go) { CHECK(write(go->in, "\n", 1) == 1); }

/* In the program: prints a word, and waits until the test lets it go on. */
static inline void go_ahead(const char *word) {
    char byte;
    printf("%s\n", word);
    fflush(stdout);
    CHECK(read(STDIN_FILENO, &byte, 1) == 1);
}

/* Waits until the program ends, which must happen in time and without output on stderr. Returns its wait status. */
static inline int ended(program *of, int64_t bound) {
    int64_t until = now_ms() + bound;
    int status;
    while (!waitpid(of->id, &status, WNOHANG)) {
        drain(of->out, of->said, sizeof of->said);
        drain(of->err, of->complained, sizeof of->complained);
        if (now_ms() > until) {
            kill(of->id, SIGKILL);
            waitpid(of->id, &status, 0);
            failed(__FILE__, __LINE__, "it did not end; it said: %s%s", of->said, of->complained);
        }
        sleep_ms(1);
    }
    drain(of->out, of->said, sizeof of->said);
    drain(of->err, of->complained, sizeof of->complained);
    close(of->in), close(of->out), close(of->err);
    if (*of->complained) {
        failed(__FILE__, __LINE__, "it ended with %#x, and said: %s", (unsigned)status, of->complained);
    }
    return status;
}

/* The same, but checks the wait status. */
static inline void expect_end(program *of, int64_t bound, int wanted) {
    int status = ended(of, bound);
    if (status != wanted) {
        failed(__FILE__, __LINE__, "it ended with %#x, not %#x, and said: %s", (unsigned)status, (unsigned)wanted,
               of->said);
    }
}

/* The wait statuses of exit and of death by a signal. */
#define EXITED(code) ((code) << 8)
#define KILLED(signal) (signal)

/* Runs a mode that needs no help. Its output is valid until the next run. */
static inline const char *run_program(const char *mode, const char *first, const char *second, int wanted) {
    static program last;
    last = start_program(mode, first, second);
    expect_end(&last, ENDS_MS + SOON_MS, wanted);
    return last.said;
}

typedef struct {
    const char *name;
    int (*run)(char **words);
} mode;

static mode modes[32] __attribute__((unused));
static size_t modes_count __attribute__((unused));

/* A mode of the program, with the arguments `words`. */
#define MODE(of)                                                                                        \
    static int of##_mode(char **words);                                                                 \
    __attribute__((constructor)) static void list_##of##_mode(void) {                                   \
        modes[modes_count++] = (mode){#of, of##_mode};                                                  \
    }                                                                                                   \
    static int of##_mode(char **words)

/* The tests of a program that is also one of its modes, if it is asked to. */
#define TEST_OR_CHILD_MAIN(start)                                                                   \
    int main(int count, char **words) {                                                             \
        for (size_t at = 0; count > 2 && !strcmp(words[1], "child") && at < modes_count; at++) {    \
            if (!strcmp(words[2], modes[at].name)) return alarm(60), modes[at].run(words + 3);      \
        }                                                                                           \
        return run_tests(start, count, words);                                                      \
    }

#endif
