//! Jobs that run once in each period, on one of many hosts.
//!
//! A job is a mutex, and a record of its last run below the mutex' path. All writes of the record are guarded by the hold. So a
//! record that says "running" while another holds the mutex is that of a run which has crashed, or has lost the mutex.
//!
//! The time is the date that the leader gives to a write, which is made for this purpose once the mutex is held. A client's
//! clock is not asked.

use crate::base::error::{Error, ErrorKind};
use crate::base::failure::Failure;
use crate::base::owner::Owner;
use crate::base::wait::Wait;
use crate::client::lock::Lock;
use crate::client::once_spec::OnceSpec;
use crate::client::record::{self, NAME, Record, RunOutcome};
use crate::client::run::{Begun, Run, RunEntry, release, write};
use crate::hold::hold::Hold;
use crate::session::ask::{ask, silence};
use crate::session::session::Session;
use crate::zookeeper::ensemble::{NodeData, Write};
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// A job that runs on one host in each period. See [`Client::once`](crate::Client::once).
#[derive(Clone)]
pub(crate) struct Once {
    lock: Lock,
    spec: Arc<OnceSpec>,
    node: Arc<str>,
}

impl Once {
    /// Makes the job whose runs hold this mutex.
    pub(crate) fn new(lock: Lock, spec: Arc<OnceSpec>) -> Self {
        let node = format!("{}/{NAME}", spec.path()).into();
        Self { lock, spec, node }
    }

    /// Begins a run for this owner, unless nothing is left to do in this period.
    pub(crate) async fn begin_as(&self, owner: Owner, wait: Wait) -> Result<Begun<Run>, Error> {
        let hold = self.lock.acquire_as(owner, wait).await?;
        let pool = self.lock.pool();
        let wait = if wait == Wait::Once { Wait::at_most(Some(pool.options().try_timeout)) } else { wait };
        let (last, version, now) = tokio::select! {
            biased;
            seen = self.look(&hold) => seen?,
            _ = wait.over() => {
                let message = format!("the record of the job {} was not read {wait}: {}", self.spec.path(), silence(pool.slot()));
                return Err(Error::new(ErrorKind::Unreachable, message));
            }
        };
        if let Some(last) = &last {
            last.check(self.spec.path(), now)?;
        }
        if let Some(last) = last.as_ref().filter(|last| self.spec.is_over(last, now)) {
            release(&hold).await?;
            return Ok(Begun::Done(last.clone()));
        }
        let record = Record {
            // What repeats a run whose clock was faster is in its period.
            began: last.map_or(now, |last| now.max(last.began)),
            ended: None,
            every: self.spec.every(),
            offset: self.spec.offset,
            identity: pool.identity().to_owned(),
            token: hold.token(),
            outcome: RunOutcome::Running,
        };
        // Once this is sent, the time does not end the wait, but the loss of the hold does: who gives up has begun in this period, too.
        match write(&hold, &record.to_text(), version).await {
            Ok(version) => Ok(Begun::Run(Run { hold, entry: RunEntry { record, version } })),
            Err(error) => {
                let place = format!(
                    "the job {} does not run here; if its run is recorded, it counts as failed",
                    self.spec.path()
                );
                Err(error.within(&place))
            }
        }
    }

    /// Looks at the last run, and at the servers' clock. Returns the version of the record, too.
    async fn look(&self, hold: &Hold) -> Result<(Option<Record>, i32, SystemTime), Error> {
        let (last, version) = match hold.read(&self.node).await? {
            Some(node) => (record::read(self.spec.path(), &node)?, node.version),
            None => (None, self.create().await?),
        };
        // The same once more: only what is written gets a date.
        let text = last.as_ref().map_or(record::empty().to_owned(), Record::to_text);
        let version = write(hold, &text, version).await?;
        let Some(NodeData { modified: now, .. }) = hold.read(&self.node).await? else {
            let message = format!("the record of the job {} was deleted while it was read", self.spec.path());
            return Err(Error::new(ErrorKind::Conflict, message));
        };
        Ok((last, version, now))
    }

    /// Creates the node of the record, without a record, and returns its version. It is not guarded: servers before 3.5 cannot do
    /// that, and a node that a late one creates says no more than none.
    async fn create(&self) -> Result<i32, Error> {
        let create = Write::Create { path: self.node.to_string(), data: record::empty().into() };
        let problem = || format!("the record of the job {} was not created", self.spec.path());
        let create = &create;
        ask(self.lock.pool(), problem, |session| async move {
            match session.commit(Vec::new(), vec![create.clone()]).await {
                // An earlier try has created it, without an answer.
                Ok(_) | Err(Failure::Conflict { .. }) => Ok(0),
                Err(failure) => Err(failure),
            }
        })
        .await
    }

    /// Reads the record of the last run; `None` if the job has never run. It neither waits for a run nor disturbs it.
    pub(crate) async fn last(&self) -> Result<Option<Record>, Error> {
        let (path, node) = (self.spec.path(), &self.node);
        let problem = || format!("the record of the job {path} could not be read");
        let read = |session: Arc<Session>| async move { session.read(node.clone()).await };
        let node = ask(self.lock.pool(), problem, read).await?;
        node.map_or(Ok(None), |node| record::read(path, &node))
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("spec", &self.spec).finish_non_exhaustive()
    }
}
