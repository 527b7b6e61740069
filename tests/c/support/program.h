/* Programs that end in some way, whose output a test checks. For tests in C and in C++. */

#ifndef ZKLOCK_PROGRAM_H
#define ZKLOCK_PROGRAM_H

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include "test.h"

/* How long a program may take to end, whatever it is doing. */
#define ENDS_MS 30000

/* Waits until a child ends. Returns its wait status. */
static inline int reaped(pid_t child, int64_t bound) {
    int64_t until = now_ms() + bound;
    int status;
    while (!waitpid(child, &status, WNOHANG)) {
        if (now_ms() > until) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            failed(__FILE__, __LINE__, "the child hangs");
        }
        sleep_ms(1);
    }
    return status;
}

/* A started program: this one, with the arguments "child", a mode, and the arguments of the mode. */
typedef struct {
    pid_t id;
    int64_t begun;
    int in, out, err;
    char said[4096], complained[4096];
} program;

static inline program start_program(const char *mode, const char *first, const char *second) {
    int in[2], out[2], err[2];
    program started;
    memset(&started, 0, sizeof started);
    CHECK(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC) && !pipe2(err, O_CLOEXEC));
    started.id = new_child();
    if (!started.id) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        execl("/proc/self/exe", "guest", "child", mode, first, second, (char *)NULL);
        _exit(127);
    }
    close(in[0]), close(out[1]), close(err[1]);
    started.in = in[1], started.out = out[0], started.err = err[0];
    return started;
}

/* Adds the available output to the text. Never waits. */
static inline void drain(int from, char *text, size_t size) {
    while (readable(from, 0)) {
        size_t length = strlen(text);
        ssize_t more = read(from, text + length, size - 1 - length);
        if (more <= 0) return;
        text[length + (size_t)more] = 0;
    }
}

/* Waits until the program has printed this word. */
static inline void hear(program *from, const char *word) {
    int64_t until = now_ms() + 2 * SOON_MS;
    while (!strstr(from->said, word)) {
        struct pollfd more = {from->out, POLLIN, 0};
        drain(from->err, from->complained, sizeof from->complained);
        if (now_ms() > until || poll(&more, 1, 100) < 0 || (more.revents && !(more.revents & POLLIN))) {
            failed(__FILE__, __LINE__, "never said: %s, but: %s%s", word, from->said, from->complained);
        }
        drain(from->out, from->said, sizeof from->said);
    }
}

/* Lets the program go on from go_ahead(). */
static inline void let(program *go) { CHECK(write(go->in, "\n", 1) == 1); }

/* In the program: prints a word, and waits until the test lets it go on. */
static inline void go_ahead(const char *word) {
    char byte;
    printf("%s\n", word);
    fflush(stdout);
    CHECK(read(STDIN_FILENO, &byte, 1) == 1);
}

/* Waits until the program ends, which must happen in time, with this wait status, and without output on stderr. */
static inline void expect_end(program *of, int64_t bound, int wanted) {
    int status = reaped(of->id, bound);
    drain(of->out, of->said, sizeof of->said);
    drain(of->err, of->complained, sizeof of->complained);
    close(of->in), close(of->out), close(of->err);
    if (*of->complained) {
        failed(__FILE__, __LINE__, "it ended with %#x, and said: %s", (unsigned)status, of->complained);
    }
    if (status != wanted) {
        failed(__FILE__, __LINE__, "it ended with %#x, not %#x, and said: %s", (unsigned)status, (unsigned)wanted,
               of->said);
    }
}

/* The wait statuses of exit and of death by a signal. */
#define EXITED(code) ((code) << 8)
#define KILLED(signal) (signal)

/* Runs a mode that needs no help. Its output is valid until the next run. */
static inline const char *run_program(const char *mode, const char *first, const char *second, int wanted) {
    static program last;
    last = start_program(mode, first, second);
    expect_end(&last, ENDS_MS + SOON_MS, wanted);
    return last.said;
}

typedef struct {
    const char *name;
    int (*run)(char **words);
} mode;

static mode modes[32] __attribute__((unused));
static size_t modes_count __attribute__((unused));

/* A mode of the program, with the arguments `words`. */
#define MODE(of)                                                                                        \
    static int of##_mode(char **words);                                                                 \
    __attribute__((constructor)) static void list_##of##_mode(void) {                                   \
        modes[modes_count].name = #of, modes[modes_count++].run = of##_mode;                            \
    }                                                                                                   \
    static int of##_mode(char **words)

/* A test in a program of its own, which must end well and without output on stderr: words[0] are the servers, words[1] is a path. */
#define TEST_ALONE(name)                                                                   \
    static void name##_alone(char **words);                                                \
    MODE(name) { return name##_alone(words), 0; }                                          \
    TEST(name) { run_program(#name, servers(), fresh_path(), EXITED(0)); }                 \
    static void name##_alone(char **words)

/* A test in a program of its own, run this often, which must end in time with the status 3 and without output on stderr, and has said
 * these words. */
#define ENDS(name, times, words)                                                                         \
    TEST(name) {                                                                                         \
        for (int time = 0; time < (times); time++) {                                                     \
            int64_t begun = now_ms();                                                                    \
            const char *said = run_program(#name, servers(), fresh_path(), EXITED(3));                   \
            CHECK(now_ms() - begun < ENDS_MS);                                                           \
            if (strcmp(said, words)) failed(__FILE__, __LINE__, "it said: %s", said);                    \
        }                                                                                                \
    }                                                                                                    \
    MODE(name)

/* The tests of a program that is also one of its modes, if it is asked to. */
#define TEST_OR_CHILD_MAIN(start)                                                                   \
    int main(int count, char **words) {                                                             \
        for (size_t at = 0; count > 2 && !strcmp(words[1], "child") && at < modes_count; at++) {    \
            if (!strcmp(words[2], modes[at].name)) return alarm(60), modes[at].run(words + 3);      \
        }                                                                                           \
        return run_tests(start, count, words);                                                      \
    }

#endif
