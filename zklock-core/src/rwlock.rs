//! The read/write lock: many readers or one writer, in the order of arrival.
//!
//! It stands in the same queue as Curator's `InterProcessReadWriteLock`, and in kazoo's dialect as its `ReadLock` and
//! `WriteLock`. A reader waits only for the last writer before it, so a writer that leaves wakes only those that can go
//! on. A contender that comes after a waiting writer waits behind it, so that no writer starves.

use crate::client::Client;
use crate::error::Error;
use crate::lock::Lock;
use crate::spec::{Kind, LockSpec};

impl Client {
    /// The read side of the read/write lock at `path`: readers hold it together.
    ///
    /// A reader's [token](crate::Token) is greater than that of every writer before it and smaller than that of every
    /// writer after it. Among readers that hold together the order of tokens says nothing.
    ///
    /// A reader that wants the write side waits until its hold of the read side is released, by any task or thread. If
    /// nobody else can release that hold, because it is of a reentrant lock, the reader would wait for itself: that is a
    /// [`Deadlock`](crate::ErrorKind::Deadlock).
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let hold = client.read("/locks/table")?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn read(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::read(path)?)
    }

    /// The write side of the read/write lock at `path`: its holder is alone.
    ///
    /// A task or thread that holds the write side by a [reentrant](LockSpec::reentrant) lock may take the read side
    /// as well, at once, and keep it when it lets go of the write side: no other writer comes between. Its hold of the
    /// read side has the token of the write side. The lock that it reads by may be reentrant or not.
    ///
    /// If the lock of the write side is not reentrant, anybody may release that hold, so another may have it and write.
    /// Then the read side waits for its release, even in the task or thread that acquired it, and that is logged.
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// use zklock_core::LockSpec;
    ///
    /// let write = client.lock(&LockSpec::write("/locks/table")?.reentrant(true))?.acquire().await?;
    /// // ... change the table ...
    /// let read = client.read("/locks/table")?.acquire().await?;
    /// write.release().await?;
    /// // ... other readers read it too, and no writer has changed it since ...
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn write(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::write(path)?)
    }
}

impl LockSpec {
    /// The [read side](Client::read) of a read/write lock.
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn read(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Read)
    }

    /// The [write side](Client::write) of a read/write lock.
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn write(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Write)
    }
}
