/* The read/write lock: readers hold together, a writer alone, in the order of arrival. */

#include "test.h"

#include <stdatomic.h>

static zklock_lock *reads(zklock_client *client, const char *path) { return new_lock(zklock_rwlock_read_new, client, path); }
static zklock_lock *writes(zklock_client *client, const char *path) { return new_lock(zklock_rwlock_write_new, client, path); }

static zklock_lock *reentrant(constructor *make, zklock_client *client, const char *path) {
    zklock_lock_options *options;
    zklock_lock *lock;
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_flags(options, ZKLOCK_REENTRANT));
    OK(make(client, path, options, &lock));
    zklock_lock_options_free(options);
    return lock;
}

TEST(readers_hold_together_and_a_writer_alone_in_the_order_of_arrival) {
    const char *path = fresh_path();
    zklock_client *clients[4];
    for (int at = 0; at < 4; at++) clients[at] = new_client();
    zklock_lock *first = reads(clients[0], path), *second = reads(clients[1], path), *writer = writes(clients[2], path),
                *late = reads(clients[3], path), *rival = writes(clients[0], path);
    zklock_hold *one = acquire(first, SOON_MS), *two = acquire(second, 0), *written, *after;
    CHECK(strstr(node_of(one), "-__READ__") && token_of(two) > token_of(one));
    CHECK(!can_be_had(writer));
    attempt *waiting = start_acquire(writer, SOON_MS);
    wait_for_contenders(path, 3);
    /* Readers that come later do not keep the writer out. */
    CHECK(!can_be_had(late));
    attempt *behind = start_acquire(late, SOON_MS);
    wait_for_contenders(path, 4);
    give_back(one);
    CHECK(!is_over(waiting) && !is_over(behind));
    give_back(two);
    written = granted(waiting);
    CHECK(strstr(node_of(written), "-__WRIT__") && !is_over(behind));
    CHECK(!can_be_had(first) && !can_be_had(rival));
    give_back(written);
    after = granted(behind);
    CHECK(can_be_had(first) && !can_be_had(writer));
    give_back(after);
    /* The writer has found it busy twice, so it only learns a moment later that the reader is gone. */
    give_back(acquire(writer, SOON_MS));
    zklock_lock_free(rival);
    zklock_lock *const all[] = {first, second, writer, late};
    for (int at = 0; at < 4; at++) free_all(NULL, all[at], clients[at]);
}

TEST(a_writer_may_become_a_reader_without_a_gap) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *reader = reads(client, path), *writer = reentrant(zklock_rwlock_write_new, client, path),
                *others = reads(other, path), *rival = writes(other, path);
    zklock_hold *written = acquire(writer, SOON_MS);
    attempt *waiting = start_acquire(rival, SOON_MS);
    wait_for_contenders(path, 2);
    /* It is granted at once, although the rival is in the queue already. */
    zklock_hold *read = acquire(reader, 0);
    CHECK(strcmp(node_of(read), node_of(written)) && valid_for(read) > 0);
    CHECK(!can_be_had(others));
    give_back(written);
    CHECK(state_of(read) == ZKLOCK_STATE_HELD && valid_for(read) > 0 && !is_over(waiting));
    OK(zklock_hold_confirm(read, NULL));
    give_back(read);
    give_back(granted(waiting));
    free_all(NULL, reader, client);
    free_all(NULL, others, other);
    zklock_lock_free(writer);
    zklock_lock_free(rival);
}

/* The hold of a thread that writes without having acquired it. */
typedef struct {
    zklock_hold *hold;
    atomic_int stop;
} handed_over;

static void *writes_on(void *given) {
    handed_over *work = given;
    EVENTUALLY(work->stop);
    CHECK(valid_for(work->hold) > 0);
    give_back(work->hold);
    return NULL;
}

/* As in a thread pool: one thread acquires, hands the hold on, and turns to another job. */
TEST(who_has_handed_on_the_write_side_does_not_read_beside_it) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *writer = writes(client, path);
    zklock_lock *readers[] = {reads(client, path), reentrant(zklock_rwlock_read_new, client, path)};
    for (int at = 0; at < 2; at++) {
        handed_over work = {.hold = acquire(writer, SOON_MS)};
        uint64_t token = token_of(work.hold);
        thread *writing = start_thread(writes_on, &work);
        zklock_hold *read = NULL;
        IS(zklock_acquire(readers[at], 0, &read), ZKLOCK_TIMEOUT);
        IS(zklock_acquire(readers[at], 100, &read), ZKLOCK_TIMEOUT);
        SAYS("itself");
        CHECK(!read);
        work.stop = 1;
        read = acquire(readers[at], SOON_MS);
        CHECK(token_of(read) > token);
        join_thread(writing);
        give_back(read);
    }
    zklock_lock_free(readers[1]);
    zklock_lock_free(writer);
    free_all(NULL, readers[0], client);
}

static void *tries_once(void *lock) {
    zklock_hold *hold;
    zklock_status status = zklock_acquire(lock, 0, &hold);
    if (!status) give_back(hold);
    return (void *)(intptr_t)status;
}

TEST(a_reader_that_would_wait_for_itself_alone_is_told_at_once) {
    const char *path = fresh_path();
    zklock_client *client = new_client();
    zklock_lock *reader = reads(client, path), *writer = writes(client, path), *own = reentrant(zklock_rwlock_read_new, client, path);
    zklock_hold *read = acquire(reader, SOON_MS), *second = acquire(reader, SOON_MS), *none = NULL;
    /* It may read twice, as two threads may. Anybody may release either, so a writer waits. */
    CHECK(token_of(read) != token_of(second) && contenders_at(path) == 2);
    IS(zklock_acquire(writer, 100, &none), ZKLOCK_TIMEOUT);
    SAYS("itself");
    give_back(second);
    give_back(read);
    read = acquire(own, SOON_MS);
    IS(zklock_acquire(writer, ZKLOCK_FOREVER, &none), ZKLOCK_DEADLOCK);
    SAYS("read side");
    IS(zklock_acquire(writer, SOON_MS, &none), ZKLOCK_DEADLOCK);
    give_back(read);
    zklock_lock_free(own);
    read = acquire(reader, SOON_MS);
    /* Another thread of the same client is another reader. To a writer, it is just in the way. */
    CHECK((zklock_status)(intptr_t)join_thread(start_thread(tries_once, reader)) == ZKLOCK_OK);
    CHECK((zklock_status)(intptr_t)join_thread(start_thread(tries_once, writer)) == ZKLOCK_TIMEOUT);
    give_back(read);
    free_all(NULL, reader, client);
    zklock_lock_free(writer);
}

TEST(a_reentrant_side_is_released_with_its_last_hold) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *reader = reentrant(zklock_rwlock_read_new, client, path), *rival = writes(other, path);
    zklock_hold *outer = acquire(reader, SOON_MS), *inner = acquire(reader, 0);
    CHECK(token_of(outer) == token_of(inner));
    give_back(outer);
    CHECK(!can_be_had(rival));
    give_back(inner);
    CHECK(can_be_had(rival));
    free_all(NULL, reader, client);
    free_all(NULL, rival, other);
}

TEST(in_the_dialect_of_kazoo_the_nodes_are_those_of_kazoo) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock_options *options;
    zklock_lock *reader, *writer, *none = NULL;
    OK(zklock_lock_options_new(&options));
    OK(zklock_lock_options_set_dialect(options, ZKLOCK_DIALECT_KAZOO));
    OK(zklock_rwlock_read_new(client, path, options, &reader));
    OK(zklock_rwlock_write_new(other, path, options, &writer));
    zklock_hold *read = acquire(reader, SOON_MS);
    CHECK(strstr(node_of(read), "__rlock__") && !can_be_had(writer));
    give_back(read);
    zklock_hold *written = acquire(writer, SOON_MS);
    CHECK(strstr(node_of(written), "__lock__") && !can_be_had(reader));
    give_back(written);
    /* The options were copied. */
    OK(zklock_lock_options_set_dialect(options, ZKLOCK_DIALECT_WRITELOCK));
    CHECK(can_be_had(reader));
    IS(zklock_rwlock_read_new(client, path, options, &none), ZKLOCK_INVALID_ARGUMENT);
    SAYS("no read and write sides");
    IS(zklock_rwlock_write_new(client, path, options, &none), ZKLOCK_INVALID_ARGUMENT);
    CHECK(!none);
    zklock_lock_options_free(options);
    free_all(NULL, reader, client);
    free_all(NULL, writer, other);
}

TEST(a_mutex_and_a_reader_of_one_path_refuse_each_other_unless_told_to_go_ahead) {
    const char *path = fresh_path();
    zklock_client *client = new_client(), *other = new_client();
    zklock_lock *reader = reads(client, path), *mutex = new_mutex(other, path, 0), *bold = new_mutex(other, path, ZKLOCK_ALLOW_FOREIGN);
    zklock_hold *read = acquire(reader, SOON_MS), *none = NULL;
    IS(zklock_acquire(mutex, SOON_MS, &none), ZKLOCK_FOREIGN_CONTENDER);
    SAYS("__READ__");
    settled(other);
    CHECK(!none && contenders_at(path) == 1);
    attempt *waiting = start_acquire(bold, SOON_MS);
    wait_for_contenders(path, 2);
    CHECK(!is_over(waiting));
    give_back(read);
    give_back(granted(waiting));
    free_all(NULL, reader, client);
    free_all(NULL, mutex, other);
    zklock_lock_free(bold);
}

/* The data that the lock guards. */
static atomic_int readers, writers, most_readers, turns;

typedef struct {
    zklock_lock *lock;
    int is_writer;
} visitor;

static void *visits(void *given) {
    visitor *visitor = given;
    for (int round = 0; round < 15; round++) {
        zklock_hold *hold = acquire(visitor->lock, SOON_MS);
        if (visitor->is_writer) {
            CHECK(++writers == 1 && readers == 0);
            sleep_ms(1);
            CHECK(writers-- == 1 && readers == 0);
        } else {
            int now = ++readers, most = most_readers;
            CHECK(writers == 0);
            while (now > most && !atomic_compare_exchange_weak(&most_readers, &most, now)) {
            }
            sleep_ms(1);
            CHECK(writers == 0);
            readers--;
        }
        turns++;
        give_back(hold);
    }
    return NULL;
}

TEST(no_reader_and_no_other_writer_is_beside_a_writer) {
    enum { THREADS = 12 };
    const char *path = fresh_path();
    zklock_client *clients[2] = {new_client(), new_client()};
    visitor visitors[THREADS];
    thread *threads[THREADS];
    for (int at = 0; at < THREADS; at++) {
        int is_writer = at % 3 == 0;
        visitors[at] = (visitor){(is_writer ? writes : reads)(clients[at % 2], path), is_writer};
    }
    for (int at = 0; at < THREADS; at++) threads[at] = start_thread(visits, &visitors[at]);
    for (int at = 0; at < THREADS; at++) join_thread(threads[at]);
    CHECK(turns == 15 * THREADS && most_readers > 1);
    for (int at = 0; at < THREADS; at++) zklock_lock_free(visitors[at].lock);
    for (int at = 0; at < 2; at++) {
        settled(clients[at]);
        zklock_client_free(clients[at]);
    }
    CHECK(contenders_at(path) == 0);
}

TEST_MAIN("standalone max-session=4000", LISTED(readers_hold_together_and_a_writer_alone_in_the_order_of_arrival),
          LISTED(a_writer_may_become_a_reader_without_a_gap),
          LISTED(who_has_handed_on_the_write_side_does_not_read_beside_it),
          LISTED(a_reader_that_would_wait_for_itself_alone_is_told_at_once),
          LISTED(a_reentrant_side_is_released_with_its_last_hold),
          LISTED(in_the_dialect_of_kazoo_the_nodes_are_those_of_kazoo),
          LISTED(a_mutex_and_a_reader_of_one_path_refuse_each_other_unless_told_to_go_ahead),
          LISTED(no_reader_and_no_other_writer_is_beside_a_writer))
