/* Locks over TLS, and each way in which it can be refused. The library may have been built without it. */

#include "test.h"

/* What `ground` says of its servers: their TLS addresses, and files. */
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

TEST_MAIN("standalone tls", LISTED(a_lock_is_held_and_lost_over_tls), LISTED(who_is_not_to_be_trusted_is_named),
          LISTED(files_that_will_not_do_are_named_at_once))
