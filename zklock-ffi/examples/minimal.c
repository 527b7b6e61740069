/* Works under a lock: minimal [HOSTS] */

#include <stdio.h>
#include <zklock.h>

int main(int count, char **words) {
    zklock_client *client = NULL;
    zklock_lock *lock = NULL;
    zklock_hold *hold = NULL;
    zklock_status status = zklock_client_new(count > 1 ? words[1] : "127.0.0.1:2181", NULL, &client);
    if (status == ZKLOCK_OK) status = zklock_mutex_new(client, "/locks/minimal", NULL, &lock);
    if (status == ZKLOCK_OK) status = zklock_acquire(lock, 5000, &hold);
    if (status == ZKLOCK_OK) {
        puts("working under the lock");
        status = zklock_release(hold);
    }
    if (status != ZKLOCK_OK) fprintf(stderr, "%s: %s\n", zklock_status_name(status), zklock_last_error());
    zklock_client_close(client);
    zklock_hold_free(hold);
    zklock_lock_free(lock);
    zklock_client_free(client);
    return status == ZKLOCK_OK ? 0 : 1;
}
