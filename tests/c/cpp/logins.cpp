/* Logins and certificates reach the servers. (Each option, and what is said of it: scenarios/access and scenarios/connection.) */

#include <cstdio>
#include <mutex>

#include "test.hpp"

static const std::string SECRET = "s3cret-of-c";

/* The call must fail with this status and say this, and not the secret. A busy server may be too slow to say why it hangs up. */
template <class Call>
static void says(zklock_status status, const std::string &part, Call call) {
    for (const int64_t until = now_ms() + SOON_MS;;) {
        try {
            call();
            failed(__FILE__, __LINE__, "nothing was thrown: %s", part.c_str());
        } catch (const zklock::error &error) {
            const std::string said = error.what();
            check_status(__FILE__, __LINE__, part.c_str(), static_cast<zklock_status>(error.status()), status);
            const bool is_said = said.find(part) != std::string::npos, may_be_late = status == ZKLOCK_UNREACHABLE && now_ms() < until;
            if (said.find("s3cret") != std::string::npos || (!is_said && !may_be_late)) {
                failed(__FILE__, __LINE__, "not \"%s\": %s", part.c_str(), error.what());
            }
            if (is_said) return;
        }
    }
}

TEST(a_client_speaks_tls) {
    char hosts[256], authority[256], certificate[256], key[256], stranger[256];
    CHECK(std::sscanf(ground("tls"), "%255s %255s %255s %255s %255s", hosts, authority, certificate, key, stranger) == 5);
    const auto connect = [&](const std::string &authorities) {
        zklock::client(hosts, zklock::options().set("ca", authorities).set("cert", certificate).set("key", key)).mutex(fresh_path()).acquire().release();
    };
    connect(authority);
    says(ZKLOCK_UNREACHABLE, "none of the given authorities", [&] { connect(stranger); });
    says(ZKLOCK_INVALID_ARGUMENT, "/no/such/file.pem", [&] { connect("/no/such/file.pem"); });
}

/* Counts everything that is logged, at every level. */
static std::mutex logging;
static int lines, quotes;

static void look_for_secrets(int32_t, const char *message, void *) {
    const std::lock_guard<std::mutex> guard(logging);
    lines++;
    /* The password as it is, and in base64, alone and as "ann:s3cret". */
    for (const char *secret : {SECRET.c_str(), "czNjcmV0", "OnMzY3Jl"}) quotes += strstr(message, secret) != nullptr;
}

TEST(a_client_logs_in_and_no_secret_is_told) {
    const std::string path = fresh_path(), of_sasl = fresh_path();
    const auto uses = [](const char *how, const std::string &user, const std::string &lock) {
        const zklock::client client(servers(), zklock::options().set("access", "creator-all").set(how, user));
        client.mutex(lock).acquire_for(SOON).release();
    };
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, look_for_secrets, nullptr));
    uses("auth", "ann:" + SECRET, path);
    uses("sasl", "ann:" + SECRET, of_sasl);
    says(ZKLOCK_REFUSED, "lacks the right CREATE in the access list of " + path, [&] { uses("auth", "bob:" + SECRET, path); });
    says(ZKLOCK_INVALID_ARGUMENT, "user:password", [&] { uses("auth", SECRET, path); });
    /* This library is built as most are. */
    says(ZKLOCK_REFUSED, "built without Kerberos: build it with the feature kerberos", [&] { uses("kerberos", "zookeeper", path); });
    OK(zklock_set_log(ZKLOCK_LOG_OFF, nullptr, nullptr));
    const std::lock_guard<std::mutex> guard(logging);
    CHECK(lines > 20 && !quotes);
}

TEST_MAIN("standalone tls sasl=ann:s3cret-of-c")
