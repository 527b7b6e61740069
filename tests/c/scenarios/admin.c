/* Who wants a lock: what an operator sees and does, and what a holder learns. */

#include "events.h"

enum { SEEN_AT_MOST = 8 };

/* The contenders that were shown. */
typedef struct {
    int count;
    char nodes[SEEN_AT_MOST][160], identity[128];
    zklock_contender first;
} seen;

static void see(const zklock_contender *contender, void *context) {
    seen *seen = context;
    CHECK(seen->count < SEEN_AT_MOST && contender->size == sizeof *contender);
    CHECK(!strcmp(strrchr(contender->node, '/') + 1, contender->name) && !strcmp(contender->dialect, "curator"));
    CHECK(contender->since > INT64_C(1600000000000));
    if (!seen->count) seen->first = *contender;
    snprintf(seen->identity, sizeof seen->identity, "%s", contender->identity);
    snprintf(seen->nodes[seen->count++], sizeof seen->nodes[0], "%s", contender->node);
}

static seen look(const zklock_lock *lock) {
    seen seen = {0};
    OK(zklock_contenders(lock, see, &seen));
    return seen;
}

TEST(an_operator_sees_and_evicts_contenders) {
    rivals all = new_rivals();
    zklock_lock *reader = new_lock(zklock_rwlock_read_new, all.client, all.path), *writer = new_lock(zklock_rwlock_write_new, all.other, all.path);
    CHECK(look(reader).count == 0);
    zklock_hold *hold = acquire(reader, SOON_MS), *next;
    attempt *waiting = start_acquire(writer, SOON_MS);
    zklock_reason reason;
    int evicted = -1;
    wait_for_contenders(all.path, 2);
    seen queue = look(writer);
    CHECK(queue.count == 2 && queue.first.role == ZKLOCK_ROLE_READ && queue.first.holds == 1);
    CHECK(queue.first.token == token_of(hold) && queue.first.session == stats_of(all.client).session_id);
    CHECK(!strcmp(queue.nodes[0], node_of(hold)) && !strcmp(queue.identity, ground("data %s", queue.nodes[1])));
    OK(zklock_evict(writer, queue.nodes[0], &evicted));
    CHECK(evicted == 1);
    OK(zklock_hold_wait_lost(hold, SOON_MS, &reason));
    CHECK(reason == ZKLOCK_REASON_NODE_DELETED);
    next = granted(waiting);
    OK(zklock_evict(reader, queue.nodes[0], &evicted));
    CHECK(evicted == 0 && look(reader).first.role == ZKLOCK_ROLE_WRITE);
    const char *const wrong[] = {"", "/", all.path, "/zookeeper", strrchr(node_of(next), '/') + 1};
    for (size_t at = 0; at < sizeof wrong / sizeof *wrong; at++) {
        IS(zklock_evict(reader, wrong[at], NULL), ZKLOCK_INVALID_ARGUMENT);
        SAYS("is not a contender of");
    }
    OK(zklock_hold_confirm(next, NULL));
    give_back(next);
    zklock_lock_free(writer);
    free_all(hold, reader, NULL);
    free_rivals(&all);
}

TEST(all_who_hold_are_asked_to_let_go_and_lose_a_lock_that_is_broken) {
    rivals all = new_rivals();
    zklock_lock *locks[] = {new_lock(zklock_rwlock_read_new, all.client, all.path), new_lock(zklock_rwlock_read_new, all.other, all.path)};
    seen asked = {0}, broken = {0};
    OK(zklock_revoke(locks[1], see, &asked));
    OK(zklock_break_lock(locks[1], see, &broken));
    CHECK(asked.count == 0 && broken.count == 0);
    zklock_hold *holds[] = {acquire(locks[0], SOON_MS), acquire(locks[1], SOON_MS)};
    IS(zklock_hold_wait_wanted(holds[0], 50), ZKLOCK_TIMEOUT);
    OK(zklock_revoke(locks[1], see, &asked));
    for (int at = 0; at < 2; at++) OK(zklock_hold_wait_wanted(holds[at], SOON_MS));
    OK(zklock_hold_confirm(holds[0], NULL));
    OK(zklock_break_lock(locks[0], NULL, NULL));
    for (int at = 0; at < 2; at++) {
        zklock_reason reason;
        CHECK(asked.count == 2 && !strcmp(asked.nodes[at], node_of(holds[at])));
        OK(zklock_hold_wait_lost(holds[at], SOON_MS, &reason));
        CHECK(reason == ZKLOCK_REASON_NODE_DELETED);
        free_all(holds[at], locks[at], NULL);
    }
    free_rivals(&all);
}

/* A mutex whose node stays for this long, with this number of turns of its client in a row. */
static zklock_lock *passed_on(zklock_client *client, const char *path, int64_t linger, uint32_t turns) {
    zklock_lock_options *options;
    zklock_lock *lock;
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_linger(options, linger));
    OK(zklock_lock_options_set_local_turns(options, turns));
    OK(zklock_mutex_new(client, path, options, &lock));
    zklock_lock_options_free(options);
    return lock;
}

TEST(a_lingering_lock_is_taken_again_until_another_wants_it) {
    rivals all = new_rivals();
    /* The longest time never ends. */
    zklock_lock *lock = passed_on(all.client, all.path, INT64_MAX, 1);
    uint64_t token = 0;
    for (int round = 0; round < 20; round++) {
        zklock_hold *hold = acquire(lock, SOON_MS);
        CHECK(!token || token_of(hold) == token);
        token = token_of(hold);
        give_back(hold);
        CHECK(contenders_at(all.path) == 1);
    }
    zklock_hold *next = acquire(all.others, SOON_MS);
    CHECK(token_of(next) > token && contenders_at(all.path) == 1);
    give_back(next);
    zklock_lock_free(lock);
    for (uint32_t turns = 1; turns <= 2; turns++) {
        lock = passed_on(all.client, all.path, 0, turns);
        zklock_hold *first = acquire(lock, SOON_MS);
        attempt *attempt = start_acquire(lock, SOON_MS);
        /* Other threads of the same client also count as others. */
        OK(zklock_hold_wait_wanted(first, SOON_MS));
        OK(zklock_release(first));
        zklock_hold *second = granted(attempt);
        CHECK((token_of(second) == token_of(first)) == (turns > 1));
        zklock_hold_free(first);
        give_back(second);
        zklock_lock_free(lock);
    }
    free_rivals(&all);
}

static int is_wanted(zklock_hold *hold) {
    int answer = -7;
    OK(zklock_hold_is_wanted(hold, &answer));
    CHECK(answer == 0 || answer == 1);
    return answer;
}

static void *waits(void *hold) { return (void *)(intptr_t)zklock_hold_wait_wanted(hold, ZKLOCK_FOREVER); }

TEST(a_holder_is_told_in_every_way_that_others_wait) {
    rivals all = new_rivals();
    zklock_hold *hold = acquire(all.lock, SOON_MS), *lost;
    int context;
    follow(all.client);
    give_back(hold);
    hold = acquire(all.lock, SOON_MS);
    OK(zklock_hold_set_context(hold, &context));
    CHECK(!is_wanted(hold));
    thread *waiter = start_thread(waits, hold);
    IS(zklock_hold_wait_wanted(hold, 20), ZKLOCK_TIMEOUT);
    is_quiet(all.client, 0);
    attempt *attempt = start_acquire(all.others, SOON_MS);
    CHECK((zklock_status)(intptr_t)join_thread(waiter) == ZKLOCK_OK);
    zklock_event event = expect(all.client, ZKLOCK_EVENT_WANTED);
    CHECK(event.hold == hold && event.context == &context);
    /* From now on both calls report it at once. */
    CHECK(is_wanted(hold));
    OK(zklock_hold_wait_wanted(hold, 0));
    CHECK(!is_over(attempt));
    OK(zklock_release(hold));
    give_back(granted(attempt));
    IS(zklock_hold_wait_wanted(hold, SOON_MS), ZKLOCK_NOT_HELD);
    CHECK(!is_wanted(hold));
    zklock_hold_free(hold);

    /* A hold that is lost is not wanted. */
    lost = acquire(all.lock, SOON_MS);
    CHECK(!is_wanted(lost));
    waiter = start_thread(waits, lost);
    ground("delete %s", node_of(lost));
    CHECK((zklock_status)(intptr_t)join_thread(waiter) == ZKLOCK_LOST);
    expect(all.client, ZKLOCK_EVENT_LOST);
    IS(zklock_hold_wait_wanted(lost, SOON_MS), ZKLOCK_LOST);
    SAYS("deleted");
    CHECK(!is_wanted(lost));
    is_quiet(all.client, 20);
    zklock_hold_free(lost);
    free_rivals(&all);
}

TEST_MAIN(STANDALONE, LISTED(an_operator_sees_and_evicts_contenders),
          LISTED(all_who_hold_are_asked_to_let_go_and_lose_a_lock_that_is_broken),
          LISTED(a_lingering_lock_is_taken_again_until_another_wants_it),
          LISTED(a_holder_is_told_in_every_way_that_others_wait))
