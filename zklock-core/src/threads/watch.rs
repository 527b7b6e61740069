//! A callback that is registered.

use super::descriptors::{Listener, OnClosed, Opened};
use super::io::{Io, check_descriptors};
use std::fmt;
use std::sync::{Arc, Weak};
use tokio::task::AbortHandle;

/// Keeps a callback registered. Dropping it removes the callback. See
/// [`Hold::on_lost`](crate::Hold::on_lost) and
/// [`Client::on_connection`](crate::Client::on_connection).
///
/// # Examples
///
/// ```no_run
/// # fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
/// let watch = hold.on_lost(|reason| eprintln!("stop: {reason}"))?;
/// // ... work ...
/// drop(watch);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it ends the watch"]
pub struct Watch {
    task: AbortHandle,
    opened: Opened,
    listener: Arc<dyn OnClosed>,
}

impl Watch {
    /// Runs `watching` in the client's runtime, which calls the listener.
    pub(crate) fn start<V, F>(
        io: &Io,
        listener: Arc<Listener<V>>,
        watching: impl FnOnce(Weak<Listener<V>>) -> F,
    ) -> Self
    where
        V: Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        io.tell(Arc::downgrade(&listener) as Weak<dyn OnClosed>);
        let (watches, finished) = (watching(Arc::downgrade(&listener)), Arc::downgrade(&listener));
        let task = io.spawn(async move {
            watches.await;
            Listener::finish(&finished);
        });
        Self { task, opened: io.opened(), listener }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        check_descriptors();
        if self.opened.are_ours() {
            self.task.abort();
        } else {
            // What the function has belongs to the parent.
            std::mem::forget(self.listener.clone());
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
