//! TLS: which servers to trust, and the client's certificate.

use crate::guest::error::{raised, unpicklable};
use crate::settings::secret::secret;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::fmt;
use std::path::PathBuf;
use zklock::face::Given;
use zklock::{ClientOptions, Error};

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
    /// Those of a client that connects so.
    pub(crate) options: ClientOptions,
    shown: String,
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
        pass_phrase: Option<Phrase>,
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
        pass_phrase: Option<Phrase>,
    ) -> PyResult<Self> {
        Self::made(py, None, certificate, key, pass_phrase)
    }

    fn __repr__(&self) -> String {
        format!("<zklock.Tls trusting {}>", self.shown)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Tls", "send the paths of its files"))
    }
}

impl Tls {
    fn made(
        py: Python<'_>,
        authorities: Option<PathBuf>,
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        pass_phrase: Option<Phrase>,
    ) -> PyResult<Self> {
        let mut shown = authorities
            .as_ref()
            .map_or("the system's authorities".to_owned(), |file| file.display().to_string());
        if let Some(file) = &certificate {
            shown += &format!(", certificate {}", file.display());
        }
        let options = py.detach(|| {
            let mut options = pass_phrase.map_or_else(none, |phrase| phrase.options);
            if authorities.is_none() {
                options = options.set("tls", "yes")?;
            }
            for (name, file) in [("ca", authorities), ("cert", certificate), ("key", key)] {
                if let Some(file) = file {
                    options = options.take(name, &Given::File(&file))?;
                }
            }
            options.checked()
        });
        Ok(Self { options: options.map_err(|error| raised(py, &error))?, shown })
    }
}

/// Options of a client, with nothing of TLS.
fn none() -> ClientOptions {
    ClientOptions::new("localhost")
}

secret! {
    /// The pass phrase of an encrypted key.
    ///
    /// ``zklock.Tls("ca.pem", "client.pem", "client.key", pass_phrase=zklock.PassPhrase.from_file("/run/secrets/key"))``
    ///
    /// Keys are read in the format that ``openssl genpkey -aes256`` writes. The pass phrase never appears in the log, in
    /// ``repr`` or in an exception.
    struct PassPhrase(Phrase) = Phrase::of_text => (text);

    PassPhrase {
        /// The first line of a file. The file is read now, and again for each connection.
        fn from_file = Phrase::of_file;

        /// The value of an environment variable, which is read now.
        fn from_env = Phrase::of_variable;
    }
}

/// A pass phrase, which users may give as text too.
#[derive(Clone)]
pub(crate) struct Phrase {
    /// Those that have it, and nothing else.
    options: ClientOptions,
    shown: String,
}

const HIDDEN: &str = "a pass phrase, hidden";

impl Phrase {
    fn given(given: &Given<'_>, shown: String) -> Result<Self, Error> {
        Ok(Self { options: none().take("pass-phrase", given)?, shown })
    }

    fn of_text(text: &str) -> Result<Self, Error> {
        Self::given(&Given::Text(text), HIDDEN.to_owned())
    }

    fn of_variable(variable: &str) -> Result<Self, Error> {
        Self::given(&Given::Variable(variable), HIDDEN.to_owned())
    }

    #[expect(clippy::needless_pass_by_value, reason = "so the class gives it")]
    fn of_file(path: PathBuf) -> Result<Self, Error> {
        Self::given(&Given::File(&path), format!("the pass phrase in the file {path:?}"))
    }
}

impl fmt::Debug for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl<'py> FromPyObject<'_, 'py> for Phrase {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(made) = value.cast::<PassPhrase>() {
            return Ok(made.get().0.clone());
        }
        // Do not quote it: it may be a pass phrase in another form.
        let wrong = |_| PyTypeError::new_err("pass_phrase is a str, or a zklock.PassPhrase");
        Self::of_text(&value.extract::<String>().map_err(wrong)?).map_err(|error| raised(value.py(), &error))
    }
}
