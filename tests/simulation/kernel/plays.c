/* Chooses the seed to play: that of `--one SEED`, or else each seed in the lines of the input, one after the other, each in its own
 * process.
 *
 * All of these processes begin here, before `main`: so a seed needs no start of a program, and finds the same memory each time. A line
 * has a seed and the numbers for `--without`; both replace empty arguments with which the program is started. The output of a seed is
 * followed by a line `end` with the exit status of its process. */
#define _GNU_SOURCE
#include "kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* How many seconds of processor time a seed may take, though it needs a hundredth of a second. Then SIGPROF ends it. If a seed only
 * waits, SIGALRM ends it, after a time that is long enough even on a busy machine, where each switch between threads may take long. */
enum { PROCESSOR_TIME = 20, PATIENCE = 600, LONGEST_LINE = 4096, SEED = 2, WITHOUT = 4, WORDS = 5 };

static char line[LONGEST_LINE];

/* Whether there is another seed. */
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
    /* The name must take the same memory, however the program was called. */
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
