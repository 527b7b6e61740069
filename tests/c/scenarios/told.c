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

/* All the ways in which a holder can learn of a loss, at once. */
enum { CALLBACK, CALLBACK_AGAIN, WAIT, EVENT, WAYS };
static const char *const WAY[] = {"callback", "second callback", "wait", "event"};

typedef struct {
    news news[WAYS];
    thread threads[WAYS];
} ears;

static void listen_for(ears *ears, zklock_client *client, zklock_hold *hold) {
    void *(*run[WAYS])(void *) = {NULL, NULL, waits, takes_events};
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

TEST(a_holder_is_told_within_a_heartbeat_that_its_session_has_expired) {
    rivals all = new_rivals();
    follow(all.client);
    zklock_hold *hold = acquire(all.lock, SOON_MS);
    zklock_reason again;
    ears ears;
    on_time();
    listen_for(&ears, all.client, hold);
    /* This is the worst moment for a loss. */
    just_after_a_heartbeat(all.proxy);
    for (int way = 0; way < WAYS; way++) CHECK(!has_come(&ears.news[way]));
    all_are_told(&ears, expire_session(all.proxy), ZKLOCK_REASON_SESSION_EXPIRED);
    /* It is final: every further call reports it at once, and so does the release. */
    OK(zklock_hold_wait_lost(hold, 0, &again));
    CHECK(again == ZKLOCK_REASON_SESSION_EXPIRED);
    IS(zklock_hold_confirm(hold, NULL), ZKLOCK_LOST);
    CHECK(zklock_hold_state(hold, &again) == ZKLOCK_STATE_LOST && again == ZKLOCK_REASON_SESSION_EXPIRED);
    FAILS(zklock_release(hold), ZKLOCK_LOST, "stop the work that it guarded");
    CHECK(valid_for(hold) == 0);
    IS(zklock_release(hold), ZKLOCK_NOT_HELD);
}

TEST_MAIN(STANDALONE)
