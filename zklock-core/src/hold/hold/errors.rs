//! The errors that the methods of a hold return.

use super::Grant;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::session::session::Status;

impl Grant {
    /// Returns an error if the hold is lost.
    pub(crate) fn told(&self) -> Result<(), Error> {
        let status = match self.holding.status() {
            // A session that has ended marks its holds as lost one by one; this one may not have
            // been reached yet.
            Status::Held => self.session.loss().map_or(Status::Held, Status::Lost),
            status => status,
        };
        match status {
            Status::Lost(LossReason::SessionClosed) => {
                let error = Error::lost(LossReason::SessionClosed, &self.path);
                Err(self.session.undeletable().map_or(error.clone(), |why| error.because(why)))
            }
            Status::Lost(reason) => Err(Error::lost(reason, &self.path)),
            Status::Freed => {
                let (node, why) = (self.holding.node(), self.session.undeletable().unwrap_or_default());
                let free = if self.session.nodes_are_gone() {
                    "the lock is free".to_owned()
                } else {
                    format!("no server has confirmed that, so the lock is free {}", self.later())
                };
                let message = format!(
                    "the ensemble refused to delete {node}: {why}; {free}, and what else the client held in that session \
                     is lost; give the client that right"
                );
                Err(Error::new(ErrorKind::Refused, message))
            }
            Status::Held | Status::Releasing | Status::Stuck | Status::Released => Ok(()),
        }
    }

    pub(super) fn not_held(&self) -> Error {
        Error::new(ErrorKind::NotHeld, format!("this hold of {} has been released before", self.path))
    }

    /// Returns when the lock becomes free after its session was given up.
    fn later(&self) -> String {
        format!(
            "when the ensemble ends the session, which it does {:?} after it last heard of it",
            self.session.timeout()
        )
    }

    /// Returns the error for a release that can get no reply any more.
    pub(super) fn unconfirmed(&self) -> Error {
        let why = self.session.trouble().unwrap_or_else(|| "no server answers".to_owned());
        let message = format!(
            "the release of {} cannot be confirmed, since its session can get no connection any more: {why}; the lock is \
             free {}",
            self.path,
            self.later(),
        );
        Error::new(ErrorKind::Unreachable, message)
    }

    /// Returns the error for a release that takes longer than a session timeout.
    pub(super) fn unconfirmed_yet(&self) -> Error {
        let path = &self.path;
        let message =
            format!("the ensemble has not confirmed the release of {path} yet: it goes on in the background");
        Error::new(ErrorKind::Timeout, message)
    }

    /// Returns why the hold has no lease: either it is lost, or the ensemble did not answer.
    pub(crate) fn unheard(&self) -> Error {
        if let Err(lost) = self.told() {
            return lost;
        }
        let message = format!(
            "the ensemble did not confirm the hold of {}: rely on valid_for() and try again",
            self.path
        );
        Error::new(ErrorKind::Unreachable, message)
    }
}
