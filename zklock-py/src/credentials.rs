//! As whom a client logs in, and who may use what it creates.

use crate::error::{raised, unpicklable};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::path::PathBuf;
use zklock_core::{Access, ClientOptions, Credentials, Error};

/// Who a client logs in as, with ZooKeeper's scheme ``digest``: a user and a password.
///
/// ``zklock.Client(hosts, auth=zklock.Digest("billing", password), access="creator-all")``
///
/// The servers keep no list of users: with a wrong password the client is somebody else, whom access lists do not know.
/// The password crosses the network as it is: use TLS where others could listen. It is in no log, ``repr`` or exception.
#[pyclass(frozen, module = "zklock")]
pub(crate) struct Digest(Credentials);

#[pymethods]
impl Digest {
    #[new]
    fn new(py: Python<'_>, user: &str, password: &str) -> PyResult<Self> {
        Credentials::digest(user, password).map(Self).map_err(|error| raised(py, &error))
    }

    /// The users and passwords in a file: ``user:password``, one a line. The client logs in as all of them.
    ///
    /// The file is read now, and anew for each connection, so that passwords can be changed while the client runs. As long
    /// as it cannot be read then, no connection is made.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Credentials::from_file(path)).map(Self).map_err(|error| raised(py, &error))
    }

    /// The user and the password in an environment variable, ``user:password``. It is read now.
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

/// Who a client logs in as by SASL, with its mechanism DIGEST-MD5: a user and a password.
///
/// ``zklock.Client(hosts, auth=zklock.Sasl("billing", password), access="creator-all")``
///
/// To access lists it is ``sasl:billing``. The servers have a list of users, in the section ``Server`` of their JAAS file: with a
/// wrong password, with a user whom they do not know, and where they are not set up for SASL, connecting raises ``Refused``. A
/// password that is changed on the servers matters to the next connection: as long as they refuse it there is none, and the
/// session and its holds are lost. A client can log in by SASL as one user, and by ``Digest`` as others beside it.
///
/// The password is in no log, ``repr`` or exception, and does not cross the network; but a listener can try out passwords
/// on what does: use TLS.
#[pyclass(frozen, module = "zklock")]
pub(crate) struct Sasl(Credentials);

#[pymethods]
impl Sasl {
    #[new]
    fn new(py: Python<'_>, user: &str, password: &str) -> PyResult<Self> {
        Credentials::sasl(user, password).map(Self).map_err(|error| raised(py, &error))
    }

    /// The user and the password in a file, one line ``user:password``.
    ///
    /// The file is read now, and anew for each connection, so that the password can be changed while the client runs. As long
    /// as it cannot be read then, no connection is made.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Credentials::sasl_from_file(path)).map(Self).map_err(|error| raised(py, &error))
    }

    /// The user and the password in an environment variable, ``user:password``. It is read now.
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

/// Who a client logs in as by Kerberos: with the ticket that it has for this process.
///
/// ``zklock.Client("zk1.example.com:2181", auth=zklock.Kerberos(), access="creator-all")``
///
/// To access lists it is the client's principal, such as ``sasl:billing@EXAMPLE.COM``. The ticket is the one of the credential
/// cache (``KRB5CCNAME``), or comes from a keytab (``KRB5_CLIENT_KTNAME``), with which it is renewed. It is looked up anew for
/// each connection. Without one, connecting raises ``Refused``, or ``Unreachable`` if no KDC answers,
/// and Kerberos' own words say why.
///
/// ``service`` is the first part of the servers' principal. ``host`` is the second part; ``None`` stands for the host that is
/// connected to. A client can log in by SASL or Kerberos as one user, and by ``Digest`` as others beside it.
///
/// Where this module was built without Kerberos, this raises ``Refused``.
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

/// One that logs in, or several, as users write them.
#[derive(Default)]
pub(crate) struct Auth(Vec<Credentials>);

impl<'py> FromPyObject<'_, 'py> for Auth {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Some(one) = login(&value) {
            return Ok(Self(vec![one]));
        }
        // It is not quoted: there may be a password in it.
        let wrong = || {
            PyTypeError::new_err("auth is a zklock.Digest, zklock.Sasl or zklock.Kerberos, or a list of such")
        };
        let mut all = Vec::new();
        for one in value.try_iter().map_err(|_| wrong())? {
            all.push(login(&one?).ok_or_else(wrong)?);
        }
        Ok(Self(all))
    }
}

/// The options with these.
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

/// Who may use what is created, as users write it.
pub(crate) enum AccessText {
    Whole(String),
    /// One entry each.
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
