/* Declarations that the parts of the simulated kernel share. */
#ifndef SIMULATION_KERNEL_H
#define SIMULATION_KERNEL_H

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#pragma GCC visibility push(hidden)

TAILQ_HEAD(queue, object);

/* One end of a connection, or a socket that listens. */
struct socket {
    struct sockaddr_in here, there;
    bool listens;
    /* Sockets that have connected but are not accepted. */
    struct queue callers;
    /* The entry among the callers of a socket that listens, or among the sockets that have an address. */
    TAILQ_ENTRY(object) line;
    struct object *peer;
    /* Bytes that have come but are not read: from `first` to `end` of `room` bytes. */
    unsigned char *bytes;
    size_t first, end, room;
    /* Nothing more comes; nothing more can be sent. */
    bool is_deaf, is_mute;
    /* The pending error, which is reported once. */
    int error;
};

/* An object with a descriptor. */
struct object {
    enum { SOCKET, COUNTER, EPOLL } kind;
    int descriptors;
    bool may_wait;
    /* The epoll that is told of its events; there is at most one. */
    struct object *watcher;
    uint32_t wanted;
    epoll_data_t data;
    bool is_ready;
    TAILQ_ENTRY(object) next_ready;
    union {
        struct socket socket;
        uint64_t count;
        struct queue ready;
    };
};

/* Descriptors from here on are ours: the kernel never gives such a high number. */
enum { FIRST_DESCRIPTOR = 1 << 30 };

static inline bool is_ours(int descriptor) {
    return descriptor >= FIRST_DESCRIPTOR;
}

static inline int fail(int error) {
    errno = error;
    return -1;
}

/* The kernel as it is. */
long ask(long number, long a, long b, long c, long d, long e, long f);
/* Time passes. */
void wait_for(int64_t nanoseconds);
/* Ends the process, which has made a call that is not simulated. */
_Noreturn void give_up(const char *why);

/* A new object, with a descriptor that was never used before. */
struct object *create(int kind, bool may_wait);
int describe(struct object *object);
/* The object of a descriptor; NULL, with `errno`, if it is closed or of another kind. */
struct object *find(int descriptor);
struct object *find_kind(int descriptor, int kind);
/* Calls `visit` with every object that has a descriptor. */
void visit_all(void (*visit)(struct object *, struct object *), struct object *with);

ssize_t receive(struct object *socket, void *into, size_t length);
ssize_t transmit(struct object *socket, const void *from, size_t length);
void close_socket(struct object *socket);
/* The events that a socket has now. */
uint32_t socket_events(const struct object *socket);

/* Reports to its epoll that something has happened to an object: these events, or any if 0. */
void wake(struct object *object, uint32_t events);
/* Ends the reports of an object's events. */
void forget(struct object *object);
void close_epoll(struct object *epoll);

#pragma GCC visibility pop
#endif
