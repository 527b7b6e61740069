//! Logins, and the access lists of what a client creates.

use crate::guest::error::{raised, unpicklable};
use crate::settings::secret::secret;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use zklock::further::{Access, Credentials};

secret! {
    /// A login with ZooKeeper's scheme ``digest``: a user and a password.
    ///
    /// ``zklock.Client(hosts, auth=zklock.Digest("billing", password), access="creator-all")``
    ///
    /// The servers keep no list of users, so a wrong password is not an error. With it, the client is another user, which
    /// no access list names. The password crosses the network in plain text, so use TLS if others could listen. It never
    /// appears in the log, in ``repr`` or in an exception.
    struct Digest(Credentials) = Credentials::digest => (user, password);

    Digest {
        /// The users and passwords in a file, one ``user:password`` per line. The client logs in as all of them.
        ///
        /// The file is read now, and again for each connection, so that passwords can be changed while the client runs. If it
        /// cannot be read at that time, the client makes no new connection.
        fn from_file = Credentials::from_file;

        /// The ``user:password`` in an environment variable, which is read now.
        fn from_env = Credentials::from_env;
    }
}

secret! {
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
    struct Sasl(Credentials) = Credentials::sasl => (user, password);

    Sasl {
        /// The user and the password in a file: a single line ``user:password``. It is read as that of ``Digest.from_file``.
        fn from_file = Credentials::sasl_from_file;

        /// The ``user:password`` in an environment variable, which is read now.
        fn from_env = Credentials::sasl_from_env;
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

/// Reads the argument `auth`: one login, or several.
pub(crate) fn logins(given: &Bound<'_, PyAny>) -> PyResult<Vec<Credentials>> {
    if let Some(one) = login(given) {
        return Ok(vec![one]);
    }
    // Do not quote it: it may contain a password.
    let text = "auth is a zklock.Digest, zklock.Sasl or zklock.Kerberos, or a list of these";
    let wrong = || PyTypeError::new_err(text);
    given.try_iter().map_err(|_| wrong())?.map(|one| login(&one?).ok_or_else(wrong)).collect()
}

/// Reads the argument `access`: a text, or a list with one entry each.
pub(crate) fn access(given: &Bound<'_, PyAny>) -> PyResult<Access> {
    let read = if let Ok(whole) = given.extract::<String>() {
        whole.parse()
    } else {
        let wrong = |_| PyTypeError::new_err("access is a str, or a list of entries, each a str");
        let entries = given.try_iter().map_err(wrong)?.map(|entry| entry?.extract().map_err(wrong));
        Access::list(entries.collect::<PyResult<Vec<String>>>()?)
    };
    read.map_err(|error| raised(given.py(), &error))
}
