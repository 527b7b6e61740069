/* Promise 6: a holder learns of a lost hold within one heartbeat, whatever the cause. */

#include "events.h"

#define HEARTBEAT_MS (SESSION_MS / 10)

/* When a loss was reported in one of the ways, and why. */
typedef struct {
    zklock_client *client;
    zklock_hold *hold;
    int64_t at;
    zklock_reason reason;
    int count;
} news;

static int has_come(const news *news) { return __atomic_load_n(&news->count, __ATOMIC_ACQUIRE); }

static void note(news *news, zklock_reason reason) {
    news->at = now_ms();
    news->reason = reason;
    __atomic_add_fetch(&news->count, 1, __ATOMIC_RELEASE);
}

static void called(zklock_hold *hold, zklock_reason reason, void *context) {
    CHECK(hold == ((news *)context)->hold);
    note(context, reason);
}

static void *waits(void *given) {
    zklock_reason reason;
    OK(zklock_hold_wait_lost(((news *)given)->hold, ZKLOCK_FOREVER, &reason));
    note(given, reason);
    return NULL;
}

static void *takes_events(void *given) {
    news *news = given;
    zklock_event event;
    zklock_reason reason;
    while (!news->count && readable(descriptor_of(news->client), SOON_MS)) {
        if (zklock_client_next_event(news->client, &event) || event.kind != ZKLOCK_EVENT_LOST || event.hold != news->hold) continue;
        CHECK(zklock_hold_state(event.hold, &reason) == ZKLOCK_STATE_LOST);
        note(news, reason);
    }
    return NULL;
}

/* All the ways in which a holder can learn of a loss, at once. */
enum { CALLBACK, CALLBACK_AGAIN, WAIT, EVENT, WAYS };

TEST(a_holder_is_told_in_every_way_within_a_heartbeat_that_its_session_has_expired) {
    rivals all = new_rivals();
    follow(all.client);
    zklock_hold *hold = acquire(all.lock, SOON_MS);
    news by[WAYS];
    on_time();
    for (int way = 0; way < WAYS; way++) by[way] = (news){.client = all.client, .hold = hold};
    OK(zklock_hold_on_lost(hold, called, &by[CALLBACK]));
    OK(zklock_hold_on_lost(hold, called, &by[CALLBACK_AGAIN]));
    thread waiting = start_thread(waits, &by[WAIT]), asking = start_thread(takes_events, &by[EVENT]);
    /* This is the worst moment for a loss. */
    just_after_a_heartbeat(all.proxy);
    for (int way = 0; way < WAYS; way++) CHECK(!has_come(&by[way]));
    int64_t since = expire_session(all.proxy);
    for (int way = 0; way < WAYS; way++) {
        EVENTUALLY(has_come(&by[way]));
        CHECK(by[way].reason == ZKLOCK_REASON_SESSION_EXPIRED);
        NOT_LATER(by[way].at - since, HEARTBEAT_MS + allowance_ms());
    }
    join_thread(waiting), join_thread(asking);
    for (int way = 0; way < WAYS; way++) CHECK(has_come(&by[way]) == 1);
    /* It is final: every further call reports it at once, and so does the release. */
    zklock_reason again;
    OK(zklock_hold_wait_lost(hold, 0, &again));
    CHECK(again == ZKLOCK_REASON_SESSION_EXPIRED);
    IS(zklock_hold_confirm(hold, NULL), ZKLOCK_LOST);
    CHECK(zklock_hold_state(hold, &again) == ZKLOCK_STATE_LOST && again == ZKLOCK_REASON_SESSION_EXPIRED);
    FAILS(zklock_release(hold), ZKLOCK_LOST, "stop the work that it guarded");
    CHECK(valid_for(hold) == 0);
    IS(zklock_release(hold), ZKLOCK_NOT_HELD);
}

TEST_MAIN(STANDALONE)
