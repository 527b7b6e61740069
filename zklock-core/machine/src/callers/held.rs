//! What the owners of a process hold at one path, through any lock: to refuse a wait that could never end, to log one that may
//! never end, and to let a writer take the read side.
//!
//! Only the owner may release a hold of a reentrant lock. Waiting for it would never end, so it is refused. Any thread or
//! task may release any other hold, so there the owner waits like everybody else: a pool lends one thread to many callers, and
//! a dispatcher hands each hold to a worker. But it may still be waiting for itself, so the wait is logged.
//!
//! The same goes for a reader beside its own writer. The writer lets it in at once only if nobody else can release the
//! writer's hold.
//!
//! Several locks have a claim at one path, each with [`Callers`](super::Callers) of its own, so this is not a part of them.
//! The shell has one [`HeldAt`] for each path. It adds a turn when it makes its grant, with one entry for each claim of the
//! lock, and removes it when the turn is over. Until then a turn's status changes without notice, so the shell is asked for it.

use crate::claim::Claim;
use crate::name::{Role, Scheme};
use crate::status::Status;

/// What the shell knows of a grant.
pub trait Holds {
    /// The unit to which it belongs.
    type Owner: Eq;

    /// Returns the state of its hold at this moment.
    fn status(&self) -> Status;

    /// Returns its owner.
    fn owner(&self) -> Self::Owner;

    /// Whether only the owner may release it.
    fn is_bound(&self) -> bool;

    /// Whether any hold of it has not been released.
    fn has_holds(&self) -> bool;
}

/// What is held at one path. `T` is a grant, and `N` is what the shell needs to give up a place that is kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HeldAt<T, N> {
    held: Vec<HeldClaim<T>>,
    /// Places that may stay when nobody uses them.
    kept: Vec<(Role, N)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct HeldClaim<T> {
    scheme: Scheme,
    /// Whether there is a node of it in the queue at this path, and not only permits.
    is_queued: bool,
    turn: T,
}

impl<T, N> Default for HeldAt<T, N> {
    fn default() -> Self {
        Self { held: Vec::new(), kept: Vec::new() }
    }
}

impl<T: Holds, N> HeldAt<T, N> {
    /// Adds a turn that has this claim. Permits leave no node in the queue.
    pub fn add(&mut self, claim: &Claim, turn: T) {
        let is_queued = claim.permits.is_none();
        self.held.push(HeldClaim { scheme: claim.scheme, is_queued, turn });
    }

    /// Forgets a turn that is over.
    pub fn remove(&mut self, is_it: impl Fn(&T) -> bool) {
        self.held.retain(|held| !is_it(&held.turn));
    }

    /// Whether anybody in this process holds something here.
    pub fn is_held(&self) -> bool {
        self.held.iter().any(|held| held.turn.status() == Status::Held)
    }

    /// Finds out what an owner that is about to wait for this claim holds here. Permits belong to nobody: one thread may take
    /// several, and another may return them.
    pub fn own(&self, owner: &T::Owner, claim: &Claim) -> Own {
        let wanted = claim.scheme.role();
        let own = |(held, is_bound): (Role, bool)| match (wanted.excludes(held), is_bound) {
            (true, true) => Own::Deadlock { held },
            (true, false) => Own::InTheWay,
            (false, _) => Own::Beside,
        };
        let held = self.held_by(owner).filter(|_| claim.permits.is_none());
        held.map(own).fold(Own::Nothing, Own::or)
    }

    /// Whether the owner may take the read side inside its own write side, so that its own node is not in the way.
    pub fn may_be_within(&self, owner: &T::Owner, claim: &Claim) -> bool {
        claim.layout.is_none()
            && claim.scheme.role() == Role::Read
            && self.held_by(owner).any(|held| held == (Role::Write, true))
    }

    /// Returns the owner's turn of the write side, which it alone can release, in the naming scheme of this reader. A hold that
    /// anybody can release may have been handed to another thread or task, which writes. A lock with further claims cannot go
    /// inside one of them, and a home-made lock has no two nodes with one number.
    pub fn writer(&self, owner: &T::Owner, claims: &[Claim]) -> Option<&T> {
        let [Claim { scheme: reader, .. }] = claims else { return None };
        let writer = match reader {
            Scheme::Read => Scheme::Write,
            Scheme::KazooRead => Scheme::KazooLock,
            _ => return None,
        };
        let is_owners = |held: &&HeldClaim<T>| {
            let turn = &held.turn;
            let is_bound = turn.is_bound() && turn.owner() == *owner;
            held.scheme == writer && held.is_queued && is_bound && turn.status() == Status::Held
        };
        self.held.iter().find(is_owners).map(|held| &held.turn)
    }

    /// Notes a place that may stay when nobody uses it.
    pub fn note_kept(&mut self, role: Role, place: N) {
        self.kept.push((role, place));
    }

    /// Forgets a place that is gone.
    pub fn forget_kept(&mut self, is_it: impl Fn(&N) -> bool) {
        self.kept.retain(|(_, place)| !is_it(place));
    }

    /// Returns the places that make way for this role if [nobody uses them](super::Callers::give_up_idle), because they
    /// exclude it. Those that are given up have then to be waited for, too.
    pub fn kept(&self, role: Role) -> impl Iterator<Item = &N> {
        self.kept.iter().filter(move |(other, _)| role.excludes(*other)).map(|(_, place)| place)
    }

    /// Returns the turns whose release has begun, and which exclude the role until it is done or refused: a node that cannot
    /// be deleted really is in the way.
    pub fn releases(&self, role: Role) -> impl Iterator<Item = &T> {
        let excludes = move |held: &&HeldClaim<T>| role.excludes(held.scheme.role());
        let turns = self.held.iter().filter(excludes).map(|held| &held.turn);
        turns.filter(|turn| turn.status() == Status::Releasing)
    }

    /// Returns the roles that the owner holds here, and for each whether only the owner may release it.
    fn held_by(&self, owner: &T::Owner) -> impl Iterator<Item = (Role, bool)> {
        let is_own = move |held: &&HeldClaim<T>| {
            let turn = &held.turn;
            held.is_queued && turn.owner() == *owner && turn.status() == Status::Held && turn.has_holds()
        };
        self.held.iter().filter(is_own).map(|held| (held.scheme.role(), held.turn.is_bound()))
    }
}

/// Whether an owner that is about to wait already holds the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Own {
    /// It holds nothing.
    Nothing,
    /// Its hold goes together with the one that it wants, unless another contender waits in between.
    Beside,
    /// Its hold excludes the one that it wants, and others may release it.
    InTheWay,
    /// Its hold excludes the one that it wants, and nobody else may release it.
    Deadlock {
        /// The role of that hold.
        held: Role,
    },
}

impl Own {
    /// Returns the one that matters more, for a lock with several claims.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Beside => 1,
            Self::InTheWay => 2,
            Self::Deadlock { .. } => 3,
        }
    }
}

#[cfg(test)]
mod tests;
