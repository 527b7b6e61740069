/* Calls in the background: their descriptors, their results, their ends. (What each gives: cpp/async_calls.) */

#define _GNU_SOURCE /* gettid */
#include "test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static int descriptor_of(zklock_call *call) {
    int descriptor;
    OK(zklock_call_fd(call, &descriptor));
    return descriptor;
}

/* Checks that there is this result, that a hold can only be taken once, and that a failure stays. */
static zklock_hold *ends(zklock_call *call, zklock_status wanted) {
    zklock_hold *hold = NULL, *none = NULL;
    await_call(call);
    IS(zklock_call_hold(call, &hold), wanted);
    CHECK((hold != NULL) == (wanted == ZKLOCK_OK));
    for (int again = 0; again < 2; again++) {
        IS(zklock_call_hold(call, &none), wanted == ZKLOCK_OK ? ZKLOCK_NOT_HELD : wanted);
        if (wanted == ZKLOCK_OK) SAYS("a hold was already taken");
        IS(zklock_call_finish(call, 0, NULL), wanted);
    }
    CHECK(!none && readable(descriptor_of(call), 0));
    return KEPT(zklock_hold, hold);
}

/* Checks that a call has no result yet. */
static void goes_on(zklock_call *call) {
    CHECK(!readable(descriptor_of(call), 30));
    IS(zklock_call_finish(call, 0, NULL), ZKLOCK_PENDING);
}

/* Waits for the result, which is a number. */
static int64_t number_of(zklock_call *call) {
    int64_t number = -1;
    await_call(call);
    OK(zklock_call_finish(call, 0, &number));
    /* The result may be fetched again. */
    OK(zklock_call_finish(call, 0, NULL));
    return number;
}

/* Waits for a failure. */
static void fails_with(zklock_call *call, zklock_status status) {
    int64_t number = -1;
    await_call(call);
    IS(zklock_call_finish(call, 0, &number), status);
    CHECK(number == -1);
}

TEST(a_started_acquire_is_pending_then_ready_and_fetched_once) {
    rivals all = new_rivals();
    zklock_hold *first = acquire(all.others, SOON_MS), *hold = NULL;
    zklock_call *call = start_acquire(all.lock, ZKLOCK_FOREVER);
    wait_for_contenders(all.path, 2);
    goes_on(call);
    for (int again = 0; again < 3; again++) IS(zklock_call_hold(call, &hold), ZKLOCK_PENDING);
    CHECK(!hold);
    OK(zklock_release(first));
    /* The hold outlives its call. */
    hold = ends(call, ZKLOCK_OK);
    becomes_valid(hold);
    CHECK(token_of(hold) > token_of(first));
    give_back(hold);
}

TEST(a_grant_that_is_freed_unfetched_is_released) {
    rivals all = new_rivals();
    zklock_call *call = start_acquire(all.lock, SOON_MS);
    await_call(call);
    zklock_call *behind = start_acquire(all.lock, SOON_MS);
    wait_for_contenders(all.path, 2);
    goes_on(behind);
    OK(zklock_call_cancel(call));
    zklock_call_free(call);
    give_back(ends(behind, ZKLOCK_OK));
    CHECK(stats_of(all.client).losses == 0);
}

TEST(a_grant_that_is_lost_before_it_is_fetched_is_told_and_not_delivered) {
    rivals all = new_rivals();
    zklock_call *call = start_acquire(all.lock, SOON_MS);
    zklock_hold *hold = NULL;
    await_call(call);
    OK(zklock_call_finish(call, 0, NULL));
    ground("delete %s/%.90s", all.path, ground("children %s", all.path));
    EVENTUALLY(stats_of(all.client).losses == 1);
    for (int again = 0; again < 2; again++) {
        FAILS(zklock_call_hold(call, &hold), ZKLOCK_LOST, "node");
        IS(zklock_call_finish(call, 0, NULL), ZKLOCK_LOST);
    }
    CHECK(!hold && readable(descriptor_of(call), 0));
}

TEST(a_wait_needs_no_descriptor_before_one_is_asked_for) {
    rivals all = new_rivals();
    zklock_hold *hold = acquire(all.lock, SOON_MS);
    struct rlimit limit, none;
    int descriptor = -7, free = dup(0);
    CHECK(free >= 0 && !close(free));
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
    none = limit;
    none.rlim_cur = (rlim_t)free;
    CHECK(!setrlimit(RLIMIT_NOFILE, &none));
    zklock_call *waits = start_acquire(all.lock, ZKLOCK_FOREVER);
    zklock_call *call = MADE(zklock_call, zklock_hold_confirm_start(hold, &made));
    IS(zklock_call_fd(waits, &descriptor), ZKLOCK_REFUSED);
    IS(zklock_call_fd(call, &descriptor), ZKLOCK_REFUSED);
    FAILS(zklock_client_fd(all.client, &descriptor), ZKLOCK_REFUSED, "raise the limit of open files");
    CHECK(descriptor == -7);
    /* The calls go on without a descriptor. */
    OK(zklock_call_finish(call, SOON_MS, NULL));
    call = MADE(zklock_call, zklock_release_start(hold, &made));
    OK(zklock_call_finish(waits, SOON_MS, NULL));
    zklock_hold *next = MADE(zklock_hold, zklock_call_hold(waits, &made));
    OK(zklock_call_finish(call, SOON_MS, NULL));
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    /* A descriptor that is made late is readable at once, or is not, just like one that was made early. */
    CHECK(readable(descriptor_of(waits), 0) && readable(descriptor_of(call), 0));
    CHECK(fcntl(descriptor_of(call), F_GETFL) & O_NONBLOCK);
    give_back(next);
}

TEST(a_call_copies_what_it_is_given_and_gives_only_what_is_its_own) {
    rivals all = new_rivals();
    zklock_hold *hold = acquire(all.lock, SOON_MS), *none;
    zklock_member *member;
    char written[96];
    int32_t versions[] = {-1, -1};
    snprintf(written, sizeof written, "%s-written", all.path);
    zklock_write writes[] = {{.kind = ZKLOCK_WRITE_CREATE, .path = written, .data = "1", .length = 1},
                             {.kind = ZKLOCK_WRITE_SET, .path = written, .data = "2", .length = 1, .version = 0}};
    zklock_call *call = MADE(zklock_call, zklock_hold_commit_start(hold, writes, 2, &made));
    memset(writes, 0xFF, sizeof writes);
    await_call(call);
    FAILS(zklock_call_hold(call, &none), ZKLOCK_INVALID_ARGUMENT, "does not give a hold");
    IS(zklock_call_member(call, &member), ZKLOCK_INVALID_ARGUMENT);
    IS(zklock_call_contenders(call, NULL, NULL), ZKLOCK_INVALID_ARGUMENT);
    OK(zklock_call_versions(call, versions));
    CHECK(versions[0] == 0 && versions[1] == 1 && number_of(call) == 2);
    CHECK(number_of(MADE(zklock_call, zklock_release_start(hold, &made))) == 0);
    IS(zklock_release(hold), ZKLOCK_NOT_HELD);
}

static void *releases_in_vain(void *hold) {
    fails_with(MADE(zklock_call, zklock_release_start(hold, &made)), ZKLOCK_NOT_OWNER);
    return NULL;
}

TEST(a_failure_comes_with_the_result) {
    zklock_lock *lock = new_mutex(new_client(), fresh_path(), IS_REENTRANT);
    zklock_hold *hold = acquire(lock, SOON_MS), *inner = acquire(lock, SOON_MS);
    zklock_write write = {.kind = ZKLOCK_WRITE_DELETE, .path = "/there/is/none", .version = ZKLOCK_ANY_VERSION};
    zklock_call *call = MADE(zklock_call, zklock_hold_commit_start(hold, &write, 1, &made));
    await_call(call);
    IS(zklock_call_finish(call, 0, NULL), ZKLOCK_CONFLICT);
    CHECK(zklock_last_conflict() == 0);
    SAYS("zklock_call_finish");
    IS(zklock_call_versions(call, NULL), ZKLOCK_CONFLICT);
    join_thread(start_thread(releases_in_vain, hold));
    /* The first release of a reentrant lock waits for nothing. */
    call = MADE(zklock_call, zklock_release_start(inner, &made));
    CHECK(readable(descriptor_of(call), 0) && number_of(call) == 0);
    fails_with(MADE(zklock_call, zklock_release_start(inner, &made)), ZKLOCK_NOT_HELD);
    call = MADE(zklock_call, zklock_hold_wait_lost_start(hold, &made));
    goes_on(call);
    ground("delete %s", node_of(hold));
    CHECK(number_of(call) == ZKLOCK_REASON_NODE_DELETED);
    fails_with(MADE(zklock_call, zklock_hold_confirm_start(hold, &made)), ZKLOCK_LOST);
    fails_with(MADE(zklock_call, zklock_release_start(hold, &made)), ZKLOCK_LOST);
}

static pid_t finishing;

static void *finishes(void *call) {
    __atomic_store_n(&finishing, gettid(), __ATOMIC_SEQ_CST);
    return (void *)(intptr_t)zklock_call_finish(call, ZKLOCK_FOREVER, NULL);
}

static int is_asleep(pid_t thread) {
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *stat = fopen(path, "re");
    int seen = stat && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1;
    if (stat) fclose(stat);
    return seen && state == 'S';
}

/* A thread that waits for a call. */
static thread finish(zklock_call *call) {
    __atomic_store_n(&finishing, 0, __ATOMIC_SEQ_CST);
    thread waiter = start_thread(finishes, call);
    EVENTUALLY(is_asleep(__atomic_load_n(&finishing, __ATOMIC_SEQ_CST)));
    return waiter;
}

TEST(a_thread_waits_for_a_call_until_it_has_a_result_or_is_cancelled_or_freed) {
    rivals all = new_rivals();
    zklock_hold *hold = acquire(all.others, SOON_MS);
    zklock_call *call = start_acquire(all.lock, ZKLOCK_FOREVER);
    IS(zklock_call_finish(call, 1, NULL), ZKLOCK_PENDING);
    thread waiter = finish(call);
    OK(zklock_call_cancel(call));
    IS(join_status(waiter), ZKLOCK_INTERRUPTED);

    call = start_acquire(all.lock, ZKLOCK_FOREVER);
    zklock_call *loss = MADE(zklock_call, zklock_hold_wait_lost_start(hold, &made));
    waiter = finish(call);
    give_back(hold);
    OK(join_status(waiter));
    fails_with(loss, ZKLOCK_NOT_HELD);
    hold = ends(call, ZKLOCK_OK);

    call = start_acquire(all.others, ZKLOCK_FOREVER);
    waiter = finish(call);
    zklock_call_free(call);
    zklock_status freed = join_status(waiter);
    CHECK(freed == ZKLOCK_INTERRUPTED || freed == ZKLOCK_INVALID_HANDLE);
    give_back(hold);
}

TEST(what_is_freed_or_cancelled_leaves_nothing_behind_and_what_has_begun_goes_on) {
    rivals all = new_rivals();
    zklock_double_barrier *alone = new_double_barrier(all.client, all.path, 1);
    /* A member that nobody has fetched leaves. */
    zklock_call *call = MADE(zklock_call, zklock_double_barrier_enter_start(alone, SOON_MS, &made));
    await_call(call);
    CHECK(contenders_at(all.path) > 0);
    zklock_call_free(call);
    wait_for_contenders(all.path, 0);
    zklock_hold *hold = acquire(all.lock, SOON_MS);
    zklock_call_free(MADE(zklock_call, zklock_release_start(hold, &made)));
    zklock_hold_free(hold);
    wait_for_contenders(all.path, 0);
    hold = acquire(all.lock, SOON_MS);
    call = MADE(zklock_call, zklock_client_close_start(all.client, &made));
    OK(zklock_call_cancel(call));
    zklock_call_free(call);
    wait_for_contenders(all.path, 0);
    CHECK(state_of(hold) == ZKLOCK_STATE_LOST);
}

static void *releases(void *hold) { return (void *)(intptr_t)zklock_release(hold); }

TEST(what_a_started_acquire_gets_belongs_to_no_thread) {
    rivals all = new_rivals();
    zklock_lock *lock = new_mutex(all.client, all.path, IS_REENTRANT);
    zklock_hold *own = acquire(lock, SOON_MS), *hold, *none;
    /* This thread holds the lock, and starts another wait: that is neither a deadlock nor an inner hold. */
    zklock_call *call = start_acquire(lock, SOON_MS);
    wait_for_contenders(all.path, 2);
    IS(zklock_call_hold(call, &hold), ZKLOCK_PENDING);
    OK(zklock_release(own));
    hold = hold_of(call);
    CHECK(token_of(hold) > token_of(own));
    /* The hold does not belong to the thread that fetched it. */
    IS(zklock_acquire(lock, 0, &none), ZKLOCK_TIMEOUT);
    OK(join_status(start_thread(releases, hold)));
}

TEST_MAIN(STANDALONE " tick=200")
