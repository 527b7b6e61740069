/* Promise 8: signals reach threads of the host, and the library changes neither its handlers, nor its masks, nor its waits. */

#define _GNU_SOURCE
#include "guest.h"

#include "calls.h"

#include <sys/time.h>

#define ROUNDS 200

static int watched[5]; /* SIGRTMIN is not a constant */

static void choose_signals(void) {
    const int chosen[] = {SIGTERM, SIGALRM, SIGCHLD, SIGPROF, SIGRTMIN + 3};
    memcpy(watched, chosen, sizeof chosen);
}

/* The threads that received signals. */
static int hosts_threads[8], hosts_threads_count;
static int taken_by_host, taken_by_others;

static void take(int signal) {
    (void)signal;
    for (int at = 0; at < hosts_threads_count; at++) {
        if (hosts_threads[at] == gettid()) {
            __atomic_add_fetch(&taken_by_host, 1, __ATOMIC_RELAXED);
            return;
        }
    }
    __atomic_add_fetch(&taken_by_others, 1, __ATOMIC_RELAXED);
}

static struct sigaction kept[COUNT(watched)];

static void take_signals(int flags) {
    struct sigaction action = {.sa_handler = take, .sa_flags = flags};
    choose_signals();
    taken_by_host = taken_by_others = 0;
    for (size_t at = 0; at < COUNT(watched); at++) CHECK(!sigaction(watched[at], &action, &kept[at]));
}

static void take_no_signals(void) {
    for (size_t at = 0; at < COUNT(watched); at++) CHECK(!sigaction(watched[at], &kept[at], NULL));
}

static sigset_t watched_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t at = 0; at < COUNT(watched); at++) sigaddset(&set, watched[at]);
    return set;
}

typedef struct {
    pthread_t threads[3];
    zklock_client *client;
    int stop, number, lines;
} crowd;

static void *be_busy(void *given) {
    crowd *of = given;
    hosts_threads[__atomic_fetch_add(&hosts_threads_count, 1, __ATOMIC_RELAXED)] = gettid();
    __atomic_add_fetch(&of->number, 1, __ATOMIC_RELEASE);
    zklock_lock *lock = new_mutex(of->client, "/c/busy", 0);
    while (!__atomic_load_n(&of->stop, __ATOMIC_RELAXED)) give_back(acquire(lock, ZKLOCK_FOREVER));
    return NULL;
}

/* Starts every thread that the library can have, none of them idle. */
static void start_crowd(crowd *of) {
    hosts_threads[0] = gettid(), hosts_threads_count = 1;
    *of = (crowd){0};
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, count_line, &of->lines));
    of->client = new_client();
    for (size_t at = 0; at < COUNT(of->threads); at++) of->threads[at] = start_thread(be_busy, of);
    EVENTUALLY(__atomic_load_n(&of->number, __ATOMIC_ACQUIRE) == COUNT(of->threads));
    EVENTUALLY(__atomic_load_n(&of->lines, __ATOMIC_RELAXED) > 100);
    the_task("zklock-io"), the_task("zklock-calls");
}

static void end_crowd(crowd *of) {
    of->stop = 1;
    for (size_t at = 0; at < COUNT(of->threads); at++) join_thread(of->threads[at]);
    zklock_client_free(of->client);
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
}

static void read_handlers(struct sigaction *into) {
    for (int signal = 1; signal < NSIG; signal++) {
        memset(&into[signal], 0, sizeof *into);
        sigaction(signal, NULL, &into[signal]);
    }
}

static int same_handler(const struct sigaction *one, const struct sigaction *other, int signal) {
    int same = one->sa_handler == other->sa_handler && one->sa_flags == other->sa_flags;
    for (int masked = 1; masked < NSIG; masked++) {
        same &= sigismember(&one->sa_mask, masked) == sigismember(&other->sa_mask, masked);
    }
    return same || signal == 32 || signal == 33;
}

static void check_unchanged(const char *call, const sigset_t *mask, const struct sigaction *handlers) {
    static struct sigaction now[NSIG];
    sigset_t masked;
    pthread_sigmask(SIG_SETMASK, NULL, &masked);
    read_handlers(now);
    for (int signal = 1; signal < NSIG; signal++) {
        if (sigismember(mask, signal) != sigismember(&masked, signal)) {
            failed(__FILE__, __LINE__, "%s changes the mask of %d", call, signal);
        }
        if (!same_handler(&handlers[signal], &now[signal], signal)) {
            failed(__FILE__, __LINE__, "%s changes the handler of %d", call, signal);
        }
    }
}

/* This must come first, because it is about the calls that start our threads. */
TEST(no_call_changes_masks_or_handlers) {
    static struct sigaction handlers[NSIG];
    sigset_t masks[3], mask, old;
    int lines = 0;
    CHECK(our_tasks() == 0);
    take_signals(0);
    sigemptyset(&masks[0]);
    masks[1] = watched_signals();
    sigfillset(&masks[2]);
    read_handlers(handlers);
    for (size_t number = 0; number < COUNT(masks); number++) {
        CHECK(!pthread_sigmask(SIG_SETMASK, &masks[number], &old));
        CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &mask));
        OK(zklock_set_log(ZKLOCK_LOG_TRACE, count_line, &lines));
        handles on = new_handles(servers(), fresh_path());
        check_unchanged("zklock_client_new", &mask, handlers);
        for (size_t at = 0; at < COUNT(calls); at++) {
            check_status(__FILE__, __LINE__, calls[at].name, calls[at].run(&on), calls[at].live);
            check_unchanged(calls[at].name, &mask, handlers);
        }
        free_handles(&on);
        check_unchanged("zklock_client_free", &mask, handlers);
        CHECK(!pthread_sigmask(SIG_SETMASK, &old, NULL));
    }
    CHECK(our_tasks() == 2);
    take_no_signals();
}

TEST(signals_reach_threads_of_the_host_only) {
    take_signals(SA_RESTART);
    crowd busy;
    start_crowd(&busy);
    /* The kernel prefers the first thread. If that blocks the signal, it tries the others in turn, including ours. */
    for (int first = 0; first < 2; first++) {
        sigset_t set = watched_signals(), before;
        if (first) CHECK(!pthread_sigmask(SIG_BLOCK, &set, &before));
        for (int round = 0; round < ROUNDS; round++) {
            for (size_t at = 0; at < COUNT(watched); at++) {
                int seen = __atomic_load_n(&taken_by_host, __ATOMIC_RELAXED);
                CHECK(!kill(getpid(), watched[at]));
                EVENTUALLY(__atomic_load_n(&taken_by_host, __ATOMIC_RELAXED) > seen || taken_by_others);
            }
        }
        if (first) CHECK(!pthread_sigmask(SIG_SETMASK, &before, NULL));
    }
    CHECK(taken_by_others == 0);
    CHECK(taken_by_host == 2 * ROUNDS * (int)COUNT(watched));
    end_crowd(&busy);
    take_no_signals();
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
    crowd busy;
    start_crowd(&busy);
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
    end_crowd(&busy);
}

static void *wait_for_ever(void *given) {
    hosts_threads[0] = gettid(), hosts_threads_count = 1;
    return acquire(given, ZKLOCK_FOREVER);
}

TEST(a_signal_does_not_end_a_wait) {
    /* Not restarted: system calls of the thread end with EINTR. */
    take_signals(0);
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
    hosts_threads[0] = gettid(), taken_by_host = 0;
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
    take_no_signals();
}

TEST_MAIN("standalone max-session=4000")
