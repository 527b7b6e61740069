//! Who is in a queue, for threads.

use super::threads::Io;
use super::wait::wait;
use super::{Call, Lock};
use crate::error::{Error, ErrorKind};
use crate::queued::QueuedContender;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

impl Lock {
    /// As [`Lock::contenders`](crate::Lock::contenders).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn contenders(&self) -> Result<Vec<QueuedContender>, Error> {
        wait(&self.io, self.inner.contenders(), None, None)?
    }

    /// As [`contenders`](Self::contenders), and returns at once. `ready` is called when there is a
    /// result: on the I/O thread, so it must only pass it on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`]; all others come with the result.
    pub fn start_contenders(
        &self,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<Vec<QueuedContender>>, Error> {
        let inner = self.inner.clone();
        Call::start(&self.io, async move { inner.contenders().await }, ready)
    }

    /// As [`Lock::evict`](crate::Lock::evict).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn evict(&self, node: &str) -> Result<bool, Error> {
        wait(&self.io, self.inner.evict(node), None, None)?
    }

    /// As [`evict`](Self::evict), and returns at once, as `start_contenders` does.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn start_evict(
        &self,
        node: &str,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<bool>, Error> {
        let (inner, node) = (self.inner.clone(), node.to_owned());
        Call::start(&self.io, async move { inner.evict(&node).await }, ready)
    }

    /// As [`Lock::break_lock`](crate::Lock::break_lock).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn break_lock(&self) -> Result<Vec<QueuedContender>, Error> {
        wait(&self.io, self.inner.break_lock(), None, None)?
    }

    /// As [`break_lock`](Self::break_lock), and returns at once, as `start_contenders` does.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn start_break_lock(
        &self,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<Vec<QueuedContender>>, Error> {
        let inner = self.inner.clone();
        Call::start(&self.io, async move { inner.break_lock().await }, ready)
    }

    /// As [`Lock::observe`](crate::Lock::observe).
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Forked`].
    pub fn observe(&self) -> Result<Observer, Error> {
        self.io.refuse_forked()?;
        Ok(Observer { inner: Arc::new(Mutex::new(self.inner.observe()?)), io: self.io.clone() })
    }
}

/// An [`Observer`](crate::Observer) for threads.
#[derive(Clone, Debug)]
pub struct Observer {
    inner: Arc<Mutex<crate::Observer>>,
    io: Io,
}

impl Observer {
    /// As [`Observer::next`](crate::Observer::next), for no longer than `timeout`.
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let observer = client.election("/election/scheduler")?.observe()?;
    /// while let Ok(leader) = observer.next(None) {
    ///     println!("{:?} leads", leader.map(|leader| leader.identity));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Timeout`] if nothing changed in that time.
    pub fn next(&self, timeout: Option<Duration>) -> Result<Option<QueuedContender>, Error> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let next = wait(&self.io, async { self.inner.lock().await.next().await }, deadline, None);
        next.unwrap_or_else(|error| {
            let nothing = || {
                Error::new(
                    ErrorKind::Timeout,
                    format!("nothing changed within {:?}", timeout.unwrap_or_default()),
                )
            };
            Err(if error.kind() == ErrorKind::Timeout { nothing() } else { error })
        })
    }

    /// As [`next`](Self::next), and returns at once. `ready` is called when there is a result: on the I/O
    /// thread, so it must only pass it on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`]; all others come with the result.
    pub fn start_next(
        &self,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<Option<QueuedContender>>, Error> {
        let inner = self.inner.clone();
        Call::start(&self.io, async move { inner.lock().await.next().await }, ready)
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if self.io.is_forked() {
            std::mem::forget(self.inner.clone());
        }
    }
}
