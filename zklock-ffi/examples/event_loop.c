/*
 * Many locks in one thread: event_loop [HOSTS]
 *
 * A single epoll loop waits for a hundred locks at once and watches the holds. It also takes twenty turns at one lock that
 * all these turns want. It has one descriptor, that of the client, which could be one of many. No call in the loop blocks:
 * an acquire is started, and a hold that is freed is released in the background.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <zklock.h>

enum { LOCKS = 100, TURNS = 20, TIMEOUT_MS = 30000 };

/* One acquire. It has a call as long as it waits, and then a hold. */
struct job {
    int has_lock_of_its_own;
    zklock_call *waiting;
    zklock_hold *hold;
};

static struct job jobs[LOCKS + TURNS];
static int held, turns;

static int complain(const char *what) {
    fprintf(stderr, "%s: %s\n", what, zklock_last_error());
    return -1;
}

/* Starts to wait. The zklock_lock is not needed any longer than that. */
static int begin(zklock_client *client, const char *path, struct job *job) {
    zklock_lock *lock = NULL;
    zklock_status status;

    if (zklock_mutex_new(client, path, NULL, &lock) != ZKLOCK_OK) return complain(path);
    status = zklock_acquire_start(lock, TIMEOUT_MS, &job->waiting);
    zklock_lock_free(lock);
    /* Events of the call, and of the hold that it gives, have the job as their context. */
    if (status != ZKLOCK_OK || zklock_call_set_context(job->waiting, job) != ZKLOCK_OK) return complain(path);
    return 0;
}

/* The call has its result. */
static int granted(struct job *job) {
    zklock_status status = zklock_call_hold(job->waiting, &job->hold);
    zklock_call_free(job->waiting);
    job->waiting = NULL;
    if (status != ZKLOCK_OK) return complain("not acquired");

    if (!job->has_lock_of_its_own) {
        /* The work of a turn would go here. Freeing the hold lets the next one have its turn. */
        turns++;
        zklock_hold_free(job->hold);
        job->hold = NULL;
        return 0;
    }
    held++;
    return 0;
}

/* The hold is lost: stop the work that it guarded. */
static int lost(const struct job *job) {
    fprintf(stderr, "lost: %s\n", zklock_hold_path(job->hold));
    return -1;
}

/* The client's descriptor is readable, as long as there are events. */
static int take_events(zklock_client *client) {
    zklock_event event;
    zklock_status status;

    while ((status = zklock_client_next_event(client, &event)) == ZKLOCK_OK) {
        switch (event.kind) {
        case ZKLOCK_EVENT_CALL:
            if (granted(event.context)) return -1;
            break;
        case ZKLOCK_EVENT_LOST:
            if (lost(event.context)) return -1;
            break;
        default:
            /* About the connection. The holds have their own events about the consequences. */
            break;
        }
    }
    return status == ZKLOCK_PENDING ? 0 : complain("no events");
}

static int run(zklock_client *client, int loop) {
    struct epoll_event event;

    /* The loop ends, because every wait has a timeout. */
    while (held < LOCKS || turns < TURNS) {
        int count = epoll_wait(loop, &event, 1, -1);
        if (count < 0 && errno != EINTR) {
            perror("epoll_wait");
            return -1;
        }
        if (count == 1 && take_events(client)) return -1;
    }
    printf("%d locks held at once, %d turns of one lock\n", held, turns);
    return 0;
}

/* Adds the client's descriptor to the loop. The client queues events from here on. */
static int watch(zklock_client *client, int loop) {
    struct epoll_event event;
    int descriptor;

    if (zklock_client_fd(client, &descriptor) != ZKLOCK_OK) return complain("no descriptor");
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    if (epoll_ctl(loop, EPOLL_CTL_ADD, descriptor, &event)) {
        perror("epoll_ctl");
        return -1;
    }
    return 0;
}

int main(int count, char **words) {
    zklock_client *client = NULL;
    int at, result, loop;

    if ((loop = epoll_create1(EPOLL_CLOEXEC)) < 0) {
        perror("epoll_create1");
        return 1;
    }
    /* This waits for a session, so do it before the loop. */
    if (zklock_client_new(count > 1 ? words[1] : "127.0.0.1:2181", NULL, &client) != ZKLOCK_OK) {
        complain("no connection");
        return 1;
    }
    result = watch(client, loop);
    for (at = 0; at < LOCKS + TURNS && result == 0; at++) {
        char path[64] = "/locks/turns";
        jobs[at].has_lock_of_its_own = at < LOCKS;
        if (at < LOCKS) snprintf(path, sizeof path, "/locks/own-%d", at);
        result = begin(client, path, &jobs[at]);
    }
    if (result == 0) result = run(client, loop);

    /* Close the loop first, which removes the descriptor from it. */
    close(loop);
    /* This frees every lock that is still held, and waits until the servers have confirmed it. */
    zklock_client_close(client);
    for (at = 0; at < LOCKS + TURNS; at++) {
        zklock_call_free(jobs[at].waiting);
        zklock_hold_free(jobs[at].hold);
    }
    zklock_client_free(client);
    return result ? 1 : 0;
}
