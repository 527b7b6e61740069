//! The parts that all handles of a client share.

use crate::base::stats::Counters;
use crate::session::pool::Pool;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::watch;

/// The parts that all handles of a client share. Dropping the last handle closes its sessions.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    pub(crate) counters: Arc<Counters>,
    /// Fails when no handle is left.
    pub(crate) handles: watch::Receiver<()>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.pool.abandon();
    }
}

/// A handle, which every client, and every lock, barrier and member of its, has while it exists. A node that is kept for the
/// next caller does not have one, so it does not keep the client open.
#[derive(Clone)]
pub(crate) struct Handle {
    shared: Arc<Shared>,
    _open: Arc<watch::Sender<()>>,
}

impl Handle {
    /// Makes the first handle of a client.
    pub(crate) fn new(pool: Pool, counters: Arc<Counters>) -> Self {
        let (open, handles) = watch::channel(());
        Self { shared: Arc::new(Shared { pool, counters, handles }), _open: open.into() }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Deref for Handle {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}
