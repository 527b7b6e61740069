/* The state of a client's connection, reported by its events. */

#include "events.h"

#include <sys/wait.h>
#include <unistd.h>

TEST(changes_of_the_connection_are_told) {
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    zklock_event event;
    follow(client);
    for (int again = 0; again < 2; again++) {
        ground("refuse %d on", proxy);
        ground("reset %d", proxy);
        expect(client, ZKLOCK_EVENT_DISCONNECTED);
        is_quiet(client, 20);
        ground("refuse %d off", proxy);
        expect(client, ZKLOCK_EVENT_CONNECTED);
    }
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    expire_session(proxy);
    int is_lost = 0, session_is_lost = 0, is_connected = 0;
    while (!is_lost || !session_is_lost || !is_connected) {
        event = next(client);
        switch (event.kind) {
        case ZKLOCK_EVENT_LOST:
            CHECK(event.hold == hold && !is_lost);
            is_lost = 1;
            break;
        case ZKLOCK_EVENT_SESSION_LOST:
            CHECK(!session_is_lost);
            session_is_lost = 1;
            break;
        case ZKLOCK_EVENT_CONNECTED:
            /* In the next session. */
            CHECK(session_is_lost);
            is_connected = 1;
            break;
        default:
            /* The server may hang up before it says that the session is over. */
            CHECK(event.kind == ZKLOCK_EVENT_DISCONNECTED);
        }
    }
    OK(zklock_client_close(client));
    expect(client, ZKLOCK_EVENT_CLOSED);
    is_quiet(client, 20);
    free_all(hold, lock, client);
}

TEST(changes_that_nobody_asks_for_are_told_as_few_and_no_loss_is_left_out) {
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    follow(client);
    /* An outage that is over before anybody looks. */
    for (int again = 0; again < 3; again++) {
        ground("reset %d", proxy);
        CHECK(readable(descriptor_of(client), SOON_MS));
        give_back(acquire(lock, SOON_MS));
    }
    expect(client, ZKLOCK_EVENT_DISCONNECTED);
    expect(client, ZKLOCK_EVENT_CONNECTED);
    is_quiet(client, 20);
    /* Several sessions. */
    for (uint64_t sessions = 2; sessions <= 3; sessions++) {
        expire_session(proxy);
        EVENTUALLY(stats_of(client).sessions == sessions);
        give_back(acquire(lock, SOON_MS));
    }
    expect(client, ZKLOCK_EVENT_SESSION_LOST);
    expect(client, ZKLOCK_EVENT_CONNECTED);
    is_quiet(client, 20);
    /* A program that asks only after the close gets only that event. */
    zklock_client *closed = new_client();
    OK(zklock_client_close(closed));
    expect(closed, ZKLOCK_EVENT_CLOSED);
    is_quiet(closed, 20);
    zklock_client_free(closed);
    free_all(NULL, lock, client);
}

static zklock_client *lazy(void) {
    zklock_client *client;
    OK(zklock_client_new_lazy(servers(), NULL, &client));
    return client;
}

/* Acquires the lock by a started acquire, for which the client connects. */
static void connects_for_an_acquire(zklock_client *client, zklock_lock *lock) {
    zklock_call *waiting;
    zklock_hold *hold;
    int connected = 0, granted = 0;
    is_quiet(client, 20);
    OK(zklock_acquire_start(lock, SOON_MS, &waiting));
    for (int seen = 0; seen < 2; seen++) {
        zklock_event event = next(client);
        connected += event.kind == ZKLOCK_EVENT_CONNECTED;
        granted += event.kind == ZKLOCK_EVENT_CALL && event.call == waiting;
    }
    CHECK(connected == 1 && granted == 1);
    OK(zklock_call_hold(waiting, &hold));
    zklock_call_free(waiting);
    give_back(hold);
    is_quiet(client, 20);
}

TEST(a_lazy_client_tells_when_it_connects) {
    zklock_client *client = lazy(), *closed = lazy();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_call *call;
    connects_for_an_acquire(client, lock);
    OK(zklock_client_connect_start(client, SOON_MS, &call));
    CHECK(expect(client, ZKLOCK_EVENT_CALL).call == call);
    zklock_call_free(call);
    is_quiet(closed, 0);
    OK(zklock_client_close(closed));
    expect(closed, ZKLOCK_EVENT_CLOSED);
    zklock_client_free(closed);
    free_all(NULL, lock, client);
}

TEST(a_child_has_events_of_its_own_if_it_inherits_the_client) {
    zklock_client *client = lazy(), *followed = lazy();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    int status;
    is_quiet(followed, 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        zklock_event event;
        /* The connection that is followed belongs to the parent. */
        IS(zklock_client_next_event(followed, &event), ZKLOCK_FORKED);
        connects_for_an_acquire(client, lock);
        OK(zklock_client_close(client));
        expect(client, ZKLOCK_EVENT_CLOSED);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
    connects_for_an_acquire(client, lock);
    zklock_client_free(followed);
    free_all(NULL, lock, client);
}

TEST_MAIN("standalone max-session=4000", LISTED(changes_of_the_connection_are_told),
          LISTED(a_lazy_client_tells_when_it_connects), LISTED(a_child_has_events_of_its_own_if_it_inherits_the_client),
          LISTED(changes_that_nobody_asks_for_are_told_as_few_and_no_loss_is_left_out))
