/* The constructors of each kind of lock: what they pass on, and what they refuse. */

#include "test.h"

static zklock_lock *with(constructor *make, zklock_client *client, const char *path, uint32_t flags, zklock_dialect dialect) {
    zklock_lock_options *options;
    zklock_lock *lock;
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_flags(options, flags));
    OK(zklock_lock_options_set_dialect(options, dialect));
    OK(make(client, path, options, &lock));
    zklock_lock_options_free(options);
    return lock;
}

/* Checks that the client's lock has such a node, and keeps the other's out while it is held. */
static void excludes(zklock_lock *lock, const char *node, zklock_lock *others) {
    zklock_hold *hold = acquire(lock, SOON_MS);
    CHECK(strstr(node_of(hold), node) && !can_be_had(others));
    uint64_t token = token_of(hold);
    give_back(hold);
    hold = acquire(others, SOON_MS);
    CHECK(token_of(hold) > token);
    give_back(hold);
    zklock_lock_free(lock);
    zklock_lock_free(others);
}

TEST(each_kind_and_each_dialect_has_its_nodes) {
    rivals all = new_rivals();
    zklock_client *one = all.client, *two = all.other;
    constructor *const read = zklock_rwlock_read_new, *const write = zklock_rwlock_write_new;
    char path[64];
    snprintf(path, sizeof path, "%s", fresh_path());
    excludes(new_lock(read, one, path), "-__READ__", new_lock(write, two, path));
    excludes(new_lock(write, one, path), "-__WRIT__", new_lock(read, two, path));
    snprintf(path, sizeof path, "%s", fresh_path());
    excludes(new_lock(zklock_election_new, one, path), "-latch-", new_lock(zklock_election_new, two, path));
    snprintf(path, sizeof path, "%s", fresh_path());
    excludes(new_lock(zklock_exclusive_new, one, path), "/lock", new_lock(zklock_exclusive_new, two, path));
    snprintf(path, sizeof path, "%s", fresh_path());
    excludes(new_semaphore(one, path, 3, 2), "/leases/_c_", new_semaphore(two, path, 3, 2));
    snprintf(path, sizeof path, "%s", fresh_path());
    const zklock_dialect kazoo = ZKLOCK_DIALECT_KAZOO, writelock = ZKLOCK_DIALECT_WRITELOCK;
    excludes(with(read, one, path, 0, kazoo), "__rlock__", with(write, two, path, 0, kazoo));
    excludes(with(zklock_mutex_new, one, path, 0, kazoo), "__lock__", with(zklock_mutex_new, two, path, 0, kazoo));
    snprintf(path, sizeof path, "%s", fresh_path());
    excludes(with(zklock_mutex_new, one, path, 0, writelock), "/x-", with(zklock_mutex_new, two, path, 0, writelock));
    free_rivals(&all);
}

TEST(readers_hold_together_and_a_reentrant_writer_reads_without_a_gap) {
    rivals all = new_rivals();
    zklock_lock *reader = new_lock(zklock_rwlock_read_new, all.client, all.path), *others = new_lock(zklock_rwlock_read_new, all.other, all.path),
                *own = with(zklock_rwlock_read_new, all.client, all.path, ZKLOCK_REENTRANT, ZKLOCK_DIALECT_CURATOR),
                *writer = with(zklock_rwlock_write_new, all.client, all.path, ZKLOCK_REENTRANT, ZKLOCK_DIALECT_CURATOR);
    zklock_hold *read = acquire(reader, SOON_MS), *written, *none;
    CHECK(can_be_had(others));
    give_back(read);
    written = acquire(writer, SOON_MS);
    read = acquire(reader, 0);
    CHECK(strcmp(node_of(read), node_of(written)) && !can_be_had(others));
    give_back(written);
    OK(zklock_hold_confirm(read, NULL));
    give_back(read);
    read = acquire(own, SOON_MS);
    IS(zklock_acquire(writer, ZKLOCK_FOREVER, &none), ZKLOCK_DEADLOCK);
    SAYS("read side");
    give_back(read);
    zklock_lock *const locks[] = {reader, others, own, writer};
    for (int at = 0; at < 4; at++) zklock_lock_free(locks[at]);
    free_rivals(&all);
}

TEST(a_contender_of_another_kind_is_named_unless_the_lock_is_told_to_go_ahead) {
    rivals all = new_rivals();
    zklock_lock *reader = new_lock(zklock_rwlock_read_new, all.other, all.path), *bold = new_mutex(all.client, all.path, ZKLOCK_ALLOW_FOREIGN);
    zklock_hold *read = acquire(reader, SOON_MS), *none = NULL;
    zklock_call *call;
    IS(zklock_acquire(all.lock, SOON_MS, &none), ZKLOCK_FOREIGN_CONTENDER);
    SAYS("__READ__");
    OK(zklock_acquire_start(all.lock, 0, &call));
    await_call(call);
    IS(zklock_call_hold(call, &none), ZKLOCK_FOREIGN_CONTENDER);
    zklock_call_free(call);
    settled(all.client);
    CHECK(!none && contenders_at(all.path) == 1);
    attempt *waiting = start_acquire(bold, SOON_MS);
    wait_for_contenders(all.path, 2);
    CHECK(!is_over(waiting));
    give_back(read);
    give_back(granted(waiting));
    zklock_lock_free(bold);
    zklock_lock_free(reader);
    free_rivals(&all);
}

TEST(the_limit_of_a_semaphore_can_be_changed_while_some_wait) {
    const char *path = fresh_path();
    char limit[128];
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock_options *options;
    zklock_lock *lock;
    snprintf(limit, sizeof limit, "%s-limits/licences", path);
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_limit_at(options, limit));
    OK(zklock_semaphore_new(client, path, 1, options, &lock));
    zklock_lock_options_free(options);
    /* The node does not exist, so the constructor's limit counts. */
    zklock_hold *first = acquire(lock, SOON_MS), *second;
    CHECK(!can_be_had(lock));
    attempt *waiting = start_acquire(lock, SOON_MS);
    OK(zklock_set_limit(other, limit, 2));
    second = granted(waiting);
    OK(zklock_set_limit(other, limit, 1));
    give_back(first);
    CHECK(!can_be_had(lock));
    give_back(second);
    free_all(NULL, lock, client);
    zklock_client_free(other);
}

/* Mutexes of a client at several paths. */
enum { SEVERAL = 3 };

typedef struct {
    zklock_client *client;
    zklock_lock *locks[SEVERAL];
} several;

static char paths[SEVERAL][64];

static several mutexes(void) {
    several made = {.client = new_client()};
    for (int at = 0; at < SEVERAL; at++) made.locks[at] = new_mutex(made.client, paths[at], 0);
    return made;
}

static void free_several(several *made) {
    for (int at = 0; at < SEVERAL; at++) zklock_lock_free(made->locks[at]);
    settled(made->client);
    zklock_client_free(made->client);
}

static void fresh_paths(void) {
    for (int at = 0; at < SEVERAL; at++) snprintf(paths[at], sizeof paths[at], "%s", fresh_path());
}

TEST(all_of_a_set_are_held_or_none_and_it_outlives_its_locks) {
    fresh_paths();
    several ours = mutexes(), theirs = mutexes();
    zklock_lock *set, *inner;
    zklock_lock_options *options;
    const char *path;
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_flags(options, ZKLOCK_REENTRANT));
    OK(zklock_all_new(ours.client, ours.locks, SEVERAL, options, &set));
    OK(zklock_all_new(ours.client, ours.locks, SEVERAL, options, &inner));
    zklock_lock_options_free(options);
    free_several(&ours);
    zklock_hold *hold = acquire(set, SOON_MS), *again = acquire(inner, 0), *none;
    OK(zklock_lock_path(set, &path));
    for (int at = 0; at < SEVERAL; at++) CHECK(strstr(path, paths[at]) && !can_be_had(theirs.locks[at]));
    give_back(again);
    OK(zklock_hold_confirm(hold, NULL));
    give_back(hold);
    hold = acquire(theirs.locks[1], SOON_MS);
    IS(zklock_acquire(set, 100, &none), ZKLOCK_TIMEOUT);
    give_back(hold);
    hold = acquire(set, SOON_MS);
    ground("delete-tree %s", paths[2]);
    zklock_reason reason;
    OK(zklock_hold_wait_lost(hold, SOON_MS, &reason));
    CHECK(reason == ZKLOCK_REASON_NODE_DELETED && valid_for(hold) == 0);
    IS(zklock_release(hold), ZKLOCK_LOST);
    zklock_lock_free(inner);
    free_all(hold, set, NULL);
    free_several(&theirs);
}

TEST(any_of_several_locks_is_whichever_comes_first) {
    fresh_paths();
    several ours = mutexes(), theirs = mutexes();
    zklock_lock *any;
    zklock_hold *held[SEVERAL], *hold, *none = NULL;
    zklock_call *waits;
    const char *path;
    OK(zklock_any_new(ours.client, ours.locks, SEVERAL, NULL, &any));
    for (int at = 0; at < SEVERAL; at++) held[at] = acquire(theirs.locks[at], SOON_MS);
    IS(zklock_acquire(any, 100, &none), ZKLOCK_TIMEOUT);
    SAYS("none of the 3 locks");
    CHECK(!none);
    OK(zklock_acquire_start(any, SOON_MS, &waits));
    for (int at = 0; at < SEVERAL; at++) wait_for_contenders(paths[at], 2);
    give_back(held[1]);
    hold = hold_of(waits);
    OK(zklock_hold_path(hold, &path));
    CHECK(!strcmp(path, paths[1]));
    give_back(hold);
    give_back(held[0]);
    give_back(held[2]);
    zklock_lock_free(any);
    free_several(&ours);
    free_several(&theirs);
}

#define INVALID(call, part)                \
    do {                                   \
        IS(call, ZKLOCK_INVALID_ARGUMENT); \
        SAYS(part);                        \
    } while (0)

TEST(what_is_no_set_and_no_choice_is_refused) {
    typedef zklock_status of_several(zklock_client *, zklock_lock *const *, size_t, const zklock_lock_options *, zklock_lock **);
    of_several *const make[] = {zklock_all_new, zklock_any_new};
    fresh_paths();
    several ours = mutexes(), theirs = mutexes();
    zklock_lock *exclusive = new_lock(zklock_exclusive_new, ours.client, fresh_path()), *none = NULL, *set;
    zklock_lock *reader = new_lock(zklock_rwlock_read_new, ours.client, paths[0]);
    zklock_lock_options *options;
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_permits(options, 2));
    for (int kind = 0; kind < 2; kind++) {
        OK(make[kind](ours.client, ours.locks, SEVERAL, NULL, &set));
        zklock_lock *const twice[] = {ours.locks[0], reader}, *const foreign[] = {ours.locks[0], theirs.locks[1]},
                    *const queueless[] = {ours.locks[0], exclusive}, *const nested[] = {set}, *const null[] = {NULL};
        INVALID(make[kind](ours.client, NULL, 0, NULL, &none), "one lock at least");
        INVALID(make[kind](ours.client, twice, 2, NULL, &none), "two of them are of one path");
        INVALID(make[kind](ours.client, foreign, 2, NULL, &none), "must come from the client");
        INVALID(make[kind](ours.client, queueless, 2, NULL, &none), "has no queue");
        if (make[kind] == zklock_any_new) INVALID(make[kind](ours.client, nested, 1, NULL, &none), "such a choice itself");
        INVALID(make[kind](ours.client, null, 1, NULL, &none), "NULL");
        INVALID(make[kind](ours.client, ours.locks, 1, options, &none), "");
        zklock_lock_free(set);
    }
    CHECK(!none);
    zklock_lock_options_free(options);
    zklock_lock_free(reader);
    zklock_lock_free(exclusive);
    free_several(&ours);
    free_several(&theirs);
}

TEST(options_that_a_kind_does_not_have_are_refused) {
    zklock_client *client = new_client();
    zklock_lock_options *options;
    zklock_lock *lock = NULL;
    zklock_observer *observer = NULL;
    OK(zklock_lock_options_new(&options));
    INVALID(zklock_semaphore_new(client, "/bad", 0, NULL, &lock), "raise the limit");
    INVALID(zklock_lock_options_set_permits(options, 0), "1 to 256");
    INVALID(zklock_lock_options_set_permits(options, 257), "1 to 256");
    OK(zklock_lock_options_set_permits(options, 5));
    INVALID(zklock_semaphore_new(client, "/bad", 4, options, &lock), "5 permits of 4 would never be there");
    INVALID(zklock_mutex_new(client, "/bad", options, &lock), "only a semaphore has permits");
    OK(zklock_lock_options_set_permits(options, 1));
    OK(zklock_lock_options_set_flags(options, ZKLOCK_REENTRANT));
    INVALID(zklock_semaphore_new(client, "/bad", 4, options, &lock), "not reentrant");
    OK(zklock_lock_options_set_flags(options, 0));
    OK(zklock_lock_options_set_dialect(options, ZKLOCK_DIALECT_WRITELOCK));
    INVALID(zklock_semaphore_new(client, "/bad", 4, options, &lock), "a semaphore");
    INVALID(zklock_rwlock_read_new(client, "/bad", options, &lock), "no read and write sides");
    OK(zklock_lock_options_set_dialect(options, ZKLOCK_DIALECT_CURATOR));
    INVALID(zklock_lock_options_set_linger(options, -1), "a time to linger of -1 ms: it must not be negative");
    INVALID(zklock_lock_options_set_local_turns(options, 0), "the least is 1");
    OK(zklock_lock_options_set_linger(options, 1));
    INVALID(zklock_election_new(client, "/bad", options, &lock), "only mutexes and read/write locks have linger");
    INVALID(zklock_exclusive_new(client, "/bad", options, &lock), "only mutexes and read/write locks have linger");
    CHECK(!lock);
    zklock_lock *most = new_semaphore(client, fresh_path(), 256, 256);
    CHECK(can_be_had(most));
    INVALID(zklock_observe(most, &observer), "");
    CHECK(!observer);
    zklock_lock_options_free(options);
    free_all(NULL, most, client);
}

TEST_MAIN(STANDALONE, LISTED(each_kind_and_each_dialect_has_its_nodes),
          LISTED(readers_hold_together_and_a_reentrant_writer_reads_without_a_gap),
          LISTED(a_contender_of_another_kind_is_named_unless_the_lock_is_told_to_go_ahead),
          LISTED(the_limit_of_a_semaphore_can_be_changed_while_some_wait),
          LISTED(all_of_a_set_are_held_or_none_and_it_outlives_its_locks), LISTED(any_of_several_locks_is_whichever_comes_first),
          LISTED(what_is_no_set_and_no_choice_is_refused), LISTED(options_that_a_kind_does_not_have_are_refused))
