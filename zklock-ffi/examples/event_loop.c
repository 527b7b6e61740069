/*
 * Many locks in one thread: event_loop [HOSTS]
 *
 * A single epoll loop waits for a hundred locks at once and watches the holds. It also takes twenty turns at one lock that
 * all these turns want. It has one descriptor, that of the client, which could be one of many. No call in the loop blocks:
 * an acquire is started, and a hold that is freed is released in the background.
 */

#include <stdio.h>
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
static int held, turns, failed;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    failed = 1;
}

/* Starts to wait. The zklock_lock is not needed any longer than that. */
static void begin(zklock_client *client, const char *path, struct job *job) {
    zklock_lock *lock = NULL;
    /* Events of the call, and of the hold that it gives, have the job as their context. */
    if (zklock_mutex_new(client, path, NULL, &lock) != ZKLOCK_OK ||
        zklock_acquire_start(lock, TIMEOUT_MS, &job->waiting) != ZKLOCK_OK ||
        zklock_call_set_context(job->waiting, job) != ZKLOCK_OK) fail(path, zklock_last_error());
    zklock_lock_free(lock);
}

/* The call has its result. */
static void granted(struct job *job) {
    zklock_status status = zklock_call_hold(job->waiting, &job->hold);
    zklock_call_free(job->waiting);
    job->waiting = NULL;
    if (status != ZKLOCK_OK) {
        fail("not acquired", zklock_last_error());
    } else if (job->has_lock_of_its_own) {
        held++;
    } else {
        /* The work of a turn would go here. Freeing the hold lets the next one have its turn. */
        turns++;
        zklock_hold_free(job->hold);
        job->hold = NULL;
    }
}

static void on_event(const zklock_event *event) {
    struct job *job = event->context;
    if (event->kind == ZKLOCK_EVENT_CALL) granted(job);
    /* Stop the work that it guarded. */
    if (event->kind == ZKLOCK_EVENT_LOST) fail("lost", zklock_hold_path(job->hold));
    /* All other events are about the connection. The holds have their own about the consequences. */
}

int main(int count, char **words) {
    struct epoll_event ready = {.events = EPOLLIN};
    zklock_client *client = NULL;
    zklock_event event;
    int at, descriptor, loop = epoll_create1(EPOLL_CLOEXEC);

    /* The client queues events once it has a descriptor. */
    if (zklock_client_new_lazy(count > 1 ? words[1] : "127.0.0.1:2181", NULL, &client) != ZKLOCK_OK ||
        zklock_client_fd(client, &descriptor) != ZKLOCK_OK) {
        fail("no client", zklock_last_error());
        return 1;
    }
    for (at = 0; at < LOCKS + TURNS; at++) {
        char path[64] = "/locks/turns";
        jobs[at].has_lock_of_its_own = at < LOCKS;
        if (at < LOCKS) snprintf(path, sizeof path, "/locks/own-%d", at);
        begin(client, path, &jobs[at]);
    }
    if (epoll_ctl(loop, EPOLL_CTL_ADD, descriptor, &ready)) fail("epoll", "the loop takes no descriptor");
    /* The loop ends, because every wait has a timeout. */
    while (!failed && (held < LOCKS || turns < TURNS)) {
        epoll_wait(loop, &ready, 1, -1);
        while (!failed && zklock_client_next_event(client, &event) == ZKLOCK_OK) on_event(&event);
    }
    if (!failed) printf("%d locks held at once, %d turns of one lock\n", held, turns);

    /* Close the loop first, which removes the descriptor from it. */
    close(loop);
    /* This frees every lock that is still held, and waits until the servers have confirmed it. */
    zklock_client_close(client);
    for (at = 0; at < LOCKS + TURNS; at++) {
        zklock_call_free(jobs[at].waiting);
        zklock_hold_free(jobs[at].hold);
    }
    zklock_client_free(client);
    return failed;
}
