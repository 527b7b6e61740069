/* Locks over TLS, and each way in which it can be refused. The library may have been built without it. */

#include "test.h"

#include <unistd.h>

/* The TLS addresses of the servers and the certificate files, as reported by `ground`. */
static char hosts[256], authority[256], certificate[256], key[256], stranger[256];

static void ask_for_files(void) {
    const char *said = ground("tls");
    if (sscanf(said, "%255s %255s %255s %255s %255s", hosts, authority, certificate, key, stranger) != 5) {
        failed(__FILE__, __LINE__, "what is this: %s", said);
    }
}

static zklock_options *options_with(const char *trusted, const char *shown, const char *shown_key) {
    zklock_options *options;
    OK(zklock_options_new(&options));
    OK(zklock_options_set_connect_timeout(options, 3000));
    OK(zklock_options_set_tls(options, trusted, shown, shown_key));
    return options;
}

static void refused_with(zklock_options *options, const char *sentence) {
    zklock_client *client = NULL;
    IS(zklock_client_new(hosts, options, &client), ZKLOCK_UNREACHABLE);
    SAYS(sentence);
    CHECK(!client);
    zklock_options_free(options);
}

TEST(a_lock_is_held_and_lost_over_tls) {
    zklock_options *options;
    zklock_client *client;
    zklock_lock *lock;
    zklock_hold *hold;
    zklock_reason reason;
    const char *node;
    ask_for_files();
    options = options_with(authority, certificate, key);
    OK(zklock_client_new(hosts, options, &client));
    zklock_options_free(options);
    lock = new_mutex(client, fresh_path(), 0);
    hold = acquire(lock, SOON_MS);
    CHECK(valid_for(hold) > 0);
    OK(zklock_release(hold));
    zklock_hold_free(hold);
    hold = acquire(lock, SOON_MS);
    OK(zklock_hold_node(hold, &node));
    ground("delete %s", node);
    OK(zklock_hold_wait_lost(hold, SOON_MS, &reason));
    CHECK(reason == ZKLOCK_REASON_NODE_DELETED);
    free_all(hold, lock, client);
}

TEST(who_is_not_to_be_trusted_is_named) {
    ask_for_files();
    refused_with(options_with(stranger, certificate, key), "none of the given authorities");
    refused_with(options_with(authority, NULL, NULL), "client certificate");
}

TEST(files_that_will_not_do_are_named_at_once) {
    zklock_options *options;
    ask_for_files();
    OK(zklock_options_new(&options));
    IS(zklock_options_set_tls(options, NULL, NULL, NULL), ZKLOCK_INVALID_ARGUMENT);
    IS(zklock_options_set_tls(options, "/no/such/file.pem", NULL, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("/no/such/file.pem");
    IS(zklock_options_set_tls(options, authority, certificate, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("both or none");
    IS(zklock_options_set_tls(options, key, NULL, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("CERTIFICATE");
    zklock_options_free(options);
}

#define PASS_PHRASE "s3cret-of-c"

/* A file of this test, made by a shell command in which %s is its name. */
static const char *file_by(const char *command) {
    static char name[] = "/tmp/zklock-tls-XXXXXX";
    static int made;
    char line[1024];
    if (!made++) {
        int descriptor = mkstemp(name);
        CHECK(descriptor >= 0 && !close(descriptor));
    }
    snprintf(line, sizeof line, command, name);
    CHECK(!system(line));
    return name;
}

static void connects(zklock_options *options) {
    zklock_client *client;
    OK(zklock_client_new(hosts, options, &client));
    zklock_options_free(options);
    zklock_client_free(client);
}

TEST(a_key_may_have_a_pass_phrase) {
    zklock_options *options;
    char command[600];
    const char *locked;
    ask_for_files();
    snprintf(command, sizeof command, "openssl pkey -aes256 -in %s -passout pass:" PASS_PHRASE " -out %%s", key);
    locked = file_by(command);
    OK(zklock_options_new(&options));
    IS(zklock_options_set_tls(options, authority, certificate, locked), ZKLOCK_INVALID_ARGUMENT);
    SAYS("has a pass phrase");
    OK(zklock_options_set_pass_phrase(options, "n0t-this-one"));
    IS(zklock_options_set_tls(options, authority, certificate, locked), ZKLOCK_INVALID_ARGUMENT);
    SAYS("does not open with the pass phrase");
    CHECK(!strstr(zklock_last_error(), "n0t"));
    CHECK(!setenv("ZKLOCK_TEST_PASS", PASS_PHRASE, 1));
    OK(zklock_options_set_pass_phrase_from_env(options, "ZKLOCK_TEST_PASS"));
    OK(zklock_options_set_tls(options, authority, certificate, locked));
    connects(options);
    OK(zklock_options_new(&options));
    IS(zklock_options_set_pass_phrase_from_file(options, "/no/such/file"), ZKLOCK_INVALID_ARGUMENT);
    SAYS("/no/such/file");
    OK(zklock_options_set_pass_phrase(options, PASS_PHRASE));
    OK(zklock_options_set_tls(options, authority, certificate, locked));
    connects(options);
    CHECK(!unlink(locked));
}

TEST(the_authorities_may_be_those_of_the_system) {
    zklock_options *options;
    ask_for_files();
    OK(zklock_options_new(&options));
    CHECK(!setenv("SSL_CERT_FILE", "/no/such/file", 1));
    IS(zklock_options_set_tls_system(options, NULL, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("/no/such/file");
    CHECK(!setenv("SSL_CERT_FILE", authority, 1));
    OK(zklock_options_set_tls_system(options, certificate, key));
    connects(options);
}

TEST(a_file_is_read_anew_for_each_connection) {
    zklock_options *options;
    zklock_client *client = NULL;
    char command[600];
    const char *copy;
    ask_for_files();
    snprintf(command, sizeof command, "cp %s %%s", authority);
    copy = file_by(command);
    options = options_with(copy, certificate, key);
    CHECK(!unlink(copy));
    IS(zklock_client_new(hosts, options, &client), ZKLOCK_REFUSED);
    SAYS(copy);
    file_by(command);
    connects(options);
    CHECK(!unlink(copy));
}

TEST_MAIN("standalone tls", LISTED(a_key_may_have_a_pass_phrase), LISTED(the_authorities_may_be_those_of_the_system),
          LISTED(a_file_is_read_anew_for_each_connection),
          LISTED(a_lock_is_held_and_lost_over_tls), LISTED(who_is_not_to_be_trusted_is_named),
          LISTED(files_that_will_not_do_are_named_at_once))
