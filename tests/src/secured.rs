//! Secured ensembles, if `ZKLOCK_SECURED` is in the environment: scenarios then run in one without knowing it.
//!
//! Such an ensemble only accepts clients that log in. Clients do so by SASL, over TLS with a certificate; through a
//! [`Proxy`](crate::Proxy) they do so without TLS, because a proxy could not read that. Operators log in as the
//! superuser.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::certificates::Certificates;
use crate::ensemble::Builder;

/// The user that clients log in as.
pub const USER: &str = "scenario";
/// Its password.
pub const PASSWORD: &str = "s3cret-of-scenarios";

/// The user that operators log in as, and its digest.
pub(crate) const SUPERUSER: &[u8] = b"super:secret";
const DIGEST: &str = "zookeeper.DigestAuthenticationProvider.superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4=";

/// The PEM files that clients need for TLS.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TlsFiles {
    pub authority: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// By the connect strings of the ensembles.
static FILES: Mutex<BTreeMap<String, TlsFiles>> = Mutex::new(BTreeMap::new());

/// Whether ensembles are to be secured.
pub fn is_wanted() -> bool {
    std::env::var_os("ZKLOCK_SECURED").is_some_and(|value| !value.is_empty())
}

/// The files that a client of these hosts needs; `None` if they do not use TLS.
pub fn tls_files(hosts: &str) -> Option<TlsFiles> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner).get(hosts).cloned()
}

pub(crate) fn remember(hosts: String, certificates: &Certificates) {
    let files = TlsFiles {
        authority: certificates.authority(),
        certificate: certificates.client(),
        key: certificates.client_key(),
    };
    FILES.lock().unwrap_or_else(PoisonError::into_inner).insert(hosts, files);
}

/// The settings of a secured ensemble.
pub(crate) fn closed(builder: Builder) -> Builder {
    let builder = builder.tls(true).sasl(&[(USER, PASSWORD)]).property(DIGEST);
    builder.configure("enforce.auth.enabled=true").configure("enforce.auth.schemes=sasl,digest")
}
