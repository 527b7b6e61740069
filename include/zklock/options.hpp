/* How a client connects. */

#ifndef ZKLOCK_OPTIONS_HPP
#define ZKLOCK_OPTIONS_HPP

#include <chrono>
#include <cstdint>
#include <string>

#include "handle.hpp"

namespace zklock {

/**
 * How a client connects. The defaults suit most programs; the setter throws if a value is wrong.
 *
 *     zklock::client client(hosts, zklock::options().session_timeout(4s).identity("billing"));
 */
class options : public detail::owner<zklock_options, zklock_options_free> {
public:
    options() : owner(detail::ask<zklock_options *>(zklock_options_new)) {}
    /** The session timeout to ask for: when it is over, the locks of a crashed holder are free. Default: 10 s. */
    options &session_timeout(std::chrono::milliseconds t) { return set(zklock_options_set_session_timeout, t.count()); }
    /** How long to try to reach a server before client(), or a question such as contenders(), fails. Default: 10 s. */
    options &connect_timeout(std::chrono::milliseconds t) { return set(zklock_options_set_connect_timeout, t.count()); }
    /** How long the servers have to answer what tries once before it throws an unreachable_error. Default: 1 s. */
    options &try_timeout(std::chrono::milliseconds t) { return set(zklock_options_set_try_timeout, t.count()); }
    /** Put all paths below this node, which must exist. */
    options &chroot(const std::string &path) { return set(zklock_options_set_chroot, detail::text(path)); }
    /** Create the chroot, with the nodes above it, if it is missing. Default: no. */
    options &create_chroot(bool creates = true) { return set(zklock_options_set_create_chroot, creates ? 1 : 0); }
    /**
     * Whether the servers are asked to confirm what is held, every twelfth of the session timeout. Default: yes. Without,
     * valid_for() is zero soon after a grant, and a loss is told when the servers speak of it, which may be late.
     */
    options &heartbeat(bool beats) { return set(zklock_options_set_heartbeat, beats ? 1 : 0); }
    /** What others see as the contender's name. Default: "host/pid". */
    options &identity(const std::string &name) { return set(zklock_options_set_identity, detail::text(name)); }
    /** The version of the servers, 3.4 or later; otherwise they are asked. */
    options &server_version(std::uint32_t major, std::uint32_t minor) {
        return set(zklock_options_set_server_version, major, minor);
    }
    /** Speak TLS with servers whose certificates come from these authorities: a PEM file, read anew for each connection. */
    options &tls(const std::string &authorities) {
        return set(zklock_options_set_tls, detail::text(authorities), nullptr, nullptr);
    }
    /** The same, with a certificate and its key, each a PEM file, for servers that ask who this is. */
    options &tls(const std::string &authorities, const std::string &certificate, const std::string &key) {
        return set(zklock_options_set_tls, detail::text(authorities), detail::text(certificate), detail::text(key));
    }
    /** Speak TLS with servers whose certificates come from an authority that this system trusts. */
    options &tls_system() { return set(zklock_options_set_tls_system, nullptr, nullptr); }
    /** The same, with a certificate and its key, each a PEM file. */
    options &tls_system(const std::string &certificate, const std::string &key) {
        return set(zklock_options_set_tls_system, detail::text(certificate), detail::text(key));
    }
    /** The pass phrase of the key that is given next. */
    options &pass_phrase(const std::string &pass_phrase) {
        return set(zklock_options_set_pass_phrase, detail::text(pass_phrase));
    }
    /** The same with the first line of a file, which is read anew for each connection. */
    options &pass_phrase_from_file(const std::string &file) {
        return set(zklock_options_set_pass_phrase_from_file, detail::text(file));
    }
    /** The same with an environment variable. */
    options &pass_phrase_from_env(const std::string &variable) {
        return set(zklock_options_set_pass_phrase_from_env, detail::text(variable));
    }
    /** Log in as this user, and as those that were added before. */
    options &digest(const std::string &user, const std::string &password) {
        return set(zklock_options_add_digest, detail::text(user), detail::text(password));
    }
    /** The same with "user:password", one a line, in a file that is read anew for each connection. */
    options &digest_from_file(const std::string &file) {
        return set(zklock_options_add_digest_from_file, detail::text(file));
    }
    /** The same with "user:password" in an environment variable. */
    options &digest_from_env(const std::string &variable) {
        return set(zklock_options_add_digest_from_env, detail::text(variable));
    }
    /** Log in as this user by SASL. To access lists it is "sasl:user". */
    options &sasl(const std::string &user, const std::string &password) {
        return set(zklock_options_add_sasl, detail::text(user), detail::text(password));
    }
    /** The same with one line "user:password" in a file that is read anew for each connection. */
    options &sasl_from_file(const std::string &file) {
        return set(zklock_options_add_sasl_from_file, detail::text(file));
    }
    /** The same with "user:password" in an environment variable. */
    options &sasl_from_env(const std::string &variable) {
        return set(zklock_options_add_sasl_from_env, detail::text(variable));
    }
    /** Log in with the ticket that Kerberos has for this process, for this service of the host that is connected to. */
    options &kerberos(const std::string &service = "zookeeper") {
        return set(zklock_options_add_kerberos, detail::text(service), static_cast<const char *>(nullptr));
    }
    /** The same for this service of this host, as in the servers' principal. */
    options &kerberos(const std::string &service, const std::string &host) {
        return set(zklock_options_add_kerberos, detail::text(service), detail::text(host));
    }
    /** Who may use the nodes that the client creates. Default: ZKLOCK_ACCESS_OPEN. */
    options &access(zklock_access access) { return set(zklock_options_set_access, static_cast<int32_t>(access)); }
    /** The same with a list of one's own, such as "sasl:billing:cdrwa,world:anyone:r". */
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
