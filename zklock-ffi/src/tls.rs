//! TLS: which servers to trust, and the client's certificate.

use crate::export::export;
use crate::failure::Failure;
use crate::handle::Object;
use crate::options::{Options, zklock_options};
use crate::raw::{optional_text, text};
use crate::status::zklock_status;
use std::ffi::c_char;

export! {
    /// Makes the client speak TLS with the servers. Their certificates must come from the given
    /// authorities, and be valid for the host names given in the hosts. Neither check can be switched
    /// off.
    ///
    /// The files are read now, and again for each connection, so that renewed certificates take effect
    /// without a restart. If a file cannot be used at that time, the client makes no new connection: it
    /// does not fall back to what it read earlier. An existing connection stays.
    ///
    /// @param options the options.
    /// @param authorities a PEM file with the certificates of the authorities to trust.
    /// @param certificate a PEM file with this client's certificate, for servers that ask for one; or
    ///         NULL.
    /// @param key a PEM file with the private key of the certificate; NULL if there is no certificate.
    ///         If the key is encrypted, set its pass phrase first.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if a file cannot be read or has the wrong contents,
    ///         or if only one of certificate and key is given; ZKLOCK_REFUSED if this library was built
    ///         without TLS.
    pub fn zklock_options_set_tls(
        options: *mut zklock_options,
        authorities: *const c_char,
        certificate: *const c_char,
        key: *const c_char,
    ) -> zklock_status {
        let authorities = text("authorities", authorities)?;
        set_tls(options, Some(authorities), identity(certificate, key)?)?;
    }

    /// Makes the client speak TLS with the servers, as zklock_options_set_tls does, but trusts the
    /// authorities that this system trusts. They come from the file that the environment variable
    /// SSL_CERT_FILE names, otherwise from the file of the system's distribution. If the servers'
    /// certificates come from your own authority, use zklock_options_set_tls and give that authority
    /// alone.
    ///
    /// @param options the options.
    /// @param certificate a PEM file with this client's certificate, for servers that ask for one; or
    ///         NULL.
    /// @param key a PEM file with the private key of the certificate; NULL if there is no certificate.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if a file cannot be read or has the wrong contents,
    ///         or if only one of certificate and key is given; ZKLOCK_REFUSED if this library was built
    ///         without TLS.
    pub fn zklock_options_set_tls_system(
        options: *mut zklock_options,
        certificate: *const c_char,
        key: *const c_char,
    ) -> zklock_status {
        set_tls(options, None, identity(certificate, key)?)?;
    }

    /// Sets the pass phrase of the private key. Call it before zklock_options_set_tls or
    /// zklock_options_set_tls_system. The pass phrase never appears in an error message or in the log.
    /// Keys are read in the format that "openssl genpkey -aes256" writes.
    ///
    /// @param options the options.
    /// @param pass_phrase not empty.
    /// @return ZKLOCK_OK; ZKLOCK_REFUSED if this library was built without TLS.
    pub fn zklock_options_set_pass_phrase(
        options: *mut zklock_options,
        pass_phrase: *const c_char,
    ) -> zklock_status {
        set_pass_phrase(options, Origin::Text(text("pass_phrase", pass_phrase)?))?;
    }

    /// Sets the pass phrase of the private key, as zklock_options_set_pass_phrase does, to the first
    /// line of a file. The file is read now, and again for each connection.
    ///
    /// @param options the options.
    /// @param file the path of the file.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the file cannot be read, or its first line is
    ///         empty; ZKLOCK_REFUSED if this library was built without TLS.
    pub fn zklock_options_set_pass_phrase_from_file(
        options: *mut zklock_options,
        file: *const c_char,
    ) -> zklock_status {
        set_pass_phrase(options, Origin::File(text("file", file)?))?;
    }

    /// Sets the pass phrase of the private key, as zklock_options_set_pass_phrase does, to the value of
    /// an environment variable. The variable is read now.
    ///
    /// @param options the options.
    /// @param variable the name of the variable, such as "CLIENT_KEY_PASS".
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the variable is not set, or empty; ZKLOCK_REFUSED
    ///         if this library was built without TLS.
    pub fn zklock_options_set_pass_phrase_from_env(
        options: *mut zklock_options,
        variable: *const c_char,
    ) -> zklock_status {
        set_pass_phrase(options, Origin::Variable(text("variable", variable)?))?;
    }
}

/// A certificate and its key.
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
