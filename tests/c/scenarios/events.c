/* One descriptor for everything that a client does: its events. */

#include "events.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static zklock_call *start(zklock_lock *lock, int64_t timeout, void *context) {
    zklock_call *call = start_acquire(lock, timeout);
    if (context) OK(zklock_call_set_context(call, context));
    return call;
}

/* Checks that the call has its event, and this result. */
static zklock_hold *ends(zklock_client *client, zklock_call *call, void *context, zklock_status wanted) {
    zklock_hold *hold = NULL;
    zklock_event event = expect(client, ZKLOCK_EVENT_CALL);
    CHECK(event.call == call && event.context == context);
    IS(zklock_call_hold(call, &hold), wanted);
    return KEPT(zklock_hold, hold);
}

TEST(a_started_acquire_has_one_event_whatever_ends_it) {
    rivals all = new_rivals();
    zklock_client *client = follow(all.client);
    zklock_hold *held = acquire(all.others, SOON_MS);
    int granted = 1, late = 2;
    /* It is cancelled several times. */
    zklock_call *call = start(all.lock, ZKLOCK_FOREVER, &granted);
    is_quiet(client, 20);
    for (int again = 0; again < 3; again++) OK(zklock_call_cancel(call));
    ends(client, call, &granted, ZKLOCK_INTERRUPTED);
    OK(zklock_call_cancel(call));
    is_quiet(client, 20);
    /* It times out, and is cancelled after that. */
    call = start(all.lock, 1, NULL);
    CHECK(readable(descriptor_of(client), SOON_MS));
    OK(zklock_call_cancel(call));
    ends(client, call, NULL, ZKLOCK_TIMEOUT);
    is_quiet(client, 20);
    /* It is granted, and cancelled too late. The context may also be set late. */
    call = start(all.lock, ZKLOCK_FOREVER, &granted);
    give_back(held);
    CHECK(readable(descriptor_of(client), SOON_MS));
    OK(zklock_call_cancel(call));
    OK(zklock_call_set_context(call, &late));
    zklock_hold *hold = ends(client, call, &late, ZKLOCK_OK);
    is_quiet(client, 20);
    zklock_hold_free(hold);
    /* Its result is fetched before its event. */
    call = start(all.lock, SOON_MS, NULL);
    EVENTUALLY(zklock_call_hold(call, &hold) == ZKLOCK_OK);
    KEPT(zklock_hold, hold);
    ends(client, call, NULL, ZKLOCK_NOT_HELD);
    is_quiet(client, 20);
}

TEST(what_is_freed_has_no_event_and_leaves_the_descriptor_as_it_was) {
    zklock_client *client = follow(new_client());
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_call *call = start(lock, SOON_MS, NULL);
    int descriptor = descriptor_of(client);
    /* The only event of all. */
    CHECK(readable(descriptor, SOON_MS));
    zklock_call_free(call);
    is_quiet(client, 20);
    /* A hold that is lost. */
    zklock_hold *hold = acquire(lock, SOON_MS);
    ground("delete %s", node_of(hold));
    CHECK(readable(descriptor, SOON_MS));
    zklock_hold_free(hold);
    is_quiet(client, 20);
    IS(zklock_call_set_context(call, NULL), ZKLOCK_INVALID_HANDLE);
    IS(zklock_hold_set_context(hold, NULL), ZKLOCK_INVALID_HANDLE);
    settled(client);
}

TEST(a_hold_tells_of_its_loss_and_of_its_release) {
    zklock_client *client = follow(new_client());
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    int of_acquire, of_hold, of_call;
    /* It begins with the context of its call. */
    zklock_call *call = start(lock, SOON_MS, &of_acquire);
    zklock_hold *hold = ends(client, call, &of_acquire, ZKLOCK_OK);
    is_quiet(client, 20);
    ground("delete %s", node_of(hold));
    zklock_event event = expect(client, ZKLOCK_EVENT_LOST);
    CHECK(event.hold == hold && event.context == &of_acquire);
    CHECK(state_of(hold) == ZKLOCK_STATE_LOST && valid_for(hold) == 0);
    /* The loss is an event once. */
    is_quiet(client, 20);
    call = MADE(zklock_call, zklock_release_start(hold, &made));
    event = expect(client, ZKLOCK_EVENT_CALL);
    CHECK(event.call == call && event.hold == hold && event.context == &of_acquire);
    IS(zklock_call_finish(call, 0, NULL), ZKLOCK_LOST);

    /* A release is not a loss. */
    hold = acquire(lock, SOON_MS);
    OK(zklock_hold_set_context(hold, &of_hold));
    call = MADE(zklock_call, zklock_hold_confirm_start(hold, &made));
    event = expect(client, ZKLOCK_EVENT_CALL);
    CHECK(event.call == call && !event.context);
    call = MADE(zklock_call, zklock_release_start(hold, &made));
    event = expect(client, ZKLOCK_EVENT_CALL);
    CHECK(event.call == call && event.hold == hold && event.context == &of_hold);
    /* If its hold is freed by then, the event has only the call. */
    zklock_hold *fresh = acquire(lock, SOON_MS);
    call = MADE(zklock_call, zklock_release_start(fresh, &made));
    OK(zklock_call_set_context(call, &of_call));
    zklock_hold_free(fresh);
    event = expect(client, ZKLOCK_EVENT_CALL);
    CHECK(event.call == call && !event.hold && event.context == &of_call);
    is_quiet(client, 20);
}

TEST(what_happened_before_somebody_asked_is_not_told) {
    rivals all = new_rivals();
    zklock_hold *held = acquire(all.others, SOON_MS), *before = acquire(new_mutex(all.client, fresh_path(), 0), SOON_MS), *none;
    zklock_call *ended = start(all.lock, 0, NULL), *goes_on = start(all.lock, SOON_MS, NULL);
    zklock_reason reason;
    EVENTUALLY(zklock_call_hold(ended, &none) == ZKLOCK_TIMEOUT);
    follow(all.client);
    /* The loss of a hold that was acquired before the events were asked for is not an event. */
    ground("delete %s", node_of(before));
    OK(zklock_hold_wait_lost(before, SOON_MS, &reason));
    OK(zklock_call_cancel(ended));
    is_quiet(all.client, 20);
    /* A call that ends after that is an event. */
    give_back(held);
    zklock_hold *hold = ends(all.client, goes_on, NULL, ZKLOCK_OK);
    is_quiet(all.client, 0);
    zklock_client *closed = new_client();
    OK(zklock_client_close(closed));
    expect(closed, ZKLOCK_EVENT_CLOSED);
    is_quiet(closed, 20);
    give_back(hold);
}

TEST(a_freed_client_has_no_descriptor_and_its_started_acquires_go_on) {
    zklock_client *client = follow(new_client());
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    int descriptor = descriptor_of(client);
    zklock_event event;
    CHECK(fcntl(descriptor, F_GETFD) & FD_CLOEXEC && fcntl(descriptor, F_GETFL) & O_NONBLOCK);
    CHECK(descriptor_of(client) == descriptor);
    zklock_call *queued = start(lock, SOON_MS, NULL), *call = start(lock, SOON_MS, NULL);
    CHECK(readable(descriptor, SOON_MS));
    zklock_client_free(client);
    CHECK(fcntl(descriptor, F_GETFD) == -1);
    IS(zklock_client_next_event(client, &event), ZKLOCK_INVALID_HANDLE);
    zklock_call_free(queued);
    give_back(hold_of(call));
}

enum { SHARED = 2000, FEW = 8 };

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

TEST(thousands_of_calls_go_through_one_descriptor_and_of_many_threads_that_ask_one_has_each_event) {
    static shared shared;
    thread threads[4];
    struct rlimit limit, few;
    int free = dup(0);
    CHECK(free >= 0 && !close(free) && !getrlimit(RLIMIT_NOFILE, &limit));
    memset(&shared, 0, sizeof shared);
    shared.client = follow(new_client());
    shared.left = SHARED;
    zklock_lock *lock = new_mutex(shared.client, fresh_path(), 0);
    /* The close gives all of them their result at once. */
    OK(zklock_client_close(shared.client));
    expect(shared.client, ZKLOCK_EVENT_CLOSED);
    few = limit;
    few.rlim_cur = (rlim_t)(free + FEW);
    CHECK(!setrlimit(RLIMIT_NOFILE, &few));
    /* All calls start before any thread asks, so that each event finds its context. */
    for (int at = 0; at < SHARED; at++) start(lock, SOON_MS, &shared.events[at]);
    for (int at = 0; at < 4; at++) threads[at] = start_thread(asks, &shared);
    for (int at = 0; at < 4; at++) join_thread(threads[at]);
    for (int at = 0; at < SHARED; at++) CHECK(shared.events[at] == 1);
    is_quiet(shared.client, 20);
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
}

TEST(changes_of_the_connection_are_told_and_no_loss_is_left_out) {
    rivals all = new_rivals();
    zklock_client *client = follow(all.client);
    ground("refuse %d on", all.proxy);
    ground("reset %d", all.proxy);
    expect(client, ZKLOCK_EVENT_DISCONNECTED);
    ground("refuse %d off", all.proxy);
    expect(client, ZKLOCK_EVENT_CONNECTED);
    zklock_hold *hold = acquire(all.lock, SOON_MS);
    expire_session(all.proxy);
    for (int lost = 0, session_lost = 0, connected = 0; !lost || !session_lost || !connected;) {
        zklock_event event = next(client);
        switch (event.kind) {
        case ZKLOCK_EVENT_LOST: CHECK(event.hold == hold && !lost++); break;
        case ZKLOCK_EVENT_SESSION_LOST: CHECK(!session_lost++); break;
        /* In the next session. */
        case ZKLOCK_EVENT_CONNECTED: CHECK(session_lost && !connected++); break;
        /* The server may hang up before it says that the session is over. */
        default: CHECK(event.kind == ZKLOCK_EVENT_DISCONNECTED);
        }
    }
    OK(zklock_client_close(client));
    expect(client, ZKLOCK_EVENT_CLOSED);
    is_quiet(client, 20);
}

/* Acquires the lock by a started acquire, for which the client connects. */
static void connects_for_an_acquire(zklock_client *client, zklock_lock *lock) {
    int connected = 0, granted = 0;
    is_quiet(client, 20);
    zklock_call *call = start(lock, SOON_MS, NULL);
    for (int seen = 0; seen < 2; seen++) {
        zklock_event event = next(client);
        connected += event.kind == ZKLOCK_EVENT_CONNECTED;
        granted += event.kind == ZKLOCK_EVENT_CALL && event.call == call;
    }
    CHECK(connected == 1 && granted == 1);
    give_back(hold_of(call));
    is_quiet(client, 20);
}

TEST(a_lazy_client_tells_when_it_connects_and_a_child_that_inherits_it_has_its_own_events) {
    int status;
    zklock_client *client = MADE(zklock_client, zklock_client_new_lazy(servers(), NULL, &made));
    zklock_client *followed = MADE(zklock_client, zklock_client_new_lazy(servers(), NULL, &made));
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    is_quiet(followed, 0);
    pid_t child = new_child();
    if (!child) {
        zklock_event event;
        /* The connection that is followed belongs to the parent. */
        IS(zklock_client_next_event(followed, &event), ZKLOCK_FORKED);
        zklock_client_free(followed);
        connects_for_an_acquire(client, lock);
        OK(zklock_client_close(client));
        expect(client, ZKLOCK_EVENT_CLOSED);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
    connects_for_an_acquire(client, lock);
    zklock_call *call = MADE(zklock_call, zklock_client_connect_start(followed, SOON_MS, &made));
    OK(zklock_call_finish(call, SOON_MS, NULL));
    expect(followed, ZKLOCK_EVENT_CONNECTED);
}

static void *waits(void *hold) { return (void *)(intptr_t)zklock_hold_wait_wanted(hold, ZKLOCK_FOREVER); }

TEST(a_holder_is_told_in_every_way_that_others_wait) {
    rivals all = new_rivals();
    zklock_hold *hold = acquire(all.lock, SOON_MS);
    int context;
    follow(all.client);
    give_back(hold);
    hold = acquire(all.lock, SOON_MS);
    OK(zklock_hold_set_context(hold, &context));
    CHECK(!zklock_hold_is_wanted(hold));
    thread waiter = start_thread(waits, hold);
    IS(zklock_hold_wait_wanted(hold, 20), ZKLOCK_TIMEOUT);
    is_quiet(all.client, 0);
    zklock_call *rival = start(all.others, SOON_MS, NULL);
    OK(join_status(waiter));
    zklock_event event = expect(all.client, ZKLOCK_EVENT_WANTED);
    CHECK(event.hold == hold && event.context == &context);
    CHECK(zklock_hold_is_wanted(hold));
    OK(zklock_release(hold));
    give_back(hold_of(rival));
    IS(zklock_hold_wait_wanted(hold, SOON_MS), ZKLOCK_NOT_HELD);
    CHECK(!zklock_hold_is_wanted(hold));
}

TEST_MAIN(STANDALONE)
