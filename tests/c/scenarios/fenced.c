/* Promise 2: tokens of one path grow with every grant, and a write guarded by a hold is refused once the hold is lost. */

#include "test.h"

/* Acquires and releases. Returns the token, and the number that the server gave the node. */
static uint64_t grant(zklock_lock *lock, unsigned long *sequence) {
    zklock_hold *hold = acquire(lock, SOON_MS);
    uint64_t token = token_of(hold);
    if (sequence) *sequence = sequence_of(hold);
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    return token;
}

TEST(tokens_grow_when_the_parent_is_deleted_and_the_numbers_begin_again) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *stale;
    zklock_reason reason;
    uint64_t last = 0, token;
    for (int parent = 0; parent < 3; parent++) {
        for (unsigned long round = 0; round < 3; round++) {
            unsigned long sequence;
            token = grant(lock, &sequence);
            CHECK(sequence == round);
            CHECK(token > last);
            last = token;
        }
        ground("delete-tree %s", path);
    }
    /* The same while somebody holds the lock. */
    stale = acquire(lock, SOON_MS);
    CHECK(token_of(stale) > last);
    ground("delete-tree %s", path);
    OK(zklock_hold_wait_lost(stale, SOON_MS, &reason));
    CHECK(reason == ZKLOCK_REASON_NODE_DELETED);
    CHECK(grant(lock, NULL) > token_of(stale));
    free_all(stale, lock, client);
}

typedef struct {
    unsigned long long token, session;
    int count;
    char name[128], identity[128], dialect[16];
} seen;

static void sees(const zklock_contender *contender, void *context) {
    seen *seen = context;
    seen->count++;
    if (seen->count > 1) return;
    seen->token = contender->token;
    seen->session = contender->session;
    snprintf(seen->name, sizeof seen->name, "%s", contender->name);
    snprintf(seen->identity, sizeof seen->identity, "%s", contender->identity);
    snprintf(seen->dialect, sizeof seen->dialect, "%s", contender->dialect);
    CHECK(contender->since > INT64_C(1600000000000));
}

TEST(tokens_grow_over_new_sessions_and_the_server_calls_them_the_same) {
    const char *path = fresh_path(), *node, *stat;
    uint64_t last = 0;
    for (int round = 0; round < 2; round++) {
        int proxy;
        zklock_client *client = proxied_client(&proxy);
        zklock_lock *lock = new_mutex(client, path, 0);
        zklock_hold *hold = acquire(lock, SOON_MS);
        unsigned long long czxid, owner;
        seen seen = {.count = 0};
        zklock_reason reason;
        OK(zklock_hold_node(hold, &node));
        stat = ground("stat %s", node);
        CHECK(sscanf(stat, "czxid=%llx", &czxid) == 1 &&
              sscanf(strstr(stat, "owner="), "owner=%llx", &owner) == 1);
        CHECK(token_of(hold) == czxid && stats_of(client).session_id == owner);
        OK(zklock_contenders(lock, sees, &seen));
        CHECK(seen.count == 1 && seen.token == czxid && seen.session == owner);
        CHECK(!strcmp(seen.name, node + strlen(path) + 1) && !strcmp(seen.dialect, "curator"));
        CHECK(!strcmp(seen.identity, ground("data %s", node)) && seen.identity[0]);
        CHECK(czxid > last);

        expire_session(proxy);
        OK(zklock_hold_wait_lost(hold, SOON_MS, &reason));
        CHECK(reason == ZKLOCK_REASON_SESSION_EXPIRED);
        last = grant(lock, NULL);
        CHECK(last > czxid && stats_of(client).sessions == 2);
        OK(zklock_client_close(client));
        free_all(hold, lock, client);
    }
}

static zklock_write creates(const char *path, const char *data) {
    return (zklock_write){.kind = ZKLOCK_WRITE_CREATE, .path = path, .data = data, .length = strlen(data)};
}

static zklock_write sets(const char *path, const char *data, int32_t version) {
    return (zklock_write){
        .kind = ZKLOCK_WRITE_SET, .version = version, .path = path, .data = data, .length = strlen(data)};
}

static zklock_write deletes(const char *path, int32_t version) {
    return (zklock_write){.kind = ZKLOCK_WRITE_DELETE, .version = version, .path = path};
}

/* A hold, and the paths of the nodes that it guards. */
typedef struct {
    zklock_client *client;
    zklock_lock *lock;
    zklock_hold *hold;
    int proxy;
    char path[64], state[80], child[96];
} guard;

static void hold(guard *guard, int64_t session) {
    char hosts[128];
    guard->proxy = new_proxy(hosts, sizeof hosts);
    guard->client = client_with(hosts, session, 0);
    snprintf(guard->path, sizeof guard->path, "%s", fresh_path());
    snprintf(guard->state, sizeof guard->state, "%s-state", guard->path);
    snprintf(guard->child, sizeof guard->child, "%s/child", guard->state);
    guard->lock = new_mutex(guard->client, guard->path, 0);
    guard->hold = acquire(guard->lock, SOON_MS);
}

static void let_go(guard *guard) { free_all(guard->hold, guard->lock, guard->client); }

static int is(const char *path, const char *data) { return !strcmp(ground("data %s", path), data); }

static int version_of(const char *path) {
    const char *version = strstr(ground("stat %s", path), " version=");
    return atoi(version + strlen(" version="));
}

TEST(a_guarded_write_is_done_while_the_lock_is_held) {
    guard guard;
    hold(&guard, SESSION_MS);
    zklock_write first = creates(guard.state, "0");
    zklock_write second[] = {sets(guard.state, "1", 0), creates(guard.child, "c")};
    zklock_write third[] = {deletes(guard.child, ZKLOCK_ANY_VERSION), sets(guard.state, "2", ZKLOCK_ANY_VERSION)};
    int32_t versions[3] = {99, 99, 99};
    OK(zklock_hold_commit(guard.hold, &first, 1, NULL));
    OK(zklock_hold_commit(guard.hold, second, 2, versions));
    CHECK(is(guard.state, "1") && is(guard.child, "c"));
    CHECK(versions[0] == 1 && versions[1] == 0 && versions[2] == 99);
    OK(zklock_hold_commit(guard.hold, third, 2, versions));
    CHECK(is(guard.state, "2") && contenders_at(guard.state) == 0);
    CHECK(versions[0] == ZKLOCK_NO_NODE && versions[1] == 2 && versions[2] == 99);
    /* Any bytes are allowed: a NUL among them, or none at all. */
    zklock_write bytes = {
        .kind = ZKLOCK_WRITE_SET, .version = 2, .path = guard.state, .data = "a\0b", .length = 3};
    OK(zklock_hold_commit(guard.hold, &bytes, 1, NULL));
    CHECK(!memcmp(ground("data %s", guard.state), "a\0b", 3));
    zklock_write empty = {.kind = ZKLOCK_WRITE_SET, .version = 3, .path = guard.state, .data = NULL};
    OK(zklock_hold_commit(guard.hold, &empty, 1, NULL));
    CHECK(is(guard.state, ""));
    OK(zklock_release(guard.hold));
    IS(zklock_hold_commit(guard.hold, third + 1, 1, NULL), ZKLOCK_NOT_HELD);
    CHECK(is(guard.state, ""));
    let_go(&guard);
}

TEST(a_guarded_write_is_done_whole_or_not_at_all) {
    guard guard;
    char other[96];
    hold(&guard, SESSION_MS);
    snprintf(other, sizeof other, "%s-other", guard.state);
    ground("create %s before", guard.state);
    zklock_write conflicts[][2] = {
        {creates(other, ""), sets(guard.state, "after", 7)},
        {sets(guard.state, "after", ZKLOCK_ANY_VERSION), creates(guard.state, "")},
        {creates(other, ""), deletes(guard.state, 7)},
        {sets(guard.state, "after", 0), deletes(other, ZKLOCK_ANY_VERSION)},
    };
    for (int at = 0; at < 4; at++) {
        IS(zklock_hold_commit(guard.hold, conflicts[at], 2, NULL), ZKLOCK_CONFLICT);
        SAYS("number 2, of /");
        SAYS(conflicts[at][1].path);
        SAYS("nothing was written");
        CHECK(zklock_last_conflict() == 1);
        CHECK(!strcmp(ground("exists %s", other), "false"));
        CHECK(is(guard.state, "before") && version_of(guard.state) == 0);
    }
    IS(zklock_hold_commit(guard.hold, conflicts[1] + 1, 1, NULL), ZKLOCK_CONFLICT);
    CHECK(zklock_last_conflict() == 0);
    IS(zklock_hold_commit(NULL, NULL, 0, NULL), ZKLOCK_INVALID_ARGUMENT);
    CHECK(zklock_last_conflict() == -1);
    /* A conflict does not lose the hold. */
    OK(zklock_release(guard.hold));
    let_go(&guard);
}

TEST(a_guarded_write_is_refused_when_an_operator_has_deleted_the_node) {
    guard guard;
    const char *node;
    hold(&guard, SESSION_MS);
    zklock_write stale = sets(guard.state, "stale", ZKLOCK_ANY_VERSION);
    ground("create %s before", guard.state);
    OK(zklock_hold_node(guard.hold, &node));
    ground("delete %s", node);
    for (int again = 0; again < 2; again++) {
        IS(zklock_hold_commit(guard.hold, &stale, 1, NULL), ZKLOCK_LOST);
        SAYS(guard.path);
        CHECK(version_of(guard.state) == 0 && valid_for(guard.hold) == 0);
    }
    CHECK(state_of(guard.hold) == ZKLOCK_STATE_LOST);
    let_go(&guard);
}

TEST(a_guarded_write_is_refused_when_the_session_has_expired) {
    guard guard;
    zklock_reason reason;
    zklock_status early;
    hold(&guard, SESSION_MS);
    zklock_write stale = sets(guard.state, "stale", ZKLOCK_ANY_VERSION);
    ground("create %s before", guard.state);
    expire_session(guard.proxy);
    /* At first the holder may not know of the loss. Then the write gets no answer, which does not count as success. */
    early = zklock_hold_commit(guard.hold, &stale, 1, NULL);
    CHECK(early == ZKLOCK_LOST || early == ZKLOCK_UNCERTAIN);
    OK(zklock_hold_wait_lost(guard.hold, SOON_MS, &reason));
    CHECK(reason == ZKLOCK_REASON_SESSION_EXPIRED);
    IS(zklock_hold_commit(guard.hold, &stale, 1, NULL), ZKLOCK_LOST);
    CHECK(version_of(guard.state) == 0);
    let_go(&guard);
}

typedef struct {
    guard *guard;
    zklock_status status;
} late;

static void *writes_late(void *argument) {
    late *late = argument;
    zklock_write stale = sets(late->guard->state, "stale", ZKLOCK_ANY_VERSION);
    late->status = zklock_hold_commit(late->guard->hold, &stale, 1, NULL);
    return NULL;
}

TEST(a_guarded_write_that_was_late_is_refused_after_the_next_has_the_lock) {
    guard guard;
    late late = {.guard = &guard};
    zklock_client *client = new_client();
    zklock_lock *lock;
    zklock_hold *next;
    zklock_reason reason;
    thread *writing;
    hold(&guard, 1000);
    zklock_write good = sets(guard.state, "next", 0), stale = sets(guard.state, "stale", ZKLOCK_ANY_VERSION);
    lock = new_mutex(client, guard.path, 0);
    ground("create %s before", guard.state);
    ground("freeze %d both", guard.proxy);
    /* A write that is on its way when the lock passes on. */
    writing = start_thread(writes_late, &late);
    next = acquire(lock, SOON_MS);
    CHECK(valid_for(guard.hold) == 0 && token_of(next) > token_of(guard.hold));
    ground("thaw %d", guard.proxy);
    join_thread(writing);
    CHECK(late.status == ZKLOCK_LOST || late.status == ZKLOCK_UNCERTAIN);
    OK(zklock_hold_wait_lost(guard.hold, SOON_MS, &reason));
    IS(zklock_hold_commit(guard.hold, &stale, 1, NULL), ZKLOCK_LOST);
    CHECK(version_of(guard.state) == 0);
    OK(zklock_hold_commit(next, &good, 1, NULL));
    CHECK(is(guard.state, "next"));
    free_all(next, lock, client);
    let_go(&guard);
}

TEST(a_guarded_write_whose_reply_is_lost_is_uncertain) {
    static const char *const lose[] = {"drop-reply", "drop-request"};
    guard guard;
    hold(&guard, SESSION_MS);
    zklock_write write = sets(guard.state, "x", ZKLOCK_ANY_VERSION);
    ground("create %s", guard.state);
    for (int side = 0; side < 2; side++) {
        int before = version_of(guard.state), lost = new_hook(lose[side], guard.proxy, "multi", 1, guard.state);
        IS(zklock_hold_commit(guard.hold, &write, 1, NULL), ZKLOCK_UNCERTAIN);
        SAYS("read whether they were done, then decide");
        char data[8];
        size_t length;
        int32_t version;
        OK(zklock_hold_read(guard.hold, guard.state, data, sizeof data, &length, &version));
        CHECK(version == before + (side == 0) && length == (side == 0) && (side || *data == 'x'));
        await_hook(lost);
        CHECK((version_of(guard.state) > before) == (side == 0));
        zklock_write clears = sets(guard.state, "", version);
        OK(zklock_hold_commit(guard.hold, &clears, 1, NULL));
    }
    /* The hold outlives a broken connection. */
    OK(zklock_hold_confirm(guard.hold, NULL));
    OK(zklock_release(guard.hold));
    let_go(&guard);
}

TEST(a_hold_reads_nodes_whatever_became_of_it) {
    guard guard;
    const char *node;
    char data[8] = "-------";
    size_t length = 99;
    int32_t version = 99;
    hold(&guard, SESSION_MS);
    OK(zklock_hold_read(guard.hold, guard.state, data, sizeof data, &length, &version));
    CHECK(version == ZKLOCK_NO_NODE && length == 0 && !strcmp(data, "-------"));
    ground("create %s abcdef", guard.state);
    OK(zklock_hold_read(guard.hold, guard.state, data, sizeof data, &length, &version));
    CHECK(version == 0 && length == 6 && !memcmp(data, "abcdef-", 7));
    /* The call returns as many bytes as fit. */
    memcpy(data, "-------", 7);
    OK(zklock_hold_read(guard.hold, guard.state, data, 3, &length, &version));
    CHECK(length == 6 && !memcmp(data, "abc----", 7));
    OK(zklock_hold_read(guard.hold, guard.state, NULL, 0, &length, &version));
    CHECK(length == 6);
    IS(zklock_hold_read(guard.hold, guard.state, NULL, 1, &length, &version), ZKLOCK_INVALID_ARGUMENT);
    SAYS("buffer is NULL");
    IS(zklock_hold_read(guard.hold, "state", data, 1, &length, &version), ZKLOCK_INVALID_ARGUMENT);
    SAYS("is relative");
    /* The hold is lost with its node, and then with its session. */
    OK(zklock_hold_node(guard.hold, &node));
    ground("delete %s", node);
    zklock_write stale = sets(guard.state, "stale", ZKLOCK_ANY_VERSION);
    IS(zklock_hold_commit(guard.hold, &stale, 1, NULL), ZKLOCK_LOST);
    OK(zklock_hold_read(guard.hold, guard.state, data, sizeof data, &length, &version));
    CHECK(version == 0);
    expire_session(guard.proxy);
    OK(zklock_hold_read(guard.hold, guard.state, data, sizeof data, &length, &version));
    CHECK(version == 0);
    IS(zklock_release(guard.hold), ZKLOCK_LOST);
    OK(zklock_hold_read(guard.hold, guard.state, data, sizeof data, &length, &version));
    CHECK(version == 0);
    /* The read fails, but does not wait for ever. */
    ground("freeze %d both", guard.proxy);
    length = 99, version = 99;
    IS(zklock_hold_read(guard.hold, guard.state, data, sizeof data, &length, &version), ZKLOCK_UNREACHABLE);
    SAYS(guard.state);
    CHECK(length == 99 && version == 99);
    ground("thaw %d", guard.proxy);
    OK(zklock_client_close(guard.client));
    IS(zklock_hold_read(guard.hold, guard.state, data, sizeof data, &length, &version), ZKLOCK_CLOSED);
    let_go(&guard);
}

TEST_MAIN("standalone tick=200 max-session=4000",
          LISTED(a_hold_reads_nodes_whatever_became_of_it),
          LISTED(tokens_grow_when_the_parent_is_deleted_and_the_numbers_begin_again),
          LISTED(tokens_grow_over_new_sessions_and_the_server_calls_them_the_same),
          LISTED(a_guarded_write_is_done_while_the_lock_is_held),
          LISTED(a_guarded_write_is_done_whole_or_not_at_all),
          LISTED(a_guarded_write_is_refused_when_an_operator_has_deleted_the_node),
          LISTED(a_guarded_write_is_refused_when_the_session_has_expired),
          LISTED(a_guarded_write_that_was_late_is_refused_after_the_next_has_the_lock),
          LISTED(a_guarded_write_whose_reply_is_lost_is_uncertain))
