/* A plugin with the static library inside, which holds a lock. */

#include <zklock.h>

/* A descriptor that is readable once the lock is lost; -1 on failure. */
int plugin_holds(const char *hosts);

int plugin_holds(const char *hosts) {
    zklock_client *client;
    zklock_lock *lock;
    zklock_hold *hold;
    zklock_event connected;
    int descriptor;
    if (zklock_client_new(hosts, NULL, &client) != ZKLOCK_OK ||
        zklock_client_fd(client, &descriptor) != ZKLOCK_OK || zklock_client_next_event(client, &connected) != ZKLOCK_OK ||
        zklock_mutex_new(client, "/locks/plugin", NULL, &lock) != ZKLOCK_OK ||
        zklock_acquire(lock, 5000, &hold) != ZKLOCK_OK) {
        return -1;
    }
    return descriptor;
}
