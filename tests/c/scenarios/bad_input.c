/* Wrong arguments are reported where they come in, with advice, and leave nothing on the server. */

#include "test.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#define INVALID(call, part)                   \
    do {                                      \
        IS(call, ZKLOCK_INVALID_ARGUMENT);    \
        SAYS(part);                           \
    } while (0)

static const char *const NOT_UTF8 = "/bad/\xff\xfe";

TEST(a_bad_path_is_refused_before_anything_is_sent) {
    static char longest[2100] = "/bad";
    const struct {
        const char *path, *telling;
    } bad[] = {{"", "is empty: a path begins with /"},
               {"bad/relative", "is relative: a path begins with /"},
               {"/bad//double", "contains //: leave one out"},
               {"/bad/", "ends with /: leave that out"},
               {"/bad\x7f" "delete", "ZooKeeper forbids"},
               {"/bad/../up", "no relative paths"},
               {"/bad/.", "no relative paths"},
               {"/", "is the root: name a node below it"},
               {"/zookeeper", "belongs to ZooKeeper itself"},
               {"/zookeeper/config", "belongs to ZooKeeper itself"},
               {longest, "longer than 2048 bytes: shorten it"},
               {NOT_UTF8, "path is not UTF-8 from byte 5 on"},
               {NULL, "path is NULL"}};
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = NULL;
    memset(longest + 4, 'x', sizeof longest - 5);
    ground("record %d", proxy);
    for (size_t at = 0; at < sizeof bad / sizeof *bad; at++) {
        INVALID(zklock_mutex_new(client, bad[at].path, NULL, &lock), bad[at].telling);
        SAYS("zklock_mutex_new: ");
        CHECK(!lock);
    }
    CHECK(!strstr(ground("messages %d", proxy), "/bad"));
    CHECK(!strcmp(ground("exists /bad"), "false"));
    zklock_client_free(client);
}

TEST(a_path_that_is_long_or_foreign_but_allowed_works) {
    static char longest[2001] = "/bad-not-";
    const char *const good[] = {"/bad-not/L\xc3\xa4nge/\xe8\xb7\xaf\xe5\xbe\x84 mit Raum", "/zookeeper-not", longest};
    zklock_client *client = new_client();
    memset(longest + 9, 'x', sizeof longest - 10);
    for (int at = 0; at < 3; at++) {
        zklock_lock *lock = new_mutex(client, good[at], 0);
        zklock_hold *hold = acquire(lock, SOON_MS);
        const char *path, *node;
        OK(zklock_lock_path(lock, &path));
        CHECK(!strcmp(path, good[at]));
        OK(zklock_hold_path(hold, &path));
        OK(zklock_hold_node(hold, &node));
        CHECK(!strcmp(path, good[at]) && !strncmp(node, good[at], strlen(good[at])));
        OK(zklock_release(hold));
        free_all(hold, lock, NULL);
    }
    zklock_client_free(client);
}

TEST(bad_options_are_named_one_by_one) {
    const char *const hosts[] = {"",       ",",           "zk1:0",     "zk1:x", "zk1:70000",
                                 "zk1:-1", ":2181",       "zk 1:2181", "[::1",  "zk1,,zk2"};
    char identity[1026], chroot[600];
    zklock_options *options = NULL;
    zklock_client *client = NULL;
    zklock_lock *lock;
    zklock_hold *hold;
    const char *node;
    for (size_t at = 0; at < sizeof hosts / sizeof *hosts; at++) {
        INVALID(zklock_client_new(hosts[at], NULL, &client), "write host:port,host:port");
        SAYS(hosts[at]);
    }
    INVALID(zklock_client_new("zk1:2181/a//b", NULL, &client), "contains //");
    INVALID(zklock_client_new(NULL, NULL, &client), "hosts is NULL");
    INVALID(zklock_client_new(NOT_UTF8, NULL, &client), "hosts is not UTF-8");
    INVALID(zklock_client_new(servers(), NULL, NULL), "client is NULL: give a place for the result");
    INVALID(zklock_options_new(NULL), "is NULL");

    OK(zklock_options_new(&options));
    INVALID(zklock_options_set_session_timeout(options, 0), "choose 100 ms to 24 days");
    INVALID(zklock_options_set_session_timeout(options, 99), "99ms");
    INVALID(zklock_options_set_session_timeout(options, -1), "must not be negative");
    INVALID(zklock_options_set_session_timeout(options, INT64_C(2147483648)), "choose 100 ms to 24 days");
    INVALID(zklock_options_set_session_timeout(options, INT64_MAX), "choose 100 ms to 24 days");
    INVALID(zklock_options_set_connect_timeout(options, -1), "must not be negative");
    INVALID(zklock_options_set_connect_timeout(options, INT64_MIN), "must not be negative");
    INVALID(zklock_options_set_connect_timeout(options, 0), "no time to connect");
    INVALID(zklock_options_set_try_timeout(options, -1), "must not be negative");
    INVALID(zklock_options_set_try_timeout(options, INT64_MIN), "must not be negative");
    INVALID(zklock_options_set_try_timeout(options, 0), "no time to answer");
    INVALID(zklock_options_set_server_version(options, 3, 3), "version 3.3 cannot be used: 3.4 is the oldest");
    INVALID(zklock_options_set_server_version(options, 0, 4), "3.4 is the oldest");
    INVALID(zklock_options_set_chroot(options, "apps"), "is relative");
    INVALID(zklock_options_set_chroot(options, NULL), "path is NULL");
    INVALID(zklock_options_set_chroot(options, NOT_UTF8), "not UTF-8");
    memset(identity, 'x', 1025);
    identity[1025] = 0;
    INVALID(zklock_options_set_identity(options, identity), "at most 1024");
    INVALID(zklock_options_set_identity(options, NULL), "identity is NULL");
    INVALID(zklock_options_set_identity(options, NOT_UTF8), "not UTF-8");
    /* None of this has changed the options. The limits themselves are accepted, and the server grants the nearest timeout. */
    identity[1024] = 0;
    OK(zklock_options_set_identity(options, identity));
    OK(zklock_options_set_connect_timeout(options, INT64_MAX));
    OK(zklock_options_set_try_timeout(options, INT64_MAX));
    OK(zklock_options_set_session_timeout(options, 100));
    OK(zklock_options_set_session_timeout(options, 2147483647));
    OK(zklock_client_new(servers(), options, &client));
    CHECK(stats_of(client).session_timeout == SESSION_MS);
    lock = new_mutex(client, fresh_path(), 0);
    hold = acquire(lock, SOON_MS);
    OK(zklock_hold_node(hold, &node));
    CHECK(!strcmp(ground("data %s", node), identity));
    OK(zklock_release(hold));
    free_all(hold, lock, client);

    /* The chroot of the options replaces that of the hosts. Neither exists. */
    OK(zklock_options_set_chroot(options, "/bad-chroot/none"));
    client = NULL;
    IS(zklock_client_new(servers(), options, &client), ZKLOCK_REFUSED);
    SAYS("/bad-chroot/none does not exist");
    SAYS("create it");
    snprintf(chroot, sizeof chroot, "%s/bad-chroot", servers());
    IS(zklock_client_new(chroot, NULL, &client), ZKLOCK_REFUSED);
    SAYS("/bad-chroot does not exist");
    CHECK(!client && !strcmp(ground("exists /bad-chroot"), "false"));
    ground("create /bad-chroot");
    OK(zklock_options_set_chroot(options, "/bad-chroot"));
    OK(zklock_client_new(servers(), options, &client));
    lock = new_mutex(client, "/below", 0);
    hold = acquire(lock, SOON_MS);
    CHECK(contenders_at("/bad-chroot/below") == 1);
    zklock_options_free(options);
    free_all(hold, lock, client);
}

TEST(hosts_that_are_no_zookeeper_are_told_from_those_that_are_not_there) {
    int closed = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    char hosts[700], nobody[64];
    zklock_options *options;
    zklock_client *client = NULL;
    OK(zklock_options_new(&options));
    OK(zklock_options_set_connect_timeout(options, 500));
    IS(zklock_client_new("no-such-host.invalid:2181", NULL, &client), ZKLOCK_UNREACHABLE);
    SAYS("none of the hosts is known");
    SAYS("no-such-host.invalid");
    /* The port is bound, but nobody listens. */
    CHECK(!bind(closed, (struct sockaddr *)&address, sizeof address));
    CHECK(!getsockname(closed, (struct sockaddr *)&address, &size));
    snprintf(nobody, sizeof nobody, "127.0.0.1:%d", ntohs(address.sin_port));
    IS(zklock_client_new(nobody, options, &client), ZKLOCK_UNREACHABLE);
    SAYS(nobody);
    SAYS("refused");
    SAYS("within 500ms");
    CHECK(!listen(closed, 4));
    IS(zklock_client_new(nobody, options, &client), ZKLOCK_UNREACHABLE);
    SAYS("accepts connections but opens no session: is it ZooKeeper");
    close(closed);
    CHECK(!client);
    /* One good server is enough. */
    snprintf(hosts, sizeof hosts, "%s,%s", nobody, servers());
    OK(zklock_client_new(hosts, NULL, &client));
    zklock_client_free(client);
    zklock_options_free(options);
}

/* Numbers that no enum defines. */
TEST(numbers_that_mean_nothing_are_named) {
    const int32_t numbers[] = {-1, 0, 99, INT32_MIN, INT32_MAX};
    zklock_client *client = new_client();
    zklock_lock_options *options;
    zklock_lock *lock = NULL;
    zklock_bucket bucket;
    size_t length = 99;
    double sum;
    for (int at = 0; at < 5; at++) {
        char number[32];
        snprintf(number, sizeof number, "number %d", (int)numbers[at]);
        INVALID(zklock_client_histogram(client, numbers[at], &bucket, 1, &length, &sum), number);
        if (numbers[at]) INVALID(zklock_set_log(numbers[at], NULL, NULL), "one of zklock_log_level");
    }
    OK(zklock_lock_options_new(&options));
    INVALID(zklock_lock_options_set_flags(options, 8), "no such flag: 0x8");
    INVALID(zklock_lock_options_set_flags(options, 0x80000001), "no such flag: 0x80000000");
    for (int at = 0; at < 5; at++) {
        INVALID(zklock_lock_options_set_dialect(options, numbers[at]), "no dialect with the number");
    }
    zklock_lock_options_free(options);
    CHECK(length == 99 && !lock);
    CHECK(!strcmp(zklock_status_name(ZKLOCK_OK), "ZKLOCK_OK"));
    CHECK(!strcmp(zklock_status_name(ZKLOCK_INTERNAL), "ZKLOCK_INTERNAL"));
    for (int at = 0; at < 5; at++) {
        if (numbers[at] < 0 || numbers[at] > 17) CHECK(!strcmp(zklock_status_name(numbers[at]), "unknown"));
    }
    zklock_client_free(client);
}

TEST(guarded_writes_that_cannot_be_are_named_and_nothing_is_written) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    char *much = calloc(1, 512 * 1024 + 1);
    zklock_write good = {.kind = ZKLOCK_WRITE_CREATE, .path = "/bad-write"};
    const struct {
        zklock_write write;
        const char *telling;
    } bad[] = {{{.kind = 0, .path = "/bad-write"}, "no kind of write with the number 0"},
               {{.kind = 4, .path = "/bad-write"}, "no kind of write with the number 4"},
               {{.kind = -1, .path = "/bad-write"}, "no kind of write with the number -1"},
               {{.kind = ZKLOCK_WRITE_SET, .path = NULL}, "the path of a write is NULL"},
               {{.kind = ZKLOCK_WRITE_SET, .path = NOT_UTF8}, "the path of a write is not UTF-8"},
               {{.kind = ZKLOCK_WRITE_SET, .path = "relative"}, "is relative"},
               {{.kind = ZKLOCK_WRITE_DELETE, .path = ""}, "is empty"},
               {{.kind = ZKLOCK_WRITE_SET, .path = "/bad-write", .length = 1}, "the data of a write is NULL"},
               {{.kind = ZKLOCK_WRITE_CREATE, .path = "/bad-much", .data = much, .length = 512 * 1024},
                "512 KiB"}};
    for (size_t at = 0; at < sizeof bad / sizeof *bad; at++) {
        zklock_write writes[2] = {good, bad[at].write};
        INVALID(zklock_hold_commit(hold, writes, 2, NULL), bad[at].telling);
        SAYS("zklock_hold_commit: ");
    }
    INVALID(zklock_hold_commit(hold, NULL, 1, NULL), "writes is NULL");
    INVALID(zklock_hold_commit(NULL, &good, 1, NULL), "zklock_hold is NULL");
    CHECK(!strcmp(ground("exists /bad-write"), "false"));
    CHECK(state_of(hold) == ZKLOCK_STATE_HELD);
    /* The most data that fits, and none at all. */
    zklock_write fits = {.kind = ZKLOCK_WRITE_CREATE, .path = "/bad-much", .data = much, .length = 511 * 1024};
    OK(zklock_hold_commit(hold, &fits, 1, NULL));
    OK(zklock_hold_commit(hold, NULL, 0, NULL));
    OK(zklock_hold_commit(hold, &good, 1, NULL));
    free(much);
    OK(zklock_release(hold));
    free_all(hold, lock, client);
}

TEST(a_version_that_no_node_can_have_is_not_taken_for_any_version) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    const int32_t versions[] = {-2, INT32_MIN};
    ground("create /bad-version before");
    for (int at = 0; at < 2; at++) {
        for (int32_t kind = ZKLOCK_WRITE_SET; kind <= ZKLOCK_WRITE_DELETE; kind++) {
            zklock_write write = {.kind = kind, .version = versions[at], .path = "/bad-version"};
            zklock_status status = zklock_hold_commit(hold, &write, 1, NULL);
            CHECK(status == ZKLOCK_INVALID_ARGUMENT || status == ZKLOCK_CONFLICT);
            CHECK(!strcmp(ground("data /bad-version"), "before"));
        }
    }
    OK(zklock_release(hold));
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

TEST(a_handle_that_is_none_or_null_is_named_and_results_are_left_alone) {
    zklock_client *client = new_client(), *freed = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0), *none = NULL;
    zklock_hold *hold = acquire(lock, SOON_MS), *no_hold = NULL;
    zklock_call *no_call = NULL;
    int on_stack = 7, descriptor = -7;
    uint64_t token = 99;
    char sentence[512];
    zklock_client_free(freed);
    zklock_client_free(freed);
    IS(zklock_mutex_new(freed, "/bad", NULL, &none), ZKLOCK_INVALID_HANDLE);
    SAYS("the zklock_client has been freed: use it no more");
    IS(zklock_client_close(freed), ZKLOCK_INVALID_HANDLE);
    IS(zklock_acquire((zklock_lock *)hold, 0, &no_hold), ZKLOCK_INVALID_HANDLE);
    SAYS("a handle of another type than zklock_lock");
    IS(zklock_release((zklock_hold *)&on_stack), ZKLOCK_INVALID_HANDLE);
    SAYS("not a zklock handle");
    IS(zklock_call_hold((zklock_call *)lock, &no_hold), ZKLOCK_INVALID_HANDLE);
    /* Freeing an invalid handle does nothing. */
    zklock_hold_free((zklock_hold *)lock);
    zklock_lock_free((zklock_lock *)hold);
    zklock_call_free((zklock_call *)&on_stack);
    zklock_hold_free(NULL);
    zklock_lock_free(NULL);
    zklock_client_free(NULL);
    zklock_call_free(NULL);
    zklock_options_free(NULL);
    CHECK(state_of(hold) == ZKLOCK_STATE_HELD && on_stack == 7);

    INVALID(zklock_acquire(NULL, 0, &no_hold), "the zklock_lock is NULL");
    INVALID(zklock_release(NULL), "the zklock_hold is NULL");
    INVALID(zklock_client_close(NULL), "the zklock_client is NULL");
    INVALID(zklock_call_cancel(NULL), "the zklock_call is NULL");
    INVALID(zklock_hold_token(NULL, &token), "the zklock_hold is NULL");
    INVALID(zklock_hold_token(hold, NULL), "token is NULL: give a place for the result");
    INVALID(zklock_hold_state(hold, NULL, NULL), "state is NULL: give a place");
    INVALID(zklock_hold_fd(NULL, &descriptor), "NULL");
    INVALID(zklock_hold_on_lost(hold, NULL, NULL), "the callback is NULL");
    INVALID(zklock_hold_wait_lost(hold, 0, NULL), "reason is NULL: give a place");
    INVALID(zklock_contenders(lock, NULL, NULL), "the visitor is NULL");
    INVALID(zklock_contenders(NULL, never, NULL), "the zklock_lock is NULL");
    INVALID(zklock_acquire_start(lock, 0, NULL), "call is NULL: give a place");
    INVALID(zklock_acquire_start(NULL, 0, &no_call), "the zklock_lock is NULL");
    CHECK(!none && !no_hold && !no_call && token == 99 && descriptor == -7);
    /* Without a place for its result, the call acquired nothing. */
    OK(zklock_release(hold));
    INVALID(zklock_acquire(lock, 0, NULL), "hold is NULL: give a place");
    CHECK(stats_of(client).grants == 1);
    /* The message belongs to this thread, and stays until the next failure. */
    snprintf(sentence, sizeof sentence, "%s", zklock_last_error());
    CHECK(join_thread(start_thread(last_error, NULL)) == NULL);
    zklock_hold_free(hold);
    hold = acquire(lock, SOON_MS);
    CHECK(!strcmp(zklock_last_error(), sentence));
    free_all(hold, lock, client);
}

/* The remaining time of a deadline may be negative, and must not become a wait for ever. */
TEST(a_negative_timeout_is_refused_but_for_that_of_ever) {
    const int64_t late[] = {-2, -1500, INT32_MIN, INT64_MIN};
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *none = NULL;
    zklock_call *waiting = NULL;
    zklock_observer *observer;
    zklock_barrier *barrier;
    zklock_double_barrier *doors;
    zklock_member *member, *nobody = NULL;
    zklock_reason reason;
    const zklock_contender *holder;
    OK(zklock_observe(lock, &observer));
    OK(zklock_barrier_new(client, fresh_path(), &barrier));
    OK(zklock_barrier_set(barrier, NULL));
    OK(zklock_double_barrier_new(client, fresh_path(), 1, &doors));
    OK(zklock_double_barrier_enter(doors, SOON_MS, &member));
    for (size_t at = 0; at < sizeof late / sizeof *late; at++) {
        INVALID(zklock_acquire(lock, late[at], &none), "-1 (ZKLOCK_FOREVER) waits for ever, 0 tries once");
        SAYS("make it at least 0");
        INVALID(zklock_acquire_start(lock, late[at], &waiting), "ZKLOCK_FOREVER");
        INVALID(zklock_hold_wait_lost(hold, late[at], &reason), "ZKLOCK_FOREVER");
        INVALID(zklock_observer_next(observer, late[at], &holder), "ZKLOCK_FOREVER");
        INVALID(zklock_barrier_wait(barrier, late[at]), "ZKLOCK_FOREVER");
        INVALID(zklock_double_barrier_enter(doors, late[at], &nobody), "ZKLOCK_FOREVER");
        INVALID(zklock_member_leave(member, late[at]), "ZKLOCK_FOREVER");
    }
    CHECK(!none && !waiting && !nobody);
    /* None of them has changed anything. */
    OK(zklock_member_leave(member, SOON_MS));
    OK(zklock_barrier_remove(barrier, NULL));
    zklock_member_free(member);
    zklock_double_barrier_free(doors);
    zklock_barrier_free(barrier);
    zklock_observer_free(observer);
    give_back(hold);
    free_all(NULL, lock, client);
}

TEST(a_closed_client_says_so_and_does_nothing) {
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    const char *path = fresh_path();
    zklock_lock *lock = new_mutex(client, path, 0), *other;
    zklock_hold *none = NULL;
    const int64_t timeouts[] = {ZKLOCK_FOREVER, 0, SOON_MS};
    OK(zklock_client_close(client));
    OK(zklock_client_close(client));
    ground("record %d", proxy);
    other = new_mutex(client, path, ZKLOCK_REENTRANT);
    for (int at = 0; at < 3; at++) {
        IS(zklock_acquire(lock, timeouts[at], &none), ZKLOCK_CLOSED);
        SAYS("the client is closed: make a new one");
        IS(zklock_acquire(other, timeouts[at], &none), ZKLOCK_CLOSED);
    }
    IS(zklock_contenders(lock, never, NULL), ZKLOCK_CLOSED);
    CHECK(stats_of(client).session_id == 0 && stats_of(client).session_timeout == 0);
    CHECK(stats_of(client).owed == 0 && !none);
    CHECK(!strstr(ground("messages %d", proxy), "request:"));
    CHECK(!strcmp(ground("exists %s", path), "false"));
    zklock_lock_free(other);
    free_all(NULL, lock, client);
}

TEST(a_parent_that_is_ephemeral_is_named) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0), *below;
    zklock_hold *hold = acquire(lock, SOON_MS), *none = NULL;
    const char *node;
    char path[256];
    OK(zklock_hold_node(hold, &node));
    for (int deeper = 0; deeper < 2; deeper++) {
        snprintf(path, sizeof path, "%s%s", node, deeper ? "/below" : "");
        below = new_mutex(client, path, 0);
        IS(zklock_acquire(below, SOON_MS, &none), ZKLOCK_REFUSED);
        SAYS(path);
        SAYS("can have no children");
        zklock_lock_free(below);
    }
    CHECK(!none);
    OK(zklock_release(hold));
    free_all(hold, lock, client);
}

TEST(a_look_at_the_queue_is_bounded_too_and_names_the_trouble) {
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    zklock_client *client = client_with(hosts, SESSION_MS, 700);
    const char *path = fresh_path();
    zklock_lock *lock = new_mutex(client, path, 0);
    int64_t begun;
    /* Without the node there are no contenders. */
    OK(zklock_contenders(lock, never, NULL));
    on_time();
    ground("freeze %d both", proxy);
    begun = now_ms();
    IS(zklock_contenders(lock, never, NULL), ZKLOCK_UNREACHABLE);
    NOT_LATER(now_ms() - begun, 700 + grace_ms());
    SAYS(path);
    SAYS("could not be read");
    ground("thaw %d", proxy);
    free_all(NULL, lock, client);
}

TEST_MAIN("standalone max-session=4000", LISTED(a_bad_path_is_refused_before_anything_is_sent),
          LISTED(a_path_that_is_long_or_foreign_but_allowed_works), LISTED(bad_options_are_named_one_by_one),
          LISTED(hosts_that_are_no_zookeeper_are_told_from_those_that_are_not_there),
          LISTED(numbers_that_mean_nothing_are_named),
          LISTED(guarded_writes_that_cannot_be_are_named_and_nothing_is_written),
          LISTED(a_handle_that_is_none_or_null_is_named_and_results_are_left_alone),
          LISTED(a_negative_timeout_is_refused_but_for_that_of_ever),
          LISTED(a_closed_client_says_so_and_does_nothing), LISTED(a_parent_that_is_ephemeral_is_named),
          LISTED(a_look_at_the_queue_is_bounded_too_and_names_the_trouble),
          LISTED(a_version_that_no_node_can_have_is_not_taken_for_any_version))
