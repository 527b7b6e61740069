//! The kinds of lock, for threads.

use super::wait::wait;
use super::{Call, Client, Lock};
use crate::error::Error;
use crate::spec::LockSpec;

impl Client {
    /// See [`Client::lock`](crate::Client::lock).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn lock(&self, spec: &LockSpec) -> Result<Lock, Error> {
        self.io.refuse_forked()?;
        Ok(Lock { inner: self.inner.lock(spec)?, io: self.io.clone() })
    }

    /// See [`Client::mutex`](crate::Client::mutex).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn mutex(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::mutex(path)?)
    }

    /// See [`Client::read`](crate::Client::read).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn read(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::read(path)?)
    }

    /// See [`Client::write`](crate::Client::write).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn write(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::write(path)?)
    }

    /// See [`Client::election`](crate::Client::election).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn election(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::election(path)?)
    }

    /// See [`Client::exclusive`](crate::Client::exclusive).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn exclusive(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::exclusive(path)?)
    }

    /// See [`Client::semaphore`](crate::Client::semaphore).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn semaphore(&self, path: &str, limit: u32) -> Result<Lock, Error> {
        self.lock(&LockSpec::semaphore(path, limit)?)
    }

    /// See [`Client::all`](crate::Client::all).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn all(&self, locks: &[Lock]) -> Result<Lock, Error> {
        self.lock(&self.all_of(locks)?)
    }

    /// See [`Client::all_of`](crate::Client::all_of).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn all_of(&self, locks: &[Lock]) -> Result<LockSpec, Error> {
        let locks: Vec<_> = locks.iter().map(|lock| lock.inner.clone()).collect();
        self.inner.all_of(&locks)
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
}
