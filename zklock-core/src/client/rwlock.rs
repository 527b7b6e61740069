//! The read/write lock: many readers or one writer, in the order of arrival.
//!
//! It shares its queue with Curator's `InterProcessReadWriteLock`, and in kazoo's dialect with kazoo's `ReadLock` and
//! `WriteLock`. A reader waits only for the last writer before it, so a writer that leaves wakes only contenders that
//! can go on. A contender that comes after a waiting writer waits behind it, so that no writer starves.

use crate::base::error::Error;
use crate::client::client::Client;
use crate::client::lock::Lock;
use crate::client::spec::{Kind, LockSpec};

impl Client {
    /// Makes the read side of the read/write lock at `path`. Readers hold it together.
    ///
    /// A reader's [token](crate::Token) is greater than that of every writer before it, and smaller than that of every
    /// writer after it. Among readers that hold the lock together, the order of tokens means nothing.
    ///
    /// A reader that wants the write side waits until its hold of the read side is released, by any task or thread. If
    /// that hold is of a reentrant lock, nobody else can release it, and the reader would wait for itself. That is a
    /// [`Deadlock`](crate::ErrorKind::Deadlock).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let hold = client.read("/locks/table")?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::read(path)?)
    }

    /// Makes the write side of the read/write lock at `path`. Its holder is alone.
    ///
    /// A task or thread that holds the write side through a [reentrant](LockSpec::reentrant) lock may also take the
    /// read side, at once, and keep it after it releases the write side. No other writer comes in between. The hold of
    /// the read side has the token of the write side. The lock of the read side may be reentrant or not.
    ///
    /// If the lock of the write side is not reentrant, anybody may release that hold, so another task may be using it
    /// to write. The read side then waits for its release, even in the task or thread that acquired it, and logs that.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
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
    pub fn write(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::write(path)?)
    }
}

impl LockSpec {
    /// Describes the [read side](Client::read) of a read/write lock.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    pub fn read(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Read)
    }

    /// Describes the [write side](Client::write) of a read/write lock.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    pub fn write(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Write)
    }
}
