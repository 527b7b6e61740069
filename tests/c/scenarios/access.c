/* Logging in, and the access lists of created nodes. */

#include "test.h"

#include <pthread.h>
#include <unistd.h>

#define SECRET "s3cret-of-c"
#define ANN "digest:ann:luOTTlwHEIrsKt6w4elx6NjqkoE="
#define BOB "digest:bob:L0lKPiM+q1n/5BW0ok/Mpg9RzOI="

static zklock_options *options_of(const char *user, zklock_access access) {
    zklock_options *options;
    OK(zklock_options_new(&options));
    if (user) OK(zklock_options_add_digest(options, user, SECRET));
    OK(zklock_options_set_access(options, access));
    return options;
}

static zklock_client *client_of(zklock_options *options) {
    zklock_client *client;
    OK(zklock_client_new(servers(), options, &client));
    zklock_options_free(options);
    return client;
}

/* The text of a file of this program. */
static const char *file_with(const char *text) {
    static char name[] = "/tmp/zklock-access-XXXXXX";
    static int made;
    if (!made++) {
        int descriptor = mkstemp(name);
        CHECK(descriptor >= 0 && !close(descriptor));
    }
    FILE *file = fopen(name, "w");
    CHECK(file && fputs(text, file) >= 0 && !fclose(file));
    return name;
}

/* The last error, without the password. */
#define NAMES(part)                                    \
    do {                                               \
        SAYS(part);                                    \
        CHECK(!strstr(zklock_last_error(), "s3cret")); \
    } while (0)

/* Checks that the client may not use a lock that another has closed. */
static void is_kept_out(zklock_client *client, const char *path) {
    zklock_lock *refused = new_mutex(client, path, 0);
    zklock_hold *none = NULL;
    IS(zklock_acquire(refused, SOON_MS, &none), ZKLOCK_REFUSED);
    NAMES("lacks the right CREATE in the access list of ");
    NAMES(path);
    CHECK(!none);
    free_all(NULL, refused, client);
}

/* Checks that each may use the lock, and frees them. */
static void may_all_use(const char *path, zklock_client *const *clients, int count) {
    for (int at = 0; at < count; at++) {
        zklock_lock *lock = new_mutex(clients[at], path, 0);
        give_back(acquire(lock, SOON_MS));
        free_all(NULL, lock, clients[at]);
    }
}

TEST(two_clients_of_one_user_take_turns_and_a_stranger_is_refused) {
    const char *path = "/c-digest";
    zklock_options *of_file = options_of(NULL, ZKLOCK_ACCESS_CREATOR_ALL), *of_env = options_of(NULL, ZKLOCK_ACCESS_READ_OPEN);
    OK(zklock_options_add_digest_from_file(of_file, file_with("ann:" SECRET "\n")));
    CHECK(!setenv("ZKLOCK_TEST_AUTH", "ann:" SECRET, 1));
    OK(zklock_options_add_digest_from_env(of_env, "ZKLOCK_TEST_AUTH"));
    may_all_use(path, (zklock_client *[]){client_of(of_file), client_of(of_env)}, 2);
    is_kept_out(new_client(), path);
    is_kept_out(client_of(options_of("bob", ZKLOCK_ACCESS_CREATOR_ALL)), path);
}

TEST(what_is_no_login_is_named_and_not_quoted) {
    zklock_options *options = options_of(NULL, ZKLOCK_ACCESS_CREATOR_ALL);
    zklock_client *client = NULL;
    const char *file = file_with(SECRET);
    IS(zklock_client_new(servers(), options, &client), ZKLOCK_INVALID_ARGUMENT);
    SAYS("nobody would be the creator");
    IS(zklock_options_add_digest(options, "a:b", SECRET), ZKLOCK_INVALID_ARGUMENT);
    NAMES("colon");
    IS(zklock_options_add_digest_from_file(options, file), ZKLOCK_INVALID_ARGUMENT);
    NAMES(file);
    CHECK(!setenv("ZKLOCK_TEST_AUTH", SECRET, 1));
    IS(zklock_options_add_digest_from_env(options, "ZKLOCK_TEST_AUTH"), ZKLOCK_INVALID_ARGUMENT);
    NAMES("ZKLOCK_TEST_AUTH");
    IS(zklock_options_set_access_list(options, "world:anyone:r,sasl:billing"), ZKLOCK_INVALID_ARGUMENT);
    NAMES("entry 2 of the access list");
    IS(zklock_options_set_access_list(options, "world:anyone:r,digest:ann:" SECRET ":r"), ZKLOCK_INVALID_ARGUMENT);
    NAMES("not the password");
    OK(zklock_options_set_access_list(options, "creator-all"));
    /* This library is built as most are. */
    IS(zklock_options_add_kerberos(options, NULL, NULL), ZKLOCK_REFUSED);
    SAYS("built without Kerberos: build it with the feature kerberos");
    /* The file was good when it was added, but is gone when the client connects. */
    OK(zklock_options_add_digest_from_file(options, file_with("ann:" SECRET)));
    CHECK(!unlink(file));
    IS(zklock_client_new(servers(), options, &client), ZKLOCK_REFUSED);
    NAMES(file);
    CHECK(!client);
    zklock_options_free(options);
}

/* Counts everything that is logged, at every level. */
static pthread_mutex_t logging = PTHREAD_MUTEX_INITIALIZER;
static int lines, quotes;

static void looks_for_secrets(int32_t level, const char *message, void *context) {
    (void)level;
    (void)context;
    pthread_mutex_lock(&logging);
    lines++;
    /* The password as it is, and in base64, alone and as "ann:s3cret". */
    if (strstr(message, SECRET) || strstr(message, "czNjcmV0") || strstr(message, "OnMzY3Jl")) quotes++;
    pthread_mutex_unlock(&logging);
}

TEST(a_login_by_sasl_is_right_or_refused_and_no_secret_is_logged) {
    const char *path = "/c-sasl";
    zklock_options *given, *of_file, *of_env, *wrong;
    zklock_client *none = NULL;
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, looks_for_secrets, NULL));
    given = options_of(NULL, ZKLOCK_ACCESS_CREATOR_ALL);
    OK(zklock_options_add_sasl(given, "ann", SECRET));
    of_file = options_of(NULL, ZKLOCK_ACCESS_CREATOR_ALL);
    OK(zklock_options_add_sasl_from_file(of_file, file_with("ann:" SECRET "\n")));
    of_env = options_of("bob", ZKLOCK_ACCESS_CREATOR_ALL);
    CHECK(!setenv("ZKLOCK_TEST_AUTH", "ann:" SECRET, 1));
    OK(zklock_options_add_sasl_from_env(of_env, "ZKLOCK_TEST_AUTH"));
    may_all_use(path, (zklock_client *[]){client_of(given), client_of(of_file), client_of(of_env)}, 3);
    is_kept_out(new_client(), path);
    wrong = options_of(NULL, ZKLOCK_ACCESS_OPEN);
    /* Not with Ann's password: servers accept an unknown user with the password of the last known one. */
    OK(zklock_options_add_sasl(wrong, "bob", SECRET "-of-bob"));
    IS(zklock_client_new(servers(), wrong, &none), ZKLOCK_REFUSED);
    NAMES("SASL for \"bob\": correct the user or the password");
    OK(zklock_options_add_sasl(wrong, "ann", SECRET));
    IS(zklock_client_new(servers(), wrong, &none), ZKLOCK_INVALID_ARGUMENT);
    NAMES("logs in as one user");
    IS(zklock_options_add_sasl(wrong, "a\"b", SECRET), ZKLOCK_INVALID_ARGUMENT);
    NAMES("quotation mark");
    CHECK(!none);
    zklock_options_free(wrong);
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, NULL, NULL));
    pthread_mutex_lock(&logging);
    CHECK(lines > 20 && !quotes);
    pthread_mutex_unlock(&logging);
}

TEST(a_list_of_ones_own_is_kept_and_a_node_that_may_not_be_deleted_goes_with_its_session) {
    const char *path = "/c-list";
    zklock_client *bob = client_of(options_of("bob", ZKLOCK_ACCESS_OPEN));
    zklock_lock *elsewhere = new_mutex(bob, "/c-list-other", 0), *kept;
    zklock_hold *other = acquire(elsewhere, SOON_MS), *hold;
    zklock_options *options = options_of("ann", ZKLOCK_ACCESS_OPEN);
    OK(zklock_options_set_access_list(options, ANN ":cdrwa," BOB ":crw,world:anyone:r"));
    zklock_client *ann = client_of(options);
    zklock_lock *lock = new_mutex(ann, path, 0);
    give_back(acquire(lock, SOON_MS));
    kept = new_mutex(bob, path, 0);
    hold = acquire(kept, SOON_MS);
    IS(zklock_release(hold), ZKLOCK_REFUSED);
    NAMES("lacks the right DELETE in the access list of /c-list");
    zklock_state state;
    zklock_reason reason;
    OK(zklock_hold_state(other, &state, &reason));
    CHECK(state == ZKLOCK_STATE_LOST && reason == ZKLOCK_REASON_SESSION_CLOSED);
    /* The lock must be free at once, not only when a session has timed out. */
    CHECK(can_be_had(lock));
    free_all(hold, kept, NULL);
    free_all(other, elsewhere, bob);
    free_all(NULL, lock, ann);
}

TEST_MAIN("standalone sasl=ann:" SECRET, LISTED(two_clients_of_one_user_take_turns_and_a_stranger_is_refused),
          LISTED(a_list_of_ones_own_is_kept_and_a_node_that_may_not_be_deleted_goes_with_its_session),
          LISTED(what_is_no_login_is_named_and_not_quoted), LISTED(a_login_by_sasl_is_right_or_refused_and_no_secret_is_logged))
