//! Writes to ZooKeeper that are done only if a lock is held.

use crate::base::error::{Error, ErrorKind};
use crate::connect::path::check_path;
use crate::hold::hold::Hold;
use crate::threads::call::{Beginning, Call};
use crate::zookeeper::ensemble::{Versions, Write};

/// A server closes the connection on a request of more than 1 MiB, and may be configured to take less.
const BYTES_AT_MOST: usize = 512 * 1024;
/// An upper bound for the bytes of a write besides its path and data.
const BYTES_OF_A_WRITE: usize = 64;

/// Writes that are done together, and only if the lock is held. See [`Hold::guarded`](crate::Hold::guarded).
///
/// # Examples
///
/// ```no_run
/// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
/// let writes = hold.guarded().create("/report/2", b"the text").set_data("/report/last", b"2", None);
/// writes.delete("/report/1", None).commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is written before commit()"]
pub struct Guarded {
    hold: Hold,
    writes: Vec<Write>,
    /// What the request will have, with some room for its own fields.
    bytes: usize,
}

impl Hold {
    /// Starts a list of writes to ZooKeeper that are done only if the lock is still held when the quorum commits them.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// hold.guarded().set_data("/report/state", b"done", None).commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn guarded(&self) -> Guarded {
        Guarded { hold: self.share(), writes: Vec::new(), bytes: 0 }
    }
}

impl Guarded {
    /// Adds the creation of a persistent node.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// // Both nodes or none.
    /// hold.guarded().create("/report", b"").create("/report/state", b"begun").commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn create(self, path: &str, data: &[u8]) -> Self {
        self.add(path, data, |path, data| Write::Create { path, data })
    }

    /// Adds a write of a node's data. It requires that the node has this version; `None` accepts any.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// if let Some(count) = hold.read("/report/count").await? {
    ///     hold.guarded().set_data("/report/count", b"8", Some(count.version)).commit().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_data(self, path: &str, data: &[u8], version: Option<i32>) -> Self {
        self.add(path, data, |path, data| Write::SetData { path, data, version })
    }

    /// Adds the deletion of a node. It requires that the node has this version; `None` accepts any.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// // The job is taken out of the list when its result is there, and not before.
    /// hold.guarded().set_data("/results/7", b"done", None).delete("/jobs/7", None).commit().await?;
    /// # Ok(())
    /// # }
    /// ```
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
    /// * [`ErrorKind::Lost`] if the lock was no longer held. Nothing was written;
    /// * [`ErrorKind::Conflict`] if a node was not in the state that a write requires. Nothing was written.
    ///   [`Error::conflict`] says which write it was;
    /// * [`ErrorKind::Uncertain`] if the reply was lost. Either all or nothing is written. See [`Hold::read`](crate::Hold::read);
    /// * [`ErrorKind::InvalidInput`] for a bad path, for more than 512 KiB in all, or on servers of version 3.4
    ///   for the hold of a [single-node](crate::Client::single_node) lock, because every holder's node has the same
    ///   name there;
    /// * [`ErrorKind::Refused`] if the servers are too old to create a node in a transaction. Nothing was
    ///   written;
    /// * [`ErrorKind::NotHeld`] if the hold was released.
    ///
    /// # Cancel safety
    ///
    /// If the call is dropped, the writes may or may not be done.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::ErrorKind;
    ///
    /// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
    /// match hold.guarded().create("/report/state", b"begun").commit().await {
    ///     Err(error) if error.kind() == ErrorKind::Conflict => println!("it has begun before"),
    ///     committed => drop(committed?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn commit(self) -> Call<Committed> {
        match self.checked() {
            Ok(Self { hold, writes, .. }) => hold.call(|hold| async move {
                Ok(Committed { versions: hold.grant().commit(writes, hold.loss()).await? })
            }),
            Err(error) => Call::new(|| Ok(Beginning::Over(Err(error)))),
        }
    }

    /// Checks the writes. It is hidden, because only the C layer reports an error before the call begins.
    #[doc(hidden)]
    pub fn checked(self) -> Result<Self, Error> {
        let bytes = self.bytes;
        if bytes > BYTES_AT_MOST {
            let message = format!(
                "guarded writes of {bytes} bytes are too large: servers are certain to take only 512 KiB"
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        for write in &self.writes {
            check_path(write.path())?;
        }
        Ok(self)
    }
}

/// The result of the writes of a [`Guarded`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
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
    versions: Versions,
}

impl Committed {
    /// Returns the version of each node after its write, in the order of the writes: 0 if it was created, `None`
    /// if it was deleted. A node that is written twice appears twice.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
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
