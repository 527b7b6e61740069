//! What a client is in the process where it is needed: its sessions, and what its handles share.

use crate::attempt::local_queue::{HeldAt, LocalQueue};
use crate::attempt::members::Members;
use crate::attempt::shared::Handle;
use crate::base::error::Error;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::connect::options::ClientOptions;
use crate::machine::claim::Claim;
use crate::machine::turns::Passing;
use crate::session::pool::Pool;
use crate::threads::io::Io;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

pub(crate) struct CoreClient {
    pub(crate) handle: Handle,
    registry: Mutex<Registry>,
}

type Wanted = (Vec<Claim>, Passing);

impl CoreClient {
    /// Makes a client that opens its first session when that is needed, in this runtime.
    pub(crate) fn unopened(options: ClientOptions, io: Io) -> Result<Self, Error> {
        let options = options.checked()?;
        let counters = Arc::default();
        let handle = Handle::new(Pool::new(options, io, Arc::clone(&counters)), counters);
        Ok(Self { handle, registry: Mutex::default() })
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.handle.pool
    }

    /// Returns the queue for what is wanted, which equal locks may share.
    pub(super) fn queue(&self, path: &str, wanted: Wanted, is_shared: bool) -> Arc<LocalQueue> {
        let mut registry = lock_ignoring_poison(&self.registry);
        if let Some(queue) = is_shared.then(|| registry.queue(&wanted)).flatten() {
            return queue;
        }
        let (claims, passing) = wanted.clone();
        let held_at = claims.iter().map(|claim| registry.held_at(&claim.place())).collect();
        let queue = LocalQueue::new(path.into(), claims, passing, held_at, self.handle.shared().clone());
        if is_shared {
            registry.queues.insert(wanted, Arc::downgrade(&queue));
        }
        queue
    }

    /// Returns what the members of this client have in common at a double barrier.
    pub(super) fn members(&self, path: &Arc<str>) -> Arc<Members> {
        shared(&mut lock_ignoring_poison(&self.registry).members, path)
    }
}

/// The local queues, which equal locks share, and the records of holds, which locks at the same path share.
#[derive(Default)]
struct Registry {
    queues: HashMap<Wanted, Weak<LocalQueue>>,
    held_at: HashMap<Arc<str>, Weak<HeldAt>>,
    members: HashMap<Arc<str>, Weak<Members>>,
}

impl Registry {
    fn queue(&mut self, wanted: &Wanted) -> Option<Arc<LocalQueue>> {
        let queue = self.queues.get(wanted).and_then(Weak::upgrade);
        if queue.is_none() && self.queues.len() == self.queues.capacity() {
            self.queues.retain(|_, queue| queue.strong_count() > 0);
        }
        queue
    }

    fn held_at(&mut self, place: &Arc<str>) -> Arc<HeldAt> {
        shared(&mut self.held_at, place)
    }
}

/// Returns what all have in common that want something at this path.
fn shared<T: Default>(known: &mut HashMap<Arc<str>, Weak<T>>, directory: &Arc<str>) -> Arc<T> {
    if let Some(known) = known.get(directory).and_then(Weak::upgrade) {
        return known;
    }
    if known.len() == known.capacity() {
        known.retain(|_, known| known.strong_count() > 0);
    }
    let new = Arc::default();
    known.insert(directory.clone(), Arc::downgrade(&new));
    new
}
