/* Acquires in the background: a call, its descriptor, its result. */

#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static zklock_call *start(zklock_lock *lock, int64_t timeout, int *descriptor) {
    zklock_call *waiting;
    OK(zklock_acquire_start(lock, timeout, &waiting));
    OK(zklock_call_fd(waiting, descriptor));
    return waiting;
}

/* Checks that there is this result, that a hold can only be taken once, and that a failure stays. */
static zklock_hold *ends(zklock_call *waiting, zklock_status wanted) {
    zklock_hold *hold = NULL, *none = NULL;
    int descriptor;
    OK(zklock_call_fd(waiting, &descriptor));
    CHECK(readable(descriptor, SOON_MS));
    IS(zklock_call_hold(waiting, &hold), wanted);
    CHECK((hold != NULL) == (wanted == ZKLOCK_OK));
    for (int again = 0; again < 2; again++) {
        IS(zklock_call_hold(waiting, &none), wanted == ZKLOCK_OK ? ZKLOCK_NOT_HELD : wanted);
        if (wanted == ZKLOCK_OK) SAYS("a hold was already taken");
        IS(zklock_call_finish(waiting, NULL), wanted);
    }
    CHECK(!none && readable(descriptor, 0));
    return hold;
}

/* Checks that the lock is free again, and nothing is owed. */
static void is_free(zklock_client *client, zklock_lock *lock) {
    const char *path;
    zklock_hold *hold = acquire(lock, SOON_MS);
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    OK(zklock_lock_path(lock, &path));
    settled(client);
    wait_for_contenders(path, 0);
}

TEST(a_started_acquire_is_pending_then_ready_and_fetched_once) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *first = acquire(lock, SOON_MS), *hold = NULL;
    int descriptor;
    zklock_call *waiting = start(lock, ZKLOCK_FOREVER, &descriptor);
    wait_for_contenders(path, 2);
    CHECK(!readable(descriptor, 50));
    for (int again = 0; again < 3; again++) IS(zklock_call_hold(waiting, &hold), ZKLOCK_PENDING);
    SAYS("descriptor");
    CHECK(!hold);
    OK(zklock_release(first));
    hold = ends(waiting, ZKLOCK_OK);
    CHECK(token_of(hold) > token_of(first) && valid_for(hold) > 0);
    /* The hold outlives its call. */
    zklock_call_free(waiting);
    CHECK(state_of(hold) == ZKLOCK_STATE_HELD);
    OK(zklock_release(hold));
    zklock_hold_free(first);
    free_all(hold, lock, client);
}

TEST(a_started_acquire_that_times_out_says_so_in_time_and_one_of_zero_tries_once) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *lock = new_mutex(client, path, 0), *others = new_mutex(other, path, 0);
    zklock_hold *first, *hold;
    int descriptor;
    zklock_call *waiting = start(lock, 0, &descriptor);
    first = ends(waiting, ZKLOCK_OK);
    zklock_call_free(waiting);
    for (int64_t timeout = 0; timeout <= 200; timeout += 100) {
        int64_t begun, took;
        on_time();
        begun = now_ms();
        waiting = start(others, timeout, &descriptor);
        CHECK(readable(descriptor, SOON_MS));
        took = now_ms() - begun;
        CHECK(took >= timeout - 1);
        if (timeout) NOT_LATER(took, timeout + grace_ms());
        ends(waiting, ZKLOCK_TIMEOUT);
        zklock_call_free(waiting);
        wait_for_contenders(path, 1);
    }
    OK(zklock_release(first));
    waiting = start(others, 0, &descriptor);
    hold = ends(waiting, ZKLOCK_OK);
    OK(zklock_release(hold));
    zklock_call_free(waiting);
    zklock_hold_free(first);
    free_all(hold, others, other);
    free_all(NULL, lock, client);
}

TEST(a_cancel_before_the_grant_leaves_no_node) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *lock = new_mutex(client, path, 0), *others = new_mutex(other, path, 0);
    zklock_hold *first = acquire(lock, SOON_MS);
    int descriptor;
    for (int late = 0; late < 2; late++) {
        zklock_call *waiting = start(others, ZKLOCK_FOREVER, &descriptor);
        /* Cancel it at once, or when it is in the queue. */
        if (late) wait_for_contenders(path, 2);
        OK(zklock_call_cancel(waiting));
        CHECK(readable(descriptor, 0));
        OK(zklock_call_cancel(waiting));
        ends(waiting, ZKLOCK_INTERRUPTED);
        OK(zklock_call_cancel(waiting));
        zklock_call_free(waiting);
        wait_for_contenders(path, 1);
        EVENTUALLY(stats_of(other).owed == 0);
    }
    CHECK(state_of(first) == ZKLOCK_STATE_HELD);
    OK(zklock_release(first));
    zklock_hold_free(first);
    is_free(other, others);
    free_all(NULL, others, other);
    free_all(NULL, lock, client);
}

TEST(a_hold_that_is_lost_after_its_call_was_looked_at_is_not_delivered) {
    zklock_client *client = new_client();
    const char *path = fresh_path();
    zklock_lock *lock = new_mutex(client, path, 0);
    int descriptor, context;
    zklock_call *waiting = start(lock, SOON_MS, &descriptor);
    zklock_hold *hold = NULL;
    zklock_client *none;
    int64_t number = -1;
    CHECK(readable(descriptor, SOON_MS));
    OK(zklock_call_finish(waiting, &number));
    CHECK(number == 0);
    IS(zklock_call_client(waiting, &none), ZKLOCK_INVALID_ARGUMENT);
    SAYS("does not give a client");
    ground("delete %s/%.90s", path, ground("children %s", path));
    EVENTUALLY(stats_of(client).losses == 1);
    IS(zklock_call_hold(waiting, &hold), ZKLOCK_LOST);
    SAYS("node");
    CHECK(!hold);
    zklock_call_free(waiting);
    /* One that is still held is delivered, with the context of its call. */
    waiting = start(lock, SOON_MS, &descriptor);
    CHECK(readable(descriptor, SOON_MS));
    OK(zklock_call_set_context(waiting, &context));
    OK(zklock_call_finish(waiting, NULL));
    hold = ends(waiting, ZKLOCK_OK);
    OK(zklock_hold_confirm(hold, NULL));
    OK(zklock_release(hold));
    zklock_call_free(waiting);
    free_all(hold, lock, client);
}

TEST(a_cancel_after_the_grant_changes_nothing) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold;
    int descriptor;
    zklock_call *waiting = start(lock, SOON_MS, &descriptor);
    CHECK(readable(descriptor, SOON_MS));
    OK(zklock_call_cancel(waiting));
    hold = ends(waiting, ZKLOCK_OK);
    /* Nor does one after it was fetched. */
    OK(zklock_call_cancel(waiting));
    CHECK(state_of(hold) == ZKLOCK_STATE_HELD);
    OK(zklock_hold_confirm(hold, NULL));
    OK(zklock_release(hold));
    zklock_call_free(waiting);
    is_free(client, lock);
    free_all(hold, lock, client);
}

static int64_t now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/* The grant and the cancel come at the same time: one of them counts, and the lock is free in the end. */
TEST(a_cancel_at_the_moment_of_the_grant_is_one_or_the_other) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    int descriptor, granted = 0, interrupted = 0;
    int64_t delay = 0;
    for (int round = 0; round < 300; round++) {
        zklock_call *waiting = start(lock, SOON_MS, &descriptor);
        zklock_hold *hold = NULL;
        zklock_status status;
        for (int64_t until = now_us() + delay; now_us() < until;) sched_yield();
        OK(zklock_call_cancel(waiting));
        CHECK(readable(descriptor, 0));
        status = zklock_call_hold(waiting, &hold);
        CHECK((status == ZKLOCK_OK && hold) || (status == ZKLOCK_INTERRUPTED && !hold));
        /* With this the cancel comes as often too early as too late, however slow the machine is. */
        delay = hold ? delay * 4 / 5 : delay * 5 / 4 + 10;
        if (hold) {
            OK(zklock_hold_confirm(hold, NULL));
            if (round % 2) OK(zklock_release(hold));
            zklock_hold_free(hold);
        }
        granted += hold != NULL;
        interrupted += hold == NULL;
        zklock_call_free(waiting);
    }
    if (!granted || !interrupted) {
        failed(__FILE__, __LINE__, "%d granted, %d interrupted: this shows nothing", granted, interrupted);
    }
    is_free(client, lock);
    free_all(NULL, lock, client);
}

TEST(a_grant_that_is_freed_unfetched_is_released) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    int descriptor, behind;
    zklock_call *waiting = start(lock, SOON_MS, &descriptor), *next;
    zklock_hold *hold;
    CHECK(readable(descriptor, SOON_MS));
    next = start(lock, SOON_MS, &behind);
    wait_for_contenders(path, 2);
    CHECK(!readable(behind, 50));
    zklock_call_free(waiting);
    hold = ends(next, ZKLOCK_OK);
    OK(zklock_release(hold));
    zklock_call_free(next);
    /* The same after a cancel that came too late. */
    waiting = start(lock, SOON_MS, &descriptor);
    CHECK(readable(descriptor, SOON_MS));
    OK(zklock_call_cancel(waiting));
    zklock_call_free(waiting);
    is_free(client, lock);
    CHECK(stats_of(client).losses == 0);
    free_all(hold, lock, client);
}

typedef enum { NODE_DELETED, EXPIRED, LAPSED, CLOSED } blow;

TEST(a_grant_that_is_lost_before_it_is_fetched_is_told_and_not_delivered) {
    static const char *const why[] = {"node", "session", "lease", "closed"};
    for (blow blow = NODE_DELETED; blow <= CLOSED; blow++) {
        const char *path = fresh_path();
        char node[160], hosts[128];
        int descriptor, proxy = new_proxy(hosts, sizeof hosts);
        zklock_client *client = client_with(hosts, 1000, 0);
        zklock_lock *lock = new_mutex(client, path, 0);
        zklock_call *waiting = start(lock, SOON_MS, &descriptor);
        zklock_hold *hold = NULL;
        CHECK(readable(descriptor, SOON_MS));
        snprintf(node, sizeof node, "%s/%.90s", path, ground("children %s", path));
        switch (blow) {
        case NODE_DELETED:
            ground("delete %s", node);
            EVENTUALLY(stats_of(client).losses == 1);
            break;
        case EXPIRED:
            expire_session(proxy);
            EVENTUALLY(stats_of(client).losses == 1);
            break;
        case LAPSED:
            ground("freeze %d both", proxy);
            EVENTUALLY(stats_of(client).losses == 1);
            break;
        case CLOSED:
            OK(zklock_client_close(client));
            break;
        }
        CHECK(readable(descriptor, 0));
        IS(zklock_call_hold(waiting, &hold), ZKLOCK_LOST);
        SAYS(path);
        SAYS(why[blow]);
        CHECK(!hold);
        IS(zklock_call_hold(waiting, &hold), ZKLOCK_LOST);
        ground("thaw %d", proxy);
        zklock_call_free(waiting);
        waiting = start(lock, SOON_MS, &descriptor);
        if (blow == CLOSED) {
            ends(waiting, ZKLOCK_CLOSED);
        } else {
            zklock_hold_free(ends(waiting, ZKLOCK_OK));
        }
        zklock_call_free(waiting);
        wait_for_contenders(path, 0);
        free_all(NULL, lock, client);
    }
}

TEST(many_started_acquires_of_one_lock_go_through_one_loop_in_one_thread) {
    enum { CALLS = 100 };
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_call *waiting[CALLS];
    uint64_t token = 0;
    int loop = epoll_create1(EPOLL_CLOEXEC), left = CALLS, descriptors[CALLS];
    CHECK(loop >= 0);
    for (int at = 0; at < CALLS; at++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)at};
        waiting[at] = start(lock, ZKLOCK_FOREVER, &descriptors[at]);
        CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, descriptors[at], &event));
    }
    for (int64_t until = now_ms() + SOON_MS; left;) {
        struct epoll_event event;
        zklock_hold *hold;
        CHECK(now_ms() < until);
        if (epoll_wait(loop, &event, 1, SOON_MS) != 1) continue;
        uint32_t at = event.data.u32;
        /* In the order of their arrival. */
        CHECK(at == (uint32_t)(CALLS - left));
        OK(zklock_call_hold(waiting[at], &hold));
        CHECK(token_of(hold) > token);
        token = token_of(hold);
        CHECK(!epoll_ctl(loop, EPOLL_CTL_DEL, descriptors[at], NULL));
        zklock_call_free(waiting[at]);
        /* An event loop frees without waiting. */
        zklock_hold_free(hold);
        left--;
    }
    close(loop);
    is_free(client, lock);
    CHECK(stats_of(client).grants == CALLS + 1);
    free_all(NULL, lock, client);
}

TEST(a_closed_client_ends_its_started_acquires) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *lock = new_mutex(client, path, 0), *others = new_mutex(other, path, 0);
    zklock_hold *hold = acquire(others, SOON_MS), *late_hold;
    int descriptors[3];
    zklock_call *queued = start(lock, ZKLOCK_FOREVER, &descriptors[0]), *local, *late;
    wait_for_contenders(path, 2);
    local = start(lock, SOON_MS, &descriptors[1]);
    CHECK(!readable(descriptors[0], 20) && !readable(descriptors[1], 0));
    OK(zklock_client_close(client));
    ends(queued, ZKLOCK_CLOSED);
    CHECK(readable(descriptors[1], SOON_MS));
    IS(zklock_call_hold(local, &late_hold), ZKLOCK_CLOSED);
    SAYS("the client is closed: make a new one");
    late = start(lock, SOON_MS, &descriptors[2]);
    ends(late, ZKLOCK_CLOSED);
    CHECK(contenders_at(path) == 1);
    OK(zklock_release(hold));
    zklock_call_free(queued);
    zklock_call_free(local);
    zklock_call_free(late);
    free_all(hold, others, other);
    free_all(NULL, lock, client);
}

TEST(a_started_acquire_outlives_its_lock_and_its_client) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *first = acquire(lock, SOON_MS), *hold;
    int descriptor;
    zklock_call *waiting = start(lock, ZKLOCK_FOREVER, &descriptor);
    wait_for_contenders(path, 2);
    zklock_lock_free(lock);
    zklock_client_free(client);
    CHECK(!readable(descriptor, 20));
    zklock_hold_free(first);
    hold = ends(waiting, ZKLOCK_OK);
    zklock_call_free(waiting);
    OK(zklock_hold_confirm(hold, NULL));
    OK(zklock_release(hold));
    CHECK(contenders_at(path) == 0);
    zklock_hold_free(hold);
}

typedef struct {
    zklock_call *waiting;
    zklock_hold *hold;
} fetching;

static void *fetches(void *argument) {
    fetching *fetching = argument;
    zklock_status status = zklock_call_hold(fetching->waiting, &fetching->hold);
    CHECK(status == ZKLOCK_OK || status == ZKLOCK_NOT_HELD);
    return (void *)(intptr_t)status;
}

TEST(of_many_threads_that_fetch_one_result_one_has_it) {
    enum { THREADS = 8 };
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    for (int round = 0; round < 20; round++) {
        fetching fetching[THREADS] = {{NULL, NULL}};
        thread *threads[THREADS];
        int descriptor, had = 0;
        zklock_call *waiting = start(lock, SOON_MS, &descriptor);
        CHECK(readable(descriptor, SOON_MS));
        for (int at = 0; at < THREADS; at++) {
            fetching[at].waiting = waiting;
            threads[at] = start_thread(fetches, &fetching[at]);
        }
        for (int at = 0; at < THREADS; at++) {
            zklock_status status = (zklock_status)(intptr_t)join_thread(threads[at]);
            CHECK((status == ZKLOCK_OK) == (fetching[at].hold != NULL));
            if (fetching[at].hold) OK(zklock_release(fetching[at].hold));
            had += fetching[at].hold != NULL;
            zklock_hold_free(fetching[at].hold);
        }
        CHECK(had == 1);
        zklock_call_free(waiting);
    }
    free_all(NULL, lock, client);
}

/* The lowest free descriptor. It stays the same as long as none is leaked. */
static int next_descriptor(void) {
    int next = dup(0);
    CHECK(next >= 0);
    close(next);
    return next;
}

TEST(descriptors_are_given_back_and_not_inherited) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    int before = next_descriptor(), descriptor, lost;
    for (int round = 0; round < 50; round++) {
        zklock_call *waiting = start(lock, ZKLOCK_FOREVER, &descriptor);
        CHECK(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
        CHECK(fcntl(descriptor, F_GETFL) & O_NONBLOCK);
        if (round % 2) OK(zklock_call_cancel(waiting));
        zklock_call_free(waiting);
    }
    EVENTUALLY(next_descriptor() == before);
    OK(zklock_hold_fd(hold, &lost));
    CHECK(fcntl(lost, F_GETFD) & FD_CLOEXEC);
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    for (int round = 0; round < 20; round++) {
        hold = acquire(lock, SOON_MS);
        OK(zklock_hold_fd(hold, &lost));
        zklock_hold_free(hold);
    }
    EVENTUALLY(next_descriptor() == before);
    is_free(client, lock);
    free_all(NULL, lock, client);
}

TEST(a_wait_needs_no_descriptor_before_one_is_asked_for) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *next = NULL;
    zklock_call *waiting = NULL;
    zklock_call *call = NULL;
    struct rlimit limit, none;
    int descriptor = -7;
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
    none = limit;
    none.rlim_cur = (rlim_t)next_descriptor();
    CHECK(!setrlimit(RLIMIT_NOFILE, &none));
    OK(zklock_acquire_start(lock, ZKLOCK_FOREVER, &waiting));
    OK(zklock_hold_confirm_start(hold, &call));
    IS(zklock_call_fd(waiting, &descriptor), ZKLOCK_REFUSED);
    SAYS("raise the limit of open files");
    IS(zklock_call_fd(call, &descriptor), ZKLOCK_REFUSED);
    IS(zklock_hold_fd(hold, &descriptor), ZKLOCK_REFUSED);
    IS(zklock_client_fd(client, &descriptor), ZKLOCK_REFUSED);
    SAYS("raise the limit of open files");
    CHECK(descriptor == -7);
    /* The call goes on without a descriptor. */
    EVENTUALLY(zklock_call_finish(call, NULL) == ZKLOCK_OK);
    zklock_call_free(call);
    OK(zklock_release_start(hold, &call));
    EVENTUALLY(zklock_call_hold(waiting, &next) == ZKLOCK_OK);
    EVENTUALLY(zklock_call_finish(call, NULL) == ZKLOCK_OK);
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    /* A descriptor that is made late is readable at once, or is not, just like one that was made early. */
    OK(zklock_call_fd(waiting, &descriptor));
    CHECK(readable(descriptor, 0));
    OK(zklock_call_fd(call, &descriptor));
    CHECK(readable(descriptor, 0));
    OK(zklock_hold_fd(next, &descriptor));
    CHECK(!readable(descriptor, 0));
    CHECK(state_of(next) == ZKLOCK_STATE_HELD);
    zklock_call_free(waiting);
    zklock_call_free(call);
    zklock_hold_free(hold);
    free_all(next, lock, client);
}

TEST_MAIN("standalone tick=200 max-session=4000", LISTED(a_started_acquire_is_pending_then_ready_and_fetched_once),
          LISTED(a_started_acquire_that_times_out_says_so_in_time_and_one_of_zero_tries_once),
          LISTED(a_cancel_before_the_grant_leaves_no_node),
          LISTED(a_hold_that_is_lost_after_its_call_was_looked_at_is_not_delivered), LISTED(a_cancel_after_the_grant_changes_nothing),
          LISTED(a_cancel_at_the_moment_of_the_grant_is_one_or_the_other),
          LISTED(a_grant_that_is_freed_unfetched_is_released),
          LISTED(a_grant_that_is_lost_before_it_is_fetched_is_told_and_not_delivered),
          LISTED(many_started_acquires_of_one_lock_go_through_one_loop_in_one_thread),
          LISTED(a_closed_client_ends_its_started_acquires), LISTED(a_started_acquire_outlives_its_lock_and_its_client),
          LISTED(of_many_threads_that_fetch_one_result_one_has_it),
          LISTED(descriptors_are_given_back_and_not_inherited),
          LISTED(a_wait_needs_no_descriptor_before_one_is_asked_for))
