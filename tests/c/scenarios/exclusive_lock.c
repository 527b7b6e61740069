/* The exclusive lock: one node for all, and no queue. */

#include "test.h"

#include <stdatomic.h>

static zklock_lock *exclusive(zklock_client *client, const char *path) {
    return new_lock(zklock_exclusive_new, client, path);
}

static void count(const zklock_contender *contender, void *context) {
    CHECK(!strcmp(contender->name, "lock") && contender->holds);
    ++*(int *)context;
}

TEST(who_creates_the_node_holds_and_the_others_do_without) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *lock = exclusive(client, path), *others = exclusive(other, path);
    zklock_hold *hold = acquire(lock, 0), *none = NULL;
    uint64_t token = token_of(hold);
    char node[80];
    int shown = 0;
    snprintf(node, sizeof node, "%s/lock", path);
    CHECK(!strcmp(node_of(hold), node) && valid_for(hold) > 0);
    CHECK(!can_be_had(others));
    on_time();
    int64_t begun = now_ms();
    IS(zklock_acquire(others, 100, &none), ZKLOCK_TIMEOUT);
    CHECK(now_ms() - begun >= 100 && !none);
    NOT_LATER(now_ms() - begun, 100 + grace_ms());
    OK(zklock_contenders(others, count, &shown));
    CHECK(shown == 1 && contenders_at(path) == 2); /* The node, and its holder's companion. */
    give_back(hold);
    CHECK(!strcmp(ground("exists %s", node), "false"));
    hold = acquire(others, 0);
    CHECK(token_of(hold) > token);
    give_back(hold);
    free_all(NULL, lock, client);
    free_all(NULL, others, other);
}

TEST(who_waits_gets_it_when_it_is_given_back_or_its_holder_is_gone) {
    const char *path = fresh_path();
    int proxy;
    zklock_client *client = proxied_client(&proxy), *other = new_client();
    zklock_lock *lock = exclusive(client, path), *others = exclusive(other, path);
    zklock_hold *hold = acquire(lock, SOON_MS);
    attempt *waiting = start_acquire(others, SOON_MS);
    sleep_ms(20);
    CHECK(!is_over(waiting));
    give_back(hold);
    hold = granted(waiting);
    give_back(hold);
    hold = acquire(lock, SOON_MS);
    waiting = start_acquire(others, SOON_MS);
    expire_session(proxy);
    give_back(granted(waiting));
    zklock_reason reason;
    OK(zklock_hold_wait_lost(hold, SOON_MS, &reason));
    free_all(hold, lock, client);
    free_all(NULL, others, other);
}

static atomic_int inside;

static void *works(void *lock) {
    for (int round = 0; round < 10; round++) {
        zklock_hold *hold = acquire(lock, SOON_MS);
        CHECK(++inside == 1);
        inside--;
        give_back(hold);
    }
    return NULL;
}

TEST(of_many_one_holds_at_a_time) {
    enum { CLIENTS = 4 };
    const char *path = fresh_path();
    zklock_client *clients[CLIENTS];
    zklock_lock *locks[CLIENTS];
    thread *threads[CLIENTS];
    for (int at = 0; at < CLIENTS; at++) locks[at] = exclusive(clients[at] = new_client(), path);
    for (int at = 0; at < CLIENTS; at++) threads[at] = start_thread(works, locks[at]);
    for (int at = 0; at < CLIENTS; at++) join_thread(threads[at]);
    for (int at = 0; at < CLIENTS; at++) {
        settled(clients[at]);
        free_all(NULL, locks[at], clients[at]);
    }
    CHECK(contenders_at(path) == 0);
}

TEST_MAIN("standalone max-session=4000", LISTED(who_creates_the_node_holds_and_the_others_do_without),
          LISTED(who_waits_gets_it_when_it_is_given_back_or_its_holder_is_gone), LISTED(of_many_one_holds_at_a_time))
