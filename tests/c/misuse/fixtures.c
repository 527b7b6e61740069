/* Handles of every kind in every state in which a program can misuse them. */

#include "matrix.h"

/* A session timeout longer than any debugging session: only misuse may cause a loss here. */
#define PATIENT_MS 60000

#define NAMED_PATH "/misuse/named"

/* Objects that live as long as the test, one of each kind, and the last of all that do. The first client owns them, the second holds the lock that is busy. */
static void *bystanders[KINDS];
static const void *last_to_stay;
static zklock_client *client, *other_client;
static zklock_lock *busy_lock;
static zklock_hold *busy_hold, *lost_hold;
static char busy_path[64];
static uint64_t token_before;
static int pending_before;
static unsigned char *on_stack, *heap, on_static[WILD_BYTES];

void free_made(void) { free_kept(last_to_stay); }

static zklock_hold *make_hold(zklock_client *of, int is_reentrant) {
    return acquire(new_mutex(of, fresh_path(), is_reentrant), SOON_MS);
}

static zklock_call *make_acquire(zklock_client *of, const char *path) {
    return start_acquire(new_mutex(of, path, 0), ZKLOCK_FOREVER);
}

static zklock_observer *make_observer(zklock_client *of) {
    return MADE(zklock_observer, zklock_observe(new_mutex(of, fresh_path(), 0), &made));
}

static zklock_member *make_member(zklock_client *of, const char *path) {
    return MADE(zklock_member, zklock_double_barrier_enter(new_double_barrier(of, path, 1), SOON_MS, &made));
}

static zklock_hold *make_run(zklock_client *of, const char *path) {
    return MADE(zklock_hold, zklock_job_begin(new_job(of, path), SOON_MS, &made));
}

static void *make(kind kind, zklock_client *of) {
    switch (kind) {
    case OPTIONS: return options_with(0, 0);
    case CLIENT: return of;
    case LOCK: return new_mutex(of, fresh_path(), 0);
    case HOLD: return make_hold(of, 0);
    case OBSERVER: return make_observer(of);
    case BARRIER: return new_barrier(of, fresh_path());
    case DOUBLE_BARRIER: return new_double_barrier(of, fresh_path(), 1);
    case MEMBER: return make_member(of, fresh_path());
    case JOB: return new_job(of, fresh_path());
    /* It keeps running. */
    case CALL: return make_acquire(of, busy_path);
    case KINDS: break;
    }
    abort();
}

static zklock_client *make_client(void) { return client_with(servers(), PATIENT_MS, 0); }

static void nobody(const zklock_contender *holder, void *context) {
    (void)context;
    failed(__FILE__, __LINE__, "%s holds it", holder->node);
}

/* An observer without a new report. */
static zklock_observer *told_observer(void) {
    zklock_observer *result = make_observer(client);
    OK(zklock_observer_next(result, SOON_MS, nobody, NULL));
    return result;
}

void make_bystanders(unsigned char *stack) {
    on_stack = stack;
    client = make_client();
    other_client = make_client();
    snprintf(busy_path, sizeof busy_path, "%s", fresh_path());
    busy_lock = new_mutex(other_client, busy_path, 0);
    busy_hold = acquire(busy_lock, SOON_MS);
    for (int kind = 0; kind < KINDS; kind++) {
        bystanders[kind] = kind == OBSERVER ? (void *)told_observer() : make((enum kind)kind, client);
    }
    zklock_lock_free(bystanders[LOCK]);
    bystanders[LOCK] = new_mutex(client, busy_path, 0);
    zklock_client *closing = make_client();
    lost_hold = make_hold(closing, 0);
    OK(zklock_client_close(closing));
    token_before = token_of(bystanders[HOLD]);
    OK(zklock_call_fd(bystanders[CALL], &pending_before));
    /* Its events are asked for. */
    int descriptor;
    OK(zklock_client_fd(client, &descriptor));
    heap = malloc(WILD_BYTES);
    CHECK(heap);
    memset(on_stack, 0x5A, WILD_BYTES);
    memset(heap, 0x5A, WILD_BYTES);
    memset(on_static, 0x5A, sizeof on_static);
    /* From here on, objects are made for one cell. */
    last_to_stay = last_kept();
}

int has_its_event(zklock_call *call) {
    int descriptor;
    zklock_event event;
    OK(zklock_call_cancel(call));
    OK(zklock_client_fd(client, &descriptor));
    while (readable(descriptor, SOON_MS)) {
        OK(zklock_client_next_event(client, &event));
        if (event.kind == ZKLOCK_EVENT_CALL && event.call == call) return 1;
    }
    return 0;
}

static int is_alive(const zklock_hold *of) {
    zklock_state state = state_of(of);
    /* On a busy machine a heartbeat may be late. */
    return state == ZKLOCK_STATE_HELD || state == ZKLOCK_STATE_AT_RISK;
}

const char *harm_of_bystanders(void) {
    zklock_stats stats;
    int descriptor;
    zklock_hold *hold = bystanders[HOLD];
    if (zklock_options_set(bystanders[OPTIONS], "", "") != ZKLOCK_INVALID_ARGUMENT) return "the options";
    if (zklock_client_stats(client, &stats) || stats.losses) return "the client";
    if (strcmp(zklock_lock_path(bystanders[LOCK]), busy_path)) return "the lock";
    if (zklock_hold_token(hold) != token_before || !is_alive(hold)) return "the hold";
    if (zklock_observer_next(bystanders[OBSERVER], 0, nobody, NULL) != ZKLOCK_TIMEOUT) return "the observer";
    if (zklock_call_fd(bystanders[CALL], &descriptor) || descriptor != pending_before) return "the call";
    if (readable(descriptor, 0)) return "what the call waits for";
    if (zklock_member_loss(bystanders[MEMBER])) return "the member of a barrier";
    return is_alive(busy_hold) ? NULL : "the hold of another client";
}

void free_bystanders(void) {
    free_made();
    OK(zklock_release(bystanders[HOLD]));
    OK(zklock_release(busy_hold));
    OK(zklock_client_close(client));
    OK(zklock_client_close(other_client));
    free(heap);
}

zklock_lock *bystander_lock(void) { return bystanders[LOCK]; }

zklock_hold *closed_hold(void) { return lost_hold; }

static void *wild(int64_t number) {
    const uintptr_t all[] = {
        (uintptr_t)on_stack, (uintptr_t)heap, (uintptr_t)on_static, (uintptr_t)wild, 1, 8, 4096, UINTPTR_MAX,
        (uintptr_t)1 << 63,
    };
    return (void *)all[number];
}

int wild_places_are_untouched(void) {
    for (size_t at = 0; at < WILD_BYTES; at++) {
        if (on_stack[at] != 0x5A || heap[at] != 0x5A || on_static[at] != 0x5A) return 0;
    }
    return 1;
}

/* A call that has ended. */
static zklock_call *done(zklock_call *call) {
    await_call(call);
    return call;
}

static zklock_call *commits(void) {
    static const zklock_write writes[] = {
        {.kind = ZKLOCK_WRITE_CREATE, .path = "/misuse-written"},
        {.kind = ZKLOCK_WRITE_DELETE, .path = "/misuse-written", .version = ZKLOCK_ANY_VERSION},
    };
    return MADE(zklock_call, zklock_hold_commit_start(make_hold(client, 0), writes, 2, &made));
}

/* A client that has an event about its connection. */
static zklock_client *followed(zklock_client *of) {
    int descriptor;
    OK(zklock_client_fd(of, &descriptor));
    CHECK(readable(descriptor, SOON_MS));
    return of;
}

/* Objects on which a wait is in vain. */
static void *make_busy(kind kind) {
    char path[64];
    zklock_barrier *set;
    snprintf(path, sizeof path, "%s", fresh_path());
    switch (kind) {
    case LOCK: return new_mutex(client, busy_path, 0);
    case BARRIER:
        OK(zklock_barrier_set(set = new_barrier(client, path), NULL));
        return set;
    case DOUBLE_BARRIER: return new_double_barrier(client, path, 2);
    case MEMBER:
        make_member(other_client, path);
        return make_member(client, path);
    case JOB:
        make_run(other_client, path);
        return new_job(client, path);
    default: abort();
    }
}

static zklock_hold *wanted_hold(void) {
    zklock_hold *result = make_hold(client, 0);
    make_acquire(other_client, zklock_hold_path(result));
    OK(zklock_hold_wait_wanted(result, SOON_MS));
    return result;
}

/* zklock-ffi/src/handle.rs documents the bits of a handle. */
static void *flipped(kind kind, int bit) { return (void *)((uintptr_t)bystanders[kind] ^ (uintptr_t)1 << bit); }

static void *in_state(source state, kind kind) {
    void *result;
    switch (state) {
    case LIVE: return make(kind, client);
    case FRESH: return make_client();
    case FOLLOWED: return followed(make_client());
    case REENTRANT: return make_hold(client, IS_REENTRANT);
    case BUSY: return make_busy(kind);
    case NAMED: return new_mutex(client, NAMED_PATH, 0);
    case TOLD: return told_observer();
    case WANTED: return wanted_hold();
    case GRANTED: return done(make_acquire(client, fresh_path()));
    case BEGUN: return make_run(client, fresh_path());
    case ENTERED: {
        zklock_double_barrier *alone = new_double_barrier(client, fresh_path(), 1);
        return done(MADE(zklock_call, zklock_double_barrier_enter_start(alone, SOON_MS, &made)));
    }
    case WRITTEN: return done(commits());
    case SHOWN: return done(MADE(zklock_call, zklock_contenders_start(bystanders[LOCK], &made)));
    case FETCHED:
        hold_of(result = make_acquire(client, fresh_path()));
        return result;
    case CANCELLED:
        result = make_acquire(client, busy_path);
        OK(zklock_call_cancel(result));
        return result;
    case LEFT:
        result = make_member(client, fresh_path());
        OK(zklock_member_leave(result, SOON_MS));
        return result;
    case RELEASED:
        result = make_hold(client, 0);
        OK(zklock_release(result));
        return result;
    case CLOSED: {
        zklock_client *closing = make_client();
        result = make(kind, closing);
        OK(zklock_client_close(closing));
        /* The wait ends just after. */
        return kind == CALL ? done(result) : kind == CLIENT ? followed(result) : result;
    }
    case FREED:
    case REPLACED:
        result = make(kind, kind == CLIENT ? make_client() : client);
        free_handle(kind, result);
        if (state == REPLACED) make(kind, kind == CLIENT ? make_client() : client);
        return result;
    case OTHER_INDEX: return flipped(kind, 24);
    case OTHER_AGE: return flipped(kind, 40);
    case UNMARKED: return flipped(kind, 63);
    case TWICE_MARKED: return flipped(kind, 62);
    default: abort();
    }
}

/* An array with valid locks, followed by an invalid one. */
static void *array_of_locks(locks wrong) {
    static void *array[3];
    void *good = make(LOCK, client);
    void *other = good;
    switch (wrong) {
    case GOOD_LOCKS: other = make(LOCK, client); break;
    case ONE_IS_NULL: other = NULL; break;
    case ONE_IS_FREED: zklock_lock_free(other = make(LOCK, client)); break;
    case ONE_IS_A_HOLD: other = bystanders[HOLD]; break;
    case ONE_IS_ANOTHERS: other = busy_lock; break;
    case ONE_IS_TWICE: break;
    case ONE_HAS_NO_QUEUE: other = new_lock(zklock_single_node_new, client, fresh_path()); break;
    }
    array[0] = good;
    array[1] = other;
    return array;
}

/* Two clients, or a client and something else. */
static void *array_of_clients(source second) {
    static void *array[3];
    array[0] = client;
    array[1] = second == LIVE ? other_client : second == NULL_POINTER ? NULL : in_state(second, CLIENT);
    return array;
}

/* Names for two clients, the second of which may be wrong. */
static void *array_of_names(int64_t second) {
    static const char *const seconds[] = {"billing", "orders", "\377", NULL}, *array[3] = {"orders"};
    array[1] = seconds[second];
    return (void *)array;
}

/* A path in a folder of its own. */
static char *in_new_folder(const char *name) {
    static char paths[2][512];
    char *path = paths[!strcmp(name, "staged")];
    snprintf(path, sizeof paths[0] - sizeof "/staged", "%s/XXXXXX", getenv("ZKLOCK_FOLDER"));
    CHECK(mkdtemp(path));
    strcat(strcat(path, "/"), name);
    return path;
}

static char *staged(void) {
    char *path = in_new_folder("staged");
    FILE *made = fopen(path, "w");
    CHECK(made && !fclose(made));
    return path;
}

value value_of(argument argument) {
    static char path[64];
    static uint64_t room[128];
    value value = {NULL, argument.number};
    switch (argument.from) {
    case NULL_POINTER:
    case NUMBER:
    case OUTPUT: break;
    case WILD: value.pointer = wild(argument.number); break;
    case TEXT: value.pointer = (void *)(uintptr_t)texts[argument.number]; break;
    case HOSTS: value.pointer = (void *)(uintptr_t)servers(); break;
    case PATH:
        snprintf(path, sizeof path, "%s", fresh_path());
        value.pointer = path;
        break;
    case NODE:
        value.pointer = (char *)(uintptr_t)NAMED_PATH "/_c_01234567-89ab-4cde-8f01-23456789abcd-lock-0000000001";
        break;
    case LOCKS: value.pointer = array_of_locks((locks)argument.number); break;
    case CLIENTS: value.pointer = array_of_clients((source)argument.number); break;
    case NAMES: value.pointer = array_of_names(argument.number); break;
    case STAGED: value.pointer = staged(); break;
    case TARGET: value.pointer = in_new_folder("target"); break;
    case WRITES: value.pointer = (void *)(uintptr_t)arrays[argument.number]; break;
    case NOT_ALIGNED: value.pointer = (char *)(uintptr_t)arrays[0] + 1; break;
    case ROOM: value.pointer = room; break;
    case CALLBACK:
    case CONTEXT: value.pointer = on_static; break;
    case BYSTANDER: value.pointer = bystanders[argument.number]; break;
    default: value.pointer = in_state(argument.from, (kind)argument.number);
    }
    return value;
}
