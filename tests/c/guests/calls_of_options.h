/* The calls that set options of a client: a part of calls.h. */

CALL(options_new) {
    (void)on;
    zklock_options *options;
    zklock_status status = zklock_options_new(&options);
    if (!status) zklock_options_free(options);
    return status;
}
CALL(options_set_session_timeout) { return zklock_options_set_session_timeout(on->options, SESSION_MS); }
CALL(options_set_connect_timeout) { return zklock_options_set_connect_timeout(on->options, SOON_MS); }
CALL(options_set_server_version) { return zklock_options_set_server_version(on->options, 3, 4); }
CALL(options_set_try_timeout) { return zklock_options_set_try_timeout(on->options, SOON_MS); }
CALL(options_set_chroot) { return zklock_options_set_chroot(on->options, "/a"); }
CALL(options_set_create_chroot) { return zklock_options_set_create_chroot(on->options, 1); }
CALL(options_set_heartbeat) { return zklock_options_set_heartbeat(on->options, 0); }
CALL(options_set_identity) { return zklock_options_set_identity(on->options, "a guest"); }
CALL(options_add_digest) { return zklock_options_add_digest(on->options, "a guest", "and its password"); }
CALL(options_add_digest_from_file) { return zklock_options_add_digest_from_file(on->options, "/no such file"); }
CALL(options_add_digest_from_env) { return zklock_options_add_digest_from_env(on->options, "ZKLOCK_NOT_SET"); }
CALL(options_add_sasl) { return zklock_options_add_sasl(on->options, "a guest", "and its password"); }
CALL(options_add_sasl_from_file) { return zklock_options_add_sasl_from_file(on->options, "/no such file"); }
CALL(options_add_sasl_from_env) { return zklock_options_add_sasl_from_env(on->options, "ZKLOCK_NOT_SET"); }
CALL(options_add_kerberos) { return zklock_options_add_kerberos(on->options, NULL, NULL); }
CALL(options_set_access) { return zklock_options_set_access(on->options, ZKLOCK_ACCESS_OPEN); }
CALL(options_set_access_list) { return zklock_options_set_access_list(on->options, "world:anyone:cdrwa"); }
/* A system trusts many authorities, which a library that is not optimised takes long to read. */
__attribute__((constructor)) static void trusts_nobody(void) { setenv("SSL_CERT_FILE", "/no such file", 1); }
/* A library that was built without TLS refuses these. */
static zklock_status or_wrong(zklock_status status) {
    return status == ZKLOCK_REFUSED ? ZKLOCK_INVALID_ARGUMENT : status;
}
CALL(options_set_tls) { return or_wrong(zklock_options_set_tls(on->options, "/no such file", NULL, NULL)); }
CALL(options_set_tls_system) {
    return or_wrong(zklock_options_set_tls_system(on->options, "/no such file", "/no such file"));
}
CALL(options_set_pass_phrase) { return or_wrong(zklock_options_set_pass_phrase(on->options, "")); }
CALL(options_set_pass_phrase_from_file) {
    return or_wrong(zklock_options_set_pass_phrase_from_file(on->options, "/no such file"));
}
CALL(options_set_pass_phrase_from_env) {
    return or_wrong(zklock_options_set_pass_phrase_from_env(on->options, "ZKLOCK_NOT_SET"));
}
