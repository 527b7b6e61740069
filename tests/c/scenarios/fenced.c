/* Guarded writes: what a caller is told of those that are done, and of those that are not. (More in cpp/objects.) */

#include "test.h"

static zklock_write sets(const char *path, const char *data, int32_t version) {
    return (zklock_write){.kind = ZKLOCK_WRITE_SET, .version = version, .path = path, .data = data, .length = strlen(data)};
}

/* A hold, and the path of the node that it guards. */
typedef struct {
    zklock_hold *hold;
    char state[80];
} guard;

static guard new_guard(void) {
    guard new = {new_hold(servers(), fresh_path()), ""};
    snprintf(new.state, sizeof new.state, "%s-state", zklock_hold_path(new.hold));
    return new;
}

TEST(a_guarded_write_that_conflicts_is_named_and_the_versions_of_others_are_told) {
    guard guard = new_guard();
    /* There may be no data, and no place for the versions. */
    zklock_write first = {.kind = ZKLOCK_WRITE_CREATE, .path = guard.state}, second = sets(guard.state, "before", 0);
    zklock_write conflict[] = {sets(guard.state, "after", 1), {.kind = ZKLOCK_WRITE_DELETE, .version = 7, .path = guard.state}};
    int32_t versions[2] = {99, 99};
    OK(zklock_hold_commit(guard.hold, &first, 1, NULL));
    OK(zklock_hold_commit(guard.hold, &second, 1, versions));
    CHECK(versions[0] == 1 && versions[1] == 99);
    FAILS(zklock_hold_commit(guard.hold, conflict, 2, NULL), ZKLOCK_CONFLICT, "number 2, of /");
    SAYS(guard.state);
    SAYS("nothing was written");
    CHECK(zklock_last_conflict() == 1 && !strcmp(ground("data %s", guard.state), "before"));
    IS(zklock_hold_commit(guard.hold, conflict + 1, 1, NULL), ZKLOCK_CONFLICT);
    CHECK(zklock_last_conflict() == 0);
    IS(zklock_hold_commit(NULL, NULL, 0, NULL), ZKLOCK_INVALID_ARGUMENT);
    CHECK(zklock_last_conflict() == -1);
    /* A conflict does not lose the hold. */
    OK(zklock_release(guard.hold));
    IS(zklock_hold_commit(guard.hold, &second, 1, NULL), ZKLOCK_NOT_HELD);
}

TEST(a_hold_reads_as_many_bytes_as_fit_and_says_why_it_cannot) {
    guard guard = new_guard();
    char data[8] = "-------";
    size_t length = 99;
    int32_t version = 99;
    OK(zklock_hold_read(guard.hold, guard.state, NULL, 0, &length, &version));
    CHECK(version == ZKLOCK_NO_NODE && length == 0);
    ground("create %s abcdef", guard.state);
    OK(zklock_hold_read(guard.hold, guard.state, data, sizeof data, &length, &version));
    CHECK(version == 0 && length == 6 && !memcmp(data, "abcdef-", 7));
    memcpy(data, "-------", 7);
    OK(zklock_hold_read(guard.hold, guard.state, data, 3, &length, &version));
    CHECK(length == 6 && !memcmp(data, "abc----", 7));
    FAILS(zklock_hold_read(guard.hold, guard.state, NULL, 1, &length, &version), ZKLOCK_INVALID_ARGUMENT, "buffer is NULL");
    FAILS(zklock_hold_read(guard.hold, "state", data, 1, &length, &version), ZKLOCK_INVALID_ARGUMENT, "is relative");
}

TEST_MAIN(STANDALONE)
