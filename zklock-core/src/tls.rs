//! TLS: whose servers to trust, and who we are to them.
//!
//! All is checked when it is given. The client library ignores a certificate that it cannot read, and would
//! fail on a key that does not match with every session that it tries to open, without telling anybody.

use crate::error::{Error, ErrorKind};
use crate::path::Hosts;
use rustls::client::{ClientConfig, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName};
use rustls::{InconsistentKeys, RootCertStore};
use std::fmt;
use std::sync::Arc;

/// How to connect with TLS; needs the feature `tls`.
///
/// The servers' certificates must come from the given authorities, be valid, and be for the names that
/// stand among the hosts. None of these checks can be switched off. TLS 1.2 and 1.3 are spoken.
///
/// ```no_run
/// use std::fs::read_to_string;
/// use zklock_core::{Client, ClientOptions, Tls};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let tls = Tls::new(&read_to_string("ca.pem")?)?
///     .identity(&read_to_string("client.pem")?, &read_to_string("client.key")?)?;
/// let client = Client::connect(ClientOptions::new("zk1:2281,zk2:2281,zk3:2281")?.tls(tls)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tls {
    authorities: Arc<str>,
    identity: Option<Identity>,
    /// The same, ready for use.
    config: Arc<ClientConfig>,
}

#[derive(Clone)]
struct Identity {
    certificate: Arc<str>,
    key: Arc<str>,
}

impl Tls {
    /// Trusts servers whose certificates come from these authorities: the text of a PEM file.
    ///
    /// Lists of revoked certificates may stand in it too. Where there are any, there must be one of
    /// each authority.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let tls = zklock_core::Tls::new(&std::fs::read_to_string("ca.pem")?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there is no certificate in it.
    pub fn new(authorities_pem: &str) -> Result<Self, Error> {
        let config = Arc::new(configured(authorities_pem, None)?);
        Ok(Self { authorities: authorities_pem.into(), identity: None, config })
    }

    /// What the client shows to servers that ask who it is: its certificate, with those between it and
    /// its authority, and the certificate's private key. Both are the text of a PEM file, the key
    /// without a pass phrase.
    ///
    /// ```no_run
    /// # use std::fs::read_to_string;
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let tls = zklock_core::Tls::new(&read_to_string("ca.pem")?)?
    ///     .identity(&read_to_string("client.pem")?, &read_to_string("client.key")?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if one is missing, or the key is that of another certificate.
    pub fn identity(mut self, certificate_pem: &str, key_pem: &str) -> Result<Self, Error> {
        let identity = Identity { certificate: certificate_pem.into(), key: key_pem.into() };
        self.config = Arc::new(configured(&self.authorities, Some(&identity))?);
        self.identity = Some(identity);
        Ok(self)
    }

    pub(crate) fn authorities_pem(&self) -> &str {
        &self.authorities
    }

    /// Certificate and key.
    pub(crate) fn identity_pem(&self) -> Option<(&str, &str)> {
        self.identity.as_ref().map(|identity| (&*identity.certificate, &*identity.key))
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }

    /// The client library panics on a host that cannot be named in a certificate.
    pub(crate) fn check_names(&self, hosts: &Hosts) -> Result<(), Error> {
        match hosts.servers.iter().find(|(host, _)| ServerName::try_from(host.as_str()).is_err()) {
            Some((host, _)) => Err(invalid(
                &format!("the host {host:?}"),
                "cannot be named in a certificate: correct the name",
            )),
            None => Ok(()),
        }
    }
}

/// Without the key, which has no business in a log.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("has_identity", &self.identity.is_some()).finish_non_exhaustive()
    }
}

/// What the client library will make of the same texts.
fn configured(authorities_pem: &str, identity: Option<&Identity>) -> Result<ClientConfig, Error> {
    if CryptoProvider::get_default().is_none() {
        // In a program that has built rustls with two providers, rustls and so the client library panic
        // unless one is chosen. Losing the race to another who chooses is as good.
        let _ = aws_lc_rs::default_provider().install_default();
    }
    let builder = ClientConfig::builder();
    let what = "the authorities";
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(what, authorities_pem)?);
    let lists: Result<Vec<_>, _> =
        CertificateRevocationListDer::pem_slice_iter(authorities_pem.as_bytes()).collect();
    let lists = lists.map_err(|_| damaged(what))?;
    let verifier =
        WebPkiServerVerifier::builder_with_provider(roots.into(), builder.crypto_provider().clone())
            .with_crls(lists)
            .build();
    let verifier = verifier.map_err(|error| invalid(what, &format!("cannot be used: {error}")))?;
    let builder = builder.with_webpki_verifier(verifier);
    let Some(identity) = identity else { return Ok(builder.with_no_client_auth()) };
    let chain = certificates("the client certificate", &identity.certificate)?;
    builder.with_client_auth_cert(chain, key(&identity.key)?).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => invalid(
            "the client key",
            "belongs to another certificate: give the key that the client certificate was made with",
        ),
        error => invalid("the client certificate", &format!("cannot be used with its key: {error}")),
    })
}

fn certificates(what: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match read {
        Ok(certificates) if certificates.is_empty() => Err(missing(what, pem, "CERTIFICATE")),
        Ok(certificates) => Ok(certificates),
        Err(_) => Err(damaged(what)),
    }
}

fn key(pem: &str) -> Result<PrivateKeyDer<'static>, Error> {
    let what = "the client key";
    match PrivateKeyDer::pem_slice_iter(pem.as_bytes()).next() {
        Some(Ok(key)) => Ok(key),
        _ if pem.contains("ENCRYPTED") => {
            Err(invalid(what, "has a pass phrase: take it off, such as with: openssl pkey -in FILE"))
        }
        // What the reader says may contain some of the key.
        Some(Err(_)) => Err(damaged(what)),
        None => Err(missing(what, pem, "PRIVATE KEY")),
    }
}

fn missing(what: &str, pem: &str, label: &str) -> Error {
    let problem = if pem.trim().is_empty() {
        "is empty: the content of a PEM file is wanted".to_owned()
    } else if pem.contains("-----BEGIN ") {
        format!("has no part that begins with -----BEGIN {label}-----: is it the right file?")
    } else {
        "is not PEM: the content of the file is wanted, not its name".to_owned()
    };
    invalid(what, &problem)
}

fn damaged(what: &str) -> Error {
    invalid(what, "is damaged PEM: the content of a PEM file is wanted as it is")
}

fn invalid(what: &str, problem: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("TLS: {what} {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_is_told_apart() {
        for (text, says) in [
            ("", "is empty"),
            (" \n", "is empty"),
            ("/etc/ssl/ca.pem", "not its name"),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "-----BEGIN CERTIFICATE-----"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", "damaged"),
            ("-----BEGIN CERTIFICATE-----\n=$!\n-----END CERTIFICATE-----\n", "damaged"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "cannot be used"),
        ] {
            let error = Tls::new(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(says), "{text:?}: {error}");
            assert!(error.to_string().contains("the authorities"), "{error}");
        }
    }

    #[test]
    fn what_is_no_key_is_told_apart() {
        for (text, says) in [
            ("", "is empty"),
            ("client.key", "not its name"),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
                "pass phrase",
            ),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----"),
            ("-----BEGIN PRIVATE KEY-----\nsecret!\n-----END PRIVATE KEY-----\n", "damaged"),
        ] {
            let error = key(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(says), "{text:?}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
