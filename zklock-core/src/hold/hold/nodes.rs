//! Guarded writes, and reads, through a hold.

use super::{Grant, Hold, Token};
use crate::base::clock;
use crate::base::error::{Conflict, Error, ErrorKind, LossReason};
use crate::connect::path::check_path;
use crate::hold::guarded::Committed;
use crate::session::ask::{MOMENT, catch_up};
use crate::session::session::Session;
use crate::zookeeper::ensemble::{NodeData, ReadFailure, Seen, Write, WriteFailure};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The least time that a read is given, however short the session timeout.
const READ_AT_LEAST: Duration = Duration::from_secs(2);

impl Hold {
    /// Reads a node's data and its version; `None` if there is no such node.
    ///
    /// The data is as new as anything that the ensemble had committed when this was called. By then the outcome of every
    /// earlier guarded write of this hold is final, even if its reply was lost, and the data shows it. So after an
    /// [`Uncertain`](ErrorKind::Uncertain) commit, read what it should have written, then decide. For that reason this
    /// works even when the hold is lost or released, as long as the client is open.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if the ensemble did not answer within a session timeout, or within two seconds if that
    ///   is longer. The same if one server has ended the hold's session but the ensemble has not confirmed that by then;
    /// * [`ErrorKind::Refused`] if the access list does not allow reading it;
    /// * [`ErrorKind::InvalidInput`] for a bad path;
    /// * [`ErrorKind::Closed`] if the client is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    ///
    /// # Examples
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

    /// Reads until there is an answer.
    async fn read_again(
        &self,
        path: &Arc<str>,
        failed_read: &impl Fn(&str) -> String,
    ) -> Result<Option<NodeData>, Error> {
        let grant = &self.grant;
        loop {
            // While the hold's own session lives, its writes may still be under way, and only in that session do they come
            // before the read.
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
        // Counted before the hold is checked, so that a hold released meanwhile does not pass its node on.
        grant.unsettled.fetch_add(1, Ordering::AcqRel);
        let committed = self.commit_unsettled(writes).await;
        // A write that may still be under way keeps the node from the next holder, whose write it would seem to be.
        if committed.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::Uncertain) {
            grant.unsettled.fetch_sub(1, Ordering::AcqRel);
        }
        committed
    }

    async fn commit_unsettled(&self, writes: Vec<Write>) -> Result<Committed, Error> {
        let grant = &self.grant;
        tokio::select! {
            biased;
            // Nothing has been sent yet, so it is certain that nothing was written.
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
                // It may also have been a release that deleted the node.
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
    /// Waits until the quorum no longer has the nodes of the hold. One server's word that the session is over is not enough:
    /// a leader that has lost its followers ends sessions too, and these live on if another server becomes the leader before
    /// that is committed.
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
            // Another node may have been created at the same path.
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
