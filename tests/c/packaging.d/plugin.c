/* A plugin with the static library inside, which holds a lock. */

#include <poll.h>
#include <zklock.h>

/* A descriptor that is readable once the lock is lost; -1 on failure. */
int plugin_holds(const char *hosts);

int plugin_holds(const char *hosts) {
    zklock_client *client;
    zklock_lock *lock;
    zklock_hold *hold;
    zklock_event connected;
    struct pollfd events = {.events = POLLIN};
    if (zklock_client_new(hosts, NULL, &client) != ZKLOCK_OK ||
        zklock_client_fd(client, &events.fd) != ZKLOCK_OK || poll(&events, 1, 5000) != 1 ||
        zklock_client_next_event(client, &connected) != ZKLOCK_OK ||
        zklock_mutex_new(client, "/locks/plugin", NULL, &lock) != ZKLOCK_OK ||
        zklock_acquire(lock, 5000, &hold) != ZKLOCK_OK) {
        return -1;
    }
    return events.fd;
}
