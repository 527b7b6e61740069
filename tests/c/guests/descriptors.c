/*
 * Promise 8: a program that closes the library's descriptors, to become a daemon for example, learns of it from every call,
 * at once. Nothing of it hangs, and what has the numbers by then is neither written to nor closed. A new client works. The
 * descriptors of the standard streams are left to the program, even if they are closed.
 */

#define _GNU_SOURCE
#include "guest.h"

#include <sys/mman.h>
#include <sys/stat.h>

#define FILES 40

static zklock_client *client;
static zklock_lock *lock;
static zklock_hold *hold;

static void begin(char **words) {
    client = connect_to(words[0]);
    lock = new_mutex(client, words[1], 0);
}

static void begin_with_hold(char **words) {
    begin(words);
    hold = acquire(lock, SOON_MS);
}

/* Files of the program, which get the numbers of what it has closed. */
static int files[FILES];
static ino_t inodes[FILES];

static void close_all(void) {
    for (int number = 3; number < 1024; number++) close(number);
}

static void close_all_and_reuse(void) {
    close_all();
    for (size_t at = 0; at < FILES; at++) {
        struct stat now;
        CHECK((files[at] = memfd_create("file", MFD_CLOEXEC)) == (int)at + 3 && !fstat(files[at], &now));
        inodes[at] = now.st_ino;
    }
}

static void check_files(void) {
    for (size_t at = 0; at < FILES; at++) {
        struct stat now;
        CHECK(!fstat(files[at], &now) && now.st_ino == inodes[at]);
        CHECK(now.st_size == 0 && lseek(files[at], 0, SEEK_CUR) == 0);
    }
}

/* A call that is refused at once, and says why and what to do. */
#define REFUSED(call)                                           \
    do {                                                        \
        int64_t begun_ = now_ms();                              \
        IS(call, ZKLOCK_CLOSED);                                \
        NOT_LATER(now_ms() - begun_, allowance_ms());           \
        SAYS("the program has closed descriptors of zklock");   \
        SAYS("make a new client");                              \
    } while (0)

/* What is left does no harm, and a new client works. */
static void end_and_begin_again(char **words) {
    zklock_hold *never;
    REFUSED(zklock_acquire(lock, 3000, &never));
    REFUSED(zklock_acquire(lock, 0, &never));
    REFUSED(zklock_client_close(client));
    free_all(hold, lock, client);
    for (int round = 0; round < 2; round++) lock_once(words[0], words[1]);
}

/* And what has the numbers of the descriptors is untouched. */
static void goes_on(char **words) {
    end_and_begin_again(words);
    check_files();
}

TEST_ALONE(a_program_that_closes_the_descriptors_of_an_idle_client_is_told) {
    begin(words);
    close_all();
    end_and_begin_again(words);
}

TEST_ALONE(a_hold_is_lost_when_its_descriptors_are_closed) {
    int reason = 0;
    zklock_reason why;
    begin_with_hold(words);
    OK(zklock_hold_on_lost(hold, note_loss, &reason));
    close_all_and_reuse();
    /* It is told without asking, in the next heartbeat. */
    EVENTUALLY(__atomic_load_n(&reason, __ATOMIC_ACQUIRE) == ZKLOCK_REASON_CLIENT_CLOSED);
    CHECK(zklock_hold_state(hold, &why) == ZKLOCK_STATE_LOST && why == ZKLOCK_REASON_CLIENT_CLOSED);
    CHECK(valid_for(hold) == 0);
    REFUSED(zklock_hold_confirm(hold, NULL));
    REFUSED(zklock_hold_wait_lost(hold, ZKLOCK_FOREVER, &why));
    REFUSED(zklock_release(hold));
    goes_on(words);
}

TEST_ALONE(a_call_before_the_next_heartbeat_finds_that_its_descriptors_are_closed) {
    begin_with_hold(words);
    close_all_and_reuse();
    REFUSED(zklock_release(hold));
    CHECK(valid_for(hold) == 0);
    goes_on(words);
}

TEST_ALONE(what_is_freed_then_harms_nothing) {
    begin_with_hold(words);
    zklock_call *waiting = start_acquire(lock, ZKLOCK_FOREVER);
    EVENTUALLY(queue_of(lock) == 2);
    close_all_and_reuse();
    /* These would wake the I/O thread. */
    zklock_call_free(waiting);
    free_all(hold, lock, client);
    check_files();
}

static void *waits(void *given) {
    zklock_hold *never;
    (void)given;
    FAILS(zklock_acquire(lock, ZKLOCK_FOREVER, &never), ZKLOCK_CLOSED, "the program has closed descriptors of zklock");
    return NULL;
}

/* The lock is held by another process. */
MODE(waiting) {
    zklock_hold *never;
    begin(words);
    pthread_t waiting = start_thread(waits, NULL);
    zklock_call *call = start_acquire(lock, ZKLOCK_FOREVER);
    go_ahead("waits");
    close_all_and_reuse();
    /* Nothing is asked, so the I/O thread has to notice. */
    join_thread(waiting);
    REFUSED(zklock_call_hold(call, &never));
    zklock_call_free(call);
    go_ahead("has ended");
    goes_on(words);
    return 0;
}

TEST_ALONE(what_is_left_then_harms_nothing) {
    begin_with_hold(words);
    close_all_and_reuse();
}

/* Standard streams that are closed, and copies of those that the test has made. */
static int streams[3];

static void close_streams(void) {
    for (int number = 0; number < 3; number++) {
        CHECK((streams[number] = fcntl(number, F_DUPFD_CLOEXEC, 500)) >= 500);
        close(number);
    }
}

static int are_closed(void) {
    int count = 0;
    for (int number = 0; number < 3; number++) count += fcntl(number, F_GETFD) < 0;
    return count == 3;
}

static void open_streams(const int *from) {
    for (int number = 0; number < 3; number++) CHECK(dup2(from[number], number) == number);
}

TEST_ALONE(a_program_without_standard_streams_may_open_them) {
    int taken[4] = {0}, events;
    zklock_call *waiting;
    close_streams();
    begin_with_hold(words);
    taken[0] = are_closed();
    (void)!zklock_client_fd(client, &events);
    taken[1] = are_closed();
    (void)!zklock_acquire_start(lock, ZKLOCK_FOREVER, &waiting);
    /* As a daemon does. */
    int null = open("/dev/null", O_RDWR);
    open_streams((int[]){null, null, null});
    taken[2] = zklock_hold_confirm(hold, NULL) == ZKLOCK_OK && zklock_release(hold) == ZKLOCK_OK;
    zklock_hold_free(hold);
    zklock_status finished;
    for (int64_t until = now_ms() + SOON_MS; now_ms() < until; sleep_ms(5)) {
        if ((finished = zklock_call_hold(waiting, &hold)) != ZKLOCK_PENDING) break;
    }
    taken[3] = finished == ZKLOCK_OK;
    open_streams(streams);
    CHECK(taken[0] && taken[1] && taken[2] && taken[3]);
    CHECK(null == 0 && events > 2);
    give_back(hold);
    zklock_call_free(waiting);
    free_all(NULL, lock, client);
}

/* It closes its streams later, and its connection breaks. */
MODE(reconnecting) {
    begin_with_hold(words);
    go_ahead("holds");
    close_streams();
    CHECK(dprintf(streams[1], "closed\n") > 0);
    zklock_stats stats = {0};
    for (int64_t until = now_ms() + SOON_MS; !stats.reconnects && now_ms() < until; sleep_ms(5)) {
        (void)!zklock_client_stats(client, &stats);
    }
    int left_alone = are_closed();
    open_streams(streams);
    CHECK(stats.reconnects && left_alone);
    give_back(hold);
    return 0;
}

TEST(waits_end_when_their_descriptors_are_closed) {
    const char *path = fresh_path();
    zklock_hold *held = new_hold(servers(), path);
    program waiting = start_program("waiting", servers(), path);
    hear(&waiting, "waits");
    wait_for_contenders(path, 2);
    let(&waiting);
    hear(&waiting, "has ended");
    OK(zklock_release(held));
    let(&waiting);
    expect_end(&waiting, 3 * ENDS_MS, EXITED(0));
}

TEST(a_later_connection_leaves_closed_streams_alone) {
    char hosts[128];
    int proxy = new_proxy(hosts, sizeof hosts);
    program holding = start_program("reconnecting", hosts, fresh_path());
    hear(&holding, "holds");
    let(&holding);
    hear(&holding, "closed");
    ground("cut %d", proxy);
    expect_end(&holding, ENDS_MS, EXITED(0));
}

TEST_OR_CHILD_MAIN("standalone max-session=4000")
