/* Promise 6: a holder learns of a lost hold within one heartbeat, whatever the cause. */

#include "test.h"

TEST(a_node_that_is_deleted_is_told_by_the_descriptor) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    int descriptor;
    const char *node;
    OK(zklock_hold_fd(hold, &descriptor));
    OK(zklock_hold_node(hold, &node));
    CHECK(!readable(descriptor, 0));
    ground("delete %s", node);
    CHECK(readable(descriptor, SESSION_MS / 10 + SOON_MS));
    CHECK(state_of(hold) == ZKLOCK_STATE_LOST);
    IS(zklock_release(hold), ZKLOCK_LOST);
    zklock_hold_free(hold);
    zklock_lock_free(lock);
    zklock_client_free(client);
}

TEST_MAIN("standalone max-session=4000", LISTED(a_node_that_is_deleted_is_told_by_the_descriptor))
