/* What the parts of the simulated kernel share. */
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
    /* Those that have connected and are not accepted. */
    struct queue callers;
    /* Among the callers of a socket that listens, or among those that have an address. */
    TAILQ_ENTRY(object) line;
    struct object *peer;
    /* What has come and is not read: from `first` to `end` of `room` bytes. */
    unsigned char *bytes;
    size_t first, end, room;
    /* Nothing more comes; nothing more can be sent. */
    bool is_deaf, is_mute;
    /* What is told once. */
    int error;
};

/* What a descriptor stands for. */
struct object {
    enum { SOCKET, COUNTER, EPOLL } kind;
    int descriptors;
    bool may_wait;
    /* Who is told of its events: one epoll at most. */
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

/* Descriptors from here on are ours: the kernel never gives so high a number. */
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
/* Ends the process: it does what cannot be simulated. */
_Noreturn void give_up(const char *why);

/* The seed that this process plays, and the words it is started with. */
const char *next_seed(int count, char **words);

/* A new one, with a descriptor that was never there before. */
struct object *create(int kind, bool may_wait);
int describe(struct object *object);
/* What a descriptor stands for; NULL, with `errno`, if it is closed or of another kind. */
struct object *find(int descriptor);
struct object *find_kind(int descriptor, int kind);
/* Calls `visit` with all that has a descriptor. */
void visit_all(void (*visit)(struct object *, struct object *), struct object *with);

ssize_t receive(struct object *socket, void *into, size_t length);
ssize_t transmit(struct object *socket, const void *from, size_t length);
void close_socket(struct object *socket);
/* The events that a socket has now. */
uint32_t socket_events(const struct object *socket);

/* Something has happened to it: these events, or any if there are none. */
void wake(struct object *object, uint32_t events);
/* Nobody is told of its events any more. */
void forget(struct object *object);
void close_epoll(struct object *epoll);

#pragma GCC visibility pop
#endif
