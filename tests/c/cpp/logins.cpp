/* Logins and certificates reach the servers. (Each option, and what is said of it: scenarios/access and scenarios/connection.) */

#include <cstdio>
#include <cstring>

#include "test.hpp"

TEST(a_client_speaks_tls) {
    char hosts[256], authority[256], certificate[256], key[256], stranger[256];
    CHECK(std::sscanf(ground("tls"), "%255s %255s %255s %255s %255s", hosts, authority, certificate, key, stranger) == 5);
    const auto connect = [&](const std::string &authorities) {
        zklock::client(hosts, zklock::options().set("ca", authorities).set("cert", certificate).set("key", key)).mutex(fresh_path()).acquire().release();
    };
    connect(authority);
    THROWS(connect(stranger), zklock::unreachable_error, ZKLOCK_UNREACHABLE);
}

TEST(a_client_logs_in) {
    const std::string path = fresh_path(), of_sasl = fresh_path();
    const auto uses = [](const char *how, const std::string &user, const std::string &lock) {
        const zklock::client client(servers(), zklock::options().set("access", "creator-all").set(how, user));
        client.mutex(lock).acquire_for(SOON).release();
    };
    uses("auth", "ann:s3cret-of-c", path);
    uses("sasl", "ann:s3cret-of-c", of_sasl);
    THROWS(uses("auth", "bob:s3cret-of-c", path), zklock::error, ZKLOCK_REFUSED);
    THROWS(uses("auth", "s3cret-of-c", path), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    CHECK(!std::strstr(zklock_last_error(), "s3cret"));
    /* This library is built as most are. */
    THROWS(uses("kerberos", "zookeeper", path), zklock::error, ZKLOCK_REFUSED);
}

TEST_MAIN("standalone tls sasl=ann:s3cret-of-c")
