/* Promise 3: grants follow the order of the nodes, and a release wakes the next two waiters, never a herd. */

#include "test.h"

/* The grants, in order. */
typedef struct {
    int places[256];
    int count;
} grants;

/* A waiter with its own session, perhaps behind its own proxy, and its place among the arrivals. */
typedef struct {
    grants *grants;
    zklock_client *client;
    zklock_lock *lock;
    thread *thread;
    int place, proxy;
} waiter;

static void *waits_in_line(void *argument) {
    waiter *waiter = argument;
    zklock_hold *hold = acquire(waiter->lock, ZKLOCK_FOREVER);
    /* Guarded by the lock itself. */
    waiter->grants->places[waiter->grants->count++] = waiter->place;
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    return NULL;
}

static void leaves(waiter *waiter) {
    if (waiter->thread) join_thread(waiter->thread);
    free_all(NULL, waiter->lock, waiter->client);
}

TEST(sixty_four_clients_are_served_in_the_order_of_their_arrival) {
    enum { WAITERS = 64 };
    grants grants = {.count = 0};
    const char *path = fresh_path();
    zklock_client *holder = new_client();
    zklock_lock *lock = new_mutex(holder, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    waiter waiters[WAITERS];
    for (int place = 0; place < WAITERS; place++) {
        waiter *waiter = &waiters[place];
        memset(waiter, 0, sizeof *waiter);
        waiter->client = new_client();
        waiter->lock = new_mutex(waiter->client, path, 0);
        waiter->place = place;
        waiter->grants = &grants;
        waiter->thread = start_thread(waits_in_line, waiter);
        wait_for_contenders(path, place + 2);
    }
    CHECK(grants.count == 0);
    OK(zklock_release(hold));
    for (int place = 0; place < WAITERS; place++) leaves(&waiters[place]);
    CHECK(grants.count == WAITERS);
    for (int place = 0; place < WAITERS; place++) CHECK(grants.places[place] == place);
    free_all(hold, lock, holder);
}

/* `count` waiters behind a holder, in this order, each with its watch. */
static void queue(waiter *waiters, int count, const char *path, grants *grants) {
    for (int place = 0; place < count; place++) {
        waiter *waiter = &waiters[place];
        memset(waiter, 0, sizeof *waiter);
        waiter->client = proxied_client(&waiter->proxy);
        waiter->lock = new_mutex(waiter->client, path, 0);
        waiter->place = place;
        waiter->grants = grants;
        int watched = new_hook("see-reply", waiter->proxy, "get-data", 1, "");
        waiter->thread = start_thread(waits_in_line, waiter);
        await_hook(watched);
        ground("record %d", waiter->proxy);
    }
}

/* How many messages of this kind and side went through the proxy. */
static int heard(int proxy, const char *message) {
    const char *at = ground("messages %d", proxy);
    int count = 0;
    for (; (at = strstr(at, message)); at++) count++;
    return count;
}

TEST(a_waiter_that_gives_up_wakes_the_one_behind_its_successor_only_and_the_order_stays) {
    grants grants = {.count = 0};
    const char *path = fresh_path();
    zklock_client *holder = new_client(), *quitter;
    zklock_lock *lock = new_mutex(holder, path, 0), *quitters;
    zklock_hold *hold = acquire(lock, SOON_MS), *none;
    zklock_call *waiting;
    waiter before[2], behind[2];
    int proxy, watched, again;
    queue(before, 2, path, &grants);
    quitter = proxied_client(&proxy);
    quitters = new_mutex(quitter, path, 0);
    watched = new_hook("see-reply", proxy, "get-data", 1, "");
    OK(zklock_acquire_start(quitters, ZKLOCK_FOREVER, &waiting));
    await_hook(watched);
    queue(behind, 2, path, &grants);
    behind[0].place = 2;
    behind[1].place = 3;

    again = new_hook("see-reply", behind[1].proxy, "get-data", 2, "");
    OK(zklock_call_cancel(waiting));
    IS(zklock_call_hold(waiting, &none), ZKLOCK_INTERRUPTED);
    /* It looks for the contender to wait for now. Nobody else was woken. */
    await_hook(again);
    wait_for_contenders(path, 5);
    CHECK(heard(behind[1].proxy, "reply:event:") == 1);
    CHECK(heard(behind[1].proxy, "request:getchildren:") == 1);
    CHECK(heard(behind[1].proxy, "request:getdata:") == 2);
    for (int at = 0; at < 2; at++) CHECK(heard(before[at].proxy, "reply:event:") == 0);
    CHECK(heard(behind[0].proxy, "reply:event:") == 0);
    CHECK(grants.count == 0);
    OK(zklock_release(hold));
    for (int at = 0; at < 2; at++) leaves(&before[at]);
    for (int at = 0; at < 2; at++) leaves(&behind[at]);
    CHECK(grants.count == 4);
    for (int place = 0; place < 4; place++) CHECK(grants.places[place] == place);
    zklock_call_free(waiting);
    free_all(NULL, quitters, quitter);
    free_all(hold, lock, holder);
}

TEST(a_release_is_heard_by_the_next_two_and_by_nobody_behind) {
    enum { WAITERS = 4 };
    grants grants = {.count = 0};
    const char *path = fresh_path();
    zklock_client *holder = new_client(), *next;
    zklock_lock *lock = new_mutex(holder, path, 0), *nexts;
    zklock_hold *hold = acquire(lock, SOON_MS), *second;
    attempt *attempt;
    waiter waiters[WAITERS];
    int proxy, watched, prepared;
    next = proxied_client(&proxy);
    nexts = new_mutex(next, path, 0);
    watched = new_hook("see-reply", proxy, "get-data", 1, "");
    attempt = start_acquire(nexts, ZKLOCK_FOREVER);
    await_hook(watched);
    queue(waiters, WAITERS, path, &grants);
    prepared = new_hook("see-reply", waiters[0].proxy, "get-data", 1, "");
    OK(zklock_release(hold));
    second = granted(attempt);
    await_hook(prepared);
    for (int at = 0; at < WAITERS; at++) CHECK(heard(waiters[at].proxy, "reply:event:") == (at == 0));
    OK(zklock_release(second));
    for (int at = 0; at < WAITERS; at++) {
        join_thread(waiters[at].thread);
        waiters[at].thread = NULL;
        /* Two events: for the second node ahead, and for the next, unless that was gone when it looked. */
        int events = heard(waiters[at].proxy, "reply:event:");
        CHECK(events == 1 || events == 2);
        CHECK(heard(waiters[at].proxy, "request:getchildren:") == 1);
        CHECK(grants.places[at] == at);
    }
    for (int at = 0; at < WAITERS; at++) leaves(&waiters[at]);
    free_all(second, nexts, next);
    free_all(hold, lock, holder);
}

TEST(threads_and_started_acquires_of_one_client_are_served_in_the_order_of_their_arrival) {
    enum { CALLS = 40 };
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    zklock_call *waiting[CALLS];
    uint64_t token = token_of(hold);
    unsigned long sequence = sequence_of(hold);
    for (int at = 0; at < CALLS; at++) OK(zklock_acquire_start(lock, ZKLOCK_FOREVER, &waiting[at]));
    wait_for_contenders(path, 2);
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    for (int at = 0; at < CALLS; at++) {
        int descriptor;
        OK(zklock_call_fd(waiting[at], &descriptor));
        CHECK(readable(descriptor, SOON_MS));
        /* All waiters of this client have at most two nodes: the holder's and the next one's. */
        CHECK(contenders_at(path) <= 2);
        for (int later = at + 1; later < CALLS; later++) {
            IS(zklock_call_hold(waiting[later], &hold), ZKLOCK_PENDING);
        }
        OK(zklock_call_hold(waiting[at], &hold));
        CHECK(token_of(hold) > token && sequence_of(hold) == sequence + 1);
        token = token_of(hold);
        sequence = sequence_of(hold);
        OK(zklock_release(hold));
        zklock_hold_free(hold);
        zklock_call_free(waiting[at]);
    }
    settled(client);
    CHECK(contenders_at(path) == 0);
    free_all(NULL, lock, client);
}

TEST_MAIN("standalone max-session=4000", LISTED(sixty_four_clients_are_served_in_the_order_of_their_arrival),
          LISTED(a_waiter_that_gives_up_wakes_the_one_behind_its_successor_only_and_the_order_stays),
          LISTED(a_release_is_heard_by_the_next_two_and_by_nobody_behind),
          LISTED(threads_and_started_acquires_of_one_client_are_served_in_the_order_of_their_arrival))
