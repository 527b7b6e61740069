/* Descriptors of sockets, epolls and eventfds, which live in the memory of the process. Others are read, written and closed as they are.
 *
 * No number is used twice, so that an operation on a closed one fails and does not hit another. */
#define _GNU_SOURCE
#include "kernel.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct object **objects;
static int count, room;

struct object *create(int kind, bool may_wait) {
    struct object *object = calloc(1, sizeof *object);
    if (!object) {
        give_up("no memory is left");
    }
    object->kind = kind;
    object->may_wait = may_wait;
    return object;
}

int describe(struct object *object) {
    if (count == room) {
        room = room ? 2 * room : 256;
        objects = realloc(objects, (size_t)room * sizeof *objects);
        if (!objects) {
            give_up("no memory is left");
        }
    }
    objects[count] = object;
    object->descriptors += 1;
    return FIRST_DESCRIPTOR + count++;
}

struct object *find(int descriptor) {
    if (!is_ours(descriptor)) {
        give_up("this call is only simulated for sockets, epolls and eventfds");
    }
    const int at = descriptor - FIRST_DESCRIPTOR;
    struct object *object = at < count ? objects[at] : NULL;
    if (!object) {
        errno = EBADF;
    }
    return object;
}

struct object *find_kind(int descriptor, int kind) {
    struct object *object = find(descriptor);
    if (object && (int)object->kind != kind) {
        errno = kind == SOCKET ? ENOTSOCK : EINVAL;
        return NULL;
    }
    return object;
}

void visit_all(void (*visit)(struct object *, struct object *), struct object *with) {
    for (int at = 0; at < count; at++) {
        if (objects[at]) {
            visit(objects[at], with);
        }
    }
}

int close(int descriptor) {
    if (!is_ours(descriptor)) {
        return (int)ask(SYS_close, descriptor, 0, 0, 0, 0, 0);
    }
    struct object *object = find(descriptor);
    if (!object) {
        return -1;
    }
    objects[descriptor - FIRST_DESCRIPTOR] = NULL;
    object->descriptors -= 1;
    if (object->descriptors == 0) {
        forget(object);
        if (object->kind == SOCKET) {
            close_socket(object);
        } else if (object->kind == EPOLL) {
            close_epoll(object);
        }
        free(object);
    }
    return 0;
}

int eventfd(unsigned from, int flags) {
    struct object *counter = create(COUNTER, !(flags & EFD_NONBLOCK));
    counter->count = from;
    return describe(counter);
}

ssize_t read(int descriptor, void *into, size_t length) {
    if (!is_ours(descriptor)) {
        return ask(SYS_read, descriptor, (long)into, (long)length, 0, 0, 0);
    }
    struct object *object = find(descriptor);
    if (!object) {
        return -1;
    }
    if (object->kind == SOCKET) {
        return receive(object, into, length);
    }
    if (object->kind == EPOLL || length < sizeof object->count) {
        return fail(EINVAL);
    }
    if (object->count == 0) {
        return fail(EAGAIN);
    }
    memcpy(into, &object->count, sizeof object->count);
    object->count = 0;
    return sizeof object->count;
}

ssize_t write(int descriptor, const void *from, size_t length) {
    if (!is_ours(descriptor)) {
        return ask(SYS_write, descriptor, (long)from, (long)length, 0, 0, 0);
    }
    struct object *object = find(descriptor);
    if (!object) {
        return -1;
    }
    if (object->kind == SOCKET) {
        return transmit(object, from, length);
    }
    uint64_t more;
    if (object->kind == EPOLL || length < sizeof more) {
        return fail(EINVAL);
    }
    memcpy(&more, from, sizeof more);
    object->count += more;
    wake(object, EPOLLIN);
    return sizeof more;
}

int fcntl(int descriptor, int command, ...) {
    struct object *object = find(descriptor);
    if (!object) {
        return -1;
    }
    switch (command) {
    case F_DUPFD_CLOEXEC:
        return describe(object);
    case F_GETFD:
        return FD_CLOEXEC;
    case F_GETFL:
        return O_RDWR | (object->may_wait ? 0 : O_NONBLOCK);
    default:
        give_up("this fcntl is not simulated");
    }
}

int ioctl(int descriptor, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    int *word = va_arg(rest, int *);
    va_end(rest);
    struct object *object = find(descriptor);
    if (!object) {
        return -1;
    }
    if (request != FIONBIO) {
        give_up("this ioctl is not simulated");
    }
    object->may_wait = *word == 0;
    return 0;
}
