/* Wrong arguments are reported with advice: the sentences of C itself, and that those of the core are passed on. (`misuse` makes
 * each call with each wrong argument.) */

#include "test.h"

#define INVALID(call, part) FAILS(call, ZKLOCK_INVALID_ARGUMENT, part)

static const char *const NOT_UTF8 = "/bad/\xff\xfe";

/* A wrong text, with what is said of it. */
typedef struct {
    const char *option, *text, *telling;
} wrong;

TEST(a_bad_path_is_refused_and_any_other_is_not_changed) {
    static const wrong bad[] = {{NULL, "bad/relative", "is relative: a path begins with /"},
                                {NULL, "/bad/\xff\xfe", "path is not UTF-8 from byte 5 on"},
                                {NULL, NULL, "path is NULL"}};
    zklock_client *client = new_client();
    zklock_lock *lock = NULL;
    for (size_t at = 0; at < sizeof bad / sizeof *bad; at++) {
        INVALID(zklock_mutex_new(client, bad[at].text, NULL, &lock), bad[at].telling);
        SAYS("zklock_mutex_new: ");
        CHECK(!lock);
    }
    const char *const foreign = "/bad-not/L\xc3\xa4nge/\xe8\xb7\xaf\xe5\xbe\x84 mit Raum";
    lock = new_mutex(client, foreign, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    CHECK(!strcmp(zklock_lock_path(lock), foreign));
    CHECK(!strcmp(zklock_hold_path(hold), foreign) && !strncmp(node_of(hold), foreign, strlen(foreign)));
}

TEST(bad_options_are_named_and_good_ones_reach_what_they_are_of) {
    static const wrong bad[] = {{"sessiontimeout", "1s", "there is no option \"sessiontimeout\"; did you mean session-timeout?"},
                                {"after_failure", "next", "did you mean after-failure?"},
                                {"session-timeout", "99ms", "99ms is not possible: choose 100 ms to 24 days"},
                                {NULL, "1s", "option is NULL"},
                                {"identity", NULL, "value is NULL"},
                                {"identity", "/bad/\xff\xfe", "value is not UTF-8"}};
    zklock_options *options = options_with(SESSION_MS / 2, 0);
    zklock_client *client = NULL, *rare = NULL;
    INVALID(zklock_client_new("zk1:x", NULL, &client), "write host:port,host:port");
    CHECK(!setenv("ZKLOCK_HOSTS", "", 1));
    INVALID(zklock_client_new(NULL, NULL, &client), "ZKLOCK_HOSTS names none");
    INVALID(zklock_client_new(NOT_UTF8, NULL, &client), "hosts is not UTF-8");
    INVALID(zklock_client_new(servers(), NULL, NULL), "client is NULL: give a place for the result");
    for (size_t at = 0; at < sizeof bad / sizeof *bad; at++) {
        INVALID(zklock_options_set(options, bad[at].option, bad[at].text), bad[at].telling);
    }
    /* None of this has changed the options. */
    CHECK(!setenv("ZKLOCK_HOSTS", servers(), 1));
    client = MADE(zklock_client, zklock_client_new(NULL, options, &made));
    CHECK(stats_of(client).session_timeout == SESSION_MS / 2);
    /* What is made has the options of its kind alone. */
    zklock_lock *lock = NULL;
    zklock_job *job = NULL;
    INVALID(zklock_mutex_new(client, "/bad", options, &lock), "session-timeout is an option of a client, and this makes a lock");
    INVALID(zklock_job_new(client, "/bad", 1000, options, &job), "this makes a job");
    OK(zklock_options_set(options, "offset", "1h"));
    INVALID(zklock_client_new(servers(), options, &rare), "offset is an option of a job, and this makes a client");
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
    zklock_write writes[2] = {{.kind = ZKLOCK_WRITE_CREATE, .path = "/bad-write"}, {.kind = ZKLOCK_WRITE_SET, .path = NOT_UTF8}};
    int on_stack = 7;
    char sentence[512];
    zklock_client_free(freed);
    FAILS(zklock_mutex_new(freed, "/bad", NULL, &none), ZKLOCK_INVALID_HANDLE, "the zklock_client has been freed: do not use it again");
    FAILS(zklock_acquire((zklock_lock *)hold, 0, &no_hold), ZKLOCK_INVALID_HANDLE, "a handle of another type than zklock_lock");
    FAILS(zklock_release((zklock_hold *)&on_stack), ZKLOCK_INVALID_HANDLE, "not a zklock handle");
    INVALID(zklock_acquire(NULL, 0, &no_hold), "the zklock_lock is NULL");
    INVALID(zklock_hold_on_lost(hold, NULL, NULL), "the callback is NULL");
    INVALID(zklock_contenders(lock, NULL, NULL), "the visitor is NULL");
    INVALID(zklock_contenders(NULL, never, NULL), "the zklock_lock is NULL");
    INVALID(zklock_hold_commit(hold, writes, 2, NULL), "the path of a write is not UTF-8");
    INVALID(zklock_hold_commit(hold, NULL, 1, NULL), "writes is NULL");
    CHECK(!strcmp(ground("exists /bad-write"), "false"));
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
}

TEST_MAIN(STANDALONE " tick=200")
