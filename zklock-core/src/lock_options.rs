//! Options of locks, as a builder, so that new ones break nobody.

use crate::error::{Error, ErrorKind};
use crate::machine::claim::{Claim, Foreign, Watching};
use crate::machine::name::{Dialect, Role};
use crate::path::check_lock_path;

/// How a [`Lock`](crate::Lock) behaves.
///
/// ```
/// use zklock_core::{Dialect, LockOptions};
///
/// let options = LockOptions::new().reentrant(true).dialect(Dialect::Kazoo);
/// ```
#[derive(Clone, Debug)]
pub struct LockOptions {
    pub(crate) reentrant: bool,
    pub(crate) dialect: Dialect,
    pub(crate) foreign: Foreign,
    pub(crate) watching: Watching,
    pub(crate) permits: u32,
    pub(crate) limit_at: Option<String>,
}

impl Default for LockOptions {
    fn default() -> Self {
        Self {
            reentrant: false,
            dialect: Dialect::default(),
            foreign: Foreign::default(),
            watching: Watching::default(),
            permits: 1,
            limit_at: None,
        }
    }
}

impl LockOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether an owner that holds the lock may acquire it again. Default: no.
    ///
    /// The owner is the tokio task, or outside of one the thread. A hold of a reentrant lock must be
    /// released by its owner. One of a lock that is not reentrant may be released from anywhere, so
    /// its owner's next acquire before that waits, as anybody's does. So only a reentrant lock of the
    /// write side lets its owner take the [read side](crate::Client::write) as well.
    ///
    /// It is for sections within sections of one task or thread. Leave it out where one turns to another user while the
    /// first holds the lock, as a thread of green threads does, one of a pool between two calls, and a task that runs
    /// two futures with `join!`: each of them is taken for the owner, and so they are inside together.
    #[must_use]
    pub fn reentrant(mut self, reentrant: bool) -> Self {
        self.reentrant = reentrant;
        self
    }

    /// The naming scheme of the lock's nodes, to stand in one queue with another library.
    /// Default: Curator's.
    ///
    /// A mutex can have any, a read/write lock Curator's or kazoo's, all else has Curator's. Contenders of every
    /// dialect are recognised, whichever the lock has.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// What to do about a contender that cannot see ours. Default: to fail with
    /// [`ForeignContender`](ErrorKind::ForeignContender).
    #[must_use]
    pub fn foreign(mut self, foreign: Foreign) -> Self {
        self.foreign = foreign;
        self
    }

    /// What to watch while others are ahead. Default: the one node that matters.
    #[must_use]
    pub fn watching(mut self, watching: Watching) -> Self {
        self.watching = watching;
        self
    }

    /// How many permits of a semaphore to acquire at once. Default: 1.
    #[must_use]
    pub fn permits(mut self, permits: u32) -> Self {
        self.permits = permits;
        self
    }

    /// The node that says how many permits a semaphore has, in the format of Curator's `SharedCount`. As long as
    /// it is not there, the limit is what [`semaphore_with`](crate::Client::semaphore_with) was told. Default: none.
    ///
    /// Whoever waits notices when it changes. [`Client::set_limit`](crate::Client::set_limit) writes it.
    #[must_use]
    pub fn limit_at(mut self, path: &str) -> Self {
        self.limit_at = Some(path.to_owned());
        self
    }

    /// What a lock of this role at this path claims.
    pub(crate) fn claim(&self, path: &str, role: Role) -> Result<Claim, Error> {
        check_lock_path(path)?;
        self.refuse_permits(path)?;
        let scheme = Claim::scheme(role, self.dialect).ok_or_else(|| {
            let message = format!(
                "the lock {path}: the dialect {} has no read and write sides; use curator or kazoo",
                self.dialect
            );
            Error::new(ErrorKind::InvalidInput, message)
        })?;
        Ok(self.apply(Claim::new(path, scheme)))
    }

    /// The options that every claim has.
    pub(crate) fn apply(&self, claim: Claim) -> Claim {
        Claim { foreign: self.foreign, watching: self.watching, ..claim }
    }

    /// For a lock that is no semaphore.
    pub(crate) fn refuse_permits(&self, path: &str) -> Result<(), Error> {
        if self.permits == 1 && self.limit_at.is_none() {
            return Ok(());
        }
        let message = format!("the lock {path}: only a semaphore has permits and a limit");
        Err(Error::new(ErrorKind::InvalidInput, message))
    }

    /// For a lock that has no other dialect.
    pub(crate) fn refuse_dialect(&self, path: &str, kind: &str) -> Result<(), Error> {
        if self.dialect == Dialect::Curator {
            return Ok(());
        }
        let message =
            format!("the lock {path}: {kind} has no dialect {}; leave that option out", self.dialect);
        Err(Error::new(ErrorKind::InvalidInput, message))
    }
}
