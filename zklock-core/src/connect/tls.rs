//! TLS: which servers to trust, and the certificate that we show them.
//!
//! Everything is checked when it is given, and files again for each connection. The client library ignores a certificate
//! that it cannot read. With a key that does not match, it would silently fail with every session that it tries to open.

mod key;
mod pass_phrase;
mod source;

pub use self::pass_phrase::PassPhrase;

use self::source::{Source, invalid, read_certificates};
use crate::base::error::Error;
use crate::base::files::Reads;
use crate::base::message::{Given, Message};
use crate::connect::path::Hosts;
use rustls::client::{ClientConfig, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateRevocationListDer, ServerName};
use rustls::{InconsistentKeys, RootCertStore};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The options of TLS.
const SYSTEM: &str = "system";
const AUTHORITIES: &str = "ca";
const CERTIFICATE: &str = "cert";
const KEY: &str = "key";
const PASS_PHRASE: &str = "pass-phrase";

/// How to connect with TLS. It needs the feature `tls`.
///
/// The servers' certificates must come from the given authorities, be valid, and match the host names in the hosts. None
/// of these checks can be switched off. The versions are TLS 1.2 and 1.3.
///
/// Files are read now, and again for each connection, so that renewed certificates take effect without a restart. If a
/// file then cannot be read, or is damaged, or the key does not belong to the certificate, the client makes no connection.
/// It does not fall back to what it read earlier, because the authority may have been removed for a reason. An existing
/// connection stays. The client tries again until its session is over, and then for the next session, and the error names
/// the file. So replace a file by renaming a new one to its name, and replace a certificate and its key within one session
/// timeout.
///
/// # Examples
///
/// ```no_run
/// use zklock::{Client, ClientOptions};
/// use zklock::further::Tls;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let tls = Tls::from_file("ca.pem")?.identity_from_files("client.pem", "client.key")?;
/// let client = Client::connect(ClientOptions::new("zk1:2281,zk2:2281,zk3:2281").tls(tls)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tls {
    sources: Arc<Sources>,
    /// The content of the sources, if they cannot change.
    fixed: Option<Arc<Loaded>>,
    reads: Reads,
}

#[derive(Clone)]
struct Sources {
    authorities: Source,
    /// Certificate and key.
    identity: Option<(Source, Source)>,
    pass_phrase: Option<PassPhrase>,
}

/// The texts to make a connection with, which have been checked. They are for the client library.
pub(crate) struct Loaded {
    pub(crate) authorities_pem: String,
    /// Certificate and key. The key is decrypted.
    pub(crate) identity_pem: Option<(String, String)>,
    pub(crate) config: Arc<ClientConfig>,
}

impl Tls {
    /// Trusts servers whose certificates come from these authorities, given as the text of a PEM file.
    ///
    /// The text may also contain lists of revoked certificates. If it contains any, it must contain one for each
    /// authority.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the text contains no certificate.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let tls = zklock::further::Tls::new(&std::fs::read_to_string("ca.pem")?)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(authorities_pem: &str) -> Result<Self, Error> {
        Self::trusting(Source::Text(authorities_pem.into()))
    }

    /// Like [`new`](Self::new), with the PEM file itself, which is read now, and again for each connection.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the file cannot be read or contains no certificate.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let tls = zklock::further::Tls::from_file("/etc/zookeeper/ca.pem")?;
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn from_file(authorities: impl AsRef<Path>) -> Result<Self, Error> {
        Self::trusting(Source::File(authorities.as_ref().into()))
    }

    /// Trusts the authorities that the system trusts: those in the file that the environment variable `SSL_CERT_FILE`
    /// names, or otherwise those in the file that the system's distribution keeps. The file is chosen and read now, and
    /// read again for each connection. `SSL_CERT_DIR` is ignored.
    ///
    /// A system usually trusts more than a hundred authorities, and each can issue certificates for any name. If
    /// the servers' certificates come from an authority of your own, trust only that one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is no such file, or it contains no
    /// certificate.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let tls = zklock::further::Tls::system()?;
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn system() -> Result<Self, Error> {
        Self::trusting(Source::of_the_system()?)
    }

    fn trusting(authorities: Source) -> Result<Self, Error> {
        Self::checked(Sources { authorities, identity: None, pass_phrase: None })
    }

    /// Sets the client's certificate, for servers that ask for one, and its private key. Both are the text of a PEM file.
    /// The first also contains the intermediate certificates up to the authority. If the key is encrypted, give its [pass
    /// phrase](Self::pass_phrase) first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if one is missing, the key belongs to another
    /// certificate, or its pass phrase is missing or wrong.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use std::fs::read_to_string;
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let tls = zklock::further::Tls::new(&read_to_string("ca.pem")?)?
    ///     .identity(&read_to_string("client.pem")?, &read_to_string("client.key")?)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn identity(self, certificate_pem: &str, key_pem: &str) -> Result<Self, Error> {
        self.identified(Source::Text(certificate_pem.into()), Source::Text(key_pem.into()))
    }

    /// Like [`identity`](Self::identity), with the PEM files themselves, which are read now, and again for each
    /// connection.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if one cannot be read or used, the key belongs to
    /// another certificate, or its pass phrase is missing or wrong.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use zklock::further::Tls;
    /// let tls = Tls::from_file("ca.pem")?.identity_from_files("client.pem", "client.key")?;
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn identity_from_files(
        self,
        certificate: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, Error> {
        self.identified(Source::File(certificate.as_ref().into()), Source::File(key.as_ref().into()))
    }

    fn identified(self, certificate: Source, key: Source) -> Result<Self, Error> {
        Self::checked(Sources { identity: Some((certificate, key)), ..(*self.sources).clone() })
    }

    /// Sets the pass phrase of the key that is given next. A key that is not encrypted ignores it.
    ///
    /// Encrypted keys must have the form that `openssl genpkey -aes256` writes, `ENCRYPTED PRIVATE KEY`: PKCS#8 with AES,
    /// and with PBKDF2 or scrypt.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::further::{PassPhrase, Tls};
    ///
    /// let tls = Tls::from_file("ca.pem")?
    ///     .pass_phrase(PassPhrase::from_file("/run/secrets/client-key")?)
    ///     .identity_from_files("client.pem", "client.key")?;
    /// # Ok::<(), zklock::Error>(())
    /// ```
    #[must_use]
    pub fn pass_phrase(self, pass_phrase: PassPhrase) -> Self {
        let sources = Sources { pass_phrase: Some(pass_phrase), ..(*self.sources).clone() };
        Self { sources: Arc::new(sources), ..self }
    }

    fn checked(sources: Sources) -> Result<Self, Error> {
        let loaded = sources.load()?;
        let fixed = sources.are_fixed().then(|| Arc::new(loaded));
        Ok(Self { sources: Arc::new(sources), fixed, reads: Reads::new() })
    }

    /// Returns what the next connection is made with, or why that cannot be had.
    pub(crate) async fn current(&self) -> Result<Arc<Loaded>, String> {
        if let Some(fixed) = &self.fixed {
            return Ok(fixed.clone());
        }
        let sources = self.sources.clone();
        let loaded = self.reads.read(move || sources.load()).await;
        let loaded = loaded.ok_or("TLS: the files were not read: the runtime ends")?;
        loaded.map(Arc::new).map_err(|error| error.to_string())
    }

    /// Whether the client has a certificate to show.
    pub(crate) fn has_identity(&self) -> bool {
        self.sources.identity.is_some()
    }

    /// Checks that every host can be named in a certificate. Otherwise the client library would panic.
    pub(crate) fn check_names(&self, hosts: &Hosts) -> Result<(), Error> {
        match hosts.servers.iter().find(|(host, _)| ServerName::try_from(host.as_str()).is_err()) {
            Some((host, _)) => Err(invalid(
                &format!("the host {host:?}"),
                "cannot be named in a certificate: correct the name",
            )),
            None => Ok(()),
        }
    }

    /// Adds the settings, with the key and its pass phrase, for another process of the same user.
    pub(crate) fn pass_on(&self, message: Message) -> Message {
        let Sources { authorities, identity, pass_phrase } = &*self.sources;
        let mut message = authorities.pass_on(AUTHORITIES, message);
        if let Some((certificate, key)) = identity {
            message = key.pass_on(KEY, certificate.pass_on(CERTIFICATE, message));
        }
        pass_phrase.iter().fold(message, |message, pass_phrase| pass_phrase.0.pass_on(PASS_PHRASE, message))
    }
}

/// Without the key, which has no business in a log.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("has_identity", &self.has_identity()).finish_non_exhaustive()
    }
}

impl Sources {
    fn are_fixed(&self) -> bool {
        let identity = self.identity.iter().flat_map(|(certificate, key)| [certificate, key]);
        let are_texts = identity.chain([&self.authorities]).all(|source| matches!(source, Source::Text(_)));
        are_texts && self.pass_phrase.as_ref().is_none_or(PassPhrase::is_fixed)
    }

    /// Loads all of it or nothing.
    fn load(&self) -> Result<Loaded, Error> {
        if CryptoProvider::get_default().is_none() {
            // In a program that was built with two providers for rustls, rustls and so the client library panic unless one
            // is chosen. If somebody else chooses first, that is as good.
            let _ = aws_lc_rs::default_provider().install_default();
        }
        let builder = ClientConfig::builder();
        let what = self.authorities.named("the list of authorities");
        let authorities_pem = self.authorities.read(&what)?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(read_certificates(&self.authorities, &what, &authorities_pem)?);
        let lists: Result<Vec<_>, _> =
            CertificateRevocationListDer::pem_slice_iter(authorities_pem.as_bytes()).collect();
        let lists = lists.map_err(|_| self.authorities.damaged(&what))?;
        let provider = builder.crypto_provider().clone();
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots.into(), provider).with_crls(lists).build();
        let verifier = verifier.map_err(|error| invalid(&what, &format!("cannot be used: {error}")))?;
        let builder = builder.with_webpki_verifier(verifier);
        let Some((certificate, key)) = &self.identity else {
            let config = Arc::new(builder.with_no_client_auth());
            return Ok(Loaded { authorities_pem, identity_pem: None, config });
        };

        let what = certificate.named("the client certificate");
        let certificate_pem = certificate.read(&what)?;
        let chain = read_certificates(certificate, &what, &certificate_pem)?;
        let what_key = key.named("the client key");
        let (key, key_pem) = key::read(key, &what_key, self.pass_phrase.as_ref())?;
        let config = builder.with_client_auth_cert(chain, key).map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => invalid(
                &what_key,
                "belongs to another certificate: give the key that the client certificate was made with",
            ),
            error => invalid(&what, &format!("cannot be used with its key: {error}")),
        })?;
        Ok(Loaded {
            authorities_pem,
            identity_pem: Some((certificate_pem, key_pem)),
            config: Arc::new(config),
        })
    }
}

/// What is given one by one, by name or by another process.
#[derive(Clone, Default)]
pub(crate) struct Parts {
    trusts_system: bool,
    authorities: Option<Source>,
    certificate: Option<Source>,
    key: Option<Source>,
    pass_phrase: Option<PassPhrase>,
}

impl Parts {
    /// Takes a part; `false` if it is none.
    pub(crate) fn take(&mut self, key: &str, given: &Given<'_>) -> Result<bool, Error> {
        match key {
            SYSTEM => self.trusts_system = matches!(given, Given::Text("yes")),
            AUTHORITIES => self.authorities = Some(Source::given(given)?),
            CERTIFICATE => self.certificate = Some(Source::given(given)?),
            KEY => self.key = Some(Source::given(given)?),
            PASS_PHRASE => {
                self.pass_phrase = Some(match *given {
                    Given::Text(text) => PassPhrase::new(text)?,
                    Given::File(file) => PassPhrase::from_file(file)?,
                    Given::Variable(variable) => PassPhrase::from_env(variable)?,
                });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Puts all parts together; `None` if the client connects without TLS.
    pub(crate) fn tls(self) -> Result<Option<Tls>, Error> {
        let identity = match (self.certificate, self.key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => {
                return Err(invalid(
                    "a certificate",
                    "needs its key, and a key its certificate: give both or none",
                ));
            }
        };
        let authorities = match self.authorities {
            Some(authorities) => authorities,
            None if self.trusts_system => Source::of_the_system()?,
            None if identity.is_none() => return Ok(None),
            None => return Err(invalid("the options cert and key", "are for TLS: give ca or tls as well")),
        };
        Tls::checked(Sources { authorities, identity, pass_phrase: self.pass_phrase }).map(Some)
    }
}

/// Without the pass phrase.
impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parts")
    }
}
