/*
 * A program with two Rust libraries in it: beside [HOSTS]
 *
 * If ZKLOCK_PANIC is set, every call of zklock panics inside, and each panic must come back as a status.
 */

#include <calls.h> /* CALLS(X): all functions that return a status, from the header */
#include <stdio.h>
#include <stdlib.h>
#include <zklock.h>

int other_works(void);

/* The calls panic before they read an argument. */
typedef zklock_status (*any_call)(void *, void *, void *, void *);

static int caught(any_call call, const char *name) {
    zklock_status status = call(NULL, NULL, NULL, NULL);
    if (status == ZKLOCK_INTERNAL && other_works()) return 1;
    fprintf(stderr, "%s gives %s: %s\n", name, zklock_status_name(status), zklock_last_error());
    return 0;
}

static int panics(void) {
    int count = 0, all = 0;
#define COUNT(name)                                      \
    count += caught((any_call)(void (*)(void))name, #name); \
    all++;
    CALLS(COUNT)
    printf("%d panics caught\n", count);
    return count == all ? 0 : 1;
}

static int works(const char *hosts) {
    zklock_client *client;
    zklock_lock *lock;
    zklock_hold *hold;
    if (!other_works() || zklock_client_new(hosts, NULL, &client) != ZKLOCK_OK ||
        zklock_mutex_new(client, "/locks/beside", NULL, &lock) != ZKLOCK_OK ||
        zklock_acquire(lock, 5000, &hold) != ZKLOCK_OK || !other_works() || zklock_release(hold) != ZKLOCK_OK) {
        fprintf(stderr, "%s\n", zklock_last_error());
        return 1;
    }
    zklock_hold_free(hold);
    zklock_lock_free(lock);
    zklock_client_free(client);
    puts("both work");
    return 0;
}

int main(int count, char **words) { return getenv("ZKLOCK_PANIC") ? panics() : works(count > 1 ? words[1] : ""); }
