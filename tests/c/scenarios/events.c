/* One descriptor for everything that a client does: its events. */

#include "events.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static zklock_call *start(zklock_lock *lock, int64_t timeout, void *context) {
    zklock_call *waiting;
    OK(zklock_acquire_start(lock, timeout, &waiting));
    if (context) OK(zklock_call_set_context(waiting, context));
    return waiting;
}

/* Checks that the call has its event, and this result. */
static zklock_hold *ends(zklock_client *client, zklock_call *waiting, void *context, zklock_status wanted) {
    zklock_hold *hold = NULL;
    zklock_event event = expect(client, ZKLOCK_EVENT_CALL);
    CHECK(event.call == waiting && event.context == context);
    IS(zklock_call_hold(waiting, &hold), wanted);
    return hold;
}

/* The lowest free number. */
static int next_descriptor(void) {
    int next = dup(0);
    CHECK(next >= 0);
    close(next);
    return next;
}

typedef struct {
    zklock_call *waiting;
    zklock_status wanted;
    int events;
} job;

TEST(thousands_of_acquires_go_through_one_descriptor) {
    enum { CALLS = 2000, FEW = 8 };
    static job jobs[CALLS];
    zklock_client *client = follow(new_client()), *other = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0), *busy, *others;
    const char *path = fresh_path();
    busy = new_mutex(client, path, 0);
    others = new_mutex(other, path, 0);
    zklock_hold *held = acquire(others, SOON_MS);
    struct rlimit limit, few;
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
    few = limit;
    few.rlim_cur = (rlim_t)next_descriptor() + FEW;
    CHECK(!setrlimit(RLIMIT_NOFILE, &few));

    int left = 0;
    memset(jobs, 0, sizeof jobs);
    for (int at = 0; at < CALLS; at++) {
        job *job = &jobs[at];
        switch (at % 10) {
        case 0:
            job->waiting = start(busy, 50 + at % 7, job);
            job->wanted = ZKLOCK_TIMEOUT;
            break;
        case 1:
            job->waiting = start(busy, ZKLOCK_FOREVER, job);
            job->wanted = ZKLOCK_INTERRUPTED;
            break;
        case 2:
            job->waiting = start(at % 20 == 2 ? lock : busy, ZKLOCK_FOREVER, job);
            break;
        default:
            job->waiting = start(lock, ZKLOCK_FOREVER, job);
            job->wanted = ZKLOCK_OK;
        }
    }
    for (int at = 0; at < CALLS; at++) {
        if (at % 10 == 1) OK(zklock_call_cancel(jobs[at].waiting));
        if (at % 10 == 2) zklock_call_free(jobs[at].waiting);
        left += at % 10 != 2;
    }
    struct pollfd any = {.fd = descriptor_of(client), .events = POLLIN};
    for (int64_t until = now_ms() + 2 * SOON_MS; left;) {
        zklock_event event;
        zklock_hold *hold = NULL;
        CHECK(now_ms() < until);
        CHECK(poll(&any, 1, SOON_MS) == 1);
        OK(zklock_client_next_event(client, &event));
        job *job = event.context;
        CHECK(event.kind == ZKLOCK_EVENT_CALL && job >= jobs && job < jobs + CALLS);
        CHECK(event.call == job->waiting && (job - jobs) % 10 != 2 && ++job->events == 1);
        IS(zklock_call_hold(job->waiting, &hold), job->wanted);
        zklock_call_free(job->waiting);
        zklock_hold_free(hold);
        left--;
    }
    is_quiet(client, 20);
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    CHECK(stats_of(client).grants >= CALLS * 7 / 10);
    settled(client);
    give_back(held);
    zklock_lock_free(busy);
    free_all(NULL, others, other);
    free_all(NULL, lock, client);
}

TEST(a_started_acquire_has_one_event_whatever_ends_it) {
    zklock_client *client = follow(new_client()), *other = new_client();
    const char *path = fresh_path();
    zklock_lock *lock = new_mutex(client, path, 0), *others = new_mutex(other, path, 0);
    zklock_hold *held = acquire(others, SOON_MS), *hold;
    int granted = 1, late = 2;
    /* It is cancelled several times. */
    zklock_call *waiting = start(lock, ZKLOCK_FOREVER, &granted);
    is_quiet(client, 20);
    for (int again = 0; again < 3; again++) OK(zklock_call_cancel(waiting));
    ends(client, waiting, &granted, ZKLOCK_INTERRUPTED);
    OK(zklock_call_cancel(waiting));
    is_quiet(client, 20);
    zklock_call_free(waiting);
    /* It times out, and is cancelled after that. */
    waiting = start(lock, 1, NULL);
    CHECK(readable(descriptor_of(client), SOON_MS));
    OK(zklock_call_cancel(waiting));
    ends(client, waiting, NULL, ZKLOCK_TIMEOUT);
    is_quiet(client, 20);
    zklock_call_free(waiting);
    /* It is granted, and cancelled too late. The context may also be set late. */
    waiting = start(lock, ZKLOCK_FOREVER, &granted);
    give_back(held);
    CHECK(readable(descriptor_of(client), SOON_MS));
    OK(zklock_call_cancel(waiting));
    OK(zklock_call_set_context(waiting, &late));
    hold = ends(client, waiting, &late, ZKLOCK_OK);
    is_quiet(client, 20);
    zklock_call_free(waiting);
    zklock_hold_free(hold);
    /* Its result is fetched before its event. */
    waiting = start(lock, SOON_MS, NULL);
    EVENTUALLY(zklock_call_hold(waiting, &hold) == ZKLOCK_OK);
    ends(client, waiting, NULL, ZKLOCK_NOT_HELD);
    is_quiet(client, 20);
    zklock_call_free(waiting);
    zklock_hold_free(hold);
    settled(client);
    free_all(NULL, others, other);
    free_all(NULL, lock, client);
}

TEST(a_result_that_comes_at_once_has_one_event_with_its_handle) {
    enum { ROUNDS = 500 };
    zklock_client *client = follow(new_client());
    zklock_lock *lock = new_mutex(client, fresh_path(), 0), *again = new_mutex(client, fresh_path(), ZKLOCK_REENTRANT);
    zklock_hold *outer = acquire(again, SOON_MS), *inner = acquire(again, 0);
    zklock_call *call;
    int context;
    OK(zklock_hold_set_context(inner, &context));
    OK(zklock_release_start(inner, &call));
    zklock_event event = expect(client, ZKLOCK_EVENT_CALL);
    CHECK(event.call == call && event.hold == inner && event.context == &context);
    zklock_call_free(call);
    zklock_hold_free(inner);
    OK(zklock_client_close(client));
    /* The loss and the end of the connection, in any order. */
    for (int seen = 0; seen < 2; seen++) {
        event = next(client);
        CHECK(event.kind == ZKLOCK_EVENT_CLOSED || (event.kind == ZKLOCK_EVENT_LOST && event.hold == outer));
    }
    zklock_hold_free(outer);
    for (int round = 0; round < ROUNDS; round++) {
        zklock_call *waiting = start(lock, ZKLOCK_FOREVER, NULL);
        ends(client, waiting, NULL, ZKLOCK_CLOSED);
        zklock_call_free(waiting);
    }
    is_quiet(client, 20);
    zklock_lock_free(again);
    free_all(NULL, lock, client);
}

TEST(what_is_freed_has_no_event_and_leaves_the_descriptor_as_it_was) {
    zklock_client *client = follow(new_client());
    zklock_lock *lock = new_mutex(client, fresh_path(), 0), *second = new_mutex(client, fresh_path(), 0);
    zklock_call *first = start(lock, SOON_MS, NULL), *later;
    int descriptor = descriptor_of(client);
    zklock_hold *hold;
    zklock_call *call;
    /* The only event of all. */
    CHECK(readable(descriptor, SOON_MS));
    zklock_call_free(first);
    is_quiet(client, 20);
    /* The first of two. */
    first = start(second, SOON_MS, NULL);
    CHECK(readable(descriptor, SOON_MS));
    later = start(second, 0, NULL);
    EVENTUALLY(zklock_call_hold(later, &hold) == ZKLOCK_TIMEOUT);
    zklock_call_free(first);
    CHECK(readable(descriptor, 0));
    ends(client, later, NULL, ZKLOCK_TIMEOUT);
    zklock_call_free(later);
    is_quiet(client, 0);
    /* A hold that is lost, and a call that is done. */
    hold = acquire(lock, SOON_MS);
    ground("delete %s", node_of(hold));
    CHECK(readable(descriptor, SOON_MS));
    zklock_hold_free(hold);
    is_quiet(client, 20);
    OK(zklock_contenders_start(lock, &call));
    CHECK(readable(descriptor, SOON_MS));
    zklock_call_free(call);
    is_quiet(client, 20);
    /* Calls with handles that are gone. */
    IS(zklock_call_set_context(first, NULL), ZKLOCK_INVALID_HANDLE);
    IS(zklock_call_set_context(call, NULL), ZKLOCK_INVALID_HANDLE);
    IS(zklock_hold_set_context(hold, NULL), ZKLOCK_INVALID_HANDLE);
    settled(client);
    zklock_lock_free(second);
    free_all(NULL, lock, client);
}

TEST(a_hold_tells_of_its_loss_and_of_its_release) {
    zklock_client *client = follow(new_client());
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    int of_acquire, of_hold, of_call, lost;
    /* It begins with the context of its call. */
    zklock_call *waiting = start(lock, SOON_MS, &of_acquire);
    zklock_hold *hold = ends(client, waiting, &of_acquire, ZKLOCK_OK), *fresh;
    zklock_call *call;
    zklock_state state;
    zklock_reason reason;
    zklock_call_free(waiting);
    is_quiet(client, 20);
    ground("delete %s", node_of(hold));
    zklock_event event = expect(client, ZKLOCK_EVENT_LOST);
    CHECK(event.hold == hold && event.context == &of_acquire);
    OK(zklock_hold_state(hold, &state, &reason));
    CHECK(state == ZKLOCK_STATE_LOST && reason == ZKLOCK_REASON_NODE_DELETED);
    /* The loss is reported as an event once, even if the hold is asked as well. */
    OK(zklock_hold_fd(hold, &lost));
    CHECK(readable(lost, 0));
    is_quiet(client, 20);
    OK(zklock_release_start(hold, &call));
    event = expect(client, ZKLOCK_EVENT_CALL);
    CHECK(event.call == call && event.hold == hold && event.context == &of_acquire);
    IS(zklock_call_finish(call, NULL), ZKLOCK_LOST);
    zklock_call_free(call);
    zklock_hold_free(hold);

    /* A release is not a loss. */
    hold = acquire(lock, SOON_MS);
    OK(zklock_hold_set_context(hold, &of_hold));
    OK(zklock_hold_confirm_start(hold, &call));
    event = expect(client, ZKLOCK_EVENT_CALL);
    CHECK(event.call == call && !event.context);
    zklock_call_free(call);
    OK(zklock_release_start(hold, &call));
    event = expect(client, ZKLOCK_EVENT_CALL);
    CHECK(event.call == call && event.hold == hold && event.context == &of_hold);
    OK(zklock_call_finish(call, NULL));
    zklock_call_free(call);
    /* If its hold is freed by then, the event has only the call. */
    fresh = acquire(lock, SOON_MS);
    OK(zklock_release_start(fresh, &call));
    OK(zklock_call_set_context(call, &of_call));
    zklock_hold_free(fresh);
    event = expect(client, ZKLOCK_EVENT_CALL);
    CHECK(event.call == call && !event.hold && event.context == &of_call);
    zklock_call_free(call);
    is_quiet(client, 20);
    free_all(hold, lock, client);
}

/* Checks that the call ends, and has its event. */
static void done(zklock_client *client, zklock_call *call, zklock_status wanted) {
    zklock_event event = expect(client, ZKLOCK_EVENT_CALL);
    CHECK(event.call == call);
    IS(zklock_call_finish(call, NULL), wanted);
}

TEST(calls_of_all_that_a_client_made_have_events) {
    zklock_client *client = follow(new_client()), *connected;
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_barrier *barrier;
    zklock_double_barrier *round;
    zklock_member *member;
    zklock_call *call, *connects, *waits;
    OK(zklock_client_new_start(servers(), NULL, &connects));
    OK(zklock_barrier_new(client, fresh_path(), &barrier));
    OK(zklock_barrier_set_start(barrier, &call));
    done(client, call, ZKLOCK_OK);
    zklock_call_free(call);
    OK(zklock_barrier_wait_start(barrier, ZKLOCK_FOREVER, &waits));
    is_quiet(client, 20);
    OK(zklock_barrier_wait_start(barrier, 1, &call));
    done(client, call, ZKLOCK_TIMEOUT);
    zklock_call_free(call);
    OK(zklock_call_cancel(waits));
    OK(zklock_call_cancel(waits));
    done(client, waits, ZKLOCK_INTERRUPTED);
    zklock_call_free(waits);
    zklock_barrier_free(barrier);
    OK(zklock_double_barrier_new(client, fresh_path(), 1, &round));
    OK(zklock_double_barrier_enter_start(round, SOON_MS, &call));
    zklock_double_barrier_free(round);
    done(client, call, ZKLOCK_OK);
    OK(zklock_call_member(call, &member));
    zklock_call_free(call);
    OK(zklock_member_leave_start(member, SOON_MS, &call));
    done(client, call, ZKLOCK_OK);
    zklock_call_free(call);
    OK(zklock_member_leave_start(member, SOON_MS, &call));
    done(client, call, ZKLOCK_NOT_HELD);
    zklock_call_free(call);
    zklock_member_free(member);
    OK(zklock_contenders_start(lock, &call));
    done(client, call, ZKLOCK_OK);
    zklock_call_free(call);
    zklock_hold *hold = acquire(lock, SOON_MS);
    zklock_write write = {.kind = ZKLOCK_WRITE_DELETE, .path = "/there/is/none", .version = ZKLOCK_ANY_VERSION};
    OK(zklock_hold_commit_start(hold, &write, 1, &call));
    done(client, call, ZKLOCK_CONFLICT);
    zklock_call_free(call);
    give_back(hold);
    /* A call that connects belongs to no client. */
    int descriptor;
    OK(zklock_call_fd(connects, &descriptor));
    CHECK(readable(descriptor, SOON_MS));
    OK(zklock_call_client(connects, &connected));
    zklock_call_free(connects);
    is_quiet(client, 20);
    follow(connected);
    OK(zklock_client_close_start(connected, &call));
    for (int seen = 0; seen < 2; seen++) {
        zklock_event event = next(connected);
        CHECK(event.kind == ZKLOCK_EVENT_CLOSED || (event.kind == ZKLOCK_EVENT_CALL && event.call == call));
    }
    OK(zklock_call_finish(call, NULL));
    zklock_call_free(call);
    is_quiet(connected, 20);
    zklock_client_free(connected);
    free_all(NULL, lock, client);
}

TEST(what_happened_before_somebody_asked_is_not_told) {
    zklock_client *client = new_client(), *other = new_client();
    const char *path = fresh_path();
    zklock_lock *lock = new_mutex(client, path, 0), *others = new_mutex(other, path, 0);
    zklock_lock *unwatched = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = NULL, *held = acquire(others, SOON_MS), *before = acquire(unwatched, SOON_MS), *none;
    zklock_call *ended = start(lock, 0, NULL), *goes_on = start(lock, SOON_MS, NULL);
    EVENTUALLY(zklock_call_hold(ended, &none) == ZKLOCK_TIMEOUT);
    follow(client);
    /* The loss of a hold that was acquired before the events were asked for is not an event, though its descriptor reports it. */
    int lost;
    OK(zklock_hold_fd(before, &lost));
    ground("delete %s", node_of(before));
    CHECK(readable(lost, SOON_MS));
    OK(zklock_call_cancel(ended));
    is_quiet(client, 20);
    /* A call that ends after that is an event. */
    give_back(held);
    hold = ends(client, goes_on, NULL, ZKLOCK_OK);
    is_quiet(client, 0);
    zklock_call_free(ended);
    zklock_call_free(goes_on);
    zklock_hold_free(before);
    zklock_lock_free(unwatched);
    free_all(NULL, others, other);
    free_all(hold, lock, client);
}

TEST(a_freed_client_has_no_descriptor_and_its_started_acquires_go_on) {
    zklock_client *client = follow(new_client());
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    int descriptor = descriptor_of(client), of_acquire, same;
    zklock_event event;
    CHECK(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(descriptor, F_GETFL) & O_NONBLOCK);
    CHECK((same = descriptor_of(client)) == descriptor);
    zklock_call *queued = start(lock, SOON_MS, NULL), *waiting = start(lock, SOON_MS, NULL);
    CHECK(readable(descriptor, SOON_MS));
    zklock_client_free(client);
    CHECK(fcntl(descriptor, F_GETFD) == -1);
    IS(zklock_client_next_event(client, &event), ZKLOCK_INVALID_HANDLE);
    zklock_call_free(queued);
    OK(zklock_call_fd(waiting, &of_acquire));
    CHECK(readable(of_acquire, SOON_MS));
    zklock_hold *hold = NULL;
    OK(zklock_call_hold(waiting, &hold));
    zklock_call_free(waiting);
    give_back(hold);
    zklock_lock_free(lock);
}

enum { SHARED = 500 };

typedef struct {
    zklock_client *client;
    int left, events[SHARED];
} shared;

static void *asks(void *given) {
    shared *shared = given;
    int descriptor = descriptor_of(shared->client);
    for (int64_t until = now_ms() + SOON_MS; __atomic_load_n(&shared->left, __ATOMIC_SEQ_CST) && now_ms() < until;) {
        zklock_event event;
        if (!readable(descriptor, 20) || zklock_client_next_event(shared->client, &event)) continue;
        CHECK(event.kind == ZKLOCK_EVENT_CALL);
        __atomic_add_fetch((int *)event.context, 1, __ATOMIC_SEQ_CST);
        __atomic_sub_fetch(&shared->left, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

TEST(of_many_threads_that_ask_one_has_each_event) {
    static shared shared;
    zklock_call *waiting[SHARED];
    thread *threads[4];
    shared.client = follow(new_client());
    shared.left = SHARED;
    zklock_lock *lock = new_mutex(shared.client, fresh_path(), 0);
    /* The close gives all of them their result at once. */
    OK(zklock_client_close(shared.client));
    expect(shared.client, ZKLOCK_EVENT_CLOSED);
    /* All calls start before any thread asks, so that each event finds its context. */
    for (int at = 0; at < SHARED; at++) waiting[at] = start(lock, SOON_MS, &shared.events[at]);
    for (int at = 0; at < 4; at++) threads[at] = start_thread(asks, &shared);
    for (int at = 0; at < 4; at++) join_thread(threads[at]);
    for (int at = 0; at < SHARED; at++) {
        CHECK(shared.events[at] == 1);
        zklock_call_free(waiting[at]);
    }
    is_quiet(shared.client, 20);
    free_all(NULL, lock, shared.client);
}

TEST(a_forked_child_has_no_part_in_the_events_of_its_parent) {
    zklock_client *client = follow(new_client());
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_call *waiting = start(lock, SOON_MS, NULL);
    int descriptor = descriptor_of(client), status;
    CHECK(readable(descriptor, SOON_MS));
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        zklock_event event;
        int none;
        IS(zklock_client_fd(client, &none), ZKLOCK_FORKED);
        IS(zklock_client_next_event(client, &event), ZKLOCK_FORKED);
        IS(zklock_call_set_context(waiting, &none), ZKLOCK_FORKED);
        zklock_call_free(waiting);
        zklock_client_free(client);
        _exit(!readable(descriptor, 0));
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
    zklock_hold *hold = ends(client, waiting, NULL, ZKLOCK_OK);
    is_quiet(client, 0);
    zklock_call_free(waiting);
    free_all(hold, lock, client);
}

TEST_MAIN("standalone max-session=4000", LISTED(thousands_of_acquires_go_through_one_descriptor),
          LISTED(a_started_acquire_has_one_event_whatever_ends_it),
          LISTED(a_result_that_comes_at_once_has_one_event_with_its_handle),
          LISTED(what_is_freed_has_no_event_and_leaves_the_descriptor_as_it_was),
          LISTED(a_hold_tells_of_its_loss_and_of_its_release), LISTED(calls_of_all_that_a_client_made_have_events),
          LISTED(what_happened_before_somebody_asked_is_not_told),
          LISTED(a_freed_client_has_no_descriptor_and_its_started_acquires_go_on),
          LISTED(of_many_threads_that_ask_one_has_each_event),
          LISTED(a_forked_child_has_no_part_in_the_events_of_its_parent))
