/* Promise 6: a holder learns of a lost hold within one heartbeat, whatever the cause. */

#include "test.h"

#define HEARTBEAT_MS (SESSION_MS / 10)

/* When a loss was reported in one of the ways, and why; 0 if it was not reported yet. */
typedef struct {
    zklock_hold *hold;
    int64_t at;
    zklock_reason reason;
    zklock_status status;
    int count;
} news;

static int has_come(const news *news) { return __atomic_load_n(&news->count, __ATOMIC_ACQUIRE); }

static void called(zklock_hold *hold, zklock_reason reason, void *context) {
    news *news = context;
    CHECK(hold == news->hold);
    news->at = now_ms();
    news->reason = reason;
    __atomic_add_fetch(&news->count, 1, __ATOMIC_RELEASE);
}

static void *waits(void *argument) {
    news *news = argument;
    news->status = zklock_hold_wait_lost(news->hold, ZKLOCK_FOREVER, &news->reason);
    news->at = now_ms();
    __atomic_add_fetch(&news->count, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void *watches_descriptor(void *argument) {
    news *news = argument;
    int descriptor;
    OK(zklock_hold_fd(news->hold, &descriptor));
    if (readable(descriptor, SOON_MS)) {
        news->at = now_ms();
        __atomic_add_fetch(&news->count, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void *polls(void *argument) {
    news *news = argument;
    int64_t until = now_ms() + SOON_MS;
    zklock_state state = ZKLOCK_STATE_HELD;
    while (state != ZKLOCK_STATE_LOST && now_ms() < until) {
        OK(zklock_hold_state(news->hold, &state, &news->reason));
        CHECK((state == ZKLOCK_STATE_LOST) == (news->reason != ZKLOCK_REASON_NONE));
        news->at = now_ms();
        sleep_ms(1);
    }
    if (state == ZKLOCK_STATE_LOST) __atomic_add_fetch(&news->count, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* All the ways in which a holder can learn of a loss, at once. */
enum { CALLBACK, CALLBACK_AGAIN, WAIT, DESCRIPTOR, POLL, WAYS };
static const char *const WAY[] = {"callback", "second callback", "wait", "descriptor", "poll"};

typedef struct {
    news news[WAYS];
    thread *threads[WAYS];
} ears;

static void listen_for(ears *ears, zklock_hold *hold) {
    void *(*run[WAYS])(void *) = {NULL, NULL, waits, watches_descriptor, polls};
    memset(ears, 0, sizeof *ears);
    for (int way = 0; way < WAYS; way++) {
        ears->news[way].hold = hold;
        if (!run[way]) {
            OK(zklock_hold_on_lost(hold, called, &ears->news[way]));
        } else {
            ears->threads[way] = start_thread(run[way], &ears->news[way]);
        }
    }
}

/* Checks that all ways have reported this reason, within a heartbeat of `since`. */
static void all_are_told(ears *ears, int64_t since, zklock_reason reason) {
    for (int way = 0; way < WAYS; way++) {
        news *news = &ears->news[way];
        EVENTUALLY(has_come(news));
        if (ears->threads[way]) join_thread(ears->threads[way]);
        if (way != DESCRIPTOR && news->reason != reason) {
            failed(__FILE__, __LINE__, "%s: the reason is %d, not %d", WAY[way], (int)news->reason, (int)reason);
        }
        NOT_LATER(news->at - since, HEARTBEAT_MS + allowance_ms());
        CHECK(news->status == ZKLOCK_OK);
        CHECK(has_come(news) == 1);
    }
}

/* Checks that the loss is final: every further call reports it at once, and so does the release. */
static void stays_lost(zklock_hold *hold, zklock_reason reason) {
    zklock_reason again = ZKLOCK_REASON_NONE;
    zklock_state state;
    int descriptor;
    int64_t milliseconds = -7;
    OK(zklock_hold_wait_lost(hold, 0, &again));
    CHECK(again == reason);
    OK(zklock_hold_fd(hold, &descriptor));
    CHECK(readable(descriptor, 0));
    IS(zklock_hold_confirm(hold, &milliseconds), ZKLOCK_LOST);
    CHECK(milliseconds == -7);
    CHECK(valid_for(hold) == 0);
    OK(zklock_hold_state(hold, &state, &again));
    CHECK(state == ZKLOCK_STATE_LOST && again == reason);
    IS(zklock_release(hold), ZKLOCK_LOST);
    SAYS("stop what it guarded");
    CHECK(valid_for(hold) == 0);
    CHECK(readable(descriptor, 0));
    IS(zklock_release(hold), ZKLOCK_NOT_HELD);
}

typedef enum { EXPIRY, NODE_DELETED, PARENT_DELETED } blow;

static void told_of(blow blow) {
    zklock_reason reason = blow == EXPIRY ? ZKLOCK_REASON_SESSION_EXPIRED : ZKLOCK_REASON_NODE_DELETED;
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    const char *path = fresh_path(), *node;
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *next, *hold = acquire(lock, SOON_MS);
    ears ears;
    int64_t struck;
    OK(zklock_hold_node(hold, &node));
    on_time();
    listen_for(&ears, hold);
    /* This is the worst moment for a loss. */
    just_after_a_heartbeat(proxy);
    for (int way = 0; way < WAYS; way++) CHECK(!has_come(&ears.news[way]));

    struck = now_ms();
    if (blow == EXPIRY) {
        struck = expire_session(proxy);
    } else if (blow == NODE_DELETED) {
        ground("delete %s", node);
    } else {
        ground("delete-tree %s", path);
    }
    all_are_told(&ears, struck, reason);
    stays_lost(hold, reason);
    EVENTUALLY(stats_of(client).losses == 1);
    next = acquire(lock, SOON_MS);
    CHECK(token_of(next) > token_of(hold) && valid_for(next) > 0);
    CHECK(stats_of(client).sessions == (blow == EXPIRY ? 2 : 1));
    OK(zklock_release(next));
    zklock_hold_free(hold);
    free_all(next, lock, client);
}

TEST(a_holder_is_told_within_a_heartbeat_that_its_session_has_expired) { told_of(EXPIRY); }

TEST(a_holder_is_told_within_a_heartbeat_that_its_node_was_deleted) { told_of(NODE_DELETED); }

TEST(a_holder_is_told_within_a_heartbeat_that_everything_was_deleted) { told_of(PARENT_DELETED); }

TEST(every_holder_of_a_session_is_told_within_a_heartbeat_when_all_nodes_are_deleted) {
    enum { HOLDS = 8 };
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    const char *path = fresh_path();
    zklock_hold *holds[HOLDS];
    ears ears[HOLDS];
    int64_t struck;
    on_time();
    for (int at = 0; at < HOLDS; at++) {
        char below[80];
        snprintf(below, sizeof below, "%s/%d", path, at);
        zklock_lock *lock = new_mutex(client, below, 0);
        holds[at] = acquire(lock, SOON_MS);
        zklock_lock_free(lock);
        listen_for(&ears[at], holds[at]);
    }
    just_after_a_heartbeat(proxy);
    ground("delete-tree %s", path);
    /* Deleting them takes time, and the first holder may know of its loss by now. */
    struck = now_ms();
    for (int at = 0; at < HOLDS; at++) {
        all_are_told(&ears[at], struck, ZKLOCK_REASON_NODE_DELETED);
        stays_lost(holds[at], ZKLOCK_REASON_NODE_DELETED);
        zklock_hold_free(holds[at]);
    }
    EVENTUALLY(stats_of(client).losses == HOLDS);
    zklock_client_free(client);
}

TEST(without_a_heartbeat_a_hold_is_held_though_nothing_proves_it) {
    zklock_options *options;
    zklock_client *client;
    zklock_state state;
    zklock_reason reason;
    const char *node;
    OK(zklock_options_new(&options));
    OK(zklock_options_set_session_timeout(options, SESSION_MS));
    OK(zklock_options_set_heartbeat(options, 0));
    OK(zklock_client_new(servers(), options, &client));
    zklock_options_free(options);
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    EVENTUALLY(valid_for(hold) == 0);
    OK(zklock_hold_state(hold, &state, &reason));
    CHECK(state == ZKLOCK_STATE_HELD);
    OK(zklock_hold_node(hold, &node));
    ground("delete %s", node);
    OK(zklock_hold_wait_lost(hold, SOON_MS, &reason));
    CHECK(reason == ZKLOCK_REASON_NODE_DELETED);
    free_all(hold, lock, client);
}

TEST(a_closed_client_tells_its_holders_and_a_release_is_no_loss) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    zklock_reason reason = ZKLOCK_REASON_OTHER;
    ears ears;
    news news = {.hold = hold};
    thread *waiter = start_thread(waits, &news);
    int descriptor;
    int64_t begun;
    OK(zklock_hold_fd(hold, &descriptor));
    OK(zklock_hold_on_lost(hold, called, &news));
    IS(zklock_hold_wait_lost(hold, 20, &reason), ZKLOCK_TIMEOUT);
    OK(zklock_release(hold));
    join_thread(waiter);
    CHECK(news.status == ZKLOCK_NOT_HELD && reason == ZKLOCK_REASON_OTHER);
    CHECK(state_of(hold) == ZKLOCK_STATE_RELEASED);
    IS(zklock_hold_wait_lost(hold, SOON_MS, &reason), ZKLOCK_NOT_HELD);
    CHECK(!readable(descriptor, 0) && has_come(&news) == 1);

    zklock_hold *next = acquire(lock, SOON_MS);
    on_time();
    listen_for(&ears, next);
    begun = now_ms();
    OK(zklock_client_close(client));
    NOT_LATER(now_ms() - begun, 1000 + allowance_ms());
    all_are_told(&ears, begun, ZKLOCK_REASON_CLIENT_CLOSED);
    stays_lost(next, ZKLOCK_REASON_CLIENT_CLOSED);
    EVENTUALLY(stats_of(client).losses == 1);
    /* The hold that was released first got no report. */
    CHECK(!readable(descriptor, 0) && has_come(&news) == 1);
    zklock_hold_free(hold);
    free_all(next, lock, client);
}

TEST(a_holder_in_a_frozen_network_is_at_risk_then_lost_and_stays_lost) {
    int proxy;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    uint64_t session = stats_of(client).session_id;
    const char *node;
    ears ears;
    int64_t frozen, left, lapsed;
    OK(zklock_hold_node(hold, &node));
    just_after_a_heartbeat(proxy);
    just_after_a_heartbeat(proxy);
    on_time();
    listen_for(&ears, hold);
    /* The answer may be on its way from the proxy to the client. */
    EVENTUALLY(valid_for(hold) > SESSION_MS / 2 - SESSION_MS / 10);
    ground("freeze %d both", proxy);
    frozen = now_ms();

    for (left = valid_for(hold); left > 0;) {
        int64_t now = valid_for(hold);
        zklock_state state = state_of(hold);
        CHECK(now <= left);
        if (now > 0 && now < SESSION_MS / 10 && state == ZKLOCK_STATE_HELD) {
            failed(__FILE__, __LINE__, "held, with %lld ms left and heartbeats missing", (long long)now);
        }
        if (now > 0 && now_ms() - frozen < SESSION_MS / 4) CHECK(state != ZKLOCK_STATE_LOST);
        left = now;
        sleep_ms(1);
    }
    lapsed = now_ms();
    NOT_LATER(lapsed - frozen, SESSION_MS / 2 + grace_ms());
    all_are_told(&ears, lapsed, ZKLOCK_REASON_LEASE_LAPSED);
    CHECK(!strcmp(ground("exists %s", node), "true"));

    ground("thaw %d", proxy);
    EVENTUALLY(!strcmp(ground("exists %s", node), "false"));
    settled(client);
    CHECK(stats_of(client).session_id == session);
    /* Heartbeats go on for other holds, and do not bring this one back. */
    zklock_lock *other = new_mutex(client, fresh_path(), 0);
    zklock_hold *held = acquire(other, SOON_MS);
    just_after_a_heartbeat(proxy);
    stays_lost(hold, ZKLOCK_REASON_LEASE_LAPSED);
    CHECK(has_come(&ears.news[CALLBACK]) == 1);
    CHECK(state_of(held) == ZKLOCK_STATE_HELD);
    CHECK(stats_of(client).losses == 1);
    free_all(held, other, NULL);
    free_all(hold, lock, client);
}

TEST(a_cut_shorter_than_the_lease_is_survived_with_the_same_token) {
    int proxy, descriptor;
    zklock_client *client = proxied_client(&proxy);
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    uint64_t token = token_of(hold);
    news news = {.hold = hold};
    int64_t milliseconds;
    OK(zklock_hold_on_lost(hold, called, &news));
    OK(zklock_hold_fd(hold, &descriptor));
    just_after_a_heartbeat(proxy);
    just_after_a_heartbeat(proxy);
    EVENTUALLY(valid_for(hold) > SESSION_MS / 2 - SESSION_MS / 10);
    ground("freeze %d both", proxy);
    EVENTUALLY(state_of(hold) == ZKLOCK_STATE_AT_RISK);
    CHECK(valid_for(hold) > 0);
    ground("thaw %d", proxy);
    EVENTUALLY(state_of(hold) == ZKLOCK_STATE_HELD);
    OK(zklock_hold_confirm(hold, &milliseconds));
    CHECK(milliseconds > SESSION_MS / 8 && milliseconds <= SESSION_MS / 2);
    OK(zklock_hold_confirm(hold, NULL));
    CHECK(token_of(hold) == token && !readable(descriptor, 0) && !has_come(&news));
    OK(zklock_release(hold));
    CHECK(stats_of(client).losses == 0);
    free_all(hold, lock, client);
}

static void lose(zklock_hold *hold) {
    const char *node;
    OK(zklock_hold_node(hold, &node));
    ground("delete %s", node);
    EVENTUALLY(state_of(hold) == ZKLOCK_STATE_LOST);
}

TEST(who_asks_after_the_loss_is_told_at_once) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    news news = {.hold = hold};
    int descriptor, again;
    lose(hold);
    OK(zklock_hold_on_lost(hold, called, &news));
    OK(zklock_hold_fd(hold, &descriptor));
    OK(zklock_hold_fd(hold, &again));
    CHECK(descriptor == again);
    CHECK(readable(descriptor, SOON_MS));
    EVENTUALLY(has_come(&news));
    CHECK(news.reason == ZKLOCK_REASON_NODE_DELETED);
    free_all(hold, lock, client);
}

TEST(inner_holds_are_told_with_the_outer_one) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), ZKLOCK_REENTRANT);
    zklock_hold *outer = acquire(lock, SOON_MS), *inner = acquire(lock, 0), *ended = acquire(lock, 0);
    news outside = {.hold = outer}, inside = {.hold = inner}, over = {.hold = ended};
    OK(zklock_hold_on_lost(outer, called, &outside));
    OK(zklock_hold_on_lost(inner, called, &inside));
    OK(zklock_hold_on_lost(ended, called, &over));
    OK(zklock_release(ended));
    lose(outer);
    EVENTUALLY(has_come(&outside) && has_come(&inside));
    CHECK(inside.reason == ZKLOCK_REASON_NODE_DELETED && !has_come(&over));
    IS(zklock_release(inner), ZKLOCK_LOST);
    IS(zklock_release(outer), ZKLOCK_LOST);
    zklock_hold_free(inner);
    zklock_hold_free(ended);
    free_all(outer, lock, client);
}

typedef struct {
    zklock_client *client;
    zklock_lock *lock;
    int begun, go_on, ended;
} visit;

/* Reads its hold, tries every call that blocks, and frees the hold. */
static void looks_and_frees(zklock_hold *hold, zklock_reason reason, void *context) {
    visit *visit = context;
    zklock_hold *other = NULL;
    zklock_client *client = NULL;
    zklock_call *waiting;
    zklock_write write = {.kind = ZKLOCK_WRITE_DELETE, .path = "/c", .version = 7};
    const char *path;
    CHECK(reason == ZKLOCK_REASON_NODE_DELETED);
    CHECK(state_of(hold) == ZKLOCK_STATE_LOST && valid_for(hold) == 0 && token_of(hold) > 0);
    OK(zklock_hold_path(hold, &path));
    IS(zklock_acquire(visit->lock, SOON_MS, &other), ZKLOCK_DEADLOCK);
    SAYS("callback");
    IS(zklock_acquire(visit->lock, 0, &other), ZKLOCK_DEADLOCK);
    IS(zklock_release(hold), ZKLOCK_DEADLOCK);
    IS(zklock_hold_wait_lost(hold, 0, &reason), ZKLOCK_DEADLOCK);
    IS(zklock_hold_confirm(hold, NULL), ZKLOCK_DEADLOCK);
    IS(zklock_hold_commit(hold, &write, 1, NULL), ZKLOCK_DEADLOCK);
    IS(zklock_client_new(servers(), NULL, &client), ZKLOCK_DEADLOCK);
    IS(zklock_client_close(visit->client), ZKLOCK_DEADLOCK);
    CHECK(!other && !client);
    /* It does not block. */
    OK(zklock_acquire_start(visit->lock, SOON_MS, &waiting));
    zklock_call_free(waiting);
    zklock_hold_free(hold);
    IS(zklock_hold_path(hold, &path), ZKLOCK_INVALID_HANDLE);
    __atomic_store_n(&visit->ended, 1, __ATOMIC_RELEASE);
}

TEST(a_callback_may_free_its_hold_and_must_not_block) {
    visit visit = {0};
    visit.client = new_client();
    visit.lock = new_mutex(visit.client, fresh_path(), 0);
    zklock_hold *hold = acquire(visit.lock, SOON_MS);
    const char *node;
    /* Copy the name: as soon as the node is deleted, the callback may free the hold and its strings. */
    char copy[160];
    OK(zklock_hold_node(hold, &node));
    snprintf(copy, sizeof copy, "%s", node);
    OK(zklock_hold_on_lost(hold, looks_and_frees, &visit));
    ground("delete %s", copy);
    EVENTUALLY(__atomic_load_n(&visit.ended, __ATOMIC_ACQUIRE));
    zklock_hold_free(hold);
    settled(visit.client);
    free_all(NULL, visit.lock, visit.client);
}

static void takes_its_time(zklock_hold *hold, zklock_reason reason, void *context) {
    visit *visit = context;
    (void)reason;
    __atomic_store_n(&visit->begun, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&visit->go_on, __ATOMIC_ACQUIRE)) sleep_ms(1);
    /* The hold is being freed: a call says so, and does no harm. */
    if (hold) {
        const char *node;
        IS(zklock_hold_node(hold, &node), ZKLOCK_INVALID_HANDLE);
    }
    __atomic_store_n(&visit->ended, 1, __ATOMIC_RELEASE);
}

static void *frees(void *hold) {
    zklock_hold_free(hold);
    return NULL;
}

TEST(freeing_a_hold_waits_for_its_callback_and_none_comes_after_it) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    visit visit = {0};
    news behind = {.hold = hold};
    const char *node;
    thread *freeing;
    int count;
    OK(zklock_hold_node(hold, &node));
    OK(zklock_hold_on_lost(hold, takes_its_time, &visit));
    ground("delete %s", node);
    EVENTUALLY(__atomic_load_n(&visit.begun, __ATOMIC_ACQUIRE));
    /* This callback waits in the queue of the callbacks' thread, which is busy. */
    OK(zklock_hold_on_lost(hold, called, &behind));
    freeing = start_thread(frees, hold);
    EVENTUALLY(zklock_hold_node(hold, &node) == ZKLOCK_INVALID_HANDLE);
    CHECK(!visit.ended);
    __atomic_store_n(&visit.go_on, 1, __ATOMIC_RELEASE);
    join_thread(freeing);
    CHECK(__atomic_load_n(&visit.ended, __ATOMIC_ACQUIRE));
    count = has_come(&behind);

    /* A callback that was queued before another one has been called by then, or never is. */
    zklock_hold *last = acquire(lock, SOON_MS);
    news news = {.hold = last};
    OK(zklock_hold_on_lost(last, called, &news));
    lose(last);
    EVENTUALLY(has_come(&news));
    CHECK(has_come(&behind) == count);
    free_all(last, lock, client);
}

TEST_MAIN("standalone max-session=4000", LISTED(a_holder_is_told_within_a_heartbeat_that_its_session_has_expired),
          LISTED(a_holder_is_told_within_a_heartbeat_that_its_node_was_deleted),
          LISTED(a_holder_is_told_within_a_heartbeat_that_everything_was_deleted),
          LISTED(every_holder_of_a_session_is_told_within_a_heartbeat_when_all_nodes_are_deleted),
          LISTED(without_a_heartbeat_a_hold_is_held_though_nothing_proves_it),
          LISTED(a_closed_client_tells_its_holders_and_a_release_is_no_loss),
          LISTED(a_holder_in_a_frozen_network_is_at_risk_then_lost_and_stays_lost),
          LISTED(a_cut_shorter_than_the_lease_is_survived_with_the_same_token),
          LISTED(who_asks_after_the_loss_is_told_at_once), LISTED(inner_holds_are_told_with_the_outer_one),
          LISTED(a_callback_may_free_its_hold_and_must_not_block),
          LISTED(freeing_a_hold_waits_for_its_callback_and_none_comes_after_it))
