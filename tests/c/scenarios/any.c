/* Any one of several locks: the first that is granted. */

#include "test.h"

/* The paths of the test, and a lock of a client at each. */
static char paths[3][64];

static void mutexes(zklock_client *client, zklock_lock *locks[3]) {
    for (int at = 0; at < 3; at++) locks[at] = new_mutex(client, paths[at], 0);
}

static void free_locks(zklock_lock *const locks[3]) {
    for (int at = 0; at < 3; at++) zklock_lock_free(locks[at]);
}

static void fresh_paths(void) {
    for (int at = 0; at < 3; at++) snprintf(paths[at], sizeof paths[at], "%s", fresh_path());
}

static void is_of(zklock_hold *hold, int at) {
    const char *path;
    OK(zklock_hold_path(hold, &path));
    CHECK(!strcmp(path, paths[at]));
}

TEST(the_first_that_comes_is_held_and_the_rest_are_left) {
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *ours[3], *theirs[3], *any;
    zklock_hold *held[3], *none = NULL, *hold;
    zklock_call *waiting;
    fresh_paths();
    mutexes(client, ours);
    mutexes(other, theirs);
    OK(zklock_any_new(client, ours, 3, NULL, &any));
    /* If several are free, it is the first of them. */
    for (int at = 0; at < 3; at++) is_of(held[at] = acquire(any, SOON_MS), at);
    IS(zklock_acquire(any, 0, &none), ZKLOCK_TIMEOUT);
    for (int at = 0; at < 3; at++) give_back(held[at]);
    for (int at = 0; at < 3; at++) held[at] = acquire(theirs[at], SOON_MS);
    IS(zklock_acquire(any, 100, &none), ZKLOCK_TIMEOUT);
    SAYS("none of the 3 locks");
    CHECK(!none);
    OK(zklock_acquire_start(any, SOON_MS, &waiting));
    for (int at = 0; at < 3; at++) EVENTUALLY(contenders_at(paths[at]) == 2);
    give_back(held[1]);
    EVENTUALLY(zklock_call_hold(waiting, &hold) == ZKLOCK_OK);
    zklock_call_free(waiting);
    is_of(hold, 1);
    for (int at = 0; at < 3; at++) EVENTUALLY(contenders_at(paths[at]) == 1);
    give_back(hold);
    give_back(held[0]);
    give_back(held[2]);
    free_locks(ours);
    free_locks(theirs);
    free_all(NULL, NULL, other);
    free_all(NULL, any, client);
}

TEST(what_is_no_choice_is_refused) {
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *ours[3], *theirs[3], *any, *none = NULL;
    zklock_lock_options *options;
    fresh_paths();
    mutexes(client, ours);
    mutexes(other, theirs);
    OK(zklock_any_new(client, ours, 3, NULL, &any));
    zklock_lock *const twice[] = {ours[0], ours[0]}, *const foreign[] = {ours[0], theirs[1]}, *const nested[] = {any};
    IS(zklock_any_new(client, NULL, 0, NULL, &none), ZKLOCK_INVALID_ARGUMENT);
    SAYS("one lock at least");
    IS(zklock_any_new(client, twice, 2, NULL, &none), ZKLOCK_INVALID_ARGUMENT);
    SAYS("two of them are of one path");
    IS(zklock_any_new(client, foreign, 2, NULL, &none), ZKLOCK_INVALID_ARGUMENT);
    SAYS("must come from the client");
    IS(zklock_any_new(client, nested, 1, NULL, &none), ZKLOCK_INVALID_ARGUMENT);
    SAYS("such a choice itself");
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_flags(options, ZKLOCK_REENTRANT));
    IS(zklock_any_new(client, ours, 3, options, &none), ZKLOCK_INVALID_ARGUMENT);
    CHECK(!none);
    zklock_lock_options_free(options);
    free_locks(ours);
    free_locks(theirs);
    free_all(NULL, NULL, other);
    free_all(NULL, any, client);
}

TEST_MAIN("standalone max-session=4000", LISTED(the_first_that_comes_is_held_and_the_rest_are_left),
          LISTED(what_is_no_choice_is_refused))
