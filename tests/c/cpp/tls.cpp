/* TLS in C++. */

#include <cstdio>
#include <cstdlib>

#include "test.hpp"

TEST(a_client_speaks_tls_in_each_way_that_c_has) {
    char hosts[256], authority[256], certificate[256], key[256];
    const char *said = ground("tls");
    CHECK(std::sscanf(said, "%255s %255s %255s %255s", hosts, authority, certificate, key) == 4);
    const std::string locked = std::string(key) + ".locked", pass = key + std::string(".pass");
    CHECK(!std::system(("echo s3cret > " + pass).c_str()));
    CHECK(!std::system((std::string("openssl pkey -aes256 -passout pass:s3cret -in ") + key + " -out " + locked).c_str()));
    zklock::client(hosts, zklock::options().tls(authority, certificate, key));
    zklock::client(hosts, zklock::options().pass_phrase("s3cret").tls(authority, certificate, locked));
    zklock::client(hosts, zklock::options().pass_phrase_from_file(pass).tls(authority, certificate, locked));
    CHECK(!setenv("ZKLOCK_TEST_PASS", "s3cret", 1) && !setenv("SSL_CERT_FILE", authority, 1));
    auto options = zklock::options();
    options.pass_phrase_from_env("ZKLOCK_TEST_PASS").tls_system(certificate, locked);
    zklock::client(hosts, options);
    THROWS(zklock::client(hosts, zklock::options().tls_system().connect_timeout(2s)), zklock::unreachable_error,
           ZKLOCK_UNREACHABLE);
    THROWS(zklock::options().pass_phrase("wrong").tls(authority, certificate, locked), zklock::misuse_error,
           ZKLOCK_INVALID_ARGUMENT);
}

TEST_MAIN("standalone tls", LISTED(a_client_speaks_tls_in_each_way_that_c_has))
