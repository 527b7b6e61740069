/*
 * A traditional daemon that works under a lock: daemon [HOSTS [PIDFILE [LOGFILE]]]
 *
 * It forks twice, and only then connects, because a forked child cannot use its parent's connection. SIGTERM and SIGINT
 * end it at any time, even while it waits: it releases the lock and exits with 0. If it loses the lock, it stops working
 * at once, and waits for the lock again. The paths must be absolute.
 */

#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include <zklock.h>

#define WORK_MS 100 /* between two pieces of work */

/* A signal becomes a byte in this pipe, so that poll can wait for it together with the library's descriptors. */
static int stop_pipe[2];

static void on_signal(int number) {
    int saved = errno;
    /* A signal handler must not call zklock. */
    if (write(stop_pipe[1], "", 1) < 0) { /* it is full, so it already has a byte */
    }
    errno = saved;
    (void)number;
}

static void say(const char *what, const char *detail) {
    char at[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &utc);
    printf("%s [%ld] %s%s%s\n", at, (long)getpid(), what, *detail ? ": " : "", detail);
    fflush(stdout);
}

/* Waits for a signal or the descriptor: 's' for a signal to stop, 'd' if it is readable, 't' if the time is over. */
static char wait_for(int descriptor, int timeout) {
    struct pollfd wanted[2];
    int found;
    wanted[0].fd = stop_pipe[0];
    wanted[1].fd = descriptor;
    wanted[0].events = wanted[1].events = POLLIN;
    do {
        found = poll(wanted, 2, timeout);
    } while (found < 0 && errno == EINTR);
    if (found < 0 || wanted[0].revents) return 's';
    return found ? 'd' : 't';
}

/* Waits for the lock for as long as it takes. NULL after a signal to stop, or if acquiring failed. */
static zklock_hold *acquire(zklock_lock *lock, int *failed) {
    zklock_hold *hold = NULL;
    zklock_status status;
    do {
        zklock_call *waiting = NULL;
        int descriptor;
        status = zklock_acquire_start(lock, ZKLOCK_FOREVER, &waiting);
        if (status == ZKLOCK_OK) status = zklock_call_fd(waiting, &descriptor);
        if (status == ZKLOCK_OK && wait_for(descriptor, -1) == 'd') status = zklock_call_hold(waiting, &hold);
        if (status != ZKLOCK_OK) say("no lock", zklock_last_error());
        /* This also ends a wait that is still going on, and leaves nothing behind in the queue. */
        zklock_call_free(waiting);
    } while (status == ZKLOCK_LOST); /* granted, but already lost: try again */
    *failed = status != ZKLOCK_OK;
    return hold;
}

/* Takes the client's events, and returns whether one is a loss. */
static int is_lost(zklock_client *client) {
    zklock_event event;
    int lost = 0;
    while (zklock_client_next_event(client, &event) == ZKLOCK_OK) lost |= event.kind == ZKLOCK_EVENT_LOST;
    return lost;
}

/* Works as long as the lock is held. Returns whether to wait for it again. */
static int work(zklock_client *client, int events, zklock_hold *hold) {
    char woken, text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)zklock_hold_token(hold));
    say("holds the lock, token", text);
    do {
        /* A short piece of work. The resource that it writes to should refuse a token smaller than the last. */
        say("works, token", text);
        woken = wait_for(events, WORK_MS);
    } while (woken == 't' || (woken == 'd' && !is_lost(client)));
    if (zklock_release(hold) == ZKLOCK_OK) {
        say("released the lock", "");
    } else {
        say("stopped the work", zklock_last_error());
    }
    return woken == 'd';
}

static int serve(zklock_client *client) {
    zklock_lock *lock = NULL;
    zklock_hold *hold;
    int failed = 0, again = 1, events;
    /* From now on, the descriptor is readable when a hold is lost. */
    if (zklock_client_fd(client, &events) != ZKLOCK_OK || zklock_mutex_new(client, "/locks/daemon", NULL, &lock) != ZKLOCK_OK) {
        say("no lock", zklock_last_error());
        return 1;
    }
    while (again && (hold = acquire(lock, &failed)) != NULL) {
        again = work(client, events, hold);
        zklock_hold_free(hold);
    }
    zklock_lock_free(lock);
    return failed;
}

/* Locks the PID file, so that only one daemon has it. The file's lock ends with the process. -1 if another has it. */
static int claim_pid_file(const char *path) {
    struct flock whole;
    char text[32];
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    memset(&whole, 0, sizeof whole);
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (file < 0 || fcntl(file, F_SETLK, &whole) || ftruncate(file, 0) || write(file, text, (size_t)length) != length) {
        say("pid file", strerror(errno));
        return -1;
    }
    return file;
}

static int handle_signals(void) {
    struct sigaction action;
    int at;
    if (pipe(stop_pipe)) return -1;
    for (at = 0; at < 2; at++) {
        fcntl(stop_pipe[at], F_SETFD, FD_CLOEXEC);
        fcntl(stop_pipe[at], F_SETFL, O_NONBLOCK);
    }
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGTERM, &action, NULL) || sigaction(SIGINT, &action, NULL) ? -1 : 0;
}

/* Goes into the background. The original process waits for a byte in *ready, and fails if none comes. */
static int daemonize(const char *log, int *ready) {
    int pipes[2], file;
    char byte;
    pid_t child;
    if (pipe(pipes) || (child = fork()) < 0) return -1;
    if (child > 0) {
        close(pipes[1]);
        _exit(read(pipes[0], &byte, 1) == 1 ? 0 : 1);
    }
    close(pipes[0]);
    *ready = pipes[1];
    fcntl(*ready, F_SETFD, FD_CLOEXEC);
    /* A new session has no terminal, and a process that does not lead it cannot get one. */
    if (setsid() < 0 || (child = fork()) < 0) return -1;
    if (child > 0) _exit(0);
    umask(022);
    if ((file = open("/dev/null", O_RDONLY)) < 0 || dup2(file, STDIN_FILENO) < 0) return -1;
    close(file);
    if ((file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644)) < 0) return -1;
    if (dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0 || chdir("/")) return -1;
    close(file);
    return 0;
}

int main(int count, char **words) {
    const char *hosts = count > 1 ? words[1] : "127.0.0.1:2181";
    const char *pid_path = count > 2 ? words[2] : "/tmp/zklock-daemon.pid";
    zklock_client *client = NULL;
    int ready, pid_file, result;

    if (daemonize(count > 3 ? words[3] : "/dev/null", &ready) || handle_signals()) {
        perror("daemon");
        return 1;
    }
    if ((pid_file = claim_pid_file(pid_path)) < 0) return 1;
    if (zklock_client_new(hosts, NULL, &client) != ZKLOCK_OK) {
        say("no connection", zklock_last_error());
        unlink(pid_path);
        return 1;
    }
    if (write(ready, "", 1) != 1) say("nobody waits for us to be ready", "");
    close(ready);
    result = serve(client);
    /* Frees every lock that is still held, and waits for the servers' confirmation. */
    zklock_client_close(client);
    zklock_client_free(client);
    unlink(pid_path);
    close(pid_file);
    say("ends", result ? "after a failure" : "");
    return result;
}
