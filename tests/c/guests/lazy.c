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
    lazy made;
    zklock_options *options = options_with(SESSION_MS, 0);
    OK(zklock_client_new_lazy(hosts, options, &made.client));
    zklock_options_free(options);
    made.lock = new_mutex(made.client, path, 0);
    made.job = new_job(made.client, "/jobs/lazy");
    return made;
}

static void free_lazy(lazy made) {
    zklock_lock_free(made.lock);
    zklock_job_free(made.job);
    zklock_client_free(made.client);
}

static void shows_this_process(const zklock_contender *contender, void *token) {
    const char *pid = strrchr(contender->identity, '/');
    if (contender->token != *(uint64_t *)token) return;
    CHECK(pid && atoi(pid + 1) == getpid());
    *(uint64_t *)token = 0;
}

static void use(lazy made) {
    zklock_hold *hold = acquire(made.lock, SOON_MS);
    uint64_t token = token_of(hold);
    OK(zklock_contenders(made.lock, shows_this_process, &token));
    CHECK(!token);
    give_back(hold);
    OK(zklock_job_begin(made.job, SOON_MS, &hold));
    OK(zklock_job_end(hold, "the next process runs it again"));
    zklock_hold_free(hold);
    CHECK(stats_of(made.client).sessions == 1);
}

static void nobody(const zklock_contender *holder, void *context) {
    (void)context;
    failed(__FILE__, __LINE__, "%s holds it", holder->node);
}

TEST(nothing_is_done_before_it_is_needed) {
    size_t threads = our_tasks(), open = descriptors();
    zklock_observer *observer;
    /* No server listens there, but nothing connects. */
    lazy nowhere = new_lazy("127.0.0.1:1", fresh_path());
    free_lazy(nowhere);
    lazy made = new_lazy(servers(), fresh_path());
    OK(zklock_observe(made.lock, &observer));
    CHECK(our_tasks() == threads && descriptors() == open);
    CHECK(stats_of(made.client).sessions == 0 && stats_of(made.client).session_id == 0);
    OK(zklock_observer_next(observer, SOON_MS, nobody, NULL));
    use(made);
    zklock_observer_free(observer);
    free_lazy(made);
}

TEST(each_child_uses_what_the_parent_made_and_did_not_use) {
    lazy made = new_lazy(servers(), fresh_path());
    pid_t children[3];
    for (size_t at = 0; at < COUNT(children); at++) {
        children[at] = fork();
        CHECK(children[at] >= 0);
        if (children[at]) continue;
        CHECK(*zklock_lock_path(made.lock) == '/');
        use(made);
        pid_t grandchild = fork();
        if (!grandchild) {
            zklock_hold *hold;
            zklock_call *call;
            int64_t begun = now_ms();
            IS(zklock_acquire(made.lock, SOON_MS, &hold), ZKLOCK_FORKED);
            IS(zklock_client_connect_start(made.client, SOON_MS, &call), ZKLOCK_FORKED);
            CHECK(now_ms() - begun < SOON_MS);
            free_lazy(made);
            _exit(0);
        }
        CHECK(reaped(grandchild, ENDS_MS) == 0);
        use(made);
        free_lazy(made);
        _exit(0);
    }
    for (size_t at = 0; at < COUNT(children); at++) CHECK(reaped(children[at], 2 * ENDS_MS) == 0);
    /* Whatever children did with their copies has no effect here. */
    CHECK(stats_of(made.client).sessions == 0);
    use(made);
    free_lazy(made);
}

TEST(what_a_child_frees_is_gone_and_what_the_parent_used_stays_with_it) {
    lazy made = new_lazy(servers(), fresh_path()), used = new_lazy(servers(), fresh_path());
    zklock_hold *hold = acquire(used.lock, SOON_MS), *another;
    pid_t child = new_child();
    if (!child) {
        IS(zklock_acquire(used.lock, SOON_MS, &another), ZKLOCK_FORKED);
        free_lazy(used);
        /* Opens the descriptors that the library needs for any client. */
        zklock_client *other = new_client();
        size_t open = descriptors();
        use(made);
        CHECK(descriptors() > open);
        free_lazy(made);
        EVENTUALLY(descriptors() <= open);
        zklock_client_free(other);
        _exit(0);
    }
    CHECK(reaped(child, 2 * ENDS_MS) == 0);
    becomes_valid(hold);
    give_back(hold);
    use(made);
    free_lazy(made);
    free_lazy(used);
}

TEST_MAIN("standalone")
