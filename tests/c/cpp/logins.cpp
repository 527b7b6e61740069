/* Which logins and certificates reach the servers, from where, and what is said of the others. In C++; that calls C. */

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "test.hpp"

static const std::string SECRET = "s3cret-of-c";

static std::string file_with(const std::string &name, const std::string &text) {
    std::ofstream(name) << text;
    return name;
}

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

TEST(a_client_speaks_tls_in_each_way_that_c_has) {
    char hosts[256], authority[256], certificate[256], key[256], stranger[256];
    const char *said = ground("tls");
    CHECK(std::sscanf(said, "%255s %255s %255s %255s %255s", hosts, authority, certificate, key, stranger) == 5);
    const auto new_options = [] { return zklock::options(); };
    const std::string locked = std::string(key) + ".locked", pass = file_with(key + std::string(".pass"), SECRET + "\n");
    CHECK(!std::system(("openssl pkey -aes256 -passout file:" + pass + " -in " + key + " -out " + locked).c_str()));
    const auto tls = [&](const std::string &authorities, const std::string &of) {
        return std::move(new_options().set("ca", authorities).set("cert", certificate).set("key", of));
    };
    const auto connect = [&](const zklock::options &how) { zklock::client client(hosts, how); };
    zklock::client(hosts, tls(authority, key)).mutex(fresh_path()).acquire().release();
    connect(tls(authority, locked).set("pass-phrase", SECRET));
    connect(new_options().set("pass-phrase-file", pass).set("ca", authority).set("cert", certificate).set("key", locked));
    CHECK(!setenv("ZKLOCK_TEST_PASS", SECRET.c_str(), 1) && !setenv("SSL_CERT_FILE", authority, 1));
    const auto system = [&] { return std::move(new_options().set("tls", "yes")); };
    connect(system().set("pass-phrase-env", "ZKLOCK_TEST_PASS").set("key", locked).set("cert", certificate));
    says(ZKLOCK_UNREACHABLE, "client certificate", [&] { connect(system().set("connect-timeout", 2s)); });
    says(ZKLOCK_UNREACHABLE, "none of the given authorities", [&] { connect(tls(stranger, key).set("connect-timeout", 2s)); });
    says(ZKLOCK_INVALID_ARGUMENT, "/no/such/file.pem", [&] { connect(tls("/no/such/file.pem", key)); });
    says(ZKLOCK_INVALID_ARGUMENT, "CERTIFICATE", [&] { connect(tls(key, key)); });
    says(ZKLOCK_INVALID_ARGUMENT, "has a pass phrase", [&] { connect(tls(authority, locked)); });
    says(ZKLOCK_INVALID_ARGUMENT, "does not open with the pass phrase", [&] { connect(tls(authority, locked).set("pass-phrase", "s3cret")); });
    says(ZKLOCK_INVALID_ARGUMENT, "give the option key as well", [&] { connect(system().set("cert", certificate)); });
    says(ZKLOCK_INVALID_ARGUMENT, "give the option cert as well", [&] { connect(system().set("key", key)); });
    says(ZKLOCK_INVALID_ARGUMENT, "give ca or tls as well", [&] { connect(new_options().set("cert", certificate).set("key", key)); });
    /* The files are read anew for each connection. */
    auto late = zklock::client::lazy(hosts, tls(authority, locked).set("pass-phrase", SECRET));
    CHECK(!std::remove(locked.c_str()));
    says(ZKLOCK_REFUSED, locked, [&] { late.connect(); });
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

TEST(a_client_logs_in_in_each_way_that_c_has_and_no_secret_is_told) {
    const std::string file = "/tmp/zklock-login-" + std::to_string(now_ms()), path = fresh_path(), of_sasl = fresh_path();
    const auto new_options = [] { return std::move(zklock::options().set("access", "creator-all")); };
    const auto uses = [](const zklock::options &how, const std::string &lock) {
        const zklock::client client(servers(), how);
        client.mutex(lock).acquire_for(SOON).release();
    };
    const auto is_kept_out = [&](const zklock::options &how, const std::string &lock) {
        says(ZKLOCK_REFUSED, "lacks the right CREATE in the access list of " + lock, [&] { uses(how, lock); });
    };
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, look_for_secrets, nullptr));
    file_with(file, "ann:" + SECRET + "\n");
    CHECK(!setenv("ZKLOCK_TEST_AUTH", ("ann:" + SECRET).c_str(), 1));
    uses(new_options().set("auth", "ann:" + SECRET), path);
    uses(new_options().set("auth-file", file), path);
    uses(new_options().set("auth-env", "ZKLOCK_TEST_AUTH"), path);
    is_kept_out(zklock::options(), path);
    is_kept_out(new_options().set("auth", "bob:" + SECRET), path);
    uses(new_options().set("sasl", "ann:" + SECRET), of_sasl);
    uses(new_options().set("sasl-file", file), of_sasl);
    uses(new_options().set("sasl-env", "ZKLOCK_TEST_AUTH"), of_sasl);
    is_kept_out(new_options().set("auth", "ann:" + SECRET), of_sasl);
    says(ZKLOCK_INVALID_ARGUMENT, "no node has a creator", [&] { uses(new_options(), path); });
    says(ZKLOCK_INVALID_ARGUMENT, "user:password", [&] { (void)new_options().set("auth", SECRET).made(); });
    says(ZKLOCK_INVALID_ARGUMENT, "quotation mark", [&] { (void)new_options().set("sasl", "a\"b:" + SECRET).made(); });
    says(ZKLOCK_INVALID_ARGUMENT, "log in as only one user", [&] { uses(new_options().set("sasl", "ann:" + SECRET).set("sasl", "bob:" + SECRET), path); });
    /* Not with Ann's password: servers accept an unknown user with the password of the last known one. */
    says(ZKLOCK_REFUSED, "SASL for \"bob\": correct the user or the password", [&] { uses(new_options().set("sasl", "bob:no"), path); });
    says(ZKLOCK_INVALID_ARGUMENT, "entry 2 of the access list", [&] { (void)new_options().set("access", "world:anyone:r,sasl:billing").made(); });
    says(ZKLOCK_INVALID_ARGUMENT, "not the password", [&] { (void)new_options().set("access", "digest:ann:" + SECRET + ":r").made(); });
    /* This library is built as most are. */
    says(ZKLOCK_REFUSED, "built without Kerberos: build it with the feature kerberos", [&] { (void)new_options().set("kerberos", "zookeeper").made(); });
    says(ZKLOCK_REFUSED, "built without Kerberos", [&] { (void)new_options().set("kerberos", "zookeeper/zk1").made(); });
    auto late = new_options();
    late.set("auth-file", file);
    file_with(file, SECRET);
    says(ZKLOCK_INVALID_ARGUMENT, file, [&] { (void)new_options().set("auth-file", file).made(); });
    CHECK(!std::remove(file.c_str()));
    says(ZKLOCK_REFUSED, file, [&] { uses(late, path); });
    OK(zklock_set_log(ZKLOCK_LOG_OFF, nullptr, nullptr));
    const std::lock_guard<std::mutex> guard(logging);
    CHECK(lines > 20 && !quotes);
}

TEST(a_node_that_may_not_be_deleted_goes_with_its_session) {
    const std::string ann = "digest:ann:luOTTlwHEIrsKt6w4elx6NjqkoE=", bob = "digest:bob:L0lKPiM+q1n/5BW0ok/Mpg9RzOI=";
    const auto as = [](const char *user) { return std::move(zklock::options().set("auth", user + (":" + SECRET))); };
    const zklock::client owner(servers(), as("ann").set("access", ann + ":cdrwa," + bob + ":crw,world:anyone:r")), other(servers(), as("bob"));
    const zklock::lock lock = owner.mutex(fresh_path());
    lock.acquire().release();
    zklock::hold elsewhere = other.mutex(fresh_path()).acquire(), hold = other.mutex(lock.path()).acquire();
    says(ZKLOCK_REFUSED, "lacks the right DELETE in the access list of " + lock.path(), [&] { hold.release(); });
    CHECK(elsewhere.wait_lost_for(SOON) == zklock::reason::session_closed);
    /* The lock must be free at once, not only when a session has timed out. */
    CHECK(lock.try_acquire());
}

TEST_MAIN("standalone tls sasl=ann:s3cret-of-c")
