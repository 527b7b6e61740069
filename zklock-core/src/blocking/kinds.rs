//! The kinds of lock, for threads.

use super::wait::wait;
use super::{Call, Client, Lock};
use crate::error::Error;
use crate::lock_options::LockOptions;

impl Client {
    /// As [`Client::mutex`](crate::Client::mutex).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn mutex(&self, path: &str) -> Result<Lock, Error> {
        self.mutex_with(path, LockOptions::new())
    }

    /// As [`Client::mutex_with`](crate::Client::mutex_with).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn mutex_with(&self, path: &str, options: LockOptions) -> Result<Lock, Error> {
        self.made(|client| client.mutex_with(path, options))
    }

    /// As [`Client::read`](crate::Client::read).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn read(&self, path: &str) -> Result<Lock, Error> {
        self.read_with(path, LockOptions::new())
    }

    /// As [`Client::read_with`](crate::Client::read_with).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn read_with(&self, path: &str, options: LockOptions) -> Result<Lock, Error> {
        self.made(|client| client.read_with(path, options))
    }

    /// As [`Client::write`](crate::Client::write).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn write(&self, path: &str) -> Result<Lock, Error> {
        self.write_with(path, LockOptions::new())
    }

    /// As [`Client::write_with`](crate::Client::write_with).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn write_with(&self, path: &str, options: LockOptions) -> Result<Lock, Error> {
        self.made(|client| client.write_with(path, options))
    }

    /// As [`Client::election`](crate::Client::election).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn election(&self, path: &str) -> Result<Lock, Error> {
        self.election_with(path, LockOptions::new())
    }

    /// As [`Client::election_with`](crate::Client::election_with).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn election_with(&self, path: &str, options: LockOptions) -> Result<Lock, Error> {
        self.made(|client| client.election_with(path, options))
    }

    /// As [`Client::exclusive`](crate::Client::exclusive).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn exclusive(&self, path: &str) -> Result<Lock, Error> {
        self.exclusive_with(path, LockOptions::new())
    }

    /// As [`Client::exclusive_with`](crate::Client::exclusive_with).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn exclusive_with(&self, path: &str, options: LockOptions) -> Result<Lock, Error> {
        self.made(|client| client.exclusive_with(path, options))
    }

    /// As [`Client::semaphore`](crate::Client::semaphore).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn semaphore(&self, path: &str, limit: u32) -> Result<Lock, Error> {
        self.semaphore_with(path, limit, LockOptions::new())
    }

    /// As [`Client::semaphore_with`](crate::Client::semaphore_with).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn semaphore_with(&self, path: &str, limit: u32, options: LockOptions) -> Result<Lock, Error> {
        self.made(|client| client.semaphore_with(path, limit, options))
    }

    /// As [`Client::all`](crate::Client::all).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn all(&self, locks: &[Lock]) -> Result<Lock, Error> {
        self.all_with(locks, LockOptions::new())
    }

    /// As [`Client::all_with`](crate::Client::all_with).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn all_with(&self, locks: &[Lock], options: LockOptions) -> Result<Lock, Error> {
        let locks: Vec<_> = locks.iter().map(|lock| lock.inner.clone()).collect();
        self.made(|client| client.all_with(&locks, options))
    }

    /// As [`Client::set_limit`](crate::Client::set_limit).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn set_limit(&self, path: &str, limit: u32) -> Result<(), Error> {
        wait(&self.io, self.inner.set_limit(path, limit), None, None)?
    }

    /// As [`set_limit`](Self::set_limit), and returns at once. `ready` is called when there is a result: on the
    /// I/O thread, so it must only pass it on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked); all others come with the result.
    pub fn start_set_limit(
        &self,
        path: &str,
        limit: u32,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<()>, Error> {
        let (inner, path) = (self.inner.clone(), path.to_owned());
        Call::start(&self.io, async move { inner.set_limit(&path, limit).await }, ready)
    }

    fn made(&self, make: impl FnOnce(&crate::Client) -> Result<crate::Lock, Error>) -> Result<Lock, Error> {
        self.io.refuse_forked()?;
        Ok(Lock { inner: make(&self.inner)?, io: self.io.clone() })
    }
}
