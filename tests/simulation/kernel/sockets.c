/* TCP over IPv4, with both ends in this process: written bytes can be read at once, and there is always room for them.
 *
 * Otherwise it behaves like loopback sockets in Linux. A connection is made or refused at once, though `connect` does not wait for
 * that; a write to a closed end fails at once; and a close with unread bytes resets the connection. */
#define _GNU_SOURCE
#include "kernel.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The sockets that have an address. */
static struct queue bound = TAILQ_HEAD_INITIALIZER(bound);
static in_port_t last_port = 32767;

static struct object *create_socket(bool may_wait) {
    struct object *object = create(SOCKET, may_wait);
    object->socket.here.sin_family = object->socket.there.sin_family = AF_INET;
    TAILQ_INIT(&object->socket.callers);
    return object;
}

static bool is_same(const struct sockaddr_in *one, const struct sockaddr_in *other) {
    return one->sin_addr.s_addr == other->sin_addr.s_addr && one->sin_port == other->sin_port;
}

static struct object *at_address(const struct sockaddr_in *address) {
    struct object *object;
    TAILQ_FOREACH(object, &bound, socket.line) {
        if (is_same(&object->socket.here, address)) {
            return object;
        }
    }
    return NULL;
}

static void tell(const struct sockaddr_in *address, struct sockaddr *into, socklen_t *length) {
    if (into) {
        memcpy(into, address, *length < sizeof *address ? *length : sizeof *address);
        *length = sizeof *address;
    }
}

uint32_t socket_events(const struct object *object) {
    const struct socket *socket = &object->socket;
    if (socket->listens) {
        return TAILQ_EMPTY(&socket->callers) ? 0 : EPOLLIN | EPOLLRDNORM;
    }
    const bool is_over = (!socket->peer && !socket->is_deaf) || (socket->is_deaf && socket->is_mute);
    return EPOLLOUT | EPOLLWRNORM | (socket->error ? EPOLLERR : 0u) | (is_over ? EPOLLHUP : 0u) |
           (socket->is_deaf ? EPOLLRDHUP | EPOLLIN | EPOLLRDNORM : 0u) |
           (socket->end > socket->first ? EPOLLIN | EPOLLRDNORM : 0u);
}

int socket(int domain, int type, int protocol) {
    (void)protocol;
    if (domain != AF_INET || (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != SOCK_STREAM) {
        give_up("this socket is not simulated");
    }
    return describe(create_socket(!(type & SOCK_NONBLOCK)));
}

int bind(int descriptor, const struct sockaddr *address, socklen_t length) {
    (void)length;
    struct object *object = find_kind(descriptor, SOCKET);
    if (!object) {
        return -1;
    }
    const struct sockaddr_in *wanted = (const struct sockaddr_in *)(const void *)address;
    if (address->sa_family != AF_INET || wanted->sin_port == 0 || object->socket.here.sin_port != 0) {
        return fail(EINVAL);
    }
    if (at_address(wanted)) {
        return fail(EADDRINUSE);
    }
    object->socket.here = *wanted;
    TAILQ_INSERT_TAIL(&bound, object, socket.line);
    return 0;
}

int listen(int descriptor, int backlog) {
    (void)backlog;
    struct object *object = find_kind(descriptor, SOCKET);
    if (!object) {
        return -1;
    }
    if (object->socket.here.sin_port == 0 || object->socket.peer) {
        return fail(EINVAL);
    }
    object->socket.listens = true;
    return 0;
}

/* Ends this direction of a connection. */
static void end(struct object *sender, struct object *receiver) {
    if (sender) {
        sender->socket.is_mute = true;
    }
    if (receiver) {
        receiver->socket.is_deaf = true;
    }
}

static void call(struct object *near, struct object *listener) {
    struct object *far = create_socket(true);
    near->socket.there = far->socket.here = listener->socket.here;
    near->socket.here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    near->socket.here.sin_port = htons(++last_port);
    far->socket.there = near->socket.here;
    near->socket.peer = far;
    far->socket.peer = near;
    TAILQ_INSERT_TAIL(&listener->socket.callers, far, socket.line);
    wake(listener, EPOLLIN);
}

int connect(int descriptor, const struct sockaddr *address, socklen_t length) {
    (void)length;
    struct object *near = find_kind(descriptor, SOCKET);
    if (!near) {
        return -1;
    }
    if (near->socket.peer || near->socket.here.sin_port != 0) {
        return fail(EISCONN);
    }
    const struct sockaddr_in *there = (const struct sockaddr_in *)(const void *)address;
    if (address->sa_family != AF_INET || near->may_wait) {
        give_up("this connect is not simulated");
    }
    struct object *listener = at_address(there);
    if (listener && listener->socket.listens) {
        call(near, listener);
    } else {
        end(near, near);
        near->socket.error = ECONNREFUSED;
    }
    wake(near, 0);
    return fail(EINPROGRESS);
}

int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags) {
    struct object *listener = find_kind(descriptor, SOCKET);
    if (!listener) {
        return -1;
    }
    struct object *caller = TAILQ_FIRST(&listener->socket.callers);
    if (!caller) {
        return fail(listener->socket.listens ? EAGAIN : EINVAL);
    }
    TAILQ_REMOVE(&listener->socket.callers, caller, socket.line);
    caller->may_wait = !(flags & SOCK_NONBLOCK);
    tell(&caller->socket.there, address, length);
    return describe(caller);
}

int shutdown(int descriptor, int how) {
    struct object *object = find_kind(descriptor, SOCKET);
    if (!object) {
        return -1;
    }
    struct object *peer = object->socket.peer;
    if (!peer && !object->socket.is_deaf) {
        return fail(ENOTCONN);
    }
    if (how != SHUT_WR) {
        end(peer, object);
    }
    if (how != SHUT_RD) {
        end(object, peer);
    }
    wake(object, 0);
    if (peer) {
        wake(peer, 0);
    }
    return 0;
}

/* Ends a connection at one of its ends. */
static void leave(struct object *object, bool is_reset) {
    struct object *peer = object->socket.peer;
    if (peer) {
        end(object, peer);
        end(peer, object);
        peer->socket.error = is_reset ? ECONNRESET : peer->socket.error;
        peer->socket.peer = NULL;
        wake(peer, 0);
    }
    free(object->socket.bytes);
}

void close_socket(struct object *object) {
    struct socket *socket = &object->socket;
    struct object *caller;
    while ((caller = TAILQ_FIRST(&socket->callers))) {
        TAILQ_REMOVE(&socket->callers, caller, socket.line);
        leave(caller, true);
        free(caller);
    }
    if (at_address(&socket->here) == object) {
        TAILQ_REMOVE(&bound, object, socket.line);
    }
    leave(object, socket->end > socket->first);
}

ssize_t receive(struct object *object, void *into, size_t length) {
    struct socket *socket = &object->socket;
    const size_t there = socket->end - socket->first, taken = there < length ? there : length;
    if (there > 0 || length == 0) {
        memcpy(into, socket->bytes + socket->first, taken);
        socket->first += taken;
        return (ssize_t)taken;
    }
    if (socket->error) {
        const int error = socket->error;
        socket->error = 0;
        return fail(error);
    }
    if (socket->is_deaf) {
        return 0;
    }
    if (!socket->peer) {
        return fail(ENOTCONN);
    }
    if (object->may_wait) {
        give_up("a read would wait");
    }
    return fail(EAGAIN);
}

ssize_t transmit(struct object *object, const void *from, size_t length) {
    if (object->socket.is_mute) {
        return fail(EPIPE);
    }
    if (!object->socket.peer) {
        return fail(ENOTCONN);
    }
    struct socket *peer = &object->socket.peer->socket;
    if (peer->first == peer->end) {
        peer->first = peer->end = 0;
    }
    if (peer->room - peer->end < length) {
        peer->room = 2 * (peer->end + length);
        peer->bytes = realloc(peer->bytes, peer->room);
        if (!peer->bytes) {
            give_up("no memory is left");
        }
    }
    if (length > 0) {
        memcpy(peer->bytes + peer->end, from, length);
        peer->end += length;
        wake(object->socket.peer, EPOLLIN);
    }
    return (ssize_t)length;
}

ssize_t recv(int descriptor, void *into, size_t length, int flags) {
    if (flags != 0) {
        give_up("this recv is not simulated");
    }
    struct object *object = find_kind(descriptor, SOCKET);
    return object ? receive(object, into, length) : -1;
}

ssize_t send(int descriptor, const void *from, size_t length, int flags) {
    /* Writes never raise a signal here. */
    if (flags & ~MSG_NOSIGNAL) {
        give_up("this send is not simulated");
    }
    struct object *object = find_kind(descriptor, SOCKET);
    return object ? transmit(object, from, length) : -1;
}

int getsockopt(int descriptor, int level, int option, void *value, socklen_t *length) {
    struct object *object = find_kind(descriptor, SOCKET);
    if (!object) {
        return -1;
    }
    if (level != SOL_SOCKET || option != SO_ERROR || *length < sizeof(int)) {
        give_up("this getsockopt is not simulated");
    }
    memcpy(value, &object->socket.error, sizeof(int));
    object->socket.error = 0;
    return 0;
}

/* No option makes a difference here. */
int setsockopt(int descriptor, int level, int option, const void *value, socklen_t length) {
    (void)level, (void)option, (void)value, (void)length;
    return find_kind(descriptor, SOCKET) ? 0 : -1;
}

int getsockname(int descriptor, struct sockaddr *address, socklen_t *length) {
    struct object *object = find_kind(descriptor, SOCKET);
    if (object) {
        tell(&object->socket.here, address, length);
    }
    return object ? 0 : -1;
}
