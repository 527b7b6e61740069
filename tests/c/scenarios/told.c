/* Promise 6: a holder learns of a lost hold within one heartbeat, whatever the cause. */

#include "events.h"

#define HEARTBEAT_MS (SESSION_MS / 10)

/* When a loss was reported in one of the ways, and why; 0 if it was not reported yet. */
typedef struct {
    zklock_client *client;
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

static void *takes_events(void *argument) {
    news *news = argument;
    zklock_event event;
    while (!news->count && readable(descriptor_of(news->client), SOON_MS)) {
        if (zklock_client_next_event(news->client, &event) || event.kind != ZKLOCK_EVENT_LOST || event.hold != news->hold) continue;
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
        state = zklock_hold_state(news->hold, &news->reason);
        CHECK((state == ZKLOCK_STATE_LOST) == (news->reason != ZKLOCK_REASON_NONE));
        news->at = now_ms();
        sleep_ms(1);
    }
    if (state == ZKLOCK_STATE_LOST) __atomic_add_fetch(&news->count, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* All the ways in which a holder can learn of a loss, at once. */
enum { CALLBACK, CALLBACK_AGAIN, WAIT, EVENT, POLL, WAYS };
static const char *const WAY[] = {"callback", "second callback", "wait", "event", "poll"};

typedef struct {
    news news[WAYS];
    thread threads[WAYS];
} ears;

static void listen_for(ears *ears, zklock_client *client, zklock_hold *hold) {
    void *(*run[WAYS])(void *) = {NULL, NULL, waits, takes_events, polls};
    memset(ears, 0, sizeof *ears);
    for (int way = 0; way < WAYS; way++) {
        ears->news[way].client = client;
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
        if (way != EVENT && news->reason != reason) {
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
    int64_t milliseconds = -7;
    OK(zklock_hold_wait_lost(hold, 0, &again));
    CHECK(again == reason);
    IS(zklock_hold_confirm(hold, &milliseconds), ZKLOCK_LOST);
    CHECK(milliseconds == -7);
    CHECK(valid_for(hold) == 0);
    state = zklock_hold_state(hold, &again);
    CHECK(state == ZKLOCK_STATE_LOST && again == reason);
    IS(zklock_release(hold), ZKLOCK_LOST);
    SAYS("stop the work that it guarded");
    CHECK(valid_for(hold) == 0);
    IS(zklock_release(hold), ZKLOCK_NOT_HELD);
}

TEST(a_holder_is_told_within_a_heartbeat_that_its_session_has_expired) {
    rivals all = new_rivals();
    follow(all.client);
    zklock_hold *next, *hold = acquire(all.lock, SOON_MS);
    ears ears;
    on_time();
    listen_for(&ears, all.client, hold);
    /* This is the worst moment for a loss. */
    just_after_a_heartbeat(all.proxy);
    for (int way = 0; way < WAYS; way++) CHECK(!has_come(&ears.news[way]));
    all_are_told(&ears, expire_session(all.proxy), ZKLOCK_REASON_SESSION_EXPIRED);
    stays_lost(hold, ZKLOCK_REASON_SESSION_EXPIRED);
    EVENTUALLY(stats_of(all.client).losses == 1);
    next = acquire(all.lock, SOON_MS);
    CHECK(token_of(next) > token_of(hold));
    CHECK(stats_of(all.client).sessions == 2);
    give_back(next);
    zklock_hold_free(hold);
    free_rivals(&all);
}

static void must_not_block(zklock_hold *hold, zklock_reason reason, void *context) {
    IS(zklock_release(hold), ZKLOCK_DEADLOCK);
    SAYS("a callback must not make calls that block");
    called(hold, reason, context);
}

TEST(inner_holds_are_told_with_the_outer_one) {
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, fresh_path(), IS_REENTRANT);
    zklock_hold *outer = acquire(lock, SOON_MS), *inner = acquire(lock, 0), *ended = acquire(lock, 0), *none = NULL;
    news outside = {.hold = outer}, inside = {.hold = inner}, over = {.hold = ended};
    OK(zklock_hold_on_lost(outer, called, &outside));
    OK(zklock_hold_on_lost(inner, must_not_block, &inside));
    OK(zklock_hold_on_lost(ended, called, &over));
    OK(zklock_release(ended));
    ground("delete %s", node_of(outer));
    EVENTUALLY(has_come(&outside) && has_come(&inside));
    CHECK(inside.reason == ZKLOCK_REASON_NODE_DELETED && !has_come(&over));
    /* Nothing is entered inside of a section that is lost. */
    IS(zklock_acquire(lock, ZKLOCK_FOREVER, &none), ZKLOCK_LOST);
    IS(zklock_release(inner), ZKLOCK_LOST);
    IS(zklock_release(outer), ZKLOCK_LOST);
    CHECK(!none);
    zklock_hold_free(inner);
    zklock_hold_free(ended);
    free_all(outer, lock, client);
}

TEST_MAIN(STANDALONE)
