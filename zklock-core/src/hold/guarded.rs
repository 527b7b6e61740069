//! Writes to ZooKeeper that are done only if a lock is held.

use crate::zookeeper::ensemble::Versions;

/// The result of the writes of a [`Guarded`](crate::Guarded).
///
/// # Examples
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
    pub(super) versions: Versions,
}

impl Committed {
    /// Returns the version of each node after its write, in the order of the writes: 0 if it was created, `None`
    /// if it was deleted. A node that is written twice appears twice.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// let begun = hold.guarded().set_data("/report/state", b"begun", None).commit().await?;
    /// // Refused if anybody has written to the node since.
    /// hold.guarded().set_data("/report/state", b"done", begun.versions()[0]).commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn versions(&self) -> &[Option<i32>] {
        &self.versions
    }
}
