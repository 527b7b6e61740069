/* A program with two Rust libraries in it: beside HOSTS. A panic of zklock must come back as a status. (Of each call: misuse/panics.c) */

#include <stdio.h>
#include <stdlib.h>
#include <zklock.h>

int other_works(void);

int main(int count, char **words) {
    zklock_client *client;
    zklock_lock *lock;
    zklock_hold *hold;
    if (count != 2 || !other_works() || zklock_client_new(words[1], NULL, &client) != ZKLOCK_OK ||
        zklock_mutex_new(client, "/locks/beside", NULL, &lock) != ZKLOCK_OK ||
        zklock_acquire(lock, 5000, &hold) != ZKLOCK_OK || !other_works() || setenv("ZKLOCK_PANIC", "1", 1) ||
        zklock_release(hold) != ZKLOCK_INTERNAL || !other_works() || unsetenv("ZKLOCK_PANIC") ||
        zklock_release(hold) != ZKLOCK_OK) {
        fprintf(stderr, "%s\n", zklock_last_error());
        return 1;
    }
    zklock_hold_free(hold);
    zklock_lock_free(lock);
    zklock_client_free(client);
    puts("both work");
    return 0;
}
