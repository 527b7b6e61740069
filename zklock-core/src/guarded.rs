//! Writes to ZooKeeper that are done only if a lock is held.

use crate::ensemble::{Versions, Write};
use crate::error::{Error, ErrorKind};
use crate::hold::Hold;
use crate::path::check_path;

/// A server hangs up on a request of more than 1 MiB, and may be configured to take less.
const BYTES_AT_MOST: usize = 512 * 1024;
/// What a write takes beside its path and data, or more.
const BYTES_OF_A_WRITE: usize = 64;

/// What the writes of a [`Guarded`] have done.
///
/// ```no_run
/// # async fn example(hold: &zklock_core::Hold) -> Result<(), zklock_core::Error> {
/// let written = hold.guarded().create("/report/state", b"begun").set_data("/report/count", b"1", None);
/// let written = written.commit().await?;
/// assert_eq!(written.versions()[0], Some(0));
/// // The next write is refused if anybody else has set it meanwhile.
/// hold.guarded().set_data("/report/count", b"2", written.versions()[1]).commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Committed {
    pub(crate) versions: Versions,
}

impl Committed {
    /// The version of each node after its write, in the order of the writes: 0 where it was created, `None` where it was
    /// deleted. A node that is written twice has two.
    pub fn versions(&self) -> &[Option<i32>] {
        &self.versions
    }
}

/// What [`Guarded::checked`] gives.
#[doc(hidden)]
#[derive(Debug)]
pub struct CheckedWrites(Vec<Write>);

/// Writes that are done together, and only if the lock is held. See [`Hold::guarded`].
#[derive(Debug)]
#[must_use = "nothing is written before commit()"]
pub struct Guarded<'a> {
    hold: &'a Hold,
    writes: Vec<Write>,
    /// What they take in a request. Beyond what a server takes nothing more is copied.
    bytes: usize,
}

impl<'a> Guarded<'a> {
    pub(crate) fn by(hold: &'a Hold) -> Self {
        Self { hold, writes: Vec::new(), bytes: 0 }
    }

    /// Create a persistent node.
    pub fn create(self, path: &str, data: &[u8]) -> Self {
        self.add(path, data, |path, data| Write::Create { path, data })
    }

    /// Set a node's data, if it has this version, or whatever version it has.
    pub fn set_data(self, path: &str, data: &[u8], version: Option<i32>) -> Self {
        self.add(path, data, |path, data| Write::SetData { path, data, version })
    }

    /// Delete a node, if it has this version, or whatever version it has.
    pub fn delete(self, path: &str, version: Option<i32>) -> Self {
        self.add(path, &[], |path, _| Write::Delete { path, version })
    }

    fn add(mut self, path: &str, data: &[u8], write: impl FnOnce(String, Vec<u8>) -> Write) -> Self {
        let bytes = path.len().saturating_add(data.len()).saturating_add(BYTES_OF_A_WRITE);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= BYTES_AT_MOST {
            self.writes.push(write(path.to_owned(), data.to_vec()));
        }
        self
    }

    /// Does the writes, all or none.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Lost`] if the lock was not held any more: nothing was written;
    /// * [`ErrorKind::Conflict`] if a node was not as it had to be: nothing was written. Which it was says
    ///   [`Error::conflict`];
    /// * [`ErrorKind::Uncertain`] if the reply was lost: all or nothing was written. [`Hold::read`] tells which;
    /// * [`ErrorKind::InvalidInput`] for a bad path, for more than 512 KiB in all, or on servers of version 3.4 for the hold of
    ///   an [exclusive](crate::Client::exclusive) lock, whose node has no name of its own there;
    /// * [`ErrorKind::NotHeld`] after a release.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it open whether the writes are done.
    pub async fn commit(self) -> Result<Committed, Error> {
        let hold = self.hold;
        hold.commit(self.checked()?.0).await
    }

    /// The writes by themselves, checked: for [`commit_checked`](Hold::commit_checked).
    #[doc(hidden)]
    pub fn checked(self) -> Result<CheckedWrites, Error> {
        let bytes = self.bytes;
        if bytes > BYTES_AT_MOST {
            let message =
                format!("guarded writes of {bytes} bytes: servers take no more than 512 KiB for certain");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        for write in &self.writes {
            check_path(write.path())?;
        }
        Ok(CheckedWrites(self.writes))
    }
}

impl Hold {
    /// Does writes that were [checked](Guarded::checked) before, for calls that outlive what they were made from.
    #[doc(hidden)]
    pub async fn commit_checked(&self, writes: CheckedWrites) -> Result<Committed, Error> {
        self.commit(writes.0).await
    }
}
