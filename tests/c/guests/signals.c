/* Promise 8: signals reach threads of the host, and do not end its waits. (That no call changes its handlers or masks: misuse.) */

#define _GNU_SOURCE
#include "guest.h"

#include "calls.h"

#include <sys/time.h>

/* The thread of the host that is to receive signals. */
static int hosts_thread;
static int taken_by_host, taken_by_others;

static void take(int signal) {
    (void)signal;
    __atomic_add_fetch(gettid() == hosts_thread ? &taken_by_host : &taken_by_others, 1, __ATOMIC_RELAXED);
}

static int enough;

static void *is_busy(void *lock) {
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) give_back(acquire(lock, ZKLOCK_FOREVER));
    return NULL;
}

/* The host's handler for crashes must also see those of our threads. (The C library blocks all signals in a thread while it starts
 * another.) */
static int faults_pass(const char *name) {
    return !(the_task(name).blocked & (bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE)));
}

/* Checks that each of our threads blocks the right signals. Returns their number. */
static size_t check_masks(char *names, size_t size) {
    task found[64];
    size_t count = tasks(found, COUNT(found)), ours = 0;
    for (size_t at = 0; at < count; at++) {
        if (found[at].id == getpid() || !strncmp(found[at].name, "host", 4)) continue;
        ours++;
        for (int signal = 1; signal < NSIG; signal++) {
            switch (signal) {
            case SIGKILL: case SIGSTOP: /* cannot be blocked */
            case 32: case 33: /* the C library's own */
            case SIGSEGV: case SIGBUS: case SIGFPE: case SIGILL: case SIGTRAP: case SIGSYS:
                continue;
            }
            if (!(found[at].blocked & bit(signal))) failed(__FILE__, __LINE__, "%s takes %d", found[at].name, signal);
        }
        if (!strstr(names, found[at].name)) {
            strncat(names, found[at].name, size - strlen(names) - 2);
            strcat(names, " ");
        }
    }
    return ours;
}

static void *connect_by(void *given) {
    pthread_setname_np(pthread_self(), "host");
    zklock_client *client = NULL;
    zklock_status status = zklock_client_new(given, options_with(0, 2000), &client);
    zklock_client_free(client);
    return status ? (void *)1 : NULL;
}

TEST(our_threads_take_nothing_but_faults) {
    char names[256] = "", by_name[64];
    int lines = 0;
    /* Every thread that the library can have, none of them idle. */
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, count_line, &lines));
    zklock_lock *lock = new_mutex(new_client(), fresh_path(), 0);
    pthread_t busy[3];
    for (size_t at = 0; at < COUNT(busy); at++) busy[at] = start_thread(is_busy, lock);
    EVENTUALLY(__atomic_load_n(&lines, __ATOMIC_RELAXED) > 100);
    the_task("zklock-io"), the_task("zklock-calls");
    CHECK(check_masks(names, sizeof names) >= 2);
    snprintf(by_name, sizeof by_name, "localhost%s", strrchr(servers(), ':'));
    const char *const hosts[] = {by_name, "no-such-host.invalid:2181", "no-such-host.invalid,localhost:1"};
    for (size_t at = 0; at < COUNT(hosts); at++) {
        /* Another thread looks up the names. It lives so briefly that a busy machine may miss it. */
        for (size_t most = 0, turn = 0; most <= 3; turn++) {
            CHECK(turn < 100);
            pthread_t connecting = start_thread(connect_by, (void *)hosts[at]);
            void *failed_to = NULL;
            int ended = 0;
            do {
                /* Check once more after its end, because that thread stays for a while. */
                ended = pthread_tryjoin_np(connecting, &failed_to) == 0;
                size_t now = check_masks(names, sizeof names);
                most = now > most ? now : most;
            } while (!ended);
            CHECK(!failed_to == !at);
        }
    }
    EVENTUALLY(faults_pass("zklock-io") && faults_pass("zklock-calls"));
    printf("  %s\n", names);
    __atomic_store_n(&enough, 1, __ATOMIC_RELAXED);
    for (size_t at = 0; at < COUNT(busy); at++) join_thread(busy[at]);
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
}

static void *wait_for_ever(void *given) {
    hosts_thread = gettid();
    return acquire(given, ZKLOCK_FOREVER);
}

TEST(a_signal_does_not_end_a_wait) {
    const int watched[] = {SIGTERM, SIGALRM, SIGCHLD, SIGPROF, SIGRTMIN + 3};
    /* Not restarted: system calls of the thread end with EINTR. */
    struct sigaction action = {.sa_handler = take};
    taken_by_host = taken_by_others = 0;
    for (size_t at = 0; at < COUNT(watched); at++) CHECK(!sigaction(watched[at], &action, NULL));
    zklock_client *client = new_client();
    const char *path = fresh_path();
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    pthread_t waiting = start_thread(wait_for_ever, lock);
    ground("wait-children %s 2 %d", path, SOON_MS);
    for (int round = 0; round < 500; round++) {
        int seen = __atomic_load_n(&taken_by_host, __ATOMIC_RELAXED);
        CHECK(!pthread_kill(waiting, watched[round % (int)COUNT(watched)]));
        EVENTUALLY(__atomic_load_n(&taken_by_host, __ATOMIC_RELAXED) > seen);
    }
    CHECK(pthread_tryjoin_np(waiting, NULL) == EBUSY);
    give_back(hold);
    join_thread(waiting);

    /* Nor does it make a wait longer. */
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    zklock_lock *other = new_mutex(client, fresh_path(), 0);
    zklock_hold *none;
    await_call(start_acquire(other, SOON_MS));
    hosts_thread = gettid(), taken_by_host = 0;
    CHECK(!setitimer(ITIMER_REAL, &often, NULL));
    int64_t begun = now_ms();
    IS(zklock_acquire(other, 500, &none), ZKLOCK_TIMEOUT);
    int64_t took = now_ms() - begun;
    make_every_call(servers(), fresh_path());
    CHECK(!setitimer(ITIMER_REAL, &never, NULL));
    CHECK(took >= 500);
    NOT_LATER(took, 1500);
    CHECK(taken_by_host > 50 && taken_by_others == 0);
    printf("  500 ms took %lld ms with %d signals\n", (long long)took, taken_by_host);
}

TEST_MAIN("standalone max-session=4000")
