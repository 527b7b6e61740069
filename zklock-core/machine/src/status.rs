//! The states of a hold, and why it is lost.
//!
//! ```text
//!         +-------- lose -------> Lost
//!         |                         ^
//!  grant  |                         | end: of the session, or of the node
//! ------> Held --- release ---> Releasing ---- end ----> Released
//!                                   |
//!                                   +-- refuse --> Stuck ---- end ----> Freed
//! ```
//!
//! Lost, released and freed are final. A holder that has been told of a loss must never find the hold alive again.

use crate::protocol::Outcome;
use std::fmt;

crate::listed! {
    /// Why a hold was lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock_machine::status::LossReason;
    /// assert_eq!(LossReason::NodeDeleted.to_string(), "its node was deleted");
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    #[non_exhaustive]
    pub enum LossReason {
        /// The ensemble ended the session.
        SessionExpired,
        /// The hold's node was deleted, by an operator for example.
        NodeDeleted,
        /// The ensemble did not confirm the hold in time, so others may hold the lock by now.
        LeaseLapsed,
        /// The client was closed, or the program has closed its descriptors.
        ClientClosed,
        /// The client closed the session to remove a node that it may not delete. Give the client that right.
        SessionClosed,
        /// A contender that cannot see the hold came into the queue, so both may hold the lock. Make both sides use
        /// the same naming scheme and the same kind of lock.
        ForeignContender,
        /// This process was forked from the holder, which still has the hold.
        Forked,
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SessionExpired => "its session expired",
            Self::NodeDeleted => "its node was deleted",
            Self::LeaseLapsed => "its lease lapsed before the ensemble answered again",
            Self::ClientClosed => "its client was closed",
            Self::SessionClosed => "its session was closed to remove a node that the client may not delete",
            Self::ForeignContender => "a contender that cannot see it came, and may hold the lock too",
            Self::Forked => "it belongs to the process from which this one was forked",
        })
    }
}

/// The state of a hold.
///
/// Each method makes one transition, and returns whether it changed anything.
///
/// # Examples
///
/// ```
/// use zklock_machine::status::{LossReason, Status};
///
/// let mut status = Status::Held;
/// assert!(status.lose(LossReason::NodeDeleted));
/// assert!(!status.release());
/// assert_eq!(status, Status::Lost(LossReason::NodeDeleted));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// The lock is held.
    Held,
    /// Its node is being deleted.
    Releasing,
    /// The ensemble refuses to delete its node, so the session is being closed.
    Stuck,
    /// Its node is gone.
    Released,
    /// Its node is gone with the session, because the ensemble refused to delete it.
    Freed,
    /// Others may hold the lock.
    Lost(LossReason),
}

impl Status {
    /// Marks the hold as lost, unless it is being released: then it has already ended for its holder.
    pub fn lose(&mut self, reason: LossReason) -> bool {
        self.change(*self == Self::Held, Self::Lost(reason))
    }

    /// The holder releases it.
    pub fn release(&mut self) -> bool {
        self.change(*self == Self::Held, Self::Releasing)
    }

    /// The ensemble has refused to delete the node.
    pub fn refuse(&mut self) -> bool {
        self.change(*self == Self::Releasing, Self::Stuck)
    }

    /// Nothing is left at the servers. `deletion` is the outcome of the first deletion of a node of the hold, `over`
    /// why the session is over, if it is.
    pub fn end(&mut self, deletion: Option<&Outcome>, over: Option<LossReason>) -> bool {
        let over = over.map(Self::Lost);
        match self {
            Self::Held => over.is_some_and(|lost| self.change(true, lost)),
            Self::Stuck if over.is_some() => self.change(true, Self::Freed),
            Self::Releasing | Self::Stuck => self.change(
                true,
                match (deletion, over) {
                    (Some(Outcome::NoNode), _) => Self::Lost(LossReason::NodeDeleted),
                    (Some(Outcome::Done), _) => Self::Released,
                    // Nothing of ours was left to delete.
                    (None, None) => Self::Lost(LossReason::NodeDeleted),
                    // No reply said whether the node was still there.
                    (_, over) => over.unwrap_or(Self::Released),
                },
            ),
            Self::Released | Self::Freed | Self::Lost(_) => false,
        }
    }

    /// The client is gone, so nobody looks after the hold any more.
    pub fn abandon(&mut self) -> bool {
        let is_open = matches!(self, Self::Held | Self::Releasing | Self::Stuck);
        self.change(is_open, Self::Lost(LossReason::ClientClosed))
    }

    fn change(&mut self, changes: bool, to: Self) -> bool {
        if changes {
            *self = to;
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LossReason as L;
    use Status as S;

    type Event = fn(&mut Status) -> bool;

    #[test]
    fn each_status_takes_the_events_that_it_can() {
        let lost = S::Lost(L::LeaseLapsed);
        let closed = S::Lost(L::ClientClosed);
        let all = [S::Held, S::Releasing, S::Stuck, S::Released, S::Freed, S::Lost(L::NodeDeleted)];
        let table: [(Event, [Option<Status>; 6]); 4] = [
            (|it| it.lose(L::LeaseLapsed), [Some(lost), None, None, None, None, None]),
            (Status::release, [Some(S::Releasing), None, None, None, None, None]),
            (Status::refuse, [None, Some(S::Stuck), None, None, None, None]),
            (Status::abandon, [Some(closed), Some(closed), Some(closed), None, None, None]),
        ];
        for (number, (event, after)) in table.into_iter().enumerate() {
            for (status, after) in all.into_iter().zip(after) {
                let mut changed = status;
                assert_eq!(event(&mut changed), after.is_some(), "event {number} in {status:?}");
                assert_eq!(changed, after.unwrap_or(status), "event {number} in {status:?}");
            }
        }
    }

    #[test]
    fn a_release_ends_as_the_deletion_of_the_node_says() {
        let expired = S::Lost(L::SessionExpired);
        let table = [
            (Some(Outcome::Done), None, S::Released),
            // The node was still there before the session ended.
            (Some(Outcome::Done), Some(L::SessionExpired), S::Released),
            (Some(Outcome::NoNode), None, S::Lost(L::NodeDeleted)),
            (Some(Outcome::NoNode), Some(L::SessionExpired), S::Lost(L::NodeDeleted)),
            (Some(Outcome::Unknown), None, S::Released),
            (Some(Outcome::Unknown), Some(L::SessionExpired), expired),
            (None, None, S::Lost(L::NodeDeleted)),
            (None, Some(L::SessionExpired), expired),
        ];
        for (deletion, over, after) in table {
            let mut ended = S::Releasing;
            assert!(ended.end(deletion.as_ref(), over));
            assert_eq!(ended, after, "{deletion:?}, {over:?}");
        }
    }

    #[test]
    fn a_node_that_may_not_be_deleted_goes_with_its_session() {
        let refused = Outcome::Refused(crate::protocol::Refusal::Denied);
        for over in [L::SessionClosed, L::SessionExpired] {
            let mut ended = S::Stuck;
            assert!(ended.end(Some(&refused), Some(over)));
            assert_eq!(ended, S::Freed);
        }
        // The deletion was allowed after all.
        let mut ended = S::Stuck;
        assert!(ended.end(Some(&refused), None));
        assert_eq!(ended, S::Released);
    }

    #[test]
    fn only_the_end_of_its_session_ends_what_is_held() {
        let mut held = S::Held;
        assert!(!held.end(Some(&Outcome::Done), None));
        assert!(held.end(None, Some(L::SessionExpired)));
        assert!(!held.end(None, Some(L::ClientClosed)));
        assert_eq!(held, S::Lost(L::SessionExpired));
    }
}
