/* Which seed is played: `--one SEED`. Without any, each that a line of the input has, one after the other, in a process of its own.
 *
 * They all begin here, before `main`: so a seed costs no start of a program, and what it finds in memory is the same each time. A line
 * is a seed and numbers for `--without`; both take the place of empty words with which the program is started. What a seed says is
 * followed by a line `end`, with how its process has ended. */
#define _GNU_SOURCE
#include "kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* How many seconds of processor time a seed may take, of which it needs a hundredth of one. Then SIGPROF ends it. One that only waits is
 * ended by SIGALRM, after a time that it does not need on a busy machine either, on which each step from thread to thread may take long. */
enum { PROCESSOR_TIME = 20, PATIENCE = 600, LONGEST_LINE = 4096, SEED = 2, WITHOUT = 4, WORDS = 5 };

static char line[LONGEST_LINE];

/* Whether there is one more. */
static bool is_next(char **words) {
    size_t length = 0;
    while (length < sizeof line && read(STDIN_FILENO, line + length, 1) == 1) {
        if (line[length] == '\n') {
            line[length] = 0;
            words[WITHOUT] = line;
            words[SEED] = strsep(&words[WITHOUT], " ");
            return words[WITHOUT] != NULL;
        }
        length += 1;
    }
    return false;
}

const char *next_seed(int count, char **words) {
    /* By whatever name it is called, it takes as much memory. */
    static char name[] = "simulation";
    words[0] = name;
    if (count != WORDS || words[SEED][0] != 0) {
        return count > SEED ? words[SEED] : NULL;
    }
    while (is_next(words)) {
        const pid_t child = fork();
        if (child == 0) {
            const struct itimerval processor_time = {.it_value.tv_sec = PROCESSOR_TIME};
            (void)setitimer(ITIMER_PROF, &processor_time, NULL);
            alarm(PATIENCE);
            const int nothing = open("/dev/null", O_RDONLY);
            (void)dup2(nothing, STDIN_FILENO);
            (void)dup2(STDOUT_FILENO, STDERR_FILENO);
            (void)close(nothing);
            return words[SEED];
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) {
            _exit(1);
        }
        char said[64];
        const int length = snprintf(said, sizeof said, "end %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        (void)!write(STDOUT_FILENO, said, (size_t)length);
    }
    _exit(0);
}
