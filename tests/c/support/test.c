#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
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
    /* Not exit: what is broken may hang there. */
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
    switch (fork()) {
    case -1:
        failed(__FILE__, __LINE__, "fork: %s", strerror(errno));
    case 0:
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        for (int descriptor = 3; descriptor < 64; descriptor++) close(descriptor);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    /* What the tests start must not keep the ground alive. */
    to_ground = fdopen(dup3(to[1], 60, O_CLOEXEC), "w");
    from_ground = fdopen(dup3(from[0], 61, O_CLOEXEC), "r");
    close(to[1]);
    close(from[0]);
}

const char *ground(const char *format, ...) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static __thread char answer[65536];
    char command[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&mutex);
    if (fprintf(to_ground, "%s\n", command) < 0 || fflush(to_ground) || !fgets(answer, sizeof answer, from_ground)) {
        failed(__FILE__, __LINE__, "the ground is gone: %s", command);
    }
    pthread_mutex_unlock(&mutex);
    answer[strcspn(answer, "\n")] = 0;
    if (strncmp(answer, "ok", 2)) failed(__FILE__, __LINE__, "%s: %s", command, answer);
    return answer + strspn(answer + 2, " ") + 2;
}

const char *servers(void) { return connect_string; }

int run_tests(const char *start, const test *tests, size_t count, int words_count, char **words) {
    int ran = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    start_ground();
    snprintf(connect_string, sizeof connect_string, "%s", ground("start %s", start));
    for (size_t at = 0; at < count; at++) {
        int wanted = words_count < 2;
        for (int word = 1; word < words_count; word++) wanted |= strstr(tests[at].name, words[word]) != NULL;
        if (!wanted) continue;
        current = tests[at].name;
        int64_t begun = now_ms();
        /* One that hangs must not hold up the others for long. */
        alarm(120);
        tests[at].run();
        alarm(0);
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

zklock_client *connect_to(const char *hosts) {
    zklock_options *options;
    zklock_client *client;
    OK(zklock_options_new(&options));
    OK(zklock_options_set_session_timeout(options, SESSION_MS));
    OK(zklock_client_new(hosts, options, &client));
    zklock_options_free(options);
    return client;
}

zklock_client *new_client(void) { return connect_to(servers()); }

zklock_lock *new_mutex(zklock_client *client, const char *path, uint32_t flags) {
    zklock_lock *lock;
    OK(zklock_mutex_new(client, path, flags, &lock));
    return lock;
}

zklock_hold *acquire(zklock_lock *lock, int64_t timeout) {
    zklock_hold *hold;
    OK(zklock_acquire(lock, timeout, &hold));
    return hold;
}

int64_t valid_for(const zklock_hold *hold) {
    int64_t milliseconds;
    OK(zklock_hold_valid_for(hold, &milliseconds));
    return milliseconds;
}

uint64_t token_of(const zklock_hold *hold) {
    uint64_t token;
    OK(zklock_hold_token(hold, &token));
    return token;
}

zklock_state state_of(const zklock_hold *hold) {
    zklock_state state;
    OK(zklock_hold_state(hold, &state, NULL));
    return state;
}

uint64_t stat_of(const zklock_client *client, zklock_stat stat) {
    uint64_t value;
    OK(zklock_client_stat(client, stat, &value));
    return value;
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
