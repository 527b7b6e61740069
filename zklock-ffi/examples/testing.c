/* A test of code that uses locks, on an in-memory server: testing [PROGRAM]
 *
 * PROGRAM is zklock-testkit, which `cargo install --path zklock-testkit` installs. However this test ends, the program
 * ends too, because its input ends.
 */

#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zklock.h>

/* -- The server -- */

static char hosts[64];
static FILE *orders, *answers;
static pid_t server;

static void fail(const char *what) {
    fprintf(stderr, "failed: %s (%s)\n", what, zklock_last_error());
    exit(1);
}

static void server_start(const char *program) {
    int to[2], from[2];
    if (pipe(to) || pipe(from) || (server = fork()) < 0) fail("no pipe, or no process");
    if (server == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[0]), close(to[1]), close(from[0]), close(from[1]);
        execlp(program, program, (char *)NULL);
        _exit(127);
    }
    close(to[0]), close(from[1]);
    /* The server ends when no process has the other end open any more, so no other child may inherit it. */
    fcntl(to[1], F_SETFD, FD_CLOEXEC), fcntl(from[0], F_SETFD, FD_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
    orders = fdopen(to[1], "w"), answers = fdopen(from[0], "r");
    if (!orders || !answers || !fgets(hosts, sizeof hosts, answers)) fail("the server does not start: is it installed?");
    hosts[strcspn(hosts, "\n")] = 0;
}

/* Gives an order that is answered in one line, such as "expire all". `zklock-testkit --help` lists them. */
static void server_do(const char *order) {
    char *answer = NULL;
    size_t size = 0;
    fprintf(orders, "%s\n", order);
    fflush(orders);
    if (getline(&answer, &size, answers) < 0 || strncmp(answer, "ok", 2)) {
        fprintf(stderr, "the server says: %s\n", answer && *answer ? answer : "nothing");
        fail(order);
    }
    free(answer);
}

static void server_end(void) {
    fclose(orders), fclose(answers);
    waitpid(server, NULL, 0);
}

/* -- The test -- */

int main(int count, char **words) {
    zklock_client *client;
    zklock_lock *lock;
    zklock_hold *hold;
    zklock_reason reason;
    server_start(count > 1 ? words[1] : "zklock-testkit");

    if (zklock_client_new(hosts, NULL, &client)) fail("no client");
    if (zklock_mutex_new(client, "/locks/report", NULL, &lock)) fail("no lock");
    if (zklock_acquire(lock, 5000, &hold)) fail("not acquired");
    server_do("wait /locks/report 1 5");

    /* What does my program do when it loses the lock? This is where it would find out. */
    server_do("expire all");
    if (zklock_hold_wait_lost(hold, 5000, &reason)) fail("not told");
    zklock_hold_free(hold);

    /* The reply is lost. The lock is still acquired, and we have one node, not two. */
    server_do("fault cut-before-reply create below=/locks/report");
    if (zklock_acquire(lock, 5000, &hold)) fail("not acquired again");
    server_do("wait /locks/report 1 5");
    if (zklock_release(hold)) fail("not released");
    server_do("wait /locks/report 0 5");

    zklock_hold_free(hold);
    zklock_lock_free(lock);
    zklock_client_free(client);
    server_end();
    puts("passed");
    return 0;
}
