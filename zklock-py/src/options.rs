//! How to connect.

use crate::error::{invalid, raised, unpicklable};
use crate::number::seconds;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use zklock_core::ClientOptions;

/// How to connect with TLS: PEM files of the authorities of the servers' certificates and, if the servers want
/// one, of a client certificate and its key.
///
/// ``zklock.Client("zk1:2281", tls=zklock.Tls("ca.pem", "client.pem", "client.key"))``
///
/// The files are read at once, and an error says what is wrong with which. The servers' certificates must be for the names
/// given as hosts. None of these checks can be switched off.
#[pyclass(frozen, module = "zklock")]
pub(crate) struct Tls {
    #[cfg(feature = "tls")]
    inner: zklock_core::Tls,
    authorities: PathBuf,
    certificate: Option<PathBuf>,
}

#[pymethods]
impl Tls {
    #[new]
    #[pyo3(signature = (authorities, certificate=None, key=None))]
    fn new(
        py: Python<'_>,
        authorities: PathBuf,
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> PyResult<Self> {
        #[cfg(feature = "tls")]
        {
            let about = |files: String, error| invalid(py, format!("{files}: {error}"));
            let tls = zklock_core::Tls::new(&text(py, &authorities)?);
            let tls = tls.map_err(|error| about(authorities.display().to_string(), error))?;
            let inner = match (&certificate, key) {
                (Some(certificate), Some(key)) => {
                    tls.identity(&text(py, certificate)?, &text(py, &key)?).map_err(|error| {
                        about(format!("{} with {}", certificate.display(), key.display()), error)
                    })?
                }
                (None, None) => tls,
                _ => {
                    let message = "a certificate needs its key, and a key its certificate: give both or none";
                    return Err(invalid(py, message.to_owned()));
                }
            };
            Ok(Self { inner, authorities, certificate })
        }
        #[cfg(not(feature = "tls"))]
        {
            let _ = (authorities, certificate, key);
            Err(invalid(py, "this build of zklock has no TLS".to_owned()))
        }
    }

    fn __repr__(&self) -> String {
        let identity = match &self.certificate {
            Some(certificate) => format!(", certificate {}", certificate.display()),
            None => String::new(),
        };
        format!("<zklock.Tls trusting {}{identity}>", self.authorities.display())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Tls", "send the paths of its files"))
    }
}

/// The timeouts of a client, in seconds.
pub(crate) struct Timeouts {
    pub(crate) session: f64,
    pub(crate) connect: f64,
    /// Of what does not wait for others.
    pub(crate) trying: f64,
}

/// The options of a client, from its arguments.
pub(crate) fn options(
    py: Python<'_>,
    hosts: &str,
    timeouts: &Timeouts,
    chroot: Option<&str>,
    identity: Option<&str>,
    tls: Option<&Tls>,
    server_version: Option<(u32, u32)>,
) -> PyResult<ClientOptions> {
    let fail = |error| raised(py, &error);
    let session_timeout = seconds(py, "session_timeout", timeouts.session)?;
    let connect_timeout = seconds(py, "connect_timeout", timeouts.connect)?;
    let try_timeout = seconds(py, "try_timeout", timeouts.trying)?;
    let mut options = ClientOptions::new(hosts).map_err(fail)?;
    options = options.session_timeout(session_timeout).map_err(fail)?.connect_timeout(connect_timeout);
    options = options.try_timeout(try_timeout).map_err(fail)?;
    if let Some(chroot) = chroot {
        options = options.chroot(chroot).map_err(fail)?;
    }
    if let Some(identity) = identity {
        options = options.identity(identity).map_err(fail)?;
    }
    if let Some((major, minor)) = server_version {
        options = options.server_version(major, minor).map_err(fail)?;
    }
    #[cfg(feature = "tls")]
    if let Some(tls) = tls {
        options = options.tls(tls.inner.clone());
    }
    #[cfg(not(feature = "tls"))]
    let _ = tls;
    Ok(options)
}

#[cfg(feature = "tls")]
fn text(py: Python<'_>, path: &Path) -> PyResult<String> {
    std::fs::read_to_string(path)
        .map_err(|error| invalid(py, format!("the file {} cannot be read: {error}", path.display())))
}
