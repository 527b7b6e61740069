//! The double barrier: nobody begins before all members have come, and nobody leaves before all are done.
//!
//! It has the layout of Curator's `DistributedDoubleBarrier`: members are ephemeral nodes, and the node `ready` says
//! that enough of them have come. `zklock_machine` avoids the mistakes of Curator's members. One mistake remains when
//! Curator's members take part: a `ready` that a crashed round left behind may let one of them in.

use super::member::{Member, Waiting, answered, late, reason_of};
use super::membership::Membership;
use crate::attempt::members::Members;
use crate::attempt::shared::Handle;
use crate::base::debt::Debt;
use crate::base::error::{Error, ErrorKind};
use crate::base::wait::Wait;
use crate::connect::path::check_lock_path;
use crate::machine::protocol::Patience;
use std::fmt;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Lets its members begin together, and end together.
#[derive(Clone)]
pub(crate) struct DoubleBarrier {
    client: Handle,
    known: Arc<Members>,
    path: Arc<str>,
    members: u32,
}

impl DoubleBarrier {
    /// `known` has the members of this process.
    pub(crate) fn new(client: Handle, known: Arc<Members>, path: &str, members: u32) -> Self {
        Self { client, known, path: path.into(), members }
    }

    pub(crate) fn check(path: &str, members: u32) -> Result<(), Error> {
        check_lock_path(path)?;
        if members == 0 {
            let message = format!("the barrier {path} without members could never open: ask for 1 or more");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Ok(())
    }

    /// Enters when all members have come.
    pub(crate) async fn enter_within(&self, wait: Wait) -> Result<Member, Error> {
        let path = &self.path;
        let mut entering = self.begin_to_enter(wait.patience())?;
        let failed = match answered(&self.client.pool, wait, &mut entering).await {
            Some(Ok(Some(member))) => return Ok(member),
            Some(Ok(None)) => {
                let message = format!("the barrier {path} is not open: it takes {} members", self.members);
                Error::new(ErrorKind::Timeout, message)
            }
            Some(Err(error)) => error,
            None => {
                let reason = format!("it takes {} members", self.members);
                let trouble = reason_of(&self.client.pool, wait, &reason);
                let message = format!("the barrier {path} did not open {wait}: {trouble}");
                Error::new(late(&self.client.pool, wait), message)
            }
        };
        entering.leave().await;
        Err(failed)
    }

    /// Starts a task that enters. It withdraws if nobody waits for it any more.
    fn begin_to_enter(&self, patience: Patience) -> Result<Waiting<Option<Member>>, Error> {
        let pool = &self.client.pool;
        if pool.is_closed() {
            return Err(Error::closed());
        }
        let (answer, receiver) = oneshot::channel();
        let debt = Debt::new(&self.client.counters);
        let (client, known, path) = (self.client.clone(), self.known.clone(), self.path.clone());
        let membership = Membership::new(client, known, path, self.members, debt.clone());
        pool.runtime().spawn(membership.run(patience, answer));
        Ok(Waiting::new(receiver, debt))
    }
}

impl fmt::Debug for DoubleBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DoubleBarrier")
            .field("path", &self.path)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}
