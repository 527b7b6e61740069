//! Who a client logs in as, with ZooKeeper's `digest` scheme.
//!
//! The password goes to the servers, and nowhere else: its type cannot be printed, and no error quotes what was read.

use crate::error::{Error, ErrorKind};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// More than any file of credentials has.
const LONGEST_FILE: u64 = 64 * 1024;

/// Who a client logs in as, with ZooKeeper's `digest` scheme: a user and a password.
///
/// The servers keep no list of users. Logging in only adds the identity that access lists name, and so never fails: with
/// a wrong password the client is somebody else, whom the access lists do not know. To the servers each password of a user
/// is another user.
///
/// The password crosses the network as it is: use TLS where others could listen.
///
/// ```
/// use zklock_core::{Access, ClientOptions, Credentials};
///
/// let options = ClientOptions::new("zk1:2181")?
///     .credentials(Credentials::digest("billing", "secret")?)
///     .access(Access::CreatorAll);
/// assert!(!format!("{options:?}").contains("secret"));
/// # Ok::<(), zklock_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Credentials(Source);

#[derive(Clone)]
enum Source {
    Given(Arc<Digest>),
    /// Read anew for each connection.
    File(Arc<Path>),
}

impl Credentials {
    /// This user with this password.
    ///
    /// ```
    /// use zklock_core::{Credentials, ErrorKind};
    ///
    /// let credentials = Credentials::digest("billing", "secret")?;
    /// assert_eq!(format!("{credentials:?}"), r#"digest for "billing", password hidden"#);
    /// assert_eq!(Credentials::digest("bill:ing", "secret").unwrap_err().kind(), ErrorKind::InvalidInput);
    /// # Ok::<(), zklock_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if one is empty or has a NUL or a line break in it, or the user has a colon.
    pub fn digest(user: &str, password: &str) -> Result<Self, Error> {
        let digest = Digest::new(user, password).map_err(|problem| invalid("the credentials", problem))?;
        Ok(Self(Source::Given(Arc::new(digest))))
    }

    /// The user and the password of an environment variable, whose text is `user:password`. It is read now, and not again.
    ///
    /// ```no_run
    /// # use zklock_core::{ClientOptions, Credentials};
    /// let options = ClientOptions::new("zk1:2181")?.credentials(Credentials::from_env("ZKLOCK_AUTH")?);
    /// # Ok::<(), zklock_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the variable is not set, or its text is something else.
    pub fn from_env(variable: &str) -> Result<Self, Error> {
        let what = format!("the environment variable {variable:?}");
        // The error of the standard library would quote it.
        let text = match std::env::var(variable) {
            Ok(text) => text,
            Err(std::env::VarError::NotPresent) => return Err(invalid(&what, "it is not set")),
            Err(std::env::VarError::NotUnicode(_)) => return Err(invalid(&what, "it is not UTF-8")),
        };
        let digest = Digest::parse(&text).map_err(|problem| invalid(&what, problem))?;
        Ok(Self(Source::Given(Arc::new(digest))))
    }

    /// The users and passwords of a file: one `user:password` a line. The client logs in as all of them.
    ///
    /// The file is read now, and anew for each connection, so that passwords can be changed while the client runs. If it
    /// cannot be read then, no connection is made: the client tries again until its session is over, and for the next
    /// session. Let a file with the old and the new password stand until no node has the old one in its access list.
    ///
    /// ```no_run
    /// # use zklock_core::{ClientOptions, Credentials};
    /// let options = ClientOptions::new("zk1:2181")?.credentials(Credentials::from_file("/run/secrets/zookeeper")?);
    /// # Ok::<(), zklock_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it cannot be read, or something else is in it.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        read(path).map_err(|problem| Error::new(ErrorKind::InvalidInput, problem))?;
        Ok(Self(Source::File(path.into())))
    }
}

/// Without the password, which has no business in a log.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Given(digest) => write!(f, "digest for {:?}, password hidden", digest.user()),
            Source::File(path) => write!(f, "digest from the file {path:?}"),
        }
    }
}

/// `user:password`, as it goes to the servers. It has no `Debug`.
#[derive(Clone)]
pub(crate) struct Digest(Box<str>);

impl Digest {
    /// Or what is wrong, which follows on where it was found.
    fn new(user: &str, password: &str) -> Result<Self, &'static str> {
        if user.contains(':') {
            return Err("the user has a colon: choose another");
        }
        Self::parse(&format!("{user}:{password}"))
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let Some((user, password)) = text.split_once(':') else {
            return Err("the text is not of the form user:password");
        };
        if user.is_empty() || password.is_empty() {
            return Err("the user or the password is empty: give both");
        }
        if text.contains(['\0', '\n', '\r']) {
            return Err("a NUL or a line break is in it: leave it out");
        }
        Ok(Self(text.into()))
    }

    fn user(&self) -> &str {
        self.0.split(':').next().unwrap_or_default()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// What is in a file. A pipe is refused: it could not be read again, and may keep the reader waiting.
fn read(path: &Path) -> Result<Vec<Digest>, String> {
    let about = |problem: &str| format!("the credentials in the file {path:?}: {problem}");
    let unreadable = |error: std::io::Error| about(&format!("it cannot be read: {error}"));
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(about("it is not a regular file"));
    }
    let mut text = String::new();
    // The error of the standard library says nothing of what is in it.
    let mut file = std::fs::File::open(path).map_err(unreadable)?.take(LONGEST_FILE + 1);
    file.read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > LONGEST_FILE {
        return Err(about("it is too long: is it the right file?"));
    }
    let digests: Result<Vec<_>, _> =
        text.lines().filter(|line| !line.is_empty()).map(Digest::parse).collect();
    match digests {
        Ok(digests) if digests.is_empty() => Err(about("it is empty")),
        digests => digests.map_err(about),
    }
}

/// As whom to log in on a new connection, or why that is not known.
pub(crate) async fn current(credentials: &[Credentials]) -> Result<Vec<Arc<Digest>>, String> {
    let mut digests = Vec::new();
    for Credentials(source) in credentials {
        match source {
            Source::Given(digest) => digests.push(digest.clone()),
            Source::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read(&path)).await;
                let read = read.map_err(|_| "the credentials were not read: the runtime ends".to_owned())?;
                digests.extend(read?.into_iter().map(Arc::new));
            }
        }
    }
    Ok(digests)
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
        let credentials = Credentials::from_file(&file).unwrap();
        assert!(!format!("{credentials:?}").contains(SECRET));
        let read = read(&file).ok().unwrap();
        assert_eq!(read[0].as_bytes(), b"a:s3cret-of-the-test");
        assert_eq!((read[1].user(), read.len()), ("b", 2));
        std::fs::remove_file(&file).unwrap();
        assert!(Credentials::from_file(&file).unwrap_err().to_string().contains(name));
        let folder = Credentials::from_file(std::env::temp_dir()).unwrap_err();
        assert!(folder.to_string().contains("regular file"), "{folder}");
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let error = Credentials::from_env("ZKLOCK_TEST_NOT_SET").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("ZKLOCK_TEST_NOT_SET"), "{error}");
        // One that is certainly set, and has no such text.
        let error = Credentials::from_env("CARGO_PKG_NAME").unwrap_err();
        assert!(error.to_string().contains("user:password"), "{error}");
    }
}
