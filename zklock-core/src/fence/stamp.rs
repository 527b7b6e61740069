//! What a write carries, so that a fence can refuse it.

use crate::base::error::{Error, ErrorKind};
use crate::hold::hold::Hold;
use crate::threads::call::Call;

/// The longest name, in characters. Databases keep no longer one.
const LONGEST_NAME: usize = 255;
const LONGEST_ENSEMBLE: usize = 64;

/// What a write carries to a fence: the name of the lock, the token, and the ensemble that gave the token. It consists of two
/// texts and a number, so you can send it to the process that does the write.
///
/// # Examples
///
/// ```no_run
/// use zklock::fence::Stamp;
///
/// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
/// let stamp = Stamp::of(hold).await?;
/// println!("{} {} {}", stamp.name(), stamp.ensemble(), stamp.token());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stamp {
    name: Box<str>,
    ensemble: Box<str>,
    token: u64,
}

impl Stamp {
    /// Makes the stamp of a hold. Its name is the path of the lock. The first stamp of a client asks the servers for the
    /// ensemble's identity.
    ///
    /// # Errors
    ///
    /// Fails like [`Hold::ensemble_id`] does, and like [`new`](Self::new).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// let stamp = zklock::fence::Stamp::of(hold).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn of(hold: &Hold) -> Call<Self> {
        hold.call(
            |hold| async move { Self::new(hold.path(), &hold.ensemble_id().await?, hold.token().value()) },
        )
    }

    /// Makes a stamp from its parts, in the process that receives them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the name is empty, has more than 255 characters, or is not a single line; if `ensemble`
    /// is not the identity of an ensemble; or if the token is greater than any that ZooKeeper gives.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), zklock::Error> {
    /// let stamp = zklock::fence::Stamp::new("/locks/report", "9e0ab669", 8_589_934_593)?;
    /// assert_eq!(stamp.token(), 8_589_934_593);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(name: &str, ensemble: &str, token: u64) -> Result<Self, Error> {
        let is_name = (1..=LONGEST_NAME).contains(&name.chars().count())
            && !name.chars().any(char::is_control)
            && !name.ends_with(' ');
        let is_ensemble = (1..=LONGEST_ENSEMBLE).contains(&ensemble.len())
            && ensemble.bytes().all(|byte| byte.is_ascii_graphic());
        let problem = match () {
            () if !is_name => {
                format!("{name:?} names no fence: 1 to {LONGEST_NAME} characters in one line are allowed")
            }
            () if !is_ensemble => format!("{ensemble:?} is not the identity of an ensemble"),
            () if i64::try_from(token).is_err() => format!("{token} is not a token of ZooKeeper"),
            () => return Ok(Self { name: name.into(), ensemble: ensemble.into(), token }),
        };
        Err(Error::new(ErrorKind::InvalidInput, problem))
    }

    /// Returns the name of the fence: the path of the lock, unless it was made with another one.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), zklock::Error> {
    /// # let stamp = zklock::fence::Stamp::new("/locks/report", "9e0ab669", 8_589_934_593)?;
    /// assert_eq!(stamp.name(), "/locks/report");
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the identity of the ensemble.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), zklock::Error> {
    /// # let stamp = zklock::fence::Stamp::new("/locks/report", "9e0ab669", 8_589_934_593)?;
    /// assert_eq!(stamp.ensemble(), "9e0ab669");
    /// # Ok(())
    /// # }
    /// ```
    pub fn ensemble(&self) -> &str {
        &self.ensemble
    }

    /// Returns the token.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), zklock::Error> {
    /// # let stamp = zklock::fence::Stamp::new("/locks/report", "9e0ab669", 8_589_934_593)?;
    /// // Databases keep it as a signed number of 64 bits.
    /// assert!(i64::try_from(stamp.token()).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Whether a fence that keeps this ensemble and token refuses it, and why. `reset` says what resets the fence.
    pub(super) fn compare(&self, ensemble: &str, written: u64, reset: &str) -> Result<(), Error> {
        let Self { name, ensemble: ours, token } = self;
        let (kind, message) = if ensemble != &**ours {
            let message = format!(
                "the fence of {name} keeps a token of the ensemble {ensemble}, and this one is of {ours}: they cannot be compared; if \
                 no holder of the other ensemble can still write, {reset}"
            );
            (ErrorKind::OtherEnsemble, message)
        } else if written > *token {
            let message = format!(
                "a later holder of {name} has written, with the token {written}, and this one is {token}: stop, and acquire the lock \
                 again if you still want it"
            );
            (ErrorKind::StaleToken, message)
        } else {
            return Ok(());
        };
        Err(Error::new(kind, message))
    }
}
