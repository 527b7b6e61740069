/* zklock's mutex from C. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <zklock.h>

struct lock {
    zklock_lock *lock;
    zklock_hold *hold, *outer;
    enum { ACQUIRE, VALID_FOR, ENSURE } look; /* what acquire does; a look is at the outer hold */
};

static void must(const char *what, zklock_status status) {
    if (status == ZKLOCK_OK) return;
    fprintf(stderr, "%s\n", zklock_last_error());
    die(what, status);
}
static void *session(const char *connect) {
    zklock_options *options;
    zklock_client *client;
    must("options", zklock_options_new(&options));
    must("session timeout", zklock_options_set(options, "session-timeout", "30s"));
    must("client", zklock_client_new(connect, options, &client));
    zklock_options_free(options);
    return client;
}
static void session_end(void *client) {
    zklock_client_close(client);
    zklock_client_free(client);
}
static void *lock(void *client, const char *path) {
    struct lock *l = calloc(1, sizeof *l);
    zklock_options *options;
    must("options", zklock_options_new(&options));
    char count[2][16];
    snprintf(count[0], sizeof count[0], "%ds", option("linger"));
    snprintf(count[1], sizeof count[1], "%d", option("turns") - 1);
    if (option("linger")) must("linger", zklock_options_set(options, "linger", count[0]));
    if (option("turns")) must("turns", zklock_options_set(options, "max-local-handoffs", count[1]));
    if (option("reentrant")) must("reentrant", zklock_options_set(options, "reentrant", "yes"));
    must("mutex", zklock_mutex_new(client, path, options, &l->lock));
    zklock_options_free(options);
    l->look = option("valid_for") ? VALID_FOR : option("ensure") ? ENSURE : ACQUIRE;
    if (option("reentrant") || l->look) must("acquire", zklock_acquire(l->lock, ZKLOCK_FOREVER, &l->outer));
    return l;
}
static void lock_end(void *ctx) {
    struct lock *l = ctx;
    if (l->outer) {
        must("release", zklock_release(l->outer));
        zklock_hold_free(l->outer);
    }
    zklock_lock_free(l->lock);
    free(ctx);
}
static void acquire(void *ctx) {
    struct lock *l = ctx;
    if (l->look == VALID_FOR) (void)!zklock_hold_valid_for(l->outer);
    else if (l->look == ENSURE) must("ensure", zklock_hold_ensure(l->outer, 1000));
    else must("acquire", zklock_acquire(l->lock, ZKLOCK_FOREVER, &l->hold));
}
static void release(void *ctx) {
    struct lock *l = ctx;
    if (l->look) return;
    must("release", zklock_release(l->hold));
    zklock_hold_free(l->hold);
}

static int attempt(void *ctx) {
    struct lock *l = ctx;
    zklock_status status = zklock_acquire(l->lock, 0, &l->hold);
    if (status == ZKLOCK_TIMEOUT) return 0;
    must("try", status);
    return 1;
}

int main(void) { return harness(&(struct peer){session, session_end, lock, lock_end, acquire, release, attempt}); }
