/*
 * With a library built with the feature panic-probe, every function panics inside, reports that to its caller, and prints
 * nothing. The log shows that it did panic and did not merely refuse.
 */

#define _GNU_SOURCE
#include "matrix.h"

#include <stdatomic.h>
#include <unistd.h>

#define CANARY 0xA5

static FILE *printed;
static int out, err;
static atomic_int panicked[256];

static void on_log(int32_t level, const char *message, void *context) {
    CHECK(level == ZKLOCK_LOG_ERROR && !context);
    for (size_t at = 0; at < functions_count; at++) {
        char mark[128];
        snprintf(mark, sizeof mark, "%s, on purpose", functions[at].name);
        if (strstr(message, "zklock panicked") && strstr(message, mark)) {
            panicked[at] = 1;
        }
    }
}

/* The library's output would go here, but not this program's. */
static void begin_panics(void) {
    fflush(stdout);
    CHECK(dup2(fileno(printed), STDOUT_FILENO) >= 0 && dup2(fileno(printed), STDERR_FILENO) >= 0);
    CHECK(!setenv("ZKLOCK_PANIC", "1", 1));
}

static void end_panics(void) {
    CHECK(!unsetenv("ZKLOCK_PANIC"));
    fflush(stdout);
    CHECK(dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0);
}

static void must_panic(const function *function) {
    unsigned char blocks[ARGUMENTS_AT_MOST][BLOCK_BYTES] __attribute__((aligned(16)));
    value values[ARGUMENTS_AT_MOST] = {{NULL, 0}};
    memset(blocks, CANARY, sizeof blocks);
    for (size_t at = 0; at < function->outputs_count; at++) {
        values[function->outputs[at].at].pointer = blocks[function->outputs[at].at];
    }
    begin_panics();
    answer answer = function->call(values);
    end_panics();
    if (answer.status != function->panics) {
        failed(__FILE__, __LINE__, "%s gives %lld, not %lld", function->name, (long long)answer.status,
               (long long)function->panics);
    }
    if (function->panics_text && strcmp(answer.text, function->panics_text)) {
        failed(__FILE__, __LINE__, "%s gives '%s', not '%s'", function->name, answer.text, function->panics_text);
    }
    const char *said = zklock_last_error();
    if (function->says_status && (!strstr(said, function->name) || !strstr(said, "panicked"))) {
        failed(__FILE__, __LINE__, "%s says '%s'", function->name, said);
    }
    for (size_t at = 0; at < sizeof blocks; at++) {
        if (((unsigned char *)blocks)[at] != CANARY) failed(__FILE__, __LINE__, "%s touches a result", function->name);
    }
}

/* If a free panicked, the object still exists. */
static void a_free_that_panics_frees_nothing(void) {
    zklock_options *options;
    OK(zklock_options_new(&options));
    begin_panics();
    zklock_options_free(options);
    end_panics();
    OK(zklock_options_set(options, "connect-timeout", "1s"));
    zklock_options_free(options);
    IS(zklock_options_set(options, "connect-timeout", "1s"), ZKLOCK_INVALID_HANDLE);
}

int main(void) {
    printed = tmpfile();
    out = dup(STDOUT_FILENO);
    err = dup(STDERR_FILENO);
    CHECK(printed && out >= 0 && err >= 0);
    alarm(60);
    OK(zklock_set_log(ZKLOCK_LOG_ERROR, on_log, NULL));
    for (size_t at = 0; at < functions_count; at++) must_panic(&functions[at]);
    a_free_that_panics_frees_nothing();
    for (size_t at = 0; at < functions_count; at++) {
        for (int64_t until = now_ms() + SOON_MS; !panicked[at] && now_ms() < until;) sleep_ms(5);
        if (!panicked[at]) failed(__FILE__, __LINE__, "%s did not panic", functions[at].name);
    }
    OK(zklock_set_log(ZKLOCK_LOG_OFF, NULL, NULL));
    if (lseek(fileno(printed), 0, SEEK_END)) failed(__FILE__, __LINE__, "something was printed");
    fclose(printed);
    printf("panics: %zu functions\n", functions_count);
    return 0;
}
