/* Reports events as Linux does with EPOLLET, the only mode that tokio uses. Objects are reported in the order in which they became
 * ready. */
#define _GNU_SOURCE
#include "kernel.h"

#include <sys/syscall.h>

int epoll_create1(int flags) {
    (void)flags;
    struct object *epoll = create(EPOLL, true);
    TAILQ_INIT(&epoll->ready);
    return describe(epoll);
}

static uint32_t events_of(const struct object *object) {
    const uint32_t all = object->kind == SOCKET ? socket_events(object) : EPOLLOUT | (object->count ? EPOLLIN : 0u);
    return all & object->wanted;
}

static void add(struct object *object) {
    if (!object->is_ready) {
        object->is_ready = true;
        TAILQ_INSERT_TAIL(&object->watcher->ready, object, next_ready);
    }
}

static void take_off(struct object *object) {
    if (object->is_ready) {
        object->is_ready = false;
        TAILQ_REMOVE(&object->watcher->ready, object, next_ready);
    }
}

void wake(struct object *object, uint32_t events) {
    if (object->watcher && (events == 0 || events & object->wanted)) {
        add(object);
    }
}

void forget(struct object *object) {
    if (object->watcher) {
        take_off(object);
        object->watcher = NULL;
    }
}

static void forget_at(struct object *object, struct object *epoll) {
    if (object->watcher == epoll) {
        forget(object);
    }
}

void close_epoll(struct object *epoll) {
    visit_all(forget_at, epoll);
}

int epoll_ctl(int descriptor, int operation, int of, struct epoll_event *event) {
    struct object *epoll = find_kind(descriptor, EPOLL), *object = find(of);
    if (!epoll || !object) {
        return -1;
    }
    if (object->kind == EPOLL || (object->watcher && object->watcher != epoll)) {
        give_up("an epoll of an epoll, and two of the same, are not simulated");
    }
    if (operation == EPOLL_CTL_ADD && object->watcher) {
        return fail(EEXIST);
    }
    if (operation != EPOLL_CTL_ADD && !object->watcher) {
        return fail(ENOENT);
    }
    if (operation == EPOLL_CTL_DEL) {
        forget(object);
        return 0;
    }
    if ((event->events & EPOLLET) == 0) {
        give_up("an epoll without EPOLLET is not simulated");
    }
    object->watcher = epoll;
    object->wanted = event->events | EPOLLERR | EPOLLHUP;
    object->data = event->data;
    if (events_of(object)) {
        add(object);
    }
    return 0;
}

int epoll_wait(int descriptor, struct epoll_event *events, int most, int timeout) {
    struct object *epoll = find_kind(descriptor, EPOLL);
    if (!epoll) {
        return -1;
    }
    int found = 0;
    struct object *object;
    while (found < most && (object = TAILQ_FIRST(&epoll->ready))) {
        take_off(object);
        const uint32_t now = events_of(object);
        if (now) {
            events[found++] = (struct epoll_event){.events = now, .data = object->data};
        }
    }
    if (found == 0 && timeout != 0) {
        if (timeout < 0) {
            give_up("nothing is left that could happen");
        }
        wait_for((int64_t)timeout * 1000000);
    }
    return found;
}
