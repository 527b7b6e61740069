//! TLS: which servers to trust, and the client's certificate.

#[cfg(feature = "tls")]
use crate::guest::error::raised;
use crate::guest::error::{invalid, unpicklable};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::path::PathBuf;

/// How to connect with TLS. The arguments are PEM files: the authorities of the servers' certificates and, if the
/// servers ask for one, a client certificate and its key.
///
/// ``zklock.Client("zk1:2281", tls=zklock.Tls("ca.pem", "client.pem", "client.key"))``
///
/// The files are read now, and an error says what is wrong with which file. They are read again for each connection, so
/// that renewed certificates take effect without a restart. If a file cannot be used at that time, the client makes no
/// new connection: it does not fall back to what it read earlier. An existing connection stays.
///
/// ``pass_phrase`` is that of an encrypted key, as text or as a ``PassPhrase``. The servers' certificates must be valid
/// for the names given as hosts. None of these checks can be switched off.
#[pyclass(frozen, module = "zklock")]
pub(crate) struct Tls {
    #[cfg(feature = "tls")]
    inner: zklock::Tls,
    /// `None`: the authorities of the system.
    authorities: Option<PathBuf>,
    certificate: Option<PathBuf>,
}

#[pymethods]
impl Tls {
    #[new]
    #[pyo3(signature = (authorities, certificate=None, key=None, *, pass_phrase=None))]
    fn new(
        py: Python<'_>,
        authorities: PathBuf,
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        pass_phrase: Option<Opener>,
    ) -> PyResult<Self> {
        Self::made(py, Some(authorities), certificate, key, pass_phrase)
    }

    /// Trusts the authorities that this system trusts. They come from the file that the environment variable
    /// ``SSL_CERT_FILE`` names, otherwise from the file of the system's distribution.
    ///
    /// If the servers' certificates come from your own authority, use ``Tls`` and give that authority alone.
    #[staticmethod]
    #[pyo3(signature = (certificate=None, key=None, *, pass_phrase=None))]
    fn system(
        py: Python<'_>,
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        pass_phrase: Option<Opener>,
    ) -> PyResult<Self> {
        Self::made(py, None, certificate, key, pass_phrase)
    }

    fn __repr__(&self) -> String {
        let authorities = match &self.authorities {
            Some(file) => file.display().to_string(),
            None => "the system's authorities".to_owned(),
        };
        let identity = match &self.certificate {
            Some(certificate) => format!(", certificate {}", certificate.display()),
            None => String::new(),
        };
        format!("<zklock.Tls trusting {authorities}{identity}>")
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Tls", "send the paths of its files"))
    }
}

impl Tls {
    #[cfg(feature = "tls")]
    fn made(
        py: Python<'_>,
        authorities: Option<PathBuf>,
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        pass_phrase: Option<Opener>,
    ) -> PyResult<Self> {
        let identity = match (&certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key)),
            (None, None) => None,
            _ => {
                let message = "a certificate needs its key, and a key its certificate: give both or none";
                return Err(invalid(py, message.to_owned()));
            }
        };
        let pass_phrase = match pass_phrase {
            Some(Opener::Text(text)) => {
                Some(zklock::PassPhrase::new(&text).map_err(|error| raised(py, &error))?)
            }
            Some(Opener::Made(pass_phrase)) => Some(pass_phrase),
            None => None,
        };
        let made = py.detach(|| {
            let mut tls = match &authorities {
                Some(file) => zklock::Tls::from_file(file)?,
                None => zklock::Tls::system()?,
            };
            if let Some(pass_phrase) = pass_phrase {
                tls = tls.pass_phrase(pass_phrase);
            }
            match identity {
                Some((certificate, key)) => tls.identity_from_files(certificate, key),
                None => Ok(tls),
            }
        });
        let inner = made.map_err(|error| raised(py, &error))?;
        Ok(Self { inner, authorities, certificate })
    }

    #[cfg(not(feature = "tls"))]
    fn made(
        py: Python<'_>,
        _: Option<PathBuf>,
        _: Option<PathBuf>,
        _: Option<PathBuf>,
        _: Option<Opener>,
    ) -> PyResult<Self> {
        Err(without_tls(py))
    }

    #[cfg(feature = "tls")]
    pub(crate) fn core(&self) -> zklock::Tls {
        self.inner.clone()
    }
}

#[cfg(not(feature = "tls"))]
fn without_tls(py: Python<'_>) -> PyErr {
    invalid(py, "this build of zklock has no TLS".to_owned())
}

/// The pass phrase of an encrypted key.
///
/// ``zklock.Tls("ca.pem", "client.pem", "client.key", pass_phrase=zklock.PassPhrase.from_file("/run/secrets/key"))``
///
/// Keys are read in the format that ``openssl genpkey -aes256`` writes. The pass phrase never appears in the log, in
/// ``repr`` or in an exception.
#[pyclass(frozen, module = "zklock")]
pub(crate) struct PassPhrase(#[cfg(feature = "tls")] zklock::PassPhrase);

#[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "without TLS there is none"))]
#[pymethods]
impl PassPhrase {
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<Self> {
        #[cfg(feature = "tls")]
        return zklock::PassPhrase::new(text).map(Self).map_err(|error| raised(py, &error));
        #[cfg(not(feature = "tls"))]
        Err(without_tls(py))
    }

    /// The first line of a file. The file is read now, and again for each connection.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        #[cfg(feature = "tls")]
        {
            let read = py.detach(|| zklock::PassPhrase::from_file(path));
            read.map(Self).map_err(|error| raised(py, &error))
        }
        #[cfg(not(feature = "tls"))]
        Err(without_tls(py))
    }

    /// The value of an environment variable, which is read now.
    #[staticmethod]
    fn from_env(py: Python<'_>, variable: &str) -> PyResult<Self> {
        #[cfg(feature = "tls")]
        return zklock::PassPhrase::from_env(variable).map(Self).map_err(|error| raised(py, &error));
        #[cfg(not(feature = "tls"))]
        Err(without_tls(py))
    }

    fn __repr__(&self) -> String {
        #[cfg(feature = "tls")]
        return format!("<zklock.PassPhrase: {:?}>", self.0);
        #[cfg(not(feature = "tls"))]
        "<zklock.PassPhrase>".to_owned()
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("PassPhrase", "send the path of its file"))
    }
}

/// A pass phrase, in any form that users may write.
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "without TLS nothing is opened"))]
enum Opener {
    Text(String),
    #[cfg(feature = "tls")]
    Made(zklock::PassPhrase),
}

impl<'py> FromPyObject<'_, 'py> for Opener {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        #[cfg(feature = "tls")]
        if let Ok(made) = value.cast::<PassPhrase>() {
            return Ok(Self::Made(made.get().0.clone()));
        }
        // Do not quote it: it may be a pass phrase in another form.
        let wrong = |_| PyTypeError::new_err("pass_phrase is a str, or a zklock.PassPhrase");
        value.extract().map(Self::Text).map_err(wrong)
    }
}
