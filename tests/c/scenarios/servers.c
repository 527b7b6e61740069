/* A server of ZooKeeper 3.4, which lacks some requests of later ones. */

#include "test.h"

/* A client whose options state the servers' version. */
static zklock_client *client_for(uint32_t major, uint32_t minor) {
    zklock_options *options;
    zklock_client *client;
    OK(zklock_options_new(&options));
    OK(zklock_options_set_server_version(options, major, minor));
    OK(zklock_client_new(servers(), options, &client));
    zklock_options_free(options);
    return client;
}

static void locks(zklock_client *client) {
    const char *path = fresh_path(), *node;
    zklock_client *other = new_client();
    zklock_lock *lock = new_mutex(client, path, 0), *theirs = new_mutex(other, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *none = NULL;
    CHECK(valid_for(hold) > 0);
    OK(zklock_hold_node(hold, &node));
    CHECK(!strcmp(ground("exists %s", node), "true"));
    /* Giving up leaves the connection as it is. */
    IS(zklock_acquire(theirs, 100, &none), ZKLOCK_TIMEOUT);
    give_back(hold);
    give_back(acquire(theirs, SOON_MS));
    CHECK(stats_of(other).sessions == 1);
    free_all(NULL, theirs, other);
    free_all(NULL, lock, client);
}

TEST(a_lock_is_held_on_an_old_server) {
    locks(new_client());
    locks(client_for(3, 4));
}

TEST(what_an_old_server_cannot_do_is_refused_and_the_session_goes_on) {
    zklock_client *client = new_client();
    zklock_lock *both, *pair[2] = {new_mutex(client, fresh_path(), 0), new_mutex(client, fresh_path(), 0)};
    zklock_hold *hold = NULL;
    OK(zklock_all_new(client, pair, 2, NULL, &both));
    IS(zklock_acquire(both, SOON_MS, &hold), ZKLOCK_REFUSED);
    SAYS("a set of locks needs ZooKeeper 3.5 or later");
    give_back(acquire(pair[0], SOON_MS));
    CHECK(stats_of(client).sessions == 1);
    zklock_lock_free(pair[0]);
    zklock_lock_free(pair[1]);
    free_all(NULL, both, client);
}

TEST(a_version_that_is_too_new_is_named_in_the_error) {
    zklock_client *client = client_for(3, 5);
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = NULL;
    IS(zklock_acquire(lock, SOON_MS, &hold), ZKLOCK_REFUSED);
    SAYS("state 3.4");
    free_all(NULL, lock, client);
}

TEST_MAIN("standalone version=3.4.14 tick=200", LISTED(a_lock_is_held_on_an_old_server),
          LISTED(what_an_old_server_cannot_do_is_refused_and_the_session_goes_on),
          LISTED(a_version_that_is_too_new_is_named_in_the_error))
