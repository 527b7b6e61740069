//! Logins, and the access lists of what a client creates.

use crate::guest::error::{raised, unpicklable};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::path::PathBuf;
use zklock::{Access, ClientOptions, Credentials, Error};

/// A login with ZooKeeper's scheme ``digest``: a user and a password.
///
/// ``zklock.Client(hosts, auth=zklock.Digest("billing", password), access="creator-all")``
///
/// The servers keep no list of users, so a wrong password is not an error. With it, the client is another user, which
/// no access list names. The password crosses the network in plain text, so use TLS if others could listen. It never
/// appears in the log, in ``repr`` or in an exception.
#[pyclass(frozen, module = "zklock")]
pub(crate) struct Digest(Credentials);

#[pymethods]
impl Digest {
    #[new]
    fn new(py: Python<'_>, user: &str, password: &str) -> PyResult<Self> {
        Credentials::digest(user, password).map(Self).map_err(|error| raised(py, &error))
    }

    /// The users and passwords in a file, one ``user:password`` per line. The client logs in as all of them.
    ///
    /// The file is read now, and again for each connection, so that passwords can be changed while the client runs. If it
    /// cannot be read at that time, the client makes no new connection.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Credentials::from_file(path)).map(Self).map_err(|error| raised(py, &error))
    }

    /// The ``user:password`` in an environment variable, which is read now.
    #[staticmethod]
    fn from_env(py: Python<'_>, variable: &str) -> PyResult<Self> {
        Credentials::from_env(variable).map(Self).map_err(|error| raised(py, &error))
    }

    fn __repr__(&self) -> String {
        format!("<zklock.Digest: {:?}>", self.0)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Digest", "send the path of its file"))
    }
}

/// A login by SASL, with the mechanism DIGEST-MD5: a user and a password.
///
/// ``zklock.Client(hosts, auth=zklock.Sasl("billing", password), access="creator-all")``
///
/// In access lists the user is ``sasl:billing``. The servers list their users in the section ``Server`` of their JAAS
/// file. Connecting raises ``Refused`` if the password is wrong, if the servers do not know the user, or if they are
/// not set up for SASL. A password that is changed on the servers takes effect with the next connection. If they refuse
/// the old one, the client cannot reconnect, and loses its session and its holds. A client can log in as only one user
/// by SASL, and as others by ``Digest`` at the same time.
///
/// The password never appears in the log, in ``repr`` or in an exception, and does not cross the network. But a
/// listener can use what crosses the network to test guesses of the password, so use TLS.
#[pyclass(frozen, module = "zklock")]
pub(crate) struct Sasl(Credentials);

#[pymethods]
impl Sasl {
    #[new]
    fn new(py: Python<'_>, user: &str, password: &str) -> PyResult<Self> {
        Credentials::sasl(user, password).map(Self).map_err(|error| raised(py, &error))
    }

    /// The user and the password in a file: a single line ``user:password``.
    ///
    /// The file is read now, and again for each connection, so that the password can be changed while the client runs. If
    /// it cannot be read at that time, the client makes no new connection.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Credentials::sasl_from_file(path)).map(Self).map_err(|error| raised(py, &error))
    }

    /// The ``user:password`` in an environment variable, which is read now.
    #[staticmethod]
    fn from_env(py: Python<'_>, variable: &str) -> PyResult<Self> {
        Credentials::sasl_from_env(variable).map(Self).map_err(|error| raised(py, &error))
    }

    fn __repr__(&self) -> String {
        format!("<zklock.Sasl: {:?}>", self.0)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Sasl", "send the path of its file"))
    }
}

/// A login with the Kerberos ticket of this process.
///
/// ``zklock.Client("zk1.example.com:2181", auth=zklock.Kerberos(), access="creator-all")``
///
/// In access lists the user is the client's principal, such as ``sasl:billing@EXAMPLE.COM``. The ticket comes from the
/// credential cache (``KRB5CCNAME``), or from a keytab (``KRB5_CLIENT_KTNAME``), which is also used to renew it. It is
/// looked up again for each connection. If there is no ticket, connecting raises ``Refused``, or ``Unreachable`` if no
/// KDC answers. The message includes Kerberos' own explanation.
///
/// ``service`` is the first part of the servers' principal. ``host`` is the second part; ``None`` means the host that
/// the client connects to. A client can log in as only one user by SASL or Kerberos, and as others by ``Digest`` at
/// the same time.
///
/// If this module was built without Kerberos, this raises ``Refused``.
#[pyclass(frozen, module = "zklock")]
pub(crate) struct Kerberos(Credentials);

#[pymethods]
impl Kerberos {
    #[new]
    #[pyo3(signature = (service="zookeeper", host=None))]
    fn new(py: Python<'_>, service: &str, host: Option<&str>) -> PyResult<Self> {
        Credentials::kerberos(service, host).map(Self).map_err(|error| raised(py, &error))
    }

    fn __repr__(&self) -> String {
        format!("<zklock.Kerberos: {:?}>", self.0)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Kerberos", "make one where it is needed"))
    }
}

fn login(value: &Bound<'_, PyAny>) -> Option<Credentials> {
    let digest = value.cast::<Digest>().ok().map(|digest| digest.get().0.clone());
    let sasl = || value.cast::<Sasl>().ok().map(|sasl| sasl.get().0.clone());
    let kerberos = || value.cast::<Kerberos>().ok().map(|kerberos| kerberos.get().0.clone());
    digest.or_else(sasl).or_else(kerberos)
}

/// One login or several, in any form that users may write.
#[derive(Default)]
pub(crate) struct Auth(Vec<Credentials>);

impl<'py> FromPyObject<'_, 'py> for Auth {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Some(one) = login(&value) {
            return Ok(Self(vec![one]));
        }
        // Do not quote it: it may contain a password.
        let wrong = || {
            PyTypeError::new_err(
                "auth is a zklock.Digest, zklock.Sasl or zklock.Kerberos, or a list of these",
            )
        };
        let mut all = Vec::new();
        for one in value.try_iter().map_err(|_| wrong())? {
            all.push(login(&one?).ok_or_else(wrong)?);
        }
        Ok(Self(all))
    }
}

/// Returns the options with these logins.
pub(crate) fn with_access(
    py: Python<'_>,
    options: ClientOptions,
    auth: Option<Auth>,
    access: AccessText,
) -> PyResult<ClientOptions> {
    let access = access.read().map_err(|error| raised(py, &error))?;
    let Auth(all) = auth.unwrap_or_default();
    let options = all.into_iter().fold(options, ClientOptions::credentials).access(access);
    options.check().map_err(|error| raised(py, &error))?;
    Ok(options)
}

/// The access argument, in any form that users may write.
pub(crate) enum AccessText {
    Whole(String),
    /// A list with one entry each.
    Entries(Vec<String>),
}

impl Default for AccessText {
    fn default() -> Self {
        Self::Whole(Access::default().to_string())
    }
}

impl AccessText {
    fn read(self) -> Result<Access, Error> {
        match self {
            Self::Whole(text) => text.parse(),
            Self::Entries(entries) => Access::of_texts(entries),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for AccessText {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(whole) = value.extract() {
            return Ok(Self::Whole(whole));
        }
        let wrong = || PyTypeError::new_err("access is a str, or a list of entries, each a str");
        let entries = value.try_iter().map_err(|_| wrong())?;
        let entries = entries.map(|entry| entry?.extract().map_err(|_| wrong()));
        Ok(Self::Entries(entries.collect::<PyResult<_>>()?))
    }
}
