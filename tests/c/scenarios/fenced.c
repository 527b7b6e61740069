/* Guarded writes: all or none, and what a caller is told of those that are not done. (More in cpp/objects.) */

#include "test.h"

static zklock_write creates(const char *path, const char *data) {
    return (zklock_write){.kind = ZKLOCK_WRITE_CREATE, .path = path, .data = data, .length = strlen(data)};
}

static zklock_write sets(const char *path, const char *data, int32_t version) {
    return (zklock_write){.kind = ZKLOCK_WRITE_SET, .version = version, .path = path, .data = data, .length = strlen(data)};
}

static zklock_write deletes(const char *path, int32_t version) {
    return (zklock_write){.kind = ZKLOCK_WRITE_DELETE, .version = version, .path = path};
}

/* A hold, and the paths of the nodes that it guards. */
typedef struct {
    rivals all;
    zklock_hold *hold;
    char state[80];
} guard;

static void hold(guard *guard) {
    guard->all = new_rivals();
    guard->hold = acquire(guard->all.lock, SOON_MS);
    snprintf(guard->state, sizeof guard->state, "%s-state", guard->all.path);
}

static void let_go(guard *guard) {
    zklock_hold_free(guard->hold);
    free_rivals(&guard->all);
}

static int is(const char *path, const char *data) { return !strcmp(ground("data %s", path), data); }

/* Checks what the hold reads: this version of the state, or none. */
static void reads(const guard *guard, int32_t wanted) {
    size_t length = 99;
    int32_t version = 99;
    OK(zklock_hold_read(guard->hold, guard->state, NULL, 0, &length, &version));
    CHECK(version == wanted && (wanted >= 0 || length == 0));
}

TEST(a_guarded_write_is_done_whole_or_not_at_all) {
    guard guard;
    hold(&guard);
    /* There may be no data, and no place for the versions. */
    zklock_write first = {.kind = ZKLOCK_WRITE_CREATE, .path = guard.state}, second = sets(guard.state, "before", 0);
    int32_t versions[2] = {99, 99};
    OK(zklock_hold_commit(guard.hold, &first, 1, NULL));
    OK(zklock_hold_commit(guard.hold, &second, 1, versions));
    CHECK(versions[0] == 1 && versions[1] == 99);
    zklock_write conflicts[][2] = {
        {sets(guard.state, "after", ZKLOCK_ANY_VERSION), creates(guard.state, "")},
        {sets(guard.state, "after", 1), deletes(guard.state, 7)},
    };
    for (int at = 0; at < 2; at++) {
        IS(zklock_hold_commit(guard.hold, conflicts[at], 2, NULL), ZKLOCK_CONFLICT);
        SAYS("number 2, of /");
        SAYS(guard.state);
        SAYS("nothing was written");
        CHECK(zklock_last_conflict() == 1);
        reads(&guard, 1);
    }
    IS(zklock_hold_commit(guard.hold, conflicts[0] + 1, 1, NULL), ZKLOCK_CONFLICT);
    CHECK(zklock_last_conflict() == 0);
    IS(zklock_hold_commit(NULL, NULL, 0, NULL), ZKLOCK_INVALID_ARGUMENT);
    CHECK(zklock_last_conflict() == -1);
    /* A version that no node can have is not taken for any version. */
    for (int32_t version = -2; version > INT32_MIN / 2; version *= 1000) {
        zklock_write write = sets(guard.state, "after", version);
        zklock_status status = zklock_hold_commit(guard.hold, &write, 1, NULL);
        CHECK(status == ZKLOCK_INVALID_ARGUMENT || status == ZKLOCK_CONFLICT);
    }
    CHECK(is(guard.state, "before"));
    /* A conflict does not lose the hold. */
    OK(zklock_release(guard.hold));
    IS(zklock_hold_commit(guard.hold, &second, 1, NULL), ZKLOCK_NOT_HELD);
    let_go(&guard);
}

TEST(a_hold_reads_as_many_bytes_as_fit_and_says_why_it_cannot) {
    guard guard;
    char data[8] = "-------";
    size_t length = 99;
    int32_t version = 99;
    hold(&guard);
    reads(&guard, ZKLOCK_NO_NODE);
    ground("create %s abcdef", guard.state);
    OK(zklock_hold_read(guard.hold, guard.state, data, sizeof data, &length, &version));
    CHECK(version == 0 && length == 6 && !memcmp(data, "abcdef-", 7));
    memcpy(data, "-------", 7);
    OK(zklock_hold_read(guard.hold, guard.state, data, 3, &length, &version));
    CHECK(length == 6 && !memcmp(data, "abc----", 7));
    IS(zklock_hold_read(guard.hold, guard.state, NULL, 1, &length, &version), ZKLOCK_INVALID_ARGUMENT);
    SAYS("buffer is NULL");
    IS(zklock_hold_read(guard.hold, "state", data, 1, &length, &version), ZKLOCK_INVALID_ARGUMENT);
    SAYS("is relative");
    OK(zklock_release(guard.hold));
    reads(&guard, 0);
    OK(zklock_client_close(guard.all.client));
    length = 99, version = 99;
    IS(zklock_hold_read(guard.hold, guard.state, data, sizeof data, &length, &version), ZKLOCK_CLOSED);
    CHECK(length == 99 && version == 99);
    let_go(&guard);
}

TEST_MAIN(STANDALONE)
