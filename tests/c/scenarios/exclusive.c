/* Promise 1: two holds of one mutex never both have more than 0 milliseconds left. */

#include "test.h"

#include <pthread.h>

/* The resource that the lock guards. It remembers all holds, including lost ones, and ends the program if two of them are valid
 * at once. */
enum { KEPT = 256 };
typedef struct {
    pthread_mutex_t mutex;
    zklock_hold *holds[KEPT];
    uint64_t last_token;
    int kept, entered;
} guarded;

static void look(guarded *guarded) {
    for (int at = 0; at < guarded->kept; at++) {
        for (int other = at + 1; other < guarded->kept; other++) {
            /* The first is checked twice, so it was valid when the second was. */
            zklock_hold *one = guarded->holds[at];
            if (valid_for(one) > 0 && valid_for(guarded->holds[other]) > 0 && valid_for(one) > 0) {
                failed(__FILE__, __LINE__, "%#llx and %#llx hold at once", (unsigned long long)token_of(one),
                       (unsigned long long)token_of(guarded->holds[other]));
            }
        }
    }
}

static void enter(guarded *guarded, zklock_hold *hold) {
    pthread_mutex_lock(&guarded->mutex);
    CHECK(guarded->kept < KEPT);
    CHECK(token_of(hold) > guarded->last_token);
    guarded->last_token = token_of(hold);
    guarded->holds[guarded->kept++] = hold;
    guarded->entered++;
    look(guarded);
    pthread_mutex_unlock(&guarded->mutex);
}

/* Checks again, and forgets the hold. */
static void leave(guarded *guarded, zklock_hold *hold) {
    int at = 0;
    pthread_mutex_lock(&guarded->mutex);
    look(guarded);
    while (guarded->holds[at] != hold) at++;
    guarded->holds[at] = guarded->holds[--guarded->kept];
    pthread_mutex_unlock(&guarded->mutex);
}

/* One contender. Its lock, and so its session, may be shared with others. */
typedef struct {
    guarded *guarded;
    zklock_lock *lock;
    int rounds, proxies, number;
} contender;

static void *contends(void *argument) {
    contender *contender = argument;
    for (int round = 0; round < contender->rounds; round++) {
        zklock_status status;
        zklock_hold *hold;
        if (contender->proxies) {
            /* Scattered, but the same in every run. */
            unsigned strike = (unsigned)(contender->number * 31 + round);
            unsigned victim = (strike * 2654435761u >> 7) % (unsigned)contender->proxies;
            ground("%s %u", strike % 2 ? "cut" : "reset", victim + 1);
        }
        hold = acquire(contender->lock, ZKLOCK_FOREVER);
        enter(contender->guarded, hold);
        sleep_ms(0);
        leave(contender->guarded, hold);
        status = zklock_release(hold);
        /* A hold may be lost to a fault, and must then report it. */
        CHECK(status == ZKLOCK_OK || (contender->proxies && status == ZKLOCK_LOST));
        zklock_hold_free(hold);
    }
    return NULL;
}

TEST(sixty_four_clients_hold_one_after_the_other_in_the_order_of_their_nodes) {
    enum { CLIENTS = 64, ROUNDS = 3 };
    guarded guarded = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    zklock_client *clients[CLIENTS];
    contender contenders[CLIENTS];
    thread *threads[CLIENTS];
    const char *path = fresh_path();
    for (int at = 0; at < CLIENTS; at++) {
        clients[at] = new_client();
        contenders[at] =
            (contender){.guarded = &guarded, .lock = new_mutex(clients[at], path, 0), .rounds = ROUNDS};
    }
    for (int at = 0; at < CLIENTS; at++) threads[at] = start_thread(contends, &contenders[at]);
    for (int at = 0; at < CLIENTS; at++) {
        join_thread(threads[at]);
        free_all(NULL, contenders[at].lock, clients[at]);
    }
    CHECK(guarded.entered == CLIENTS * ROUNDS);
    wait_for_contenders(path, 0);
}

TEST(two_hundred_threads_hold_one_after_the_other) {
    enum { THREADS = 200 };
    guarded guarded = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    zklock_client *client = new_client();
    const char *path = fresh_path();
    zklock_lock *lock = new_mutex(client, path, 0);
    contender contender = {.guarded = &guarded, .lock = lock, .rounds = 1};
    zklock_hold *first = acquire(lock, SOON_MS);
    thread *threads[THREADS];
    for (int at = 0; at < THREADS; at++) threads[at] = start_thread(contends, &contender);
    wait_for_contenders(path, 2);
    OK(zklock_release(first));
    for (int at = 0; at < THREADS; at++) {
        int nodes = contenders_at(path);
        if (nodes > 2) failed(__FILE__, __LINE__, "%d nodes of one process", nodes);
        join_thread(threads[at]);
    }
    CHECK(guarded.entered == THREADS);
    CHECK(stats_of(client).grants == THREADS + 1);
    settled(client);
    CHECK(contenders_at(path) == 0);
    free_all(first, lock, client);
}

TEST(connections_that_break_all_the_time_let_nobody_in_beside_the_holder) {
    enum { CONTENDERS = 8, ROUNDS = 6 };
    guarded guarded = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    zklock_client *clients[CONTENDERS];
    contender contenders[CONTENDERS];
    thread *threads[CONTENDERS];
    const char *path = fresh_path();
    for (int at = 0; at < CONTENDERS; at++) {
        int proxy;
        clients[at] = proxied_client(&proxy);
        CHECK(proxy <= CONTENDERS);
        contenders[at] = (contender){.guarded = &guarded,
                                     .lock = new_mutex(clients[at], path, 0),
                                     .rounds = ROUNDS,
                                     .proxies = CONTENDERS,
                                     .number = at};
    }
    for (int at = 0; at < CONTENDERS; at++) threads[at] = start_thread(contends, &contenders[at]);
    for (int at = 0; at < CONTENDERS; at++) join_thread(threads[at]);
    CHECK(guarded.entered == CONTENDERS * ROUNDS);
    for (int at = 0; at < CONTENDERS; at++) {
        settled(clients[at]);
        /* A broken connection ends no session. */
        CHECK(stats_of(clients[at]).sessions == 1);
        free_all(NULL, contenders[at].lock, clients[at]);
    }
    wait_for_contenders(path, 0);
}

TEST(a_holder_that_is_cut_off_stops_before_the_next_begins) {
    guarded guarded = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    const char *path = fresh_path();
    zklock_client *cut_off = client_with(hosts, 1000, 0), *next = new_client();
    zklock_lock *lock = new_mutex(cut_off, path, 0), *next_lock = new_mutex(next, path, 0);
    zklock_hold *first = acquire(lock, SOON_MS), *second, *third;
    attempt *again;
    zklock_reason reason;
    enter(&guarded, first);
    ground("freeze %d both", proxy);

    second = acquire(next_lock, SOON_MS);
    enter(&guarded, second);
    OK(zklock_hold_wait_lost(first, SOON_MS, &reason));
    CHECK(reason == ZKLOCK_REASON_LEASE_LAPSED);
    ground("thaw %d", proxy);
    /* When it is back in touch, it opens the next session and queues. Its old hold stays lost. */
    again = start_acquire(lock, ZKLOCK_FOREVER);
    wait_for_contenders(path, 2);
    leave(&guarded, second);
    CHECK(valid_for(first) == 0 && !is_over(again));
    OK(zklock_release(second));
    third = granted(again);
    enter(&guarded, third);
    CHECK(stats_of(cut_off).sessions == 2);
    zklock_hold_free(first);
    free_all(second, next_lock, next);
    free_all(third, lock, cut_off);
}

TEST(a_contender_of_kazoo_is_named_and_not_held_beside) {
    const char *path = fresh_path(), *kazoo = "0123456789abcdef0123456789abcdef__lock__0000000000";
    zklock_client *client = new_client();
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    zklock_call *waiting;
    int descriptor;
    OK(zklock_release(hold));
    ground("create %s/%s", path, kazoo);
    for (int64_t timeout = -1; timeout <= SOON_MS; timeout += SOON_MS / 2) {
        zklock_hold *none = NULL;
        IS(zklock_acquire(lock, timeout, &none), ZKLOCK_FOREIGN_CONTENDER);
        SAYS(kazoo);
        CHECK(!none);
    }
    OK(zklock_acquire_start(lock, 0, &waiting));
    OK(zklock_call_fd(waiting, &descriptor));
    CHECK(readable(descriptor, SOON_MS));
    zklock_hold_free(hold);
    IS(zklock_call_hold(waiting, &hold), ZKLOCK_FOREIGN_CONTENDER);
    SAYS(kazoo);
    zklock_call_free(waiting);
    /* Only kazoo's is left. */
    wait_for_contenders(path, 1);
    ground("delete %s/%s", path, kazoo);
    hold = acquire(lock, SOON_MS);
    OK(zklock_release(hold));
    free_all(hold, lock, client);
}

/* The first test is the only one whose proxies begin with number 1. */
TEST_MAIN("standalone tick=200 max-session=4000",
          LISTED(connections_that_break_all_the_time_let_nobody_in_beside_the_holder),
          LISTED(sixty_four_clients_hold_one_after_the_other_in_the_order_of_their_nodes),
          LISTED(two_hundred_threads_hold_one_after_the_other),
          LISTED(a_holder_that_is_cut_off_stops_before_the_next_begins),
          LISTED(a_contender_of_kazoo_is_named_and_not_held_beside))
