//! The read/write lock: many readers or one writer, in the order of arrival.
//!
//! It stands in the same queue as Curator's `InterProcessReadWriteLock`, and in kazoo's dialect as its `ReadLock` and
//! `WriteLock`. A reader waits for the last writer before it and for nobody else, so a writer that goes wakes those
//! alone who can go on; and whoever comes after a waiting writer waits behind it, so that no writer starves.

use crate::client::Client;
use crate::error::Error;
use crate::lock::Lock;
use crate::lock_options::LockOptions;
use crate::machine::name::Role;

impl Client {
    /// The read side of the read/write lock at `path`: readers hold it together.
    ///
    /// A reader's [token](crate::Token) is greater than that of every writer before it and smaller than that of every
    /// writer after it. Among readers that hold together the order of tokens says nothing.
    ///
    /// A reader that wants the write side waits until its hold of the read side is released, by whichever task or
    /// thread. If nobody else can release that, because it is of a reentrant lock, it would wait for itself: a
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
        self.read_with(path, LockOptions::new())
    }

    /// As [`read`](Self::read), with options.
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn read_with(&self, path: &str, options: LockOptions) -> Result<Lock, Error> {
        let claim = options.claim(path, Role::Read)?;
        Ok(self.lock(path, vec![claim], options))
    }

    /// The write side of the read/write lock at `path`: its holder is alone.
    ///
    /// A task or thread that holds the write side by a [reentrant](LockOptions::reentrant) lock may take the read side
    /// as well, at once, and keep it when it lets go of the write side: no other writer comes between. Its hold of the
    /// read side has the token of the write side. The lock that it reads by may be reentrant or not.
    ///
    /// Where the lock of the write side is not reentrant, anybody may release that hold, so another may have it and
    /// write. Then the read side waits for its release, also in the task or thread that acquired it, and a line of the
    /// log tells of that.
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// use zklock_core::LockOptions;
    ///
    /// let write = client.write_with("/locks/table", LockOptions::new().reentrant(true))?.acquire().await?;
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
        self.write_with(path, LockOptions::new())
    }

    /// As [`write`](Self::write), with options.
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn write_with(&self, path: &str, options: LockOptions) -> Result<Lock, Error> {
        let claim = options.claim(path, Role::Write)?;
        Ok(self.lock(path, vec![claim], options))
    }
}
