/* Wrong arguments are reported with advice: the sentences. (`misuse` makes each call with each wrong argument.) */

#include "test.h"

#define INVALID(call, part)                \
    do {                                   \
        IS(call, ZKLOCK_INVALID_ARGUMENT); \
        SAYS(part);                        \
    } while (0)

static const char *const NOT_UTF8 = "/bad/\xff\xfe";

TEST(a_bad_path_is_refused_and_any_other_is_not_changed) {
    static char longest[2100] = "/bad";
    const struct {
        const char *path, *telling;
    } bad[] = {{"", "is empty: a path begins with /"},
               {"bad/relative", "is relative: a path begins with /"},
               {"/bad//double", "contains //: leave one out"},
               {"/bad/", "ends with /: leave that out"},
               {"/bad\x7f" "delete", "ZooKeeper forbids"},
               {"/bad/../up", "no relative paths"},
               {"/", "is the root: name a node below it"},
               {"/zookeeper/config", "belongs to ZooKeeper itself"},
               {longest, "longer than 2048 bytes: shorten it"},
               {NOT_UTF8, "path is not UTF-8 from byte 5 on"},
               {NULL, "path is NULL"}};
    zklock_client *client = new_client();
    zklock_lock *lock = NULL;
    memset(longest + 4, 'x', sizeof longest - 5);
    for (size_t at = 0; at < sizeof bad / sizeof *bad; at++) {
        INVALID(zklock_mutex_new(client, bad[at].path, NULL, &lock), bad[at].telling);
        SAYS("zklock_mutex_new: ");
        CHECK(!lock);
    }
    const char *const foreign = "/bad-not/L\xc3\xa4nge/\xe8\xb7\xaf\xe5\xbe\x84 mit Raum", *path;
    lock = new_mutex(client, foreign, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    OK(zklock_lock_path(lock, &path));
    CHECK(!strcmp(path, foreign));
    OK(zklock_hold_path(hold, &path));
    CHECK(!strcmp(path, foreign) && !strncmp(node_of(hold), foreign, strlen(foreign)));
    free_all(hold, lock, client);
}

TEST(bad_options_are_named_one_by_one_and_good_ones_reach_the_client) {
    const char *const hosts[] = {"", ",", "zk1:0", "zk1:x", "zk1:70000", "zk1:-1", ":2181", "zk 1:2181", "[::1", "zk1,,zk2"};
    char identity[1026], chroot[600];
    zklock_options *options;
    zklock_client *client = NULL;
    for (size_t at = 0; at < sizeof hosts / sizeof *hosts; at++) {
        INVALID(zklock_client_new(hosts[at], NULL, &client), "write host:port,host:port");
        SAYS(hosts[at]);
    }
    INVALID(zklock_client_new("zk1:2181/a//b", NULL, &client), "contains //");
    INVALID(zklock_client_new(NULL, NULL, &client), "hosts is NULL");
    INVALID(zklock_client_new(NOT_UTF8, NULL, &client), "hosts is not UTF-8");
    INVALID(zklock_client_new(servers(), NULL, NULL), "client is NULL: give a place for the result");
    IS(zklock_client_new("no-such-host.invalid:2181", NULL, &client), ZKLOCK_UNREACHABLE);
    SAYS("none of the hosts is known");
    OK(zklock_options_new(&options));
    INVALID(zklock_options_set_session_timeout(options, 99), "99ms");
    INVALID(zklock_options_set_session_timeout(options, -1), "must not be negative");
    INVALID(zklock_options_set_session_timeout(options, INT64_C(2147483648)), "choose 100 ms to 24 days");
    INVALID(zklock_options_set_connect_timeout(options, -1), "must not be negative");
    INVALID(zklock_options_set_connect_timeout(options, 0), "no time to connect");
    INVALID(zklock_options_set_try_timeout(options, INT64_MIN), "must not be negative");
    INVALID(zklock_options_set_try_timeout(options, 0), "no time to answer");
    INVALID(zklock_options_set_server_version(options, 3, 3), "version 3.3 cannot be used: 3.4 is the oldest");
    INVALID(zklock_options_set_chroot(options, "apps"), "is relative");
    memset(identity, 'x', 1025);
    identity[1025] = 0;
    INVALID(zklock_options_set_identity(options, identity), "at most 1024");
    INVALID(zklock_options_set_identity(options, NULL), "identity is NULL");
    /* None of this has changed the options. The limits themselves are accepted, and the server grants the nearest timeout. */
    identity[1024] = 0;
    OK(zklock_options_set_identity(options, identity));
    OK(zklock_options_set_connect_timeout(options, INT64_MAX));
    OK(zklock_options_set_try_timeout(options, INT64_MAX));
    OK(zklock_options_set_session_timeout(options, 2147483647));
    OK(zklock_options_set_server_version(options, 3, 4));
    /* The chroot of the options replaces that of the hosts. */
    OK(zklock_options_set_chroot(options, "/bad-chroot/none"));
    IS(zklock_client_new(servers(), options, &client), ZKLOCK_REFUSED);
    SAYS("/bad-chroot/none does not exist");
    SAYS("create it");
    snprintf(chroot, sizeof chroot, "%s/bad-other", servers());
    IS(zklock_client_new(chroot, NULL, &client), ZKLOCK_REFUSED);
    SAYS("/bad-other does not exist");
    CHECK(!client && !strcmp(ground("exists /bad-chroot"), "false"));
    OK(zklock_options_set_create_chroot(options, 1));
    OK(zklock_client_new(chroot, options, &client));
    zklock_options_free(options);
    CHECK(stats_of(client).session_timeout == SESSION_MS);
    zklock_lock *lock = new_mutex(client, "/below", 0), *several = new_semaphore(client, "/several", 4, 2);
    zklock_hold *hold = acquire(lock, SOON_MS), *none;
    CHECK(!strcmp(ground("data /bad-chroot/none%s", node_of(hold)), identity));
    /* The version that is stated lacks this. */
    IS(zklock_acquire(several, SOON_MS, &none), ZKLOCK_REFUSED);
    SAYS("ZooKeeper 3.5 or later");
    zklock_lock_free(several);
    free_all(hold, lock, client);
}

static void never(const zklock_contender *contender, void *context) {
    (void)context;
    failed(__FILE__, __LINE__, "%s was shown", contender->name);
}

static void *last_error(void *nothing) {
    (void)nothing;
    return (void *)(intptr_t)strlen(zklock_last_error());
}

TEST(handles_numbers_and_places_that_are_none_are_named) {
    zklock_client *client = new_client(), *freed = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0), *none = NULL;
    zklock_hold *hold = acquire(lock, SOON_MS), *no_hold = NULL;
    zklock_lock_options *options;
    zklock_bucket bucket;
    size_t length;
    double sum;
    int on_stack = 7;
    char sentence[512];
    zklock_client_free(freed);
    IS(zklock_mutex_new(freed, "/bad", NULL, &none), ZKLOCK_INVALID_HANDLE);
    SAYS("the zklock_client has been freed: use it no more");
    IS(zklock_acquire((zklock_lock *)hold, 0, &no_hold), ZKLOCK_INVALID_HANDLE);
    SAYS("a handle of another type than zklock_lock");
    IS(zklock_release((zklock_hold *)&on_stack), ZKLOCK_INVALID_HANDLE);
    SAYS("not a zklock handle");
    INVALID(zklock_acquire(NULL, 0, &no_hold), "the zklock_lock is NULL");
    INVALID(zklock_hold_token(hold, NULL), "token is NULL: give a place for the result");
    INVALID(zklock_hold_on_lost(hold, NULL, NULL), "the callback is NULL");
    INVALID(zklock_contenders(lock, NULL, NULL), "the visitor is NULL");
    INVALID(zklock_contenders(NULL, never, NULL), "the zklock_lock is NULL");
    INVALID(zklock_client_histogram(client, 99, &bucket, 1, &length, &sum), "number 99");
    OK(zklock_lock_options_new(&options));
    INVALID(zklock_lock_options_set_flags(options, 0x80000001), "no such flag: 0x80000000");
    INVALID(zklock_lock_options_set_dialect(options, -1), "no dialect with the number");
    zklock_lock_options_free(options);
    /* The remaining time of a deadline may be negative, and must not become a wait for ever. */
    INVALID(zklock_acquire(lock, -2, &no_hold), "-1 (ZKLOCK_FOREVER) waits for ever, 0 tries once");
    SAYS("make it at least 0");
    CHECK(!none && !no_hold);
    /* Without a place for its result, the call acquired nothing. */
    give_back(hold);
    INVALID(zklock_acquire(lock, 0, NULL), "hold is NULL: give a place");
    CHECK(stats_of(client).grants == 1);
    /* The message belongs to this thread, and stays until the next failure. */
    snprintf(sentence, sizeof sentence, "%s", zklock_last_error());
    CHECK(join_thread(start_thread(last_error, NULL)) == NULL);
    give_back(acquire(lock, SOON_MS));
    CHECK(!strcmp(zklock_last_error(), sentence));
    free_all(NULL, lock, client);
}

TEST(guarded_writes_that_cannot_be_are_named_and_nothing_is_written) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    char *much = calloc(1, 512 * 1024);
    zklock_write good = {.kind = ZKLOCK_WRITE_CREATE, .path = "/bad-write"};
    const struct {
        zklock_write write;
        const char *telling;
    } bad[] = {{{.kind = 4, .path = "/bad-write"}, "no kind of write with the number 4"},
               {{.kind = ZKLOCK_WRITE_SET, .path = NULL}, "the path of a write is NULL"},
               {{.kind = ZKLOCK_WRITE_SET, .path = NOT_UTF8}, "the path of a write is not UTF-8"},
               {{.kind = ZKLOCK_WRITE_SET, .path = "relative"}, "is relative"},
               {{.kind = ZKLOCK_WRITE_SET, .path = "/bad-write", .length = 1}, "the data of a write is NULL"},
               {{.kind = ZKLOCK_WRITE_CREATE, .path = "/bad-much", .data = much, .length = 512 * 1024}, "512 KiB"}};
    for (size_t at = 0; at < sizeof bad / sizeof *bad; at++) {
        zklock_write writes[2] = {good, bad[at].write};
        INVALID(zklock_hold_commit(hold, writes, 2, NULL), bad[at].telling);
        SAYS("zklock_hold_commit: ");
    }
    INVALID(zklock_hold_commit(hold, NULL, 1, NULL), "writes is NULL");
    CHECK(!strcmp(ground("exists /bad-write"), "false"));
    /* The most data that fits, and none at all. */
    zklock_write fits = {.kind = ZKLOCK_WRITE_CREATE, .path = "/bad-much", .data = much, .length = 511 * 1024};
    OK(zklock_hold_commit(hold, &fits, 1, NULL));
    OK(zklock_hold_commit(hold, NULL, 0, NULL));
    free(much);
    free_all(hold, lock, client);
}

TEST(what_is_no_set_and_no_choice_is_refused) {
    typedef zklock_status of_several(zklock_client *, zklock_lock *const *, size_t, const zklock_lock_options *, zklock_lock **);
    of_several *const make[] = {zklock_all_new, zklock_any_new};
    rivals all = new_rivals();
    zklock_lock *exclusive = new_lock(zklock_exclusive_new, all.client, fresh_path()), *none = NULL, *set;
    zklock_lock *reader = new_lock(zklock_rwlock_read_new, all.client, all.path), *ours = all.lock;
    zklock_lock_options *options;
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_permits(options, 2));
    for (int kind = 0; kind < 2; kind++) {
        OK(make[kind](all.client, &ours, 1, NULL, &set));
        zklock_lock *const twice[] = {ours, reader}, *const foreign[] = {ours, all.others}, *const queueless[] = {ours, exclusive};
        INVALID(make[kind](all.client, NULL, 0, NULL, &none), "one lock at least");
        INVALID(make[kind](all.client, twice, 2, NULL, &none), "two of them are of one path");
        INVALID(make[kind](all.client, foreign, 2, NULL, &none), "must come from the client");
        INVALID(make[kind](all.client, queueless, 2, NULL, &none), "has no queue");
        if (make[kind] == zklock_any_new) INVALID(make[kind](all.client, &set, 1, NULL, &none), "such a choice itself");
        INVALID(make[kind](all.client, &ours, 1, options, &none), "");
        zklock_lock_free(set);
    }
    CHECK(!none);
    zklock_lock_options_free(options);
    zklock_lock_free(reader);
    zklock_lock_free(exclusive);
    free_rivals(&all);
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

TEST_MAIN(STANDALONE)
