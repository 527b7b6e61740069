//! Who a client logs in as: with ZooKeeper's `digest` scheme, with SASL (by password or Kerberos), or with both.
//!
//! A password goes to the servers and nowhere else. Its type cannot be printed, and no error quotes what was read.

use crate::base::error::{Error, ErrorKind};
use crate::base::files::{self, Reads};
use crate::base::message::{Given, Message};
#[cfg(feature = "kerberos")]
use crate::connect::kerberos::Kerberos;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// More than any file of credentials needs.
const LONGEST_FILE: u64 = 64 * 1024;
/// The options that log in.
const DIGEST: &str = "auth";
const SASL: &str = "sasl";
const KERBEROS: &str = "kerberos";

/// A login of a client, usually a user and a password.
///
/// With ZooKeeper's `digest` scheme, the servers keep no list of users. A login only adds an identity that access lists can
/// name, so it never fails. For the servers, the same user with another password is another user: with a wrong password, the
/// client has an identity that no access list names. The password crosses the network in plain text, so use TLS if others
/// could listen.
///
/// With [`sasl`](Self::sasl), the servers have a list of users and passwords, and refuse all others. With
/// [`kerberos`](Self::kerberos), they ask for a ticket instead. A client can log in as several users by `digest`, and in
/// addition as one user by SASL or Kerberos.
///
/// # Examples
///
/// ```
/// use zklock::ClientOptions;
/// use zklock::further::{Access, Credentials};
///
/// let options = ClientOptions::new("zk1:2181")
///     .credentials(Credentials::digest("billing", "secret")?)
///     .access(Access::CreatorAll);
/// assert!(!format!("{options:?}").contains("secret"));
/// # Ok::<(), zklock::Error>(())
/// ```
#[derive(Clone)]
pub struct Credentials(Source);

#[derive(Clone)]
enum Source {
    Given(Scheme, Arc<Login>),
    /// Read again for each connection.
    File(Scheme, Arc<Path>, Reads),
    #[cfg(feature = "kerberos")]
    Kerberos(Arc<Kerberos>),
}

/// How a password is presented to the servers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Digest,
    Sasl,
}

impl Scheme {
    fn key(self) -> &'static str {
        match self {
            Self::Digest => DIGEST,
            Self::Sasl => SASL,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Digest => "digest",
            Self::Sasl => "SASL",
        })
    }
}

impl Credentials {
    /// Makes credentials from a user and a password, for ZooKeeper's `digest` scheme.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if one is empty or contains a NUL or a line break, or the user contains a colon.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::ErrorKind;
    /// use zklock::further::Credentials;
    ///
    /// let credentials = Credentials::digest("billing", "secret")?;
    /// assert_eq!(format!("{credentials:?}"), r#"digest for "billing", password hidden"#);
    /// assert_eq!(Credentials::digest("bill:ing", "secret").unwrap_err().kind(), ErrorKind::InvalidInput);
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn digest(user: &str, password: &str) -> Result<Self, Error> {
        Self::given(Scheme::Digest, Login::new(Scheme::Digest, user, password))
    }

    /// Reads a user and a password from an environment variable, as `user:password`, for the `digest` scheme. It is read
    /// now, and not again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the variable is not set, or contains anything else.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use zklock::ClientOptions;
    /// # use zklock::further::Credentials;
    /// let options = ClientOptions::new("zk1:2181").credentials(Credentials::from_env("ZKLOCK_AUTH")?);
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn from_env(variable: &str) -> Result<Self, Error> {
        Self::of_env(Scheme::Digest, variable)
    }

    /// Reads users and passwords from a file, one `user:password` per line, for the `digest` scheme. The client logs in as
    /// all of them.
    ///
    /// The file is read now, and again for each connection, so that passwords can be changed while the client runs. If it
    /// cannot be read then, the client makes no connection: it tries again until its session is over, and then for the
    /// next session. Keep both the old and the new password in the file until no node has the old one in its access list.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it cannot be read, or contains anything else.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use zklock::ClientOptions;
    /// # use zklock::further::Credentials;
    /// let options = ClientOptions::new("zk1:2181").credentials(Credentials::from_file("/run/secrets/zookeeper")?);
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::of_file(Scheme::Digest, path.as_ref())
    }

    /// Makes credentials from a user and a password, for SASL's mechanism DIGEST-MD5. In access lists, the user
    /// is `sasl:user`.
    ///
    /// The servers' list of users is in the section `Server` of their JAAS file, and they name
    /// `org.apache.zookeeper.server.auth.SASLAuthenticationProvider` as an `authProvider`. Connecting is
    /// [refused](ErrorKind::Refused) if the password is wrong, the servers do not know the user, or they are not set up for
    /// SASL. The password itself does not cross the network. But a listener can use what crosses it to test guesses of the
    /// password, so use TLS.
    ///
    /// A password that is changed on the servers takes effect with the next connection. While they refuse the client's
    /// password, it cannot connect. A session that lost its connection is over when all hosts have refused it, one after the
    /// other, and its holds are lost. The client keeps trying: with [`sasl_from_file`](Self::sasl_from_file), it connects
    /// again as soon as the right password is in the file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if one is empty, contains a NUL or a line break, or is not all ASCII (clients and servers
    /// send other characters in different ways); or if the user contains a colon, a quotation mark or a backslash.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::ClientOptions;
    /// use zklock::further::{Access, Credentials};
    ///
    /// let options = ClientOptions::new("zk1:2181")
    ///     .credentials(Credentials::sasl("billing", "secret")?)
    ///     .access(Access::CreatorAll);
    /// assert!(format!("{options:?}").contains(r#"SASL for "billing", password hidden"#));
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn sasl(user: &str, password: &str) -> Result<Self, Error> {
        Self::given(Scheme::Sasl, Login::new(Scheme::Sasl, user, password))
    }

    /// Like [`sasl`](Self::sasl), with the text `user:password` in an environment variable. It is read now, and not again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the variable is not set, or contains anything else.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use zklock::ClientOptions;
    /// # use zklock::further::Credentials;
    /// let options = ClientOptions::new("zk1:2181").credentials(Credentials::sasl_from_env("ZKLOCK_SASL")?);
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn sasl_from_env(variable: &str) -> Result<Self, Error> {
        Self::of_env(Scheme::Sasl, variable)
    }

    /// Like [`sasl`](Self::sasl), with the text `user:password` in a file, which has only this line. It is read now, and again
    /// for each connection, so that the password can be changed while the client runs. If it cannot be read then, the client
    /// makes no connection.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it cannot be read, or contains anything else.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use zklock::ClientOptions;
    /// # use zklock::further::Credentials;
    /// let options = ClientOptions::new("zk1:2181").credentials(Credentials::sasl_from_file("/run/secrets/sasl")?);
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn sasl_from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::of_file(Scheme::Sasl, path.as_ref())
    }

    /// Makes credentials from the ticket that Kerberos has for this process, for SASL's mechanism GSSAPI. In access lists,
    /// the user is the client's principal, for example `sasl:billing@EXAMPLE.COM`.
    ///
    /// It needs the feature `kerberos`, which links against the system's Kerberos library. The ticket comes from the
    /// credential cache (`KRB5CCNAME`), or from a keytab (`KRB5_CLIENT_KTNAME`), which also renews it. It is looked up again
    /// for each connection. Without a ticket, [connecting](crate::Client::connect) is refused, and the error contains
    /// Kerberos' own message.
    ///
    /// The service is the first part of the servers' principal, usually `zookeeper`. The host is the second part; `None`
    /// means the host that the client connects to, as it is written in the hosts and completed by `krb5.conf`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] without the feature; [`ErrorKind::InvalidInput`] if one is empty, or contains a space or one of
    /// `@/\`.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::{ClientOptions, ErrorKind};
    /// use zklock::further::{Access, Credentials};
    ///
    /// let options = ClientOptions::new("zk1.example.com:2181").access(Access::CreatorAll);
    /// match Credentials::kerberos("zookeeper", None) {
    ///     Ok(kerberos) => assert!(options.credentials(kerberos).check().is_ok()),
    ///     // Without the feature.
    ///     Err(error) => assert_eq!(error.kind(), ErrorKind::Refused),
    /// }
    /// ```
    pub fn kerberos(service: &str, host: Option<&str>) -> Result<Self, Error> {
        #[cfg(feature = "kerberos")]
        return Ok(Self(Source::Kerberos(Arc::new(Kerberos::new(service, host)?))));
        #[cfg(not(feature = "kerberos"))]
        {
            let _ = (service, host);
            let message = "zklock was built without Kerberos: build it with the feature kerberos";
            Err(Error::new(ErrorKind::Refused, message))
        }
    }

    /// Returns the mechanism and the user: `SASL for "ann"`.
    pub(crate) fn login(&self) -> String {
        match &self.0 {
            #[cfg(feature = "kerberos")]
            Source::Kerberos(kerberos) => kerberos.to_string(),
            Source::Given(scheme, login) => format!("{scheme} for {:?}", login.user()),
            Source::File(scheme, path, _) => format!("{scheme} from the file {path:?}"),
        }
    }

    /// Whether it logs in by SASL, which a connection can do only once.
    pub(crate) fn is_sasl(&self) -> bool {
        match &self.0 {
            Source::Given(scheme, _) | Source::File(scheme, ..) => *scheme == Scheme::Sasl,
            #[cfg(feature = "kerberos")]
            Source::Kerberos(_) => true,
        }
    }

    pub(crate) fn is_kerberos(&self) -> bool {
        #[cfg(feature = "kerberos")]
        return self.by_kerberos().is_some();
        #[cfg(not(feature = "kerberos"))]
        false
    }

    #[cfg(feature = "kerberos")]
    fn by_kerberos(&self) -> Option<&Arc<Kerberos>> {
        if let Source::Kerberos(kerberos) = &self.0 { Some(kerberos) } else { None }
    }

    /// Adds the credentials, with their passwords, for another process of the same user.
    pub(crate) fn pass_on(&self, message: Message) -> Message {
        match &self.0 {
            Source::Given(scheme, login) => message.and(scheme.key(), &login.0),
            Source::File(scheme, file, _) => message.file(scheme.key(), file),
            #[cfg(feature = "kerberos")]
            Source::Kerberos(kerberos) => message.and(KERBEROS, &kerberos.service_and_host()),
        }
    }

    /// Makes credentials of an option, or of what another process has passed on.
    pub(crate) fn take(key: &str, given: &Given<'_>) -> Result<Self, Error> {
        let scheme = match key {
            DIGEST => Scheme::Digest,
            SASL => Scheme::Sasl,
            KERBEROS => return Self::of_kerberos(given),
            _ => return Err(Message::strange()),
        };
        match given {
            Given::File(file) => Self::of_file(scheme, file),
            Given::Text(text) => Self::given(scheme, Login::parse(scheme, text)),
            Given::Variable(variable) => Self::of_env(scheme, variable),
        }
    }

    fn given(scheme: Scheme, login: Result<Login, &str>) -> Result<Self, Error> {
        let login = login.map_err(|problem| invalid("the credentials", problem))?;
        Ok(Self(Source::Given(scheme, Arc::new(login))))
    }

    fn of_env(scheme: Scheme, variable: &str) -> Result<Self, Error> {
        let what = format!("the environment variable {variable:?}");
        // The standard library's error would quote it.
        let text = match std::env::var(variable) {
            Ok(text) => text,
            Err(std::env::VarError::NotPresent) => return Err(invalid(&what, "it is not set")),
            Err(std::env::VarError::NotUnicode(_)) => return Err(invalid(&what, "it is not UTF-8")),
        };
        let login = Login::parse(scheme, &text).map_err(|problem| invalid(&what, problem))?;
        Ok(Self(Source::Given(scheme, Arc::new(login))))
    }

    fn of_file(scheme: Scheme, path: &Path) -> Result<Self, Error> {
        read(scheme, path).map_err(|problem| Error::new(ErrorKind::InvalidInput, problem))?;
        Ok(Self(Source::File(scheme, path.into(), Reads::new())))
    }

    fn of_kerberos(given: &Given<'_>) -> Result<Self, Error> {
        let Given::Text(text) = given else { return Err(Message::strange()) };
        let (service, host) =
            text.split_once('/').map_or((*text, None), |(service, host)| (service, Some(host)));
        Self::kerberos(service, host)
    }
}

/// Without the password, which has no business in a log.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.login())?;
        match &self.0 {
            Source::Given(..) => f.write_str(", password hidden"),
            Source::File(..) => Ok(()),
            #[cfg(feature = "kerberos")]
            Source::Kerberos(_) => Ok(()),
        }
    }
}

/// `user:password`. It has no `Debug`.
pub(crate) struct Login(Box<str>);

impl Login {
    /// Checks both. An error is the end of a message that begins with where they were found.
    fn new(scheme: Scheme, user: &str, password: &str) -> Result<Self, &'static str> {
        if user.contains(':') {
            return Err("the user has a colon: choose another");
        }
        Self::parse(scheme, &format!("{user}:{password}"))
    }

    fn parse(scheme: Scheme, text: &str) -> Result<Self, &'static str> {
        let Some((user, password)) = text.split_once(':') else {
            return Err("the text is not of the form user:password");
        };
        if user.is_empty() || password.is_empty() {
            return Err("the user or the password is empty: give both");
        }
        if text.contains(['\0', '\n', '\r']) {
            return Err("a NUL or a line break is in it: leave it out");
        }
        if scheme == Scheme::Sasl {
            // The library sends UTF-8, but servers expect Latin-1, and it quotes nothing.
            if !text.is_ascii() {
                return Err("the user or the password is not all ASCII, which SASL requires: choose another");
            }
            if user.contains(['"', '\\']) {
                return Err("the user has a quotation mark or a backslash: choose another");
            }
        }
        Ok(Self(text.into()))
    }

    pub(crate) fn user(&self) -> &str {
        self.parts().0
    }

    pub(crate) fn password(&self) -> &str {
        self.parts().1
    }

    /// Returns the bytes that the scheme `digest` sends.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn parts(&self) -> (&str, &str) {
        self.0.split_once(':').unwrap_or_default()
    }
}

fn read(scheme: Scheme, path: &Path) -> Result<Vec<Login>, String> {
    let about = |problem: &str| format!("the credentials in the file {path:?}: {problem}");
    let text = files::text(path, LONGEST_FILE).map_err(|problem| about(&format!("it {problem}")))?;
    let lines = text.lines().filter(|line| !line.is_empty());
    let logins: Result<Vec<_>, _> = lines.map(|line| Login::parse(scheme, line)).collect();
    match logins {
        Ok(logins) if logins.is_empty() => Err(about("it is empty")),
        Ok(logins) if logins.len() > 1 && scheme == Scheme::Sasl => Err(about(
            "it has several lines, but a client can log in as only one user by SASL: keep one of them",
        )),
        logins => logins.map_err(about),
    }
}

#[derive(Default)]
pub(crate) struct Logins {
    pub(crate) digests: Vec<Arc<Login>>,
    pub(crate) sasl: Option<Arc<Login>>,
    #[cfg(feature = "kerberos")]
    pub(crate) kerberos: Option<Arc<Kerberos>>,
}

/// Returns the logins for a new connection, or why they cannot be had.
pub(crate) async fn current(credentials: &[Credentials]) -> Result<Logins, String> {
    let mut logins = Logins::default();
    for Credentials(source) in credentials {
        let (scheme, read) = match source {
            Source::Given(scheme, login) => (scheme, vec![login.clone()]),
            Source::File(scheme, path, reads) => {
                let (path, of) = (path.clone(), *scheme);
                let read = reads.read(move || read(of, &path)).await;
                let read = read.ok_or("the credentials were not read: the runtime ends")?;
                (scheme, read?.into_iter().map(Arc::new).collect())
            }
            #[cfg(feature = "kerberos")]
            Source::Kerberos(kerberos) => {
                logins.kerberos = Some(kerberos.clone());
                continue;
            }
        };
        match scheme {
            Scheme::Digest => logins.digests.extend(read),
            Scheme::Sasl => logins.sasl = read.into_iter().next(),
        }
    }
    Ok(logins)
}

/// Returns why there is no ticket for this host, if one is needed.
#[cfg(feature = "kerberos")]
pub(crate) async fn no_ticket(all: &[Credentials], host: &str, bound: std::time::Duration) -> Option<String> {
    let kerberos = all.iter().find_map(Credentials::by_kerberos)?;
    let fetched = kerberos.clone().fetch_ticket(kerberos.host(host), bound).await;
    fetched.err().map(|failure| failure.to_string())
}

fn invalid(what: &str, problem: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("{what}: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "s3cret-of-the-test";

    #[test]
    fn what_is_no_user_with_a_password_is_refused_and_not_quoted() {
        for (user, password) in [
            ("", SECRET),
            (SECRET, ""),
            ("a:b", SECRET),
            ("a\0", SECRET),
            ("a", "s3cret-of-the-test\0"),
            ("a", "s3cret-of-the-test\n"),
        ] {
            let error = Credentials::digest(user, password).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{user:?}");
            assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
        }
        assert!(Credentials::digest("user", "with:colons:").is_ok());
    }

    #[cfg(not(feature = "kerberos"))]
    #[test]
    fn without_the_feature_kerberos_is_refused() {
        let error = Credentials::kerberos("zookeeper", None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert_eq!(
            error.to_string(),
            "zklock was built without Kerberos: build it with the feature kerberos"
        );
    }

    #[test]
    fn what_sasl_would_send_wrongly_is_refused_and_not_quoted() {
        let odd = format!("{SECRET}-\u{e4}");
        for (user, password, problem) in
            [("a\"b", SECRET, "quotation"), ("a\\b", SECRET, "quotation"), ("a", odd.as_str(), "ASCII")]
        {
            let error = Credentials::sasl(user, password).unwrap_err();
            let said = format!("{error} {error:?}");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{said}");
            assert!(said.contains(problem) && !said.contains(SECRET), "{said}");
            assert!(Credentials::digest(user, password).is_ok());
        }
        assert!(Credentials::sasl("user", "\"with\\all:").is_ok());
    }

    #[test]
    fn a_file_is_named_and_not_quoted() {
        let file = std::env::temp_dir().join(format!("zklock-credentials-{}", std::process::id()));
        let name = file.to_str().unwrap();
        let long = SECRET.repeat(10_000);
        for (text, problem) in [
            ("", "empty"),
            (SECRET, "form"),
            (":s3cret-of-the-test", "empty"),
            ("a:s3cret-of-the-test\ns3cret-of-the-test\n", "form"),
            (long.as_str(), "too long"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = Credentials::from_file(&file).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let said = format!("{error} {error:?}");
            assert!(said.contains(name) && said.contains(problem) && !said.contains(SECRET), "{said}");
        }
        std::fs::write(&file, "a:s3cret-of-the-test\r\n\nb:more\n").unwrap();
        let several = Credentials::sasl_from_file(&file).unwrap_err().to_string();
        assert!(several.contains("one user") && !several.contains(SECRET), "{several}");
        let credentials = Credentials::from_file(&file).unwrap();
        assert!(!format!("{credentials:?}").contains(SECRET));
        let read = read(Scheme::Digest, &file).ok().unwrap();
        assert_eq!(read[0].as_bytes(), b"a:s3cret-of-the-test");
        assert_eq!((read[1].user(), read[1].password(), read.len()), ("b", "more", 2));
        std::fs::remove_file(&file).unwrap();
        assert!(Credentials::from_file(&file).unwrap_err().to_string().contains(name));
        let folder = Credentials::from_file(std::env::temp_dir()).unwrap_err();
        assert!(folder.to_string().contains("it is a directory"), "{folder}");
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let error = Credentials::from_env("ZKLOCK_TEST_NOT_SET").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("ZKLOCK_TEST_NOT_SET"), "{error}");
        // A variable that is certainly set, but has no such text.
        let error = Credentials::from_env("CARGO_PKG_NAME").unwrap_err();
        assert!(error.to_string().contains("user:password"), "{error}");
    }
}
