/* The operator's calls: list the queue, remove a contender from it, break a lock. */

#include "test.h"

enum { SEEN_AT_MOST = 8 };

/* The contenders that were shown. */
typedef struct {
    int count;
    char nodes[SEEN_AT_MOST][160];
    zklock_role roles[SEEN_AT_MOST];
    int holds[SEEN_AT_MOST];
    uint64_t sessions[SEEN_AT_MOST];
} seen;

static void see(const zklock_contender *contender, void *context) {
    seen *seen = context;
    CHECK(seen->count < SEEN_AT_MOST && contender->size == sizeof *contender);
    snprintf(seen->nodes[seen->count], sizeof seen->nodes[0], "%s", contender->node);
    CHECK(!strcmp(strrchr(contender->node, '/') + 1, contender->name));
    seen->roles[seen->count] = contender->role;
    seen->sessions[seen->count] = contender->session;
    seen->holds[seen->count++] = contender->holds;
}

static seen look(const zklock_lock *lock) {
    seen seen = {0};
    OK(zklock_contenders(lock, see, &seen));
    return seen;
}

TEST(a_queue_is_shown_with_what_each_wants_and_who_holds) {
    const char *path = fresh_path();
    zklock_client *clients[4];
    zklock_lock *locks[4];
    zklock_hold *holds[2];
    attempt *waiting[2];
    for (int at = 0; at < 4; at++) {
        clients[at] = new_client();
        locks[at] = new_lock(at == 2 ? zklock_rwlock_write_new : zklock_rwlock_read_new, clients[at], path);
    }
    CHECK(look(locks[0]).count == 0);
    for (int at = 0; at < 2; at++) holds[at] = acquire(locks[at], SOON_MS);
    for (int at = 0; at < 2; at++) {
        waiting[at] = start_acquire(locks[at + 2], SOON_MS);
        wait_for_contenders(path, 3 + at);
    }
    seen queue = look(locks[3]);
    CHECK(queue.count == 4);
    for (int at = 0; at < 4; at++) {
        CHECK(queue.roles[at] == (at == 2 ? ZKLOCK_ROLE_WRITE : ZKLOCK_ROLE_READ));
        CHECK(queue.holds[at] == (at < 2));
        CHECK(queue.sessions[at] == stats_of(clients[at]).session_id);
    }
    CHECK(!strcmp(queue.nodes[0], node_of(holds[0])));
    for (int at = 0; at < 2; at++) give_back(holds[at]);
    for (int at = 0; at < 2; at++) give_back(granted(waiting[at]));
    for (int at = 0; at < 4; at++) free_all(NULL, locks[at], clients[at]);
}

TEST(a_holder_that_is_evicted_is_told_and_the_next_one_holds) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client(), *warden = new_client();
    zklock_lock *lock = new_mutex(client, path, 0), *others = new_mutex(other, path, 0),
                *handle = new_mutex(warden, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *next;
    attempt *waiting = start_acquire(others, SOON_MS);
    zklock_reason reason;
    int evicted = -1;
    wait_for_contenders(path, 2);
    OK(zklock_evict(handle, look(handle).nodes[0], &evicted));
    CHECK(evicted == 1);
    OK(zklock_hold_wait_lost(hold, SOON_MS, &reason));
    CHECK(reason == ZKLOCK_REASON_NODE_DELETED);
    next = granted(waiting);
    OK(zklock_evict(handle, node_of(hold), &evicted));
    CHECK(evicted == 0 && state_of(next) == ZKLOCK_STATE_HELD);
    give_back(next);
    free_all(hold, lock, client);
    free_all(NULL, others, other);
    free_all(NULL, handle, warden);
}

TEST(a_waiter_that_is_evicted_queues_again_at_the_end) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client(), *third = new_client();
    zklock_lock *lock = new_mutex(client, path, 0), *others = new_mutex(other, path, 0),
                *last = new_mutex(third, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS), *next;
    attempt *waiting = start_acquire(others, SOON_MS), *behind;
    wait_for_contenders(path, 2);
    behind = start_acquire(last, SOON_MS);
    wait_for_contenders(path, 3);
    seen queue = look(lock);
    OK(zklock_evict(lock, queue.nodes[1], NULL));
    /* It notices when the contender that it watches is gone. Until the next heartbeat, it takes its own node for
     * granted. */
    sleep_ms(SESSION_MS / 10 + 50);
    give_back(hold);
    next = granted(behind);
    give_back(next);
    next = granted(waiting);
    CHECK(strcmp(node_of(next), queue.nodes[1]));
    give_back(next);
    free_all(NULL, lock, client);
    free_all(NULL, others, other);
    free_all(NULL, last, third);
}

TEST(a_broken_lock_is_taken_from_all_who_hold_it_and_from_nobody_else) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client(), *third = new_client();
    zklock_lock *one = new_lock(zklock_rwlock_read_new, client, path), *two = new_lock(zklock_rwlock_read_new, other, path),
                *writer = new_lock(zklock_rwlock_write_new, third, path);
    seen broken = {0};
    OK(zklock_break_lock(writer, see, &broken));
    CHECK(broken.count == 0);
    zklock_hold *holds[] = {acquire(one, SOON_MS), acquire(two, SOON_MS)}, *next;
    attempt *waiting = start_acquire(writer, SOON_MS);
    wait_for_contenders(path, 3);
    OK(zklock_break_lock(one, see, &broken));
    CHECK(broken.count == 2);
    for (int at = 0; at < 2; at++) {
        zklock_reason reason;
        OK(zklock_hold_wait_lost(holds[at], SOON_MS, &reason));
        CHECK(reason == ZKLOCK_REASON_NODE_DELETED && !strcmp(broken.nodes[at], node_of(holds[at])));
        zklock_hold_free(holds[at]);
    }
    next = granted(waiting);
    OK(zklock_break_lock(two, NULL, NULL));
    IS(zklock_release(next), ZKLOCK_LOST);
    free_all(NULL, one, client);
    free_all(NULL, two, other);
    free_all(next, writer, third);
}

TEST(all_who_hold_are_asked_to_let_go_and_keep_what_they_have) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *one = new_lock(zklock_rwlock_read_new, client, path), *two = new_lock(zklock_rwlock_read_new, other, path);
    seen asked = {0};
    OK(zklock_revoke(two, see, &asked));
    CHECK(asked.count == 0);
    zklock_hold *holds[] = {acquire(one, SOON_MS), acquire(two, SOON_MS)};
    IS(zklock_hold_wait_wanted(holds[0], 50), ZKLOCK_TIMEOUT);
    OK(zklock_revoke(two, see, &asked));
    CHECK(asked.count == 2);
    for (int at = 0; at < 2; at++) {
        CHECK(!strcmp(asked.nodes[at], node_of(holds[at])));
        OK(zklock_hold_wait_wanted(holds[at], SOON_MS));
    }
    OK(zklock_revoke(one, NULL, NULL));
    free_all(holds[0], one, client);
    free_all(holds[1], two, other);
}

TEST(only_contenders_of_the_lock_can_be_evicted) {
    const char *path = fresh_path();
    char below[80], near[160];
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0), *other = new_mutex(client, fresh_path(), 0);
    zklock_hold *hold = acquire(other, SOON_MS);
    int evicted = -1;
    snprintf(below, sizeof below, "%s/report", path);
    snprintf(near, sizeof near, "%s/_c_x-lock-0000000001", path);
    const char *const wrong[] = {"", "/", path, below, near, node_of(hold), strrchr(node_of(hold), '/') + 1, "/zookeeper"};
    for (size_t at = 0; at < sizeof wrong / sizeof *wrong; at++) {
        IS(zklock_evict(lock, wrong[at], &evicted), ZKLOCK_INVALID_ARGUMENT);
        SAYS("is not a contender of");
    }
    CHECK(evicted == -1 && state_of(hold) == ZKLOCK_STATE_HELD);
    OK(zklock_hold_confirm(hold, NULL));
    give_back(hold);
    zklock_lock_free(lock);
    free_all(NULL, other, client);
}

TEST_MAIN("standalone max-session=4000", LISTED(a_queue_is_shown_with_what_each_wants_and_who_holds),
          LISTED(a_holder_that_is_evicted_is_told_and_the_next_one_holds),
          LISTED(a_waiter_that_is_evicted_queues_again_at_the_end),
          LISTED(a_broken_lock_is_taken_from_all_who_hold_it_and_from_nobody_else),
          LISTED(all_who_hold_are_asked_to_let_go_and_keep_what_they_have),
          LISTED(only_contenders_of_the_lock_can_be_evicted))
