//! Errors for people: a few kinds, chosen by what the caller can do, and a sentence that says what is
//! wrong.

use crate::machine::layout::InvalidPattern;
pub(crate) use crate::machine::status::LossReason;
use std::fmt;

zklock_machine::listed! {
    /// The kind of an error, chosen by what the caller can do about it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::ErrorKind;
    /// fn is_worth_another_try(kind: ErrorKind) -> bool {
    ///     matches!(kind, ErrorKind::Timeout | ErrorKind::Unreachable)
    /// }
    /// assert!(is_worth_another_try(ErrorKind::Timeout));
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    #[non_exhaustive]
    pub enum ErrorKind {
        /// An argument is wrong: correct the call.
        InvalidInput,
        /// No server could be reached: check the hosts and the network, or try again later.
        Unreachable,
        /// The time was up before the lock was free: try again, or do without the lock.
        Timeout,
        /// The wait could never end, because only this owner can release the hold that it waits for:
        /// correct the program.
        Deadlock,
        /// The hold belongs to another owner, and its lock is reentrant: release it where it was acquired.
        NotOwner,
        /// The hold has already been released: correct the program.
        NotHeld,
        /// The hold is lost, and others may hold the lock: stop the work that it guarded.
        Lost(LossReason),
        /// A contender that cannot see ours is in the queue: make both sides use the same naming scheme.
        ForeignContender,
        /// The access list or the server's rules forbid it, or the servers are too old for it: correct the
        /// rights or the setup.
        Refused,
        /// The client is closed, or the program has closed its descriptors: make a new one.
        Closed,
        /// The wait was interrupted, for example by a signal.
        Interrupted,
        /// The reply to a guarded write was lost, so the write may or may not have been done: read,
        /// then decide.
        Uncertain,
        /// A guarded write was refused, because a node was not in the state that it requires. Nothing was
        /// written.
        Conflict,
        /// This process was forked from one that had used the library: start a new program (exec), or fork
        /// before the first use.
        Forked,
        /// The lock is held, but not certain to be held for long enough: begin nothing, and ask again.
        AtRisk,
        /// A fence refused a write, because a later holder has written: stop the work.
        StaleToken,
        /// A fence refused a write, because it keeps the token of another ensemble: the message says how to go
        /// on.
        OtherEnsemble,
    }
}

/// An error of this crate: a [kind](Self::kind) for programs and a sentence for people.
///
/// The sentence says what is wrong and what to do. It is not part of the stable interface. `Debug` shows the sentence as well,
/// for a `main` that returns the error.
///
/// # Examples
///
/// ```
/// # use zklock::{ClientOptions, ErrorKind};
/// let error = ClientOptions::new("zk1:port").check().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidInput);
/// assert_eq!(format!("{error:?}"), error.to_string());
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: Box<str>,
    conflict: Option<Box<Conflict>>,
}

/// The guarded write that was refused. See [`Error::conflict`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(hold: &zklock::Hold) {
/// let writes = hold.guarded().set_data("/report/sum", b"7", Some(3)).set_data("/report/count", b"2", Some(3));
/// if let Some(conflict) = writes.commit().await.err().as_ref().and_then(|error| error.conflict()) {
///     println!("write {} was refused: read {} again", conflict.index, conflict.path);
/// }
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Conflict {
    /// The index of the write, counted from 0.
    pub index: usize,
    /// The path of its node.
    pub path: Box<str>,
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<InvalidPattern> for Error {
    fn from(invalid: InvalidPattern) -> Self {
        Self::new(ErrorKind::InvalidInput, invalid.to_string())
    }
}

impl Error {
    /// Returns the kind of the error, which tells what the caller can do about it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock::ErrorKind;
    ///
    /// # async fn example(lock: zklock::Lock) -> Result<(), zklock::Error> {
    /// match lock.acquire_timeout(Duration::from_secs(5)).await.map_err(|error| error.kind()) {
    ///     Ok(hold) => hold.release().await?,
    ///     Err(ErrorKind::Timeout) => println!("others have the lock"),
    ///     Err(ErrorKind::Unreachable) => println!("nobody knows who has the lock"),
    ///     Err(kind) => println!("correct the program, or the setup: {kind:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the guarded write that was refused, if the kind is [`ErrorKind::Conflict`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// if let Err(error) = hold.guarded().create("/report/state", b"begun").commit().await {
    ///     if let Some(conflict) = error.conflict() {
    ///         println!("write {} of {} was refused", conflict.index, conflict.path);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn conflict(&self) -> Option<&Conflict> {
        self.conflict.as_deref()
    }

    /// Makes an error, for the layers of C and Python.
    #[doc(hidden)]
    pub fn new(kind: ErrorKind, message: impl Into<Box<str>>) -> Self {
        Self { kind, message: message.into(), conflict: None }
    }

    /// Makes the error for a guarded write that was refused.
    pub(crate) fn conflict_at(conflict: Conflict, problem: &str) -> Self {
        let Conflict { index, path } = &conflict;
        let number = index + 1;
        let message = format!(
            "the guarded write number {number}, of {path}, was refused, and nothing was written: {problem}"
        );
        Self { conflict: Some(Box::new(conflict)), ..Self::new(ErrorKind::Conflict, message) }
    }

    /// Returns the same error, with the place where it was found before its message.
    pub(crate) fn within(self, place: &str) -> Self {
        let message = format!("{place}: {}", self.message).into();
        Self { message, ..self }
    }

    /// Returns the same error, with the reason after its message.
    pub(crate) fn because(self, why: &str) -> Self {
        let message = format!("{} ({why})", self.message).into();
        Self { message, ..self }
    }

    pub(crate) fn lost(reason: LossReason, path: &str) -> Self {
        let message = format!(
            "the hold of {path} is lost: {reason}; stop the work that it guarded, others may hold the lock"
        );
        Self::new(ErrorKind::Lost(reason), message)
    }

    /// Makes the error for a lock whose nodes all have one name: any client's node of that name would let
    /// the writes pass.
    pub(crate) fn unguarded(path: &str) -> Self {
        let message = format!(
            "the single-node lock {path} cannot guard writes: on servers of version 3.4 its node has no name of its own; use a \
             mutex, or upgrade the servers"
        );
        Self::new(ErrorKind::InvalidInput, message)
    }

    pub(crate) fn closed() -> Self {
        Self::new(ErrorKind::Closed, "the client is closed: make a new one")
    }
}
