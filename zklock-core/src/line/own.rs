//! Those who want a lock that they hold themselves.
//!
//! What was acquired by a reentrant lock only its owner may release: to wait for that would never end, and is refused.
//! Any other hold may be released by any thread or task, as Python's `threading.Lock` may: so its owner waits like
//! anybody. A pool of threads lends one thread to many callers, and a dispatcher hands each
//! hold to a worker; a refusal would break both. Since the wait may be for oneself all the same, it is told of.
//!
//! So it is with a reader beside its own writer: only what nobody else can release lets it in at once.

use super::Line;
use crate::error::{Error, ErrorKind};
use crate::machine::name::Role;
use crate::owner::Owner;

/// What an owner that is about to wait holds of the lock, for others to release.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Own {
    Nothing,
    /// It can be held beside what is wanted, unless somebody else waits in between.
    Beside,
    /// It excludes what is wanted.
    InTheWay,
}

impl Line {
    /// What the owner holds here.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Deadlock`] if that is in the way, and nobody else may release it.
    pub(crate) fn own(&self, owner: Owner) -> Result<Own, Error> {
        let mut own = Own::Nothing;
        // Permits belong to nobody: one thread may take several, and another return them.
        let queues = self.claims.iter().zip(&self.places).filter(|(claim, _)| claim.permits.is_none());
        for (claim, place) in queues {
            let wanted = claim.scheme.role();
            for (held, is_bound) in place.held_by(owner) {
                own = own.max(match wanted.excludes(held) {
                    true if is_bound => return Err(deadlock(&claim.directory, wanted, held)),
                    true => Own::InTheWay,
                    false => Own::Beside,
                });
            }
        }
        Ok(own)
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
