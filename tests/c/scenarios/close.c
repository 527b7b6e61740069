/* The end of clients and handles: its effects, in any order. */

#include "test.h"

typedef struct {
    zklock_hold *hold;
    zklock_status status;
    zklock_reason reason;
} loss;

static void *waits_for_loss(void *argument) {
    loss *loss = argument;
    loss->status = zklock_hold_wait_lost(loss->hold, ZKLOCK_FOREVER, &loss->reason);
    return NULL;
}

static void *closes(void *client) { return (void *)(intptr_t)zklock_client_close(client); }

static zklock_status closed_by(thread *thread) { return (zklock_status)(intptr_t)join_thread(thread); }

TEST(a_close_frees_what_is_held_and_ends_what_waits) {
    char busy[64], own[64];
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *waits, *holds, *others;
    zklock_hold *hold, *hers;
    attempt *queued, *local, *reentrant;
    zklock_call *waiting;
    loss loss = {.status = ZKLOCK_OK};
    thread *waiter;
    char sentence[512];
    int descriptor;
    snprintf(busy, sizeof busy, "%s", fresh_path());
    snprintf(own, sizeof own, "%s", fresh_path());
    waits = new_mutex(client, busy, 0);
    holds = new_mutex(client, own, ZKLOCK_REENTRANT);
    others = new_mutex(other, busy, 0);
    hers = acquire(others, SOON_MS);
    hold = acquire(holds, SOON_MS);
    loss.hold = hold;
    waiter = start_thread(waits_for_loss, &loss);
    queued = start_acquire(waits, ZKLOCK_FOREVER);
    wait_for_contenders(busy, 2);
    local = start_acquire(waits, 6 * SOON_MS);
    reentrant = start_acquire(holds, ZKLOCK_FOREVER);
    wait_for_contenders(own, 2);
    OK(zklock_acquire_start(waits, ZKLOCK_FOREVER, &waiting));
    OK(zklock_call_fd(waiting, &descriptor));
    CHECK(!is_over(queued) && !is_over(local) && !is_over(reentrant) && !readable(descriptor, 0));

    OK(zklock_client_close(client));
    CHECK(contenders_at(own) == 0);
    CHECK(contenders_at(busy) == 1);
    CHECK(refused(queued, sentence, sizeof sentence) == ZKLOCK_CLOSED);
    check_sentence(__FILE__, __LINE__, sentence, "the client is closed: make a new one");
    CHECK(refused(local, NULL, 0) == ZKLOCK_CLOSED);
    CHECK(refused(reentrant, NULL, 0) == ZKLOCK_CLOSED);
    CHECK(readable(descriptor, SOON_MS));
    IS(zklock_call_hold(waiting, &hold), ZKLOCK_CLOSED);
    join_thread(waiter);
    CHECK(loss.status == ZKLOCK_OK && loss.reason == ZKLOCK_REASON_CLIENT_CLOSED);
    CHECK(state_of(hold) == ZKLOCK_STATE_LOST && valid_for(hold) == 0);
    IS(zklock_hold_confirm(hold, NULL), ZKLOCK_LOST);
    IS(zklock_hold_commit(hold, NULL, 0, NULL), ZKLOCK_LOST);
    IS(zklock_release(hold), ZKLOCK_LOST);
    SAYS("closed");
    settled(client);
    /* The other client is not affected. */
    OK(zklock_release(hers));
    zklock_call_free(waiting);
    zklock_lock_free(waits);
    free_all(hers, others, other);
    free_all(hold, holds, client);
}

TEST(a_second_close_waits_as_the_first_does) {
    const char *path = fresh_path();
    int proxy, gate;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    thread *first, *second;
    int64_t begun;
    gate = new_hook("hold-request", proxy, "close", 1, "");
    begun = now_ms();
    first = start_thread(closes, client);
    await_hook(gate);
    second = start_thread(closes, client);
    /* Both have up to a second before they give up, so this is well within their time. */
    sleep_ms(100);
    CHECK(now_ms() - begun > 900 || contenders_at(path) == 1);
    ground("open %d", gate);
    CHECK(closed_by(first) == ZKLOCK_OK && closed_by(second) == ZKLOCK_OK);
    CHECK(now_ms() - begun > 900 || contenders_at(path) == 0);
    wait_for_contenders(path, 0);
    OK(zklock_client_close(client));
    free_all(hold, lock, client);
}

TEST(a_close_in_the_middle_of_everything_harms_nobody) {
    enum { THREADS = 6 };
    const char *path = fresh_path();
    for (int round = 0; round < 10; round++) {
        zklock_client *client = new_client();
        zklock_lock *lock = new_mutex(client, path, 0);
        attempt *attempts[THREADS];
        thread *closing[2];
        for (int at = 0; at < THREADS; at++) attempts[at] = start_acquire(lock, ZKLOCK_FOREVER);
        for (int at = 0; at < 2; at++) closing[at] = start_thread(closes, client);
        for (int at = 0; at < 2; at++) CHECK(closed_by(closing[at]) == ZKLOCK_OK);
        for (int at = 0; at < THREADS; at++) {
            EVENTUALLY(is_over(attempts[at]));
            zklock_hold *hold;
            zklock_status status = outcome(attempts[at], &hold);
            CHECK(status == ZKLOCK_CLOSED || (status == ZKLOCK_OK && state_of(hold) == ZKLOCK_STATE_LOST));
            zklock_hold_free(hold);
        }
        free_all(NULL, lock, client);
    }
    wait_for_contenders(path, 0);
}

TEST(a_close_that_no_server_hears_ends_all_the_same) {
    const char *path = fresh_path();
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    zklock_client *client = client_with(hosts, 1000, 0);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    attempt *attempt = start_acquire(new_mutex(client, path, 0), ZKLOCK_FOREVER);
    zklock_reason reason;
    int64_t begun;
    wait_for_contenders(path, 2);
    ground("refuse %d on", proxy);
    ground("reset %d", proxy);
    on_time();
    begun = now_ms();
    OK(zklock_client_close(client));
    NOT_LATER(now_ms() - begun, 1000 + grace_ms());
    OK(zklock_hold_wait_lost(hold, 0, &reason));
    CHECK(reason == ZKLOCK_REASON_CLIENT_CLOSED);
    CHECK(refused(attempt, NULL, 0) == ZKLOCK_CLOSED);
    free_all(hold, lock, client);
    /* The session times out at the servers. */
    wait_for_contenders(path, 0);
}

TEST(of_two_clients_one_is_closed_and_the_other_goes_on) {
    const char *path = fresh_path();
    zklock_client *one = new_client(), *other = new_client();
    zklock_lock *lock = new_mutex(one, path, 0), *others = new_mutex(other, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *next;
    attempt *attempt = start_acquire(others, ZKLOCK_FOREVER);
    wait_for_contenders(path, 2);
    OK(zklock_client_close(one));
    next = granted(attempt);
    CHECK(token_of(next) > token_of(hold) && valid_for(hold) == 0);
    OK(zklock_hold_confirm(next, NULL));
    OK(zklock_release(next));
    free_all(hold, lock, one);
    free_all(next, others, other);
}

/* The handles that are freed in every order. */
enum { CLIENT, LOCK, HOLD, CALL, OPTIONS, HANDLES };

typedef struct {
    zklock_options *options;
    zklock_client *client;
    zklock_lock *lock;
    zklock_hold *hold;
    zklock_call *waiting;
} handles;

static void free_one(handles *handles, int which) {
    switch (which) {
    case CLIENT: zklock_client_free(handles->client); break;
    case LOCK: zklock_lock_free(handles->lock); break;
    case HOLD: zklock_hold_free(handles->hold); break;
    case CALL: zklock_call_free(handles->waiting); break;
    default: zklock_options_free(handles->options);
    }
}

static zklock_status use_one(handles *handles, int which) {
    zklock_stats stats;
    const char *path;
    int descriptor;
    switch (which) {
    case CLIENT: return zklock_client_stats(handles->client, &stats);
    case LOCK: return zklock_lock_path(handles->lock, &path);
    case HOLD: return zklock_hold_path(handles->hold, &path);
    case CALL: return zklock_call_fd(handles->waiting, &descriptor);
    default: return zklock_options_set_connect_timeout(handles->options, 1000);
    }
}

/* In the order of `order`, twice each, with all others in use as before. */
static void frees_in(const int *order, const char *path, int closes_first) {
    handles handles;
    int freed[HANDLES] = {0};
    OK(zklock_options_new(&handles.options));
    OK(zklock_options_set_session_timeout(handles.options, SESSION_MS));
    OK(zklock_client_new(servers(), handles.options, &handles.client));
    handles.lock = new_mutex(handles.client, path, 0);
    handles.hold = acquire(handles.lock, SOON_MS);
    OK(zklock_acquire_start(handles.lock, ZKLOCK_FOREVER, &handles.waiting));
    if (closes_first) OK(zklock_client_close(handles.client));
    for (int at = 0; at < HANDLES; at++) {
        free_one(&handles, order[at]);
        free_one(&handles, order[at]);
        freed[order[at]] = 1;
        for (int which = 0; which < HANDLES; which++) {
            IS(use_one(&handles, which), freed[which] ? ZKLOCK_INVALID_HANDLE : ZKLOCK_OK);
        }
        if (!freed[HOLD]) {
            CHECK(state_of(handles.hold) == (closes_first ? ZKLOCK_STATE_LOST : ZKLOCK_STATE_HELD));
            if (!closes_first) OK(zklock_hold_confirm(handles.hold, NULL));
        }
    }
    wait_for_contenders(path, 0);
}

static int permute(int *order, int from, const char *path, int closes_first) {
    int count = 0;
    if (from == HANDLES) {
        frees_in(order, path, closes_first);
        return 1;
    }
    for (int at = from; at < HANDLES; at++) {
        int swapped = order[from];
        order[from] = order[at];
        order[at] = swapped;
        count += permute(order, from + 1, path, closes_first);
        order[at] = order[from];
        order[from] = swapped;
    }
    return count;
}

TEST(handles_are_freed_in_any_order) {
    int order[HANDLES] = {CLIENT, LOCK, HOLD, CALL, OPTIONS};
    const char *path = fresh_path();
    CHECK(permute(order, 0, path, 0) == 120);
}

TEST(handles_of_a_closed_client_are_freed_in_any_order) {
    int order[HANDLES] = {CLIENT, LOCK, HOLD, CALL, OPTIONS};
    const char *path = fresh_path();
    CHECK(permute(order, 0, path, 1) == 120);
}

static void *frees_hold(void *hold) {
    zklock_hold_free(hold);
    return NULL;
}

TEST(a_wait_goes_on_when_its_lock_and_client_are_freed) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *lock = new_mutex(client, path, 0), *others = new_mutex(other, path, 0);
    zklock_hold *hold = acquire(others, SOON_MS);
    attempt *attempt = start_acquire(lock, ZKLOCK_FOREVER);
    wait_for_contenders(path, 2);
    zklock_lock_free(lock);
    zklock_client_free(client);
    CHECK(!is_over(attempt));
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    hold = granted(attempt);
    OK(zklock_hold_confirm(hold, NULL));
    OK(zklock_release(hold));
    free_all(hold, others, other);
}

TEST(a_hold_is_released_when_it_is_freed_even_where_a_thread_waits_for_its_loss) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    for (int round = 0; round < 10; round++) {
        loss loss = {.hold = acquire(lock, SOON_MS)};
        thread *waiter = start_thread(waits_for_loss, &loss);
        if (round % 2) sleep_ms(20);
        join_thread(start_thread(frees_hold, loss.hold));
        wait_for_contenders(path, 0);
        join_thread(waiter);
        /* Released, not lost; or freed before the wait began. */
        CHECK(loss.status == ZKLOCK_NOT_HELD || loss.status == ZKLOCK_INVALID_HANDLE);
    }
    free_all(NULL, lock, client);
}

TEST_MAIN("standalone tick=200 max-session=4000", LISTED(a_close_frees_what_is_held_and_ends_what_waits),
          LISTED(a_second_close_waits_as_the_first_does), LISTED(a_close_in_the_middle_of_everything_harms_nobody),
          LISTED(a_close_that_no_server_hears_ends_all_the_same),
          LISTED(of_two_clients_one_is_closed_and_the_other_goes_on), LISTED(handles_are_freed_in_any_order),
          LISTED(handles_of_a_closed_client_are_freed_in_any_order),
          LISTED(a_wait_goes_on_when_its_lock_and_client_are_freed),
          LISTED(a_hold_is_released_when_it_is_freed_even_where_a_thread_waits_for_its_loss))
