/* How a client connects. */

#ifndef ZKLOCK_OPTIONS_HPP
#define ZKLOCK_OPTIONS_HPP

#include <chrono>
#include <cstdint>
#include <string>

#include "handle.hpp"

namespace zklock {

/**
 * How a client connects. The defaults suit most programs. A setter throws if its value is wrong.
 *
 *     zklock::client client(hosts, zklock::options().session_timeout(4s).identity("billing"));
 */
class options : public detail::owner<zklock_options, zklock_options_free> {
public:
    options() : owner(detail::ask<zklock_options *>(zklock_options_new)) {}
    /** The session timeout to ask for. After a crash, a holder's locks are free once it is over. Default: 10 s. */
    options &session_timeout(std::chrono::milliseconds t) { return set(zklock_options_set_session_timeout, t.count()); }
    /** How long client(), and queries such as contenders(), try to reach a server before they fail. Default: 10 s. */
    options &connect_timeout(std::chrono::milliseconds t) { return set(zklock_options_set_connect_timeout, t.count()); }
    /** How long a call that tries once waits for an answer before it throws an unreachable_error. Default: 1 s. */
    options &try_timeout(std::chrono::milliseconds t) { return set(zklock_options_set_try_timeout, t.count()); }
    /** Puts all paths below this node, which must exist unless create_chroot() is set. */
    options &chroot(const std::string &path) { return set(zklock_options_set_chroot, detail::text(path)); }
    /** Whether to create the chroot, and the nodes above it, if they are missing. Default: no. */
    options &create_chroot(bool creates = true) { return set(zklock_options_set_create_chroot, creates ? 1 : 0); }
    /**
     * Whether the client asks the servers to confirm its holds every twelfth of the session timeout. Default: yes.
     * Without a heartbeat, valid_for() drops to zero half a session timeout after the grant, and a loss is only
     * reported when the servers report it, which may be late.
     */
    options &heartbeat(bool beats) { return set(zklock_options_set_heartbeat, beats ? 1 : 0); }
    /**
     * How soon a holder learns of a loss that no server reports: a tenth of the session timeout, which is the default,
     * to a third. The longer this time is, the less often the client writes. See zklock_options_set_told_within.
     */
    options &told_within(std::chrono::milliseconds t) { return set(zklock_options_set_told_within, t.count()); }
    /** The name under which others see this client in a queue. Default: "host/pid" of the process that connects. */
    options &identity(const std::string &name) { return set(zklock_options_set_identity, detail::text(name)); }
    /** The version of the servers, 3.4 or later. If it is not set, the client asks them. */
    options &server_version(std::uint32_t major, std::uint32_t minor) {
        return set(zklock_options_set_server_version, major, minor);
    }
    /** Uses TLS. The servers' certificates must come from these authorities: a PEM file, read again for each connection. */
    options &tls(const std::string &authorities) {
        return set(zklock_options_set_tls, detail::text(authorities), nullptr, nullptr);
    }
    /** Uses TLS with a certificate of this client and its key, each a PEM file, for servers that ask for one. */
    options &tls(const std::string &authorities, const std::string &certificate, const std::string &key) {
        return set(zklock_options_set_tls, detail::text(authorities), detail::text(certificate), detail::text(key));
    }
    /** Uses TLS. The servers' certificates must come from an authority that this system trusts. */
    options &tls_system() { return set(zklock_options_set_tls_system, nullptr, nullptr); }
    /** Uses TLS with the system's authorities, and a certificate of this client and its key, each a PEM file. */
    options &tls_system(const std::string &certificate, const std::string &key) {
        return set(zklock_options_set_tls_system, detail::text(certificate), detail::text(key));
    }
    /** The pass phrase of the private key. Set it before tls() or tls_system(). */
    options &pass_phrase(const std::string &pass_phrase) {
        return set(zklock_options_set_pass_phrase, detail::text(pass_phrase));
    }
    /** Takes the pass phrase from the first line of a file, which is read again for each connection. */
    options &pass_phrase_from_file(const std::string &file) {
        return set(zklock_options_set_pass_phrase_from_file, detail::text(file));
    }
    /** Takes the pass phrase from an environment variable. */
    options &pass_phrase_from_env(const std::string &variable) {
        return set(zklock_options_set_pass_phrase_from_env, detail::text(variable));
    }
    /** Logs in as this user, in addition to those already added. */
    options &digest(const std::string &user, const std::string &password) {
        return set(zklock_options_add_digest, detail::text(user), detail::text(password));
    }
    /** Logs in as the users in a file, one "user:password" per line, which is read again for each connection. */
    options &digest_from_file(const std::string &file) {
        return set(zklock_options_add_digest_from_file, detail::text(file));
    }
    /** Logs in with the "user:password" in an environment variable. */
    options &digest_from_env(const std::string &variable) {
        return set(zklock_options_add_digest_from_env, detail::text(variable));
    }
    /** Logs in as this user by SASL. In access lists the user is "sasl:user". */
    options &sasl(const std::string &user, const std::string &password) {
        return set(zklock_options_add_sasl, detail::text(user), detail::text(password));
    }
    /** Logs in by SASL with the single line "user:password" in a file, which is read again for each connection. */
    options &sasl_from_file(const std::string &file) {
        return set(zklock_options_add_sasl_from_file, detail::text(file));
    }
    /** Logs in by SASL with the "user:password" in an environment variable. */
    options &sasl_from_env(const std::string &variable) {
        return set(zklock_options_add_sasl_from_env, detail::text(variable));
    }
    /** Logs in with the Kerberos ticket of this process, to this service on the host that the client connects to. */
    options &kerberos(const std::string &service = "zookeeper") {
        return set(zklock_options_add_kerberos, detail::text(service), static_cast<const char *>(nullptr));
    }
    /** Logs in with the Kerberos ticket of this process, to servers whose principal has this service and host. */
    options &kerberos(const std::string &service, const std::string &host) {
        return set(zklock_options_add_kerberos, detail::text(service), detail::text(host));
    }
    /** Who may use the nodes that the client creates. Default: open. */
    options &access(zklock::access who) { return set(zklock_options_set_access, static_cast<std::int32_t>(who)); }
    /** Who may use the nodes that the client creates, as a list such as "sasl:billing:cdrwa,world:anyone:r". */
    options &access(const std::string &list) { return set(zklock_options_set_access_list, detail::text(list)); }
private:
    template <class Call, class... Values>
    options &set(Call call, Values... values) {
        detail::check(call(get(), values...));
        return *this;
    }
};
} // namespace zklock

#endif // ZKLOCK_OPTIONS_HPP
