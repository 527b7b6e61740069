//! Callers that want a lock which they already hold.
//!
//! Only the owner may release a hold of a reentrant lock. Waiting for it would never end, so it is refused. Any thread
//! or task may release any other hold, as with Python's `threading.Lock`, so there the owner waits like everybody else.
//! A pool lends one thread to many callers, and a dispatcher hands each hold to a worker; a refusal would break both.
//! But the caller may still be waiting for itself, so the wait is logged.
//!
//! The same goes for a reader beside its own writer. The writer lets it in at once only if nobody else can release the
//! writer's hold.

use super::LocalQueue;
use crate::base::error::{Error, ErrorKind};
use crate::base::owner::Owner;
use crate::machine::name::Role;

/// Whether an owner that is about to wait already holds the lock, in a way that others may release.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Own {
    Nothing,
    /// Its hold goes together with the one that it wants, unless another contender waits in between.
    Beside,
    /// Its hold excludes the one that it wants.
    InTheWay,
}

impl LocalQueue {
    /// Finds out what the owner holds here.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Deadlock`] if that hold is in the way and nobody else may release it.
    pub(crate) fn own(&self, owner: Owner) -> Result<Own, Error> {
        let mut own = Own::Nothing;
        // Permits belong to nobody: one thread may take several, and another may return them.
        let queues = self.claims.iter().zip(&self.held_at).filter(|(claim, _)| claim.permits.is_none());
        for (claim, held_at) in queues {
            let wanted = claim.scheme.role();
            for (held, is_bound) in held_at.held_by(owner) {
                own = own.max(match wanted.excludes(held) {
                    true if is_bound => return Err(deadlock(&claim.directory, wanted, held)),
                    true => Own::InTheWay,
                    false => Own::Beside,
                });
            }
        }
        Ok(own)
    }

    /// Whether the owner may take the read side inside its own write side, so that its own node is not in the way.
    pub(crate) fn may_be_within(&self, owner: Owner) -> bool {
        let mut queues = self.claims.iter().zip(&self.held_at);
        let is_writer = |held: &(Role, bool)| *held == (Role::Write, true);
        queues.any(|(claim, held_at)| {
            claim.scheme.role() == Role::Read && held_at.held_by(owner).iter().any(is_writer)
        })
    }
}

fn deadlock(path: &str, wanted: Role, held: Role) -> Error {
    let message = match (wanted, held) {
        (Role::Write, Role::Read) => format!(
            "this thread or task holds the read side of {path}, so it would wait for itself: release that first, then \
             acquire the write side and read again what may have changed"
        ),
        _ => format!(
            "this thread or task holds {path} by a reentrant lock, which nobody else can release, so it would wait for \
             itself: release that first"
        ),
    };
    Error::new(ErrorKind::Deadlock, message)
}
