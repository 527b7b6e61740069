/*
 * Promise 8: no harm comes from a fork. The parent's objects stay the parent's, and in the child every call on them reports
 * that. The child makes its own clients, and may end in any way.
 */

#define _GNU_SOURCE
#include "guest.h"

#include "calls.h"

#include <spawn.h>
#include <sys/syscall.h>

#define FORKS 60

extern char **environ;

/* Whether a call uses none of the parent's objects, or only plain values. */
static int is_for_children(const call *made) {
    return !strncmp(made->name, "zklock_options_", 15) ||
           !strncmp(made->name, "zklock_client_new", 17) || !strcmp(made->name, "zklock_set_log") ||
           !strcmp(made->name, "zklock_fence_sql");
}

/* In a child: checks that every call on the parent's objects is refused at once. */
static void check_refused(handles *on) {
    int64_t begun = now_ms();
    for (size_t at = 0; at < COUNT(calls); at++) {
        if (!on->hosts && !strncmp(calls[at].name, "zklock_client_new", 17)) continue;
        int is_free = is_for_children(&calls[at]);
        check_status(__FILE__, __LINE__, calls[at].name, calls[at].run(on), is_free ? calls[at].live : ZKLOCK_FORKED);
        CHECK(is_free || (strstr(zklock_last_error(), "fork") && strstr(zklock_last_error(), calls[at].name)));
    }
    CHECK(now_ms() - begun < SOON_MS);
    CHECK(!strcmp(zklock_version(), ZKLOCK_VERSION) && zklock_abi() == ZKLOCK_VERSION_MINOR);
}

static void check_free(handles *on) {
    int64_t begun = now_ms();
    free_handles(on);
    CHECK(now_ms() - begun < SOON_MS);
}

/* Handles of all kinds, with a hold that is watched and a call that waits for it. */
static handles all_handles(const char *hosts, const char *path) {
    handles on = new_handles(hosts, path);
    on.hold = acquire(on.lock, SOON_MS);
    OK(zklock_acquire_start(on.lock, ZKLOCK_FOREVER, &on.waiting));
    OK(zklock_hold_on_lost(on.hold, ignore_loss, NULL));
    return on;
}

static void end_handles(handles *on) {
    OK(zklock_release(on->hold));
    free_handles(on);
}

/* All ways to start a child. */
static pid_t plain_fork(void) { return fork(); }
/* These do not run the handlers of pthread_atfork. */
static pid_t bare_fork(void) { return _Fork(); }
static pid_t bare_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL); }

/* The child has a thread for callbacks as well. */
static void lose_in_child(const char *path) {
    zklock_lock *lock = new_mutex(new_client(), path, 0);
    zklock_hold *hold = acquire(lock, ENDS_MS);
    int reason = 0;
    OK(zklock_hold_on_lost(hold, note_loss, &reason));
    OK(zklock_evict(lock, node_of(hold), NULL));
    EVENTUALLY(__atomic_load_n(&reason, __ATOMIC_ACQUIRE) == ZKLOCK_REASON_NODE_DELETED);
    zklock_hold_free(hold);
}

TEST(a_child_is_refused_by_every_call_and_locks_for_itself) {
    pid_t (*const ways[])(void) = {plain_fork, bare_fork, bare_clone};
    handles on = all_handles(servers(), fresh_path());
    const char *path = strdup(fresh_path());
    for (size_t way = 0; way < COUNT(ways); way++) {
        pid_t child = ways[way]();
        CHECK(child >= 0);
        if (!child) {
            check_refused(&on);
            lock_once(servers(), path);
            /* The same in a child of the child. */
            pid_t grandchild = ways[way]();
            if (grandchild) CHECK(reaped(grandchild, ENDS_MS) == 0);
            check_refused(&on);
            lose_in_child(path);
            check_free(&on);
            _exit(0);
        }
        lock_once(servers(), path);
        CHECK(reaped(child, 2 * ENDS_MS) == 0);
        becomes_valid(on.hold);
    }
    end_handles(&on);
}

TEST(what_the_parent_has_is_untouched) {
    char hosts[128], path[64];
    int proxy = new_proxy(hosts, sizeof hosts), number;
    const char *node;
    snprintf(path, sizeof path, "%s", fresh_path());
    int watches = new_hook("see-reply", proxy, "getdata", 1, "");
    handles on = all_handles(hosts, path);
    node = node_of(on.hold);
    uint64_t session = stats_of(on.client).session_id;
    await_hook(watches);
    /* A call that waits would send checks from time to time, so cancel it. */
    OK(zklock_call_cancel(on.call));
    settled(on.client);
    just_after_a_heartbeat(proxy);
    CHECK(contenders_at(path) == 2);
    ground("record %d", proxy);
    /* The child ends when its parent tells it to, and closes all descriptors below this. */
    int go[2], far = 300;
    char byte;
    CHECK(!pipe(go) && dup2(go[0], far) == far);
    pid_t child = new_child();
    if (!child) {
        /* The child must not connect, because its descriptors are closed under it. */
        on.hosts = NULL;
        check_refused(&on);
        check_free(&on);
        for (int descriptor = 3; descriptor < 256; descriptor++) close(descriptor);
        /* It has closed and freed everything, and lives for longer than the session would without its parent. */
        CHECK(read(far, &byte, 1) == 0);
        exit(0);
    }
    int64_t until = now_ms() + SESSION_MS * 5 / 4;
    while (now_ms() < until) {
        becomes_valid(on.hold);
        sleep_ms(20);
    }
    CHECK(!waitpid(child, NULL, WNOHANG));
    close(go[1]);
    CHECK(reaped(child, ENDS_MS) == 0);
    close(go[0]), close(far);
    CHECK(!strcmp(ground("exists %s", node), "true"));
    becomes_valid(on.hold);
    CHECK(stats_of(on.client).session_id == session);
    CHECK(stats_of(on.client).sessions == 1);
    CHECK(sscanf(ground("connections %d", proxy), "%d", &number) == 1 && number == 1);
    CHECK(contenders_at(path) == 2);
    /* All messages come from the parent. */
    char seen[16384];
    int heartbeats = 0, looks = 0;
    snprintf(seen, sizeof seen, "%s", ground("messages %d", proxy));
    for (char *rest = seen, *message; (message = strsep(&rest, " "));) {
        char *kind = strchr(message, ':');
        CHECK(kind);
        heartbeats += !strncmp(message, "request:multi:", 14);
        looks += !strncmp(message, "request:getchildren:", 20);
        if (!strncmp(kind, ":multi:", 7) || !strncmp(kind, ":ping:", 6) || !strncmp(kind, ":getchildren:", 13)) continue;
        failed(__FILE__, __LINE__, "what is %s?", message);
    }
    CHECK(heartbeats >= 5);
    /* It looks for contenders that cannot see it, but only once for each hold as long as nobody comes. The runs have holds, too. */
    CHECK(looks <= 1 + (int)COUNT(on.runs));
    printf("  %d heartbeats, and nothing but pings and a look-out beside them\n", heartbeats);
    end_handles(&on);
}

/* The storm: forks while threads are in the middle of all kinds of calls. */
static int storm_ends;

static int goes_on(void) { return !__atomic_load_n(&storm_ends, __ATOMIC_RELAXED); }

static void *acquires(void *given) {
    while (goes_on()) give_back(acquire(given, ZKLOCK_FOREVER));
    return NULL;
}

static void *fails(void *given) {
    while (goes_on()) {
        IS(zklock_observe(given, NULL), ZKLOCK_INVALID_ARGUMENT);
        CHECK(*zklock_last_error());
    }
    return NULL;
}

static void *sets_logs(void *given) {
    (void)given;
    for (int at = 0; goes_on(); at++) {
        OK(zklock_set_log(at % 2 ? ZKLOCK_LOG_TRACE : ZKLOCK_LOG_INFO, at % 3 ? count_line : NULL, NULL));
    }
    return NULL;
}

static void *makes(void *given) {
    while (goes_on()) {
        zklock_options *options = options_with(0, 0);
        zklock_call_free(start_acquire(given, 1000));
        zklock_options_free(options);
    }
    return NULL;
}

static void *connects(void *given) {
    (void)given;
    while (goes_on()) zklock_client_free(new_client());
    return NULL;
}

TEST(other_programs_may_be_started) {
    char *const words[] = {"true", NULL};
    handles on = all_handles(servers(), fresh_path());
    for (int round = 0; round < 20; round++) {
        pid_t child;
        CHECK(system("exit 7") == EXITED(7));
        CHECK(!posix_spawnp(&child, "true", NULL, NULL, words, environ));
        CHECK(reaped(child, ENDS_MS) == 0);
        child = vfork();
        CHECK(child >= 0);
        if (!child) {
            execlp("true", "true", (char *)NULL);
            _exit(1);
        }
        CHECK(reaped(child, ENDS_MS) == 0);
        becomes_valid(on.hold);
        OK(zklock_hold_confirm(on.hold, NULL));
    }
    end_handles(&on);
}

TEST(a_fork_in_the_middle_of_everything_does_not_hang_the_child) {
    void *(*const busy[])(void *) = {acquires, acquires, fails, fails, sets_logs, makes, connects};
    pthread_t threads[COUNT(busy)];
    handles on = all_handles(servers(), fresh_path());
    zklock_lock *lock = new_mutex(on.client, fresh_path(), 0);
    const char *of_children = strdup(fresh_path());
    for (size_t at = 0; at < COUNT(busy); at++) threads[at] = start_thread(busy[at], lock);
    for (int number = 0; number < FORKS; number++) {
        pid_t child = new_child();
        if (!child) {
            for (size_t at = 0; at < COUNT(calls); at++) {
                zklock_status got = calls[at].run(&on);
                /* Another thread may just be changing the options. Then the child cannot use them. */
                int is_fine = got == ZKLOCK_FORKED || (is_for_children(&calls[at]) && got == calls[at].live);
                if (!is_fine) failed(__FILE__, __LINE__, "%s is %s", calls[at].name, zklock_status_name(got));
            }
            free_handles(&on);
            lock_once(servers(), of_children);
            _exit(0);
        }
        CHECK(reaped(child, ENDS_MS) == 0);
    }
    storm_ends = 1;
    for (size_t at = 0; at < COUNT(busy); at++) join_thread(threads[at]);
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    becomes_valid(on.hold);
    end_handles(&on);
}

/* ---- Separate programs. ---- */

/* As old daemons do: it tries its configuration before it forks. */
MODE(tried) {
    zklock_client *client;
    static int lines;
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, count_line, &lines));
    zklock_options *options = options_with(0, 300);
    IS(zklock_client_new("127.0.0.1:1", options, &client), ZKLOCK_UNREACHABLE);
    IS(zklock_client_new(",,", options, &client), ZKLOCK_INVALID_ARGUMENT);
    set_time(options, "connect-timeout", SOON_MS);
    client = MADE(zklock_client, zklock_client_new(words[0], options, &made));
    OK(zklock_client_close(client));
    if (fork()) _exit(0);
    CHECK(setsid() > 0);
    int before = __atomic_load_n(&lines, __ATOMIC_ACQUIRE);
    client = MADE(zklock_client, zklock_client_new(words[0], options, &made));
    /* The log goes on. */
    EVENTUALLY(__atomic_load_n(&lines, __ATOMIC_ACQUIRE) > before);
    zklock_hold *hold = acquire(new_mutex(client, words[1], 0), SOON_MS);
    go_ahead("held");
    give_back(hold);
    printf("released\n");
    return 0;
}

static handles at_exit;

static void check_at_exit(void) { check_refused(&at_exit); }
static void free_at_exit(void) { check_free(&at_exit); }

static void *exits(void *nothing) {
    (void)nothing;
    exit(44);
}

/* The child ends in some way, with handlers that call the library, and its parent goes on. */
MODE(ends) {
    static const char *const ways[] = {"return", "exit", "_exit", "quick_exit", "thread"};
    at_exit = all_handles(words[0], words[1]);
    CHECK(!atexit(free_at_exit) && !atexit(check_at_exit) && !at_quick_exit(check_at_exit));
    for (size_t way = 0; way < COUNT(ways); way++) {
        pid_t child = new_child();
        if (!child) {
            if (way == 0) return 40;
            if (way == 1) exit(41);
            if (way == 2) _exit(42);
            if (way == 3) quick_exit(43);
            start_thread(exits, NULL);
            for (;;) pause();
        }
        CHECK(reaped(child, ENDS_MS) == EXITED(40 + (int)way));
        becomes_valid(at_exit.hold);
        OK(zklock_hold_confirm(at_exit.hold, NULL));
    }
    end_handles(&at_exit);
    _exit(0);
}

TEST(a_child_ends_as_it_likes) { run_program("ends", servers(), fresh_path(), EXITED(0)); }

TEST(a_daemon_tries_its_configuration_forks_and_connects_again) {
    const char *path = fresh_path();
    program started = start_program("tried", servers(), path);
    hear(&started, "held");
    CHECK(contenders_at(path) == 1);
    let(&started);
    hear(&started, "released");
    CHECK(contenders_at(path) == 0);
    expect_end(&started, ENDS_MS, EXITED(0));
}

TEST_OR_CHILD_MAIN("standalone max-session=4000")
