//! TLS: whose servers to trust, and who the client is to them.

use crate::call;
use crate::failure::Failure;
use crate::handle::Object;
use crate::options::{Options, zklock_options};
use crate::raw::{optional_text, text};
use crate::status::zklock_status;
use std::ffi::c_char;

/// Speak TLS with the servers. Their certificates must come from the given authorities, and be for
/// the names that stand among the hosts; neither check can be switched off.
///
/// The files are read now, and anew for each connection, so that renewed certificates are used
/// without a restart. As long as one cannot be used then, no connection is made: what was read
/// before is not used again. The connection that there is stays.
///
/// @param options the options.
/// @param authorities a PEM file with the certificates of the authorities to trust.
/// @param certificate a PEM file with the certificate of this client, for servers that ask for one;
///        or NULL.
/// @param key a PEM file with its private key; NULL if there is no certificate. If it is encrypted,
///        give the pass phrase first.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if a file cannot be read, or is not what it should
///         be, or one of certificate and key is missing; ZKLOCK_REFUSED if this library was built
///         without TLS.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_tls(
    options: *mut zklock_options,
    authorities: *const c_char,
    certificate: *const c_char,
    key: *const c_char,
) -> zklock_status {
    call::status("zklock_options_set_tls", || {
        let authorities = text("authorities", authorities)?;
        set_tls(options, Some(authorities), identity(certificate, key)?)
    })
}

/// The same with the authorities that this system trusts: those in the file that the environment
/// variable SSL_CERT_FILE names, otherwise those in the file of the system's distribution. Where
/// the servers' certificates come from an authority of your own, give that alone.
///
/// @param options the options.
/// @param certificate a PEM file with the certificate of this client, for servers that ask for one;
///        or NULL.
/// @param key a PEM file with its private key; NULL if there is no certificate.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if a file cannot be read, or is not what it should
///         be, or one of certificate and key is missing; ZKLOCK_REFUSED if this library was built
///         without TLS.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_tls_system(
    options: *mut zklock_options,
    certificate: *const c_char,
    key: *const c_char,
) -> zklock_status {
    call::status("zklock_options_set_tls_system", || set_tls(options, None, identity(certificate, key)?))
}

/// The pass phrase of the key that zklock_options_set_tls or zklock_options_set_tls_system is given
/// next. It is in no message and no log line. Keys are read in the form that "openssl genpkey
/// -aes256" writes.
///
/// @param options the options.
/// @param pass_phrase not empty.
/// @return ZKLOCK_OK; ZKLOCK_REFUSED if this library was built without TLS.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_pass_phrase(
    options: *mut zklock_options,
    pass_phrase: *const c_char,
) -> zklock_status {
    call::status("zklock_options_set_pass_phrase", || {
        set_pass_phrase(options, Origin::Text(text("pass_phrase", pass_phrase)?))
    })
}

/// The same with the first line of a file. It is read now, and anew for each connection.
///
/// @param options the options.
/// @param file its path.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it cannot be read, or the line is empty;
///         ZKLOCK_REFUSED if this library was built without TLS.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_pass_phrase_from_file(
    options: *mut zklock_options,
    file: *const c_char,
) -> zklock_status {
    call::status("zklock_options_set_pass_phrase_from_file", || {
        set_pass_phrase(options, Origin::File(text("file", file)?))
    })
}

/// The same with an environment variable, which is read now.
///
/// @param options the options.
/// @param variable its name, such as "CLIENT_KEY_PASS".
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it is not set, or empty; ZKLOCK_REFUSED if this
///         library was built without TLS.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_pass_phrase_from_env(
    options: *mut zklock_options,
    variable: *const c_char,
) -> zklock_status {
    call::status("zklock_options_set_pass_phrase_from_env", || {
        set_pass_phrase(options, Origin::Variable(text("variable", variable)?))
    })
}

/// Certificate and key.
type Identity<'a> = Option<(&'a str, &'a str)>;

fn identity<'a>(certificate: *const c_char, key: *const c_char) -> Result<Identity<'a>, Failure> {
    match (optional_text("certificate", certificate)?, optional_text("key", key)?) {
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (None, None) => Ok(None),
        _ => {
            let message = "a certificate needs its key, and a key its certificate: give both or none";
            Err(Failure::argument(message))
        }
    }
}

/// Where a pass phrase comes from.
#[derive(Clone, Copy)]
enum Origin<'a> {
    Text(&'a str),
    File(&'a str),
    Variable(&'a str),
}

#[cfg(feature = "tls")]
fn set_tls(
    options: *const zklock_options,
    authorities: Option<&str>,
    identity: Identity<'_>,
) -> Result<(), Failure> {
    use zklock_core::Tls;
    let pass_phrase = Options::table().find(options)?.pass_phrase();
    let mut tls = authorities.map_or_else(Tls::system, Tls::from_file)?;
    if let Some(pass_phrase) = pass_phrase {
        tls = tls.pass_phrase(pass_phrase);
    }
    if let Some((certificate, key)) = identity {
        tls = tls.identity_from_files(certificate, key)?;
    }
    Options::change(options, |options| Ok(options.tls(tls)))
}

#[cfg(feature = "tls")]
fn set_pass_phrase(options: *const zklock_options, origin: Origin<'_>) -> Result<(), Failure> {
    use zklock_core::PassPhrase;
    let options = Options::table().find(options)?;
    let pass_phrase = match origin {
        Origin::Text(text) => PassPhrase::new(text),
        Origin::File(file) => PassPhrase::from_file(file),
        Origin::Variable(variable) => PassPhrase::from_env(variable),
    };
    options.set_pass_phrase(pass_phrase?);
    Ok(())
}

#[cfg(not(feature = "tls"))]
fn set_tls(options: *const zklock_options, _: Option<&str>, _: Identity<'_>) -> Result<(), Failure> {
    Options::table().find(options)?;
    Err(without_tls())
}

#[cfg(not(feature = "tls"))]
fn set_pass_phrase(options: *const zklock_options, origin: Origin<'_>) -> Result<(), Failure> {
    Options::table().find(options)?;
    let (Origin::Text(_unused) | Origin::File(_unused) | Origin::Variable(_unused)) = origin;
    Err(without_tls())
}

#[cfg(not(feature = "tls"))]
fn without_tls() -> Failure {
    let message = "this library was built without TLS: build it with the feature tls";
    Failure::new(zklock_status::ZKLOCK_REFUSED, message)
}
