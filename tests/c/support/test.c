#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *current = "the start";
static FILE *to_ground, *from_ground;
static char connect_string[512];

void failed(const char *file, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "FAILED %s (%s:%d): ", current, file, line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    /* Not exit: a broken program may hang there. */
    _exit(1);
}

void check_status(const char *file, int line, const char *call, zklock_status got, zklock_status wanted) {
    if (got != wanted) {
        failed(file, line, "%s is %s, not %s: %s", call, zklock_status_name(got), zklock_status_name(wanted),
               zklock_last_error());
    }
}

static void start_ground(void) {
    const char *program = getenv("ZKLOCK_GROUND");
    int to[2], from[2];
    if (!program) failed(__FILE__, __LINE__, "ZKLOCK_GROUND names the program `ground`: tests/c/run sets it");
    if (pipe2(to, 0) || pipe2(from, 0)) failed(__FILE__, __LINE__, "pipe: %s", strerror(errno));
    if (!new_child()) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        for (int descriptor = 3; descriptor < 64; descriptor++) close(descriptor);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    /* Processes that the tests start must not keep the ground alive. */
    to_ground = fdopen(dup3(to[1], 60, O_CLOEXEC), "w");
    from_ground = fdopen(dup3(from[0], 61, O_CLOEXEC), "r");
    close(to[1]);
    close(from[0]);
}

static pthread_mutex_t ground_mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread char answer[65536];

/* The answer to the command, which another thread sends if it is NULL; NULL if the ground is gone. */
static const char *told(const char *command) {
    int gone;
    pthread_mutex_lock(&ground_mutex);
    gone = (command && (fprintf(to_ground, "%s\n", command) < 0 || fflush(to_ground))) ||
           !fgets(answer, sizeof answer, from_ground);
    pthread_mutex_unlock(&ground_mutex);
    if (gone) return NULL;
    answer[strcspn(answer, "\n")] = 0;
    return answer;
}

static const char *expect_ok(const char *command, const char *got) {
    if (!got) failed(__FILE__, __LINE__, "the ground is gone: %s", command);
    if (strncmp(got, "ok", 2)) failed(__FILE__, __LINE__, "%s: %s", command, got);
    return got + strspn(got + 2, " ") + 2;
}

const char *ground(const char *format, ...) {
    char command[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    return expect_ok(command, told(command));
}

const char *servers(void) { return connect_string; }

/* The worst delay of the measuring thread since the last `on_time`. */
static int64_t worst_us;

static int64_t late_ms(void) { return __atomic_load_n(&worst_us, __ATOMIC_RELAXED) / 1000 + 1; }

enum { LATE_TRIES = 10 };
static int was_late; /* the line */
static const char *was_late_in;
static char was_late_with[160];

void not_later(const char *file, int line, const char *what, int64_t took, int64_t bound) {
    if (took <= bound) return;
    snprintf(was_late_with, sizeof was_late_with, "%s is %lld ms, not %lld (threads are %lld ms late)", what,
             (long long)took, (long long)bound, (long long)late_ms());
    was_late_in = file;
    was_late = line;
}

enum { TESTS_AT_MOST = 64 };
static struct {
    int line;
    const char *name;
    void (*run)(void);
} tests[TESTS_AT_MOST];
static size_t tests_count;

void list_test(int line, const char *name, void (*run)(void)) {
    size_t at = tests_count++;
    CHECK(at < TESTS_AT_MOST);
    for (; at && tests[at - 1].line > line; at--) tests[at] = tests[at - 1];
    tests[at].line = line, tests[at].name = name, tests[at].run = run;
}

/* What is kept, the latest first. */
typedef struct kept {
    struct kept *before;
    void (*free)(void *);
    void *object;
} kept;
static kept *latest;

/* Without a mutex, because a child may be forked at any moment. */
void *keep(void (*free)(void *), void *object) {
    kept *new = malloc(sizeof *new);
    CHECK(new);
    *new = (kept){__atomic_load_n(&latest, __ATOMIC_RELAXED), free, object};
    while (!__atomic_compare_exchange_n(&latest, &new->before, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
    return object;
}

const void *last_kept(void) { return latest; }

void free_kept(const void *since) {
    while (latest != since) {
        kept *last = latest;
        latest = last->before;
        last->free(last->object);
        free(last);
    }
}

int run_tests(const char *start, int words_count, char **words) {
    int ran = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    start_ground();
    snprintf(connect_string, sizeof connect_string, "%s", ground("start %s", start));
    for (size_t at = 0; at < tests_count; at++) {
        int wanted = words_count < 2;
        for (int word = 1; word < words_count; word++) wanted |= strstr(tests[at].name, words[word]) != NULL;
        if (!wanted) continue;
        current = tests[at].name;
        int64_t begun = now_ms();
        for (int try = 1; try == 1 || was_late; try++) {
            if (try > LATE_TRIES) failed(was_late_in, was_late, "late %d times: %s", LATE_TRIES, was_late_with);
            if (try > 1) printf("  late, so once more: %s\n", was_late_with);
            was_late = 0;
            /* A test that hangs must not hold up the others for long. */
            alarm(240);
            tests[at].run();
            free_kept(NULL);
            alarm(0);
        }
        printf("ok %s (%lld ms)\n", current, (long long)(now_ms() - begun));
        ran++;
    }
    current = "the end";
    if (!ran) failed(__FILE__, __LINE__, "no test has such a name");
    fclose(to_ground);
    return 0;
}

int64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

void sleep_ms(int64_t milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&time, &time) && errno == EINTR) {
    }
}

int readable(int descriptor, int64_t milliseconds) {
    struct pollfd wanted = {.fd = descriptor, .events = POLLIN};
    int64_t until = now_ms() + milliseconds;
    for (;;) {
        int64_t left = until - now_ms();
        int found = poll(&wanted, 1, (int)(left < 0 ? 0 : left));
        if (found >= 0 || errno != EINTR) return found == 1 && wanted.revents & POLLIN;
    }
}

void set_time(zklock_options *options, const char *option, int64_t milliseconds) {
    char value[32];
    snprintf(value, sizeof value, "%lldms", (long long)milliseconds);
    OK(zklock_options_set(options, option, value));
}

zklock_options *options_with(int64_t session, int64_t connect) {
    zklock_options *options = MADE(zklock_options, zklock_options_new(&made));
    if (session) set_time(options, "session-timeout", session);
    if (connect) set_time(options, "connect-timeout", connect);
    return options;
}

zklock_client *client_with(const char *hosts, int64_t session, int64_t connect) {
    zklock_options *options = options_with(session, connect);
    /* A try that succeeds may be slow on a busy machine. */
    set_time(options, "try-timeout", SOON_MS);
    return MADE(zklock_client, zklock_client_new(hosts, options, &made));
}

zklock_client *connect_to(const char *hosts) { return client_with(hosts, SESSION_MS, 0); }

zklock_client *new_client(void) { return connect_to(servers()); }

zklock_lock *new_mutex(zklock_client *client, const char *path, int is_reentrant) {
    zklock_options *options = options_with(0, 0);
    if (is_reentrant) OK(zklock_options_set(options, "reentrant", "yes"));
    return MADE(zklock_lock, zklock_mutex_new(client, path, options, &made));
}

zklock_lock *new_lock(constructor *make, zklock_client *client, const char *path) {
    return MADE(zklock_lock, make(client, path, NULL, &made));
}

zklock_barrier *new_barrier(zklock_client *client, const char *path) {
    return MADE(zklock_barrier, zklock_barrier_new(client, path, &made));
}

zklock_double_barrier *new_double_barrier(zklock_client *client, const char *path, uint32_t members) {
    return MADE(zklock_double_barrier, zklock_double_barrier_new(client, path, members, &made));
}

zklock_job *new_job(zklock_client *client, const char *path) {
    return MADE(zklock_job, zklock_job_new(client, path, 31536000000000, NULL, &made));
}

void forget_error(void) { (void)!zklock_hold_ensure(NULL, 0); }

zklock_status looked(const char *call) {
    static const struct {
        const char *said;
        zklock_status status;
    } known[] = {{" is NULL: ", ZKLOCK_INVALID_ARGUMENT}, {" was forked", ZKLOCK_FORKED}, {" panicked ", ZKLOCK_INTERNAL}};
    const char *said = zklock_last_error();
    /* After forget_error() there is a message, unless every call panics, that for the message too. */
    if (!*said) return ZKLOCK_INTERNAL;
    if (strncmp(said, call, strcspn(call, "("))) return ZKLOCK_OK;
    for (size_t at = 0; at < sizeof known / sizeof *known; at++) {
        if (strstr(said, known[at].said)) return known[at].status;
    }
    return ZKLOCK_INVALID_HANDLE;
}

zklock_hold *acquire(zklock_lock *lock, int64_t timeout) {
    return MADE(zklock_hold, zklock_acquire(lock, timeout, &made));
}

zklock_call *start_acquire(zklock_lock *lock, int64_t timeout) {
    return MADE(zklock_call, zklock_acquire_start(lock, timeout, &made));
}

zklock_hold *new_hold(const char *hosts, const char *path) {
    return acquire(new_mutex(connect_to(hosts), path, 0), SOON_MS);
}

int64_t valid_for(const zklock_hold *hold) { return SEEN(zklock_hold_valid_for(hold)); }

void becomes_valid(const zklock_hold *hold) {
    EVENTUALLY(valid_for(hold) > 0 || state_of(hold) == ZKLOCK_STATE_LOST);
    CHECK(state_of(hold) != ZKLOCK_STATE_LOST);
}

uint64_t token_of(const zklock_hold *hold) { return SEEN(zklock_hold_token(hold)); }

const char *node_of(const zklock_hold *hold) { return SEEN(zklock_hold_node(hold)); }

zklock_state state_of(const zklock_hold *hold) { return SEEN(zklock_hold_state(hold, NULL)); }

void give_back(zklock_hold *hold) {
    OK(zklock_release(hold));
    zklock_hold_free(hold);
}

zklock_stats stats_of(const zklock_client *client) {
    zklock_stats stats;
    OK(zklock_client_stats(client, &stats));
    return stats;
}

pid_t new_child(void) {
    pid_t child = fork();
    if (child < 0) failed(__FILE__, __LINE__, "fork: %s", strerror(errno));
    return child;
}

const char *fresh_path(void) {
    static int number;
    static __thread char path[64];
    snprintf(path, sizeof path, "/c/%d-%d", (int)getpid(), __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
    return path;
}

int new_proxy(char *hosts, size_t size) {
    int number = 0;
    char address[128];
    if (sscanf(ground("proxy 1"), "%d %127s", &number, address) != 2) failed(__FILE__, __LINE__, "no proxy");
    snprintf(hosts, size, "%s", address);
    return number;
}

void check_sentence(const char *file, int line, const char *sentence, const char *part) {
    if (!strstr(sentence, part)) failed(file, line, "\"%s\" is not in: %s", part, sentence);
}

static void leaves_no_node(void *given) {
    rivals *all = given;
    settled(all->client);
    settled(all->other);
    wait_for_contenders(all->path, 0);
    free(all);
}

rivals new_rivals(void) {
    rivals *all = calloc(1, sizeof *all);
    char hosts[128];
    CHECK(all);
    snprintf(all->path, sizeof all->path, "%s", fresh_path());
    all->proxy = new_proxy(hosts, sizeof hosts);
    all->client = connect_to(hosts);
    all->other = new_client();
    all->lock = new_mutex(all->client, all->path, 0);
    all->others = new_mutex(all->other, all->path, 0);
    return *(rivals *)keep(leaves_no_node, all);
}

int64_t expire_session(int proxy) {
    char command[32];
    const char *said;
    int64_t begun = now_ms();
    ground("refuse %d on", proxy);
    snprintf(command, sizeof command, "expire %d", proxy);
    /* The server may be busy with the end of the client's own connection. */
    EVENTUALLY((said = told(command)) != NULL && !strncmp(said, "ok", 2));
    ground("refuse %d off", proxy);
    return begun;
}

int new_hook(const char *what, int proxy, const char *kind, int nth, const char *path) {
    return atoi(ground("%s %d %s %d %s", what, proxy, kind, nth, path));
}

void await_hook(int hook) {
    /* Wait in short steps, so that other threads can talk to the ground. */
    int64_t until = now_ms() + SOON_MS;
    while (strcmp(ground("wait %d 20", hook), "true")) {
        if (now_ms() > until) failed(__FILE__, __LINE__, "hook %d has not fired", hook);
    }
}

void just_after_a_heartbeat(int proxy) { await_hook(new_hook("see-reply", proxy, "multi", 1, "")); }

int contenders_at(const char *path) {
    char command[256];
    const char *said, *count;
    snprintf(command, sizeof command, "stat %s", path);
    said = told(command);
    count = said ? strstr(said, "children=") : NULL;
    if (!count && !(said && strstr(said, "no node"))) failed(__FILE__, __LINE__, "%s: %s", command, said);
    return count ? atoi(count + strlen("children=")) : 0;
}

void wait_for_contenders(const char *path, int count) {
    int64_t until = now_ms() + SOON_MS;
    int found;
    while ((found = contenders_at(path)) != count) {
        if (now_ms() > until) failed(__FILE__, __LINE__, "%d contenders at %s, not %d", found, path, count);
        sleep_ms(2);
    }
}

void settled(const zklock_client *client) {
    zklock_stats stats = {0};
    zklock_status status;
    EVENTUALLY((status = zklock_client_stats(client, &stats)) == ZKLOCK_INVALID_HANDLE || (status == ZKLOCK_OK && !stats.owed));
}

void await_call(zklock_call *call) {
    int descriptor;
    OK(zklock_call_fd(call, &descriptor));
    CHECK(readable(descriptor, SOON_MS));
}

zklock_hold *hold_of(zklock_call *call) {
    await_call(call);
    return MADE(zklock_hold, zklock_call_hold(call, &made));
}

thread start_thread(void *(*run)(void *argument), void *argument) {
    thread new;
    int error = pthread_create(&new, NULL, run, argument);
    if (error) failed(__FILE__, __LINE__, "no thread: %s", strerror(error));
    pthread_setname_np(new, "host");
    return new;
}

void *join_thread(thread thread) {
    void *result;
    struct timespec until;
    int error;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SOON_MS / 1000;
    error = pthread_timedjoin_np(thread, &result, &until);
    if (error) failed(__FILE__, __LINE__, "a thread has not ended: %s", strerror(error));
    return result;
}

zklock_status join_status(thread thread) { return (zklock_status)(intptr_t)join_thread(thread); }

static void *measures(void *nothing) {
    for (;;) {
        struct timespec before, after;
        int64_t late;
        clock_gettime(CLOCK_MONOTONIC, &before);
        sleep_ms(2);
        clock_gettime(CLOCK_MONOTONIC, &after);
        late = (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000 - 2000;
        if (late > __atomic_load_n(&worst_us, __ATOMIC_RELAXED)) __atomic_store_n(&worst_us, late, __ATOMIC_RELAXED);
    }
    return nothing;
}

void on_time(void) {
    static thread measuring;
    if (!measuring) measuring = start_thread(measures, NULL);
    __atomic_store_n(&worst_us, 0, __ATOMIC_RELAXED);
}

int64_t allowance_ms(void) { return 100 + 4 * late_ms(); }

void free_all(zklock_hold *hold, zklock_lock *lock, zklock_client *client) {
    zklock_hold_free(hold);
    zklock_lock_free(lock);
    zklock_client_free(client);
}
