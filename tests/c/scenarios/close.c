/* The end of clients and handles: its effects, in any order. */

#include "test.h"

#include <unistd.h>

/* The handles that are freed in every order. */
enum { CLIENT, LOCK, HOLD, CALL, OPTIONS, HANDLES };

typedef struct {
    void (*free)(void *);
    void *it;
} handle;

#define HANDLE(type, object) ((handle){(void (*)(void *))zklock_##type##_free, object})

static zklock_status use_one(const handle *handles, int which) {
    zklock_stats stats;
    int descriptor;
    switch (which) {
    case CLIENT: return zklock_client_stats(handles[CLIENT].it, &stats);
    case LOCK: return LOOKED(zklock_lock_path(handles[LOCK].it));
    case HOLD: return LOOKED(zklock_hold_path(handles[HOLD].it));
    case CALL: return zklock_call_fd(handles[CALL].it, &descriptor);
    default: return zklock_options_set(handles[OPTIONS].it, "connect-timeout", "1s");
    }
}

/* In the order of `order`, twice each, with all others in use as before. */
static void frees_in(const int *order, const char *path, int closes_first) {
    zklock_options *options = options_with(SESSION_MS, 0);
    zklock_client *client = MADE(zklock_client, zklock_client_new(servers(), options, &made));
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    const handle handles[] = {HANDLE(client, client), HANDLE(lock, lock), HANDLE(hold, hold),
                              HANDLE(call, start_acquire(lock, ZKLOCK_FOREVER)), HANDLE(options, options)};
    int freed[HANDLES] = {0};
    if (closes_first) OK(zklock_client_close(client));
    for (int at = 0; at < HANDLES; at++) {
        for (int twice = 0; twice < 2; twice++) handles[order[at]].free(handles[order[at]].it);
        freed[order[at]] = 1;
        for (int which = 0; which < HANDLES; which++) {
            IS(use_one(handles, which), freed[which] ? ZKLOCK_INVALID_HANDLE : ZKLOCK_OK);
        }
        if (!freed[HOLD]) IS(zklock_hold_confirm(hold, NULL), closes_first ? ZKLOCK_LOST : ZKLOCK_OK);
    }
    wait_for_contenders(path, 0);
}

TEST(handles_are_freed_in_any_order_whether_the_client_is_closed_or_not) {
    const char *path = fresh_path();
    /* Each of them is the first, the last, and before and after each other. */
    for (int round = 0; round < 2 * HANDLES * (HANDLES - 1); round++) {
        int order[HANDLES];
        for (int at = 0; at < HANDLES; at++) order[at] = (round / 8 + (1 + round / 2 % 4) * at) % HANDLES;
        frees_in(order, path, round % 2);
    }
}

TEST(a_client_that_is_freed_takes_its_session_along_when_nothing_needs_it_any_more) {
    rivals all = new_rivals();
    zklock_hold *hold = acquire(all.lock, SOON_MS);
    int closed = new_hook("see-request", all.proxy, "close", 1, "");
    zklock_call *second = start_acquire(all.lock, ZKLOCK_FOREVER);
    wait_for_contenders(all.path, 2);
    zklock_client_free(all.client);
    zklock_lock_free(all.lock);
    OK(zklock_hold_confirm(hold, NULL));
    give_back(hold);
    hold = hold_of(second);
    OK(zklock_hold_confirm(hold, NULL));
    CHECK(!strcmp(ground("fired %d", closed), "false"));
    /* Nobody waits for this release. */
    zklock_hold_free(hold);
    zklock_hold *hers = acquire(all.others, SOON_MS);
    /* The session is closed, not left to time out. */
    await_hook(closed);
    EVENTUALLY(!strcmp(ground("connections %d", all.proxy), "0"));
    give_back(hers);
}

static void *waits_for_loss(void *hold) {
    zklock_reason reason;
    return (void *)(intptr_t)zklock_hold_wait_lost(hold, ZKLOCK_FOREVER, &reason);
}

static void *confirms(void *hold) {
    zklock_status status;
    do status = zklock_hold_confirm(hold, NULL);
    while (status == ZKLOCK_OK);
    return (void *)(intptr_t)status;
}

TEST(what_races_with_a_free_is_done_or_told_of_the_release_or_of_the_handle) {
    rivals all = new_rivals();
    for (int round = 0; round < 200; round++) {
        zklock_hold *hold = acquire(all.others, SOON_MS);
        thread racing[] = {start_thread(confirms, hold), start_thread(waits_for_loss, hold)};
        usleep((useconds_t)(round * 37 % 1500));
        zklock_hold_free(hold);
        for (int at = 0; at < 2; at++) {
            zklock_status status = join_status(racing[at]);
            CHECK(status == ZKLOCK_NOT_HELD || status == ZKLOCK_INVALID_HANDLE);
        }
    }
}

TEST_MAIN(STANDALONE " tick=200")
