/* zklock_client_guard: a killed process frees its locks at once, and a living one never loses its session because of that. */

#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The session timeout, longer than any test, because SOON_MS limits all waits. */
#define LONG_MS 100000
#define STOPS 200
#define FORKS 200

/* A child that holds the lock under a guardian, and executes orders. */
typedef struct {
    pid_t id;
    int orders, answers;
} holder;

/* The orders for a holder: report whether it holds the lock, fork a child that stays, or fork children that end. */
enum { STATE = 's', STAY = 'f', END = 'e' };

static pid_t lasting_child(void) {
    pid_t child = fork();
    if (child) return child;
    /* The child has all descriptors of its parent, because it is not exec'd. */
    for (;;) pause();
}

static void hold_on(const char *path, int orders, int answers) {
    zklock_client *client = client_with(servers(), LONG_MS, 0);
    OK(zklock_client_guard(client, NULL));
    zklock_hold *hold = acquire(new_mutex(client, path, 0), SOON_MS);
    char order = STATE;
    do {
        pid_t answer = 0;
        if (order == STATE) answer = state_of(hold) == ZKLOCK_STATE_HELD;
        if (order == STAY) answer = lasting_child();
        for (int at = 0; order == END && at < FORKS; at++) {
            answer = fork();
            if (!answer) _exit(0);
            CHECK(waitpid(answer, NULL, 0) == answer);
        }
        CHECK(write(answers, &answer, sizeof answer) == sizeof answer);
    } while (read(orders, &order, 1) == 1);
    _exit(0);
}

static pid_t answer_of(const holder *holder) {
    pid_t answer;
    CHECK(readable(holder->answers, SOON_MS));
    CHECK(read(holder->answers, &answer, sizeof answer) == sizeof answer);
    return answer;
}

static pid_t told(const holder *holder, char order) {
    CHECK(write(holder->orders, &order, 1) == 1);
    return answer_of(holder);
}

static holder new_holder(const char *path) {
    int orders[2], answers[2];
    CHECK(!pipe(orders) && !pipe(answers));
    holder holder = {fork(), orders[1], answers[0]};
    CHECK(holder.id >= 0);
    if (!holder.id) {
        close(orders[1]);
        hold_on(path, orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    CHECK(answer_of(&holder) == 1);
    return holder;
}

static void ends(holder *holder, int signal) {
    if (signal) CHECK(!kill(holder->id, signal));
    close(holder->orders);
    CHECK(waitpid(holder->id, NULL, 0) == holder->id);
    close(holder->answers);
}

/* Checks that the next client has the lock long before the previous session could time out. */
static void is_free_at_once(const char *path) {
    zklock_client *client = client_with(servers(), LONG_MS, 0);
    zklock_lock *lock = new_mutex(client, path, 0);
    zklock_hold *hold = acquire(lock, SOON_MS);
    CHECK(contenders_at(path) == 1);
    give_back(hold);
    zklock_lock_free(lock);
    zklock_client_free(client);
}

/* The number of children of all threads of this process. */
static int children(void) {
    int count = 0;
    DIR *threads = opendir("/proc/self/task");
    CHECK(threads);
    for (struct dirent *entry; (entry = readdir(threads));) {
        char name[300];
        snprintf(name, sizeof name, "/proc/self/task/%s/children", entry->d_name);
        FILE *file = fopen(name, "r");
        for (int child; file && fscanf(file, "%d", &child) == 1;) count++;
        if (file) fclose(file);
    }
    closedir(threads);
    return count;
}

TEST(a_killed_process_frees_its_lock_at_once_whatever_its_child_has_inherited) {
    const char *path = fresh_path();
    holder holder = new_holder(path);
    pid_t child = told(&holder, STAY);
    CHECK(child > 0);
    ends(&holder, SIGKILL);
    is_free_at_once(path);
    CHECK(!kill(child, SIGKILL));
}

TEST(a_living_process_keeps_its_session_however_often_it_stops_or_forks) {
    const char *path = fresh_path();
    holder holder = new_holder(path);
    for (int at = 0; at < STOPS; at++) {
        int status;
        CHECK(!kill(holder.id, SIGSTOP));
        CHECK(waitpid(holder.id, &status, WUNTRACED) == holder.id && WIFSTOPPED(status));
        CHECK(!kill(holder.id, SIGCONT));
    }
    CHECK(told(&holder, END) > 0);
    pid_t child = told(&holder, STAY);
    CHECK(!kill(child, SIGKILL));
    CHECK(told(&holder, STATE) == 1);
    CHECK(contenders_at(path) == 1);
    ends(&holder, 0);
    is_free_at_once(path);
}

TEST(the_guardian_ends_with_its_client) {
    int before = children();
    zklock_client *client = client_with(servers(), LONG_MS, 0);
    OK(zklock_client_guard(client, NULL));
    CHECK(children() == before + 1);
    OK(zklock_client_close(client));
    CHECK(children() == before);
    zklock_client_free(client);

    /* A freed client is guarded as long as the objects that were made from it. */
    client = client_with(servers(), LONG_MS, 0);
    OK(zklock_client_guard(client, NULL));
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    zklock_client_free(client);
    CHECK(children() == before + 1);
    zklock_lock_free(lock);
    EVENTUALLY(children() == before);
}

TEST(a_client_has_one_guardian_and_connects_first) {
    zklock_options *options;
    zklock_client *client;
    OK(zklock_options_new(&options));
    OK(zklock_options_set_connect_timeout(options, 300));
    OK(zklock_client_new_lazy("127.0.0.1:1", options, &client));
    IS(zklock_client_guard(client, NULL), ZKLOCK_UNREACHABLE);
    zklock_client_free(client);
    OK(zklock_client_new_lazy(servers(), options, &client));
    zklock_options_free(options);
    OK(zklock_client_guard(client, "zklock"));
    CHECK(stats_of(client).session_id);
    IS(zklock_client_guard(client, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("zklock_client_guard: this client has a guardian already");
    OK(zklock_client_close(client));
    IS(zklock_client_guard(client, NULL), ZKLOCK_CLOSED);
    zklock_client_free(client);
}

TEST(a_command_that_is_none_is_refused_with_what_to_do) {
    zklock_client *client = client_with(servers(), LONG_MS, 0);
    int before = children();
    IS(zklock_client_guard(client, "/nowhere/zklock"), ZKLOCK_INVALID_ARGUMENT);
    SAYS("there is no program \"/nowhere/zklock\": install the command zklock (cargo install --path zklock-cli)");
    IS(zklock_client_guard(client, "/dev/null"), ZKLOCK_INVALID_ARGUMENT);
    SAYS("this user may not execute \"/dev/null\"");
    IS(zklock_client_guard(client, "true"), ZKLOCK_INVALID_ARGUMENT);
    SAYS("it ended at once: \"true\" is to be the command zklock");
    char *path = strdup(getenv("PATH"));
    CHECK(!setenv("PATH", "/nowhere:/tmp", 1));
    IS(zklock_client_guard(client, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("there is no \"zklock\" in the directories of PATH (\"/nowhere:/tmp\")");
    CHECK(!setenv("PATH", path, 1));
    free(path);
    CHECK(children() == before);
    OK(zklock_client_guard(client, NULL));
    OK(zklock_client_close(client));
    zklock_client_free(client);
}

TEST_MAIN("standalone max-session=100000", LISTED(a_killed_process_frees_its_lock_at_once_whatever_its_child_has_inherited),
          LISTED(a_living_process_keeps_its_session_however_often_it_stops_or_forks), LISTED(the_guardian_ends_with_its_client),
          LISTED(a_client_has_one_guardian_and_connects_first), LISTED(a_command_that_is_none_is_refused_with_what_to_do))
