/* The options of TLS, and each way in which they can be refused. The library may have been built without it. */

#include "test.h"

#include <unistd.h>

#define PASS_PHRASE "s3cret-of-c"

/* The TLS addresses of the servers and the certificate files, as reported by `ground`. */
static char hosts[256], authority[256], certificate[256], key[256], stranger[256], locked[300];

static zklock_options *new_options(void) {
    zklock_options *options;
    const char *said = ground("tls");
    if (sscanf(said, "%255s %255s %255s %255s %255s", hosts, authority, certificate, key, stranger) != 5) {
        failed(__FILE__, __LINE__, "what is this: %s", said);
    }
    OK(zklock_options_new(&options));
    OK(zklock_options_set_connect_timeout(options, 3000));
    return options;
}

static void connects(zklock_options *options) {
    zklock_client *client;
    OK(zklock_client_new(hosts, options, &client));
    zklock_lock *lock = new_mutex(client, fresh_path(), 0);
    give_back(acquire(lock, SOON_MS));
    free_all(NULL, lock, client);
    zklock_options_free(options);
}

static void is_refused(zklock_options *options, zklock_status status, const char *sentence) {
    zklock_client *client = NULL;
    IS(zklock_client_new(hosts, options, &client), status);
    SAYS(sentence);
    CHECK(!client);
    zklock_options_free(options);
}

TEST(who_is_not_to_be_trusted_is_named) {
    zklock_options *options = new_options();
    OK(zklock_options_set_tls(options, stranger, certificate, key));
    is_refused(options, ZKLOCK_UNREACHABLE, "none of the given authorities");
    options = new_options();
    OK(zklock_options_set_tls(options, authority, NULL, NULL));
    is_refused(options, ZKLOCK_UNREACHABLE, "client certificate");
}

TEST(files_that_will_not_do_are_named) {
    zklock_options *options = new_options();
    IS(zklock_options_set_tls(options, NULL, NULL, NULL), ZKLOCK_INVALID_ARGUMENT);
    IS(zklock_options_set_tls(options, "/no/such/file.pem", NULL, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("/no/such/file.pem");
    IS(zklock_options_set_tls(options, authority, certificate, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("both or none");
    IS(zklock_options_set_tls(options, key, NULL, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("CERTIFICATE");
    zklock_options_free(options);
}

TEST(a_key_may_have_a_pass_phrase) {
    zklock_options *options = new_options();
    char command[900];
    snprintf(locked, sizeof locked, "%s.c", key);
    snprintf(command, sizeof command, "openssl pkey -aes256 -in %s -passout pass:" PASS_PHRASE " -out %s", key, locked);
    CHECK(!system(command));
    IS(zklock_options_set_tls(options, authority, certificate, locked), ZKLOCK_INVALID_ARGUMENT);
    SAYS("has a pass phrase");
    OK(zklock_options_set_pass_phrase(options, "n0t-this-one"));
    IS(zklock_options_set_tls(options, authority, certificate, locked), ZKLOCK_INVALID_ARGUMENT);
    SAYS("does not open with the pass phrase");
    CHECK(!strstr(zklock_last_error(), "n0t"));
    IS(zklock_options_set_pass_phrase_from_file(options, "/no/such/file"), ZKLOCK_INVALID_ARGUMENT);
    SAYS("/no/such/file");
    CHECK(!setenv("ZKLOCK_TEST_PASS", PASS_PHRASE, 1));
    OK(zklock_options_set_pass_phrase_from_env(options, "ZKLOCK_TEST_PASS"));
    OK(zklock_options_set_tls(options, authority, certificate, locked));
    connects(options);
    options = new_options();
    OK(zklock_options_set_pass_phrase(options, PASS_PHRASE));
    OK(zklock_options_set_tls(options, authority, certificate, locked));
    /* The file is read anew for each connection. */
    CHECK(!unlink(locked));
    is_refused(options, ZKLOCK_REFUSED, locked);
}

TEST(the_authorities_may_be_those_of_the_system) {
    zklock_options *options = new_options();
    CHECK(!setenv("SSL_CERT_FILE", "/no/such/file", 1));
    IS(zklock_options_set_tls_system(options, NULL, NULL), ZKLOCK_INVALID_ARGUMENT);
    SAYS("/no/such/file");
    CHECK(!setenv("SSL_CERT_FILE", authority, 1));
    OK(zklock_options_set_tls_system(options, certificate, key));
    connects(options);
}

TEST_MAIN("standalone tls", LISTED(who_is_not_to_be_trusted_is_named), LISTED(files_that_will_not_do_are_named),
          LISTED(a_key_may_have_a_pass_phrase), LISTED(the_authorities_may_be_those_of_the_system))
