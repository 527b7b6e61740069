/* A client that connects on first use, for programs that fork after their setup. */

#define _GNU_SOURCE
#include "guest.h"

/* A client of these servers that has not connected, and a mutex and a job of it. */
typedef struct {
    zklock_client *client;
    zklock_lock *lock;
    zklock_job *job;
} lazy;

static lazy new_lazy(const char *hosts, const char *path) {
    zklock_client *client = MADE(zklock_client, zklock_client_new_lazy(hosts, options_with(SESSION_MS, 0), &made));
    return (lazy){client, new_mutex(client, path, 0), new_job(client, "/jobs/lazy")};
}

static void free_lazy(lazy own) {
    zklock_lock_free(own.lock);
    zklock_job_free(own.job);
    zklock_client_free(own.client);
}

static void shows_this_process(const zklock_contender *contender, void *token) {
    const char *pid = strrchr(contender->identity, '/');
    if (contender->token != *(uint64_t *)token) return;
    CHECK(pid && atoi(pid + 1) == getpid());
    *(uint64_t *)token = 0;
}

static void use(lazy own) {
    zklock_hold *hold = acquire(own.lock, SOON_MS);
    uint64_t token = token_of(hold);
    OK(zklock_contenders(own.lock, shows_this_process, &token));
    CHECK(!token);
    give_back(hold);
    OK(zklock_job_begin(own.job, SOON_MS, &hold));
    OK(zklock_job_end(hold, "the next process runs it again"));
    zklock_hold_free(hold);
    CHECK(stats_of(own.client).sessions == 1);
}

static void nobody(const zklock_contender *holder, void *context) {
    (void)context;
    failed(__FILE__, __LINE__, "%s holds it", holder->node);
}

TEST(nothing_is_done_before_it_is_needed) {
    size_t threads = our_tasks(), open = descriptors();
    /* No server listens there, but nothing connects. */
    lazy nowhere = new_lazy("127.0.0.1:1", fresh_path());
    free_lazy(nowhere);
    lazy own = new_lazy(servers(), fresh_path());
    zklock_observer *observer = MADE(zklock_observer, zklock_observe(own.lock, &made));
    CHECK(our_tasks() == threads && descriptors() == open);
    CHECK(stats_of(own.client).sessions == 0 && stats_of(own.client).session_id == 0);
    OK(zklock_observer_next(observer, SOON_MS, nobody, NULL));
    use(own);
}

TEST(each_child_uses_what_the_parent_made_and_did_not_use) {
    lazy own = new_lazy(servers(), fresh_path());
    pid_t children[3];
    for (size_t at = 0; at < COUNT(children); at++) {
        children[at] = fork();
        CHECK(children[at] >= 0);
        if (children[at]) continue;
        CHECK(*zklock_lock_path(own.lock) == '/');
        use(own);
        pid_t grandchild = fork();
        if (!grandchild) {
            zklock_hold *hold;
            zklock_call *call;
            int64_t begun = now_ms();
            IS(zklock_acquire(own.lock, SOON_MS, &hold), ZKLOCK_FORKED);
            IS(zklock_client_connect_start(own.client, SOON_MS, &call), ZKLOCK_FORKED);
            CHECK(now_ms() - begun < SOON_MS);
            free_lazy(own);
            _exit(0);
        }
        CHECK(reaped(grandchild, ENDS_MS) == 0);
        use(own);
        free_lazy(own);
        _exit(0);
    }
    for (size_t at = 0; at < COUNT(children); at++) CHECK(reaped(children[at], 2 * ENDS_MS) == 0);
    /* Whatever children did with their copies has no effect here. */
    CHECK(stats_of(own.client).sessions == 0);
    use(own);
}

TEST(what_a_child_frees_is_gone) {
    lazy own = new_lazy(servers(), fresh_path());
    pid_t child = new_child();
    if (!child) {
        /* Opens the descriptors that the library needs for any client. */
        zklock_client *other = new_client();
        size_t open = descriptors();
        use(own);
        CHECK(descriptors() > open);
        free_lazy(own);
        EVENTUALLY(descriptors() <= open);
        zklock_client_free(other);
        _exit(0);
    }
    CHECK(reaped(child, 2 * ENDS_MS) == 0);
    use(own);
}

TEST_MAIN("standalone")
