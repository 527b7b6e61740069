//! What a hold does with other nodes than its own: guarded writes, and reads.

use super::{Grant, Hold, Token};
use crate::ask::{MOMENT, catch_up};
use crate::clock;
use crate::ensemble::{NodeData, ReadFailure, Seen, Write, WriteFailure};
use crate::error::{Conflict, Error, ErrorKind, LossReason};
use crate::guarded::Committed;
use crate::path::check_path;
use crate::session::Session;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a read may take at least, however short the session.
const READ_AT_LEAST: Duration = Duration::from_secs(2);

impl Hold {
    /// What is in a node, with its version; `None` if there is no such node.
    ///
    /// It is as new as anything that the ensemble had committed when this was called, and never older than a guarded write
    /// of this hold: its outcome is certain by then. So after an [`Uncertain`](ErrorKind::Uncertain) commit, read what it was
    /// to write, then decide. That is why it works while the client is open, also when the hold is lost or released.
    ///
    /// ```no_run
    /// # async fn example(hold: &zklock_core::Hold) -> Result<(), zklock_core::Error> {
    /// use zklock_core::ErrorKind;
    ///
    /// // Without a version the write would be done whatever the node holds by then.
    /// let Some(before) = hold.read("/report/state").await? else { return Ok(()) };
    /// match hold.guarded().set_data("/report/state", b"done", Some(before.version)).commit().await {
    ///     Err(error) if error.kind() == ErrorKind::Uncertain => {
    ///         let after = hold.read("/report/state").await?;
    ///         println!("written: {}", after.is_some_and(|after| after.version > before.version));
    ///     }
    ///     written => println!("version {:?}", written?.versions()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if the ensemble did not answer within a session timeout, or two seconds; also if it has
    ///   not ended the hold's session by then, though one of its servers has said so;
    /// * [`ErrorKind::Refused`] if the access list does not allow to read it;
    /// * [`ErrorKind::InvalidInput`] for a bad path;
    /// * [`ErrorKind::Closed`] after the client was closed.
    pub async fn read(&self, path: &str) -> Result<Option<NodeData>, Error> {
        check_path(path)?;
        let path: Arc<str> = path.into();
        let patience = self.grant.session.timeout().max(READ_AT_LEAST);
        let failed_read = |why: &str| format!("the node {path} could not be read: {why}");
        clock::timeout(patience, self.read_again(&path, &failed_read)).await.unwrap_or_else(|_| {
            let message = failed_read("no server answers: check hosts and network");
            Err(Error::new(ErrorKind::Unreachable, message))
        })
    }

    /// Until there is an answer.
    async fn read_again(
        &self,
        path: &Arc<str>,
        failed_read: &impl Fn(&str) -> String,
    ) -> Result<Option<NodeData>, Error> {
        let grant = &self.grant;
        loop {
            // As long as the hold's own session lives its writes may be under way, and only there they come before the read.
            let session = if grant.session.is_over() {
                grant.is_gone().await?;
                grant.slot.session().await?
            } else {
                grant.session.clone()
            };
            match session.read(path.clone()).await {
                Ok(node) => return Ok(node),
                Err(ReadFailure::Refused(why)) => {
                    return Err(Error::new(ErrorKind::Refused, failed_read(&why)));
                }
                Err(ReadFailure::SessionOver) => session.end(LossReason::SessionExpired),
                Err(ReadFailure::Unknown) => {}
            }
            clock::sleep(MOMENT).await;
        }
    }

    /// Does the writes of a [`Guarded`].
    pub(crate) async fn commit(&self, writes: Vec<Write>) -> Result<Committed, Error> {
        let grant = &self.grant;
        if grant.holding.all_names_are_reused() {
            return Err(Error::unguarded(&grant.path));
        }
        // Before the hold is looked at: one that is released meanwhile does not pass its node on.
        grant.unsettled.fetch_add(1, Ordering::AcqRel);
        let committed = self.commit_unsettled(writes).await;
        // A write that may still be under way keeps the node from the next, who would be taken for its author.
        if committed.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::Uncertain) {
            grant.unsettled.fetch_sub(1, Ordering::AcqRel);
        }
        committed
    }

    async fn commit_unsettled(&self, writes: Vec<Write>) -> Result<Committed, Error> {
        let grant = &self.grant;
        tokio::select! {
            biased;
            // Nothing has been sent: that is certain then.
            reason = self.loss().come() => return Err(reason.map_or_else(
                || grant.not_held(),
                |reason| Error::lost(reason, &grant.path),
            )),
            () = grant.session.connected() => grant.told()?,
        }
        match grant.session.commit(grant.holding.nodes.clone(), writes).await {
            Ok(versions) => Ok(Committed { versions }),
            Err(WriteFailure::GuardGone) => {
                grant.session.lose(&grant.holding, LossReason::NodeDeleted);
                // Unless it was a release that deleted the node.
                Err(self.unconfirmed())
            }
            Err(WriteFailure::Refused { index, path, problem }) => {
                Err(Error::conflict_at(Conflict { index, path: path.into() }, &problem))
            }
            Err(WriteFailure::TooNew(message)) => Err(Error::new(ErrorKind::Refused, message)),
            Err(WriteFailure::Unknown | WriteFailure::SessionOver) => {
                let message =
                    "the reply to the guarded writes was lost: read whether they were done, then decide";
                Err(Error::new(ErrorKind::Uncertain, message))
            }
        }
    }
}

impl Grant {
    /// Waits until the quorum knows the nodes of the hold no more. That its session is over is one server's word: a leader that has
    /// lost its followers ends sessions too, and those live on if another leads before anybody has committed that.
    pub(super) async fn is_gone(&self) -> Result<(), Error> {
        for node in &self.holding.nodes {
            while self.may_be_there(node).await? {
                clock::sleep(10 * MOMENT).await;
            }
        }
        Ok(())
    }

    async fn may_be_there(&self, node: &Arc<str>) -> Result<bool, Error> {
        let session = self.slot.session().await?;
        match seen(&session, node).await {
            Ok(None) => Ok(false),
            // There may be another one at the same path.
            Ok(Some(seen)) => Ok(!self.holding.name_is_reused() || Token::of(seen.czxid) == self.token),
            Err(ReadFailure::Refused(why)) => Err(Error::new(ErrorKind::Refused, format!("{node}: {why}"))),
            Err(ReadFailure::SessionOver) => {
                session.end(LossReason::SessionExpired);
                Ok(true)
            }
            Err(ReadFailure::Unknown) => Ok(true),
        }
    }
}

async fn seen(session: &Arc<Session>, node: &Arc<str>) -> Result<Option<Seen>, ReadFailure> {
    let directory = node.rsplit_once('/').map_or("", |(directory, _)| directory);
    catch_up(session, &directory.into()).await?;
    session.look(node.clone()).await
}
