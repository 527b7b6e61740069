//! The pass phrase of an encrypted key. It goes nowhere: its type cannot be printed, and no error
//! quotes what was read.

use super::source::{Source, invalid};
use crate::base::error::Error;
use crate::base::files;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// More than any pass phrase needs.
const LONGEST_FILE: u64 = 64 * 1024;

/// The pass phrase of an encrypted key, for [`Tls::pass_phrase`](crate::further::Tls::pass_phrase). It needs
/// the feature `tls`.
///
/// It never appears in a log, an error or a debug output.
///
/// # Examples
///
/// ```
/// let pass_phrase = zklock::further::PassPhrase::new("correct horse")?;
/// assert_eq!(format!("{pass_phrase:?}"), "a pass phrase, hidden");
/// # Ok::<(), zklock::Error>(())
/// ```
#[derive(Clone)]
pub struct PassPhrase(pub(super) Source);

impl PassPhrase {
    /// Makes a pass phrase from its text.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if it is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::ErrorKind;
    /// # use zklock::further::PassPhrase;
    /// assert!(PassPhrase::new("correct horse").is_ok());
    /// assert_eq!(PassPhrase::new("").unwrap_err().kind(), ErrorKind::InvalidInput);
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn new(text: &str) -> Result<Self, Error> {
        Self::given("the pass phrase", text)
    }

    /// Reads the pass phrase from an environment variable. It is read now, and not again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the variable is not set, empty, or not UTF-8.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let pass_phrase = zklock::further::PassPhrase::from_env("CLIENT_KEY_PASS")?;
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn from_env(variable: &str) -> Result<Self, Error> {
        let what = format!("the pass phrase in the environment variable {variable:?}");
        match std::env::var(variable) {
            Ok(text) => Self::given(&what, &text),
            Err(std::env::VarError::NotPresent) => Err(invalid(&what, "is missing: it is not set")),
            // The standard library's error would quote it.
            Err(std::env::VarError::NotUnicode(_)) => Err(invalid(&what, "is not UTF-8")),
        }
    }

    /// Reads the pass phrase from the first line of a file. It is read now, and again for each connection.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if it cannot be read, or the line is empty.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let pass_phrase = zklock::further::PassPhrase::from_file("/run/secrets/client-key")?;
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let pass_phrase = Self(Source::File(path.as_ref().into()));
        pass_phrase.read()?;
        Ok(pass_phrase)
    }

    fn given(what: &str, text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(invalid(what, "is empty: leave it out for a key that is not encrypted"));
        }
        Ok(Self(Source::Text(text.into())))
    }

    /// Whether it is the same whenever it is read.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self.0, Source::Text(_))
    }

    pub(super) fn read(&self) -> Result<Arc<str>, Error> {
        let file = match &self.0 {
            Source::Text(text) => return Ok(text.clone()),
            Source::File(file) => file,
        };
        let what = format!("the pass phrase in the file {file:?}");
        let text = files::text(file, LONGEST_FILE).map_err(|problem| invalid(&what, &problem))?;
        match text.lines().next() {
            None | Some("") => Err(invalid(&what, "is empty: put the pass phrase on its first line")),
            Some(line) => Ok(line.into()),
        }
    }
}

/// Without the pass phrase, which has no business in a log.
impl fmt::Debug for PassPhrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Text(_) => write!(f, "a pass phrase, hidden"),
            Source::File(file) => write!(f, "the pass phrase in the file {file:?}"),
        }
    }
}
