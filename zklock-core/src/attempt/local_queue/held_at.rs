//! What is held at one path through any lock of a client: the machine's record, with the grants and queues that it speaks of.

use super::{Event, LocalQueue};
use crate::base::owner::Owner;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::hold::grant::Grant;
use crate::machine::callers::held::{self, Holds};
use crate::machine::callers::{Own, PlaceId};
use crate::machine::claim::Claim;
use crate::machine::name::Role;
use crate::machine::status::Status;
use crate::session::session::{Holding, HoldingState};
use std::sync::{Arc, Weak};
use tokio::sync::watch;

/// What is held at one path. Its mutex may be locked inside of a queue's, and never around one.
#[derive(Default)]
pub(crate) struct HeldAt(Mutex<held::HeldAt<HeldTurn, KeptPlace>>);

/// A grant, and the queue that gave it.
#[derive(Clone)]
pub(super) struct HeldTurn {
    pub(super) grant: Arc<Grant>,
    queue: Weak<LocalQueue>,
}

/// A place that may stay when nobody uses it.
#[derive(Clone)]
struct KeptPlace {
    queue: Weak<LocalQueue>,
    place: PlaceId,
    holding: Arc<Holding>,
}

impl HeldTurn {
    /// Makes it the last of its place; `false` if it has ended.
    pub(super) fn end_passing(&self) -> bool {
        self.queue.upgrade().is_some_and(|queue| queue.end_passing(self.grant.turn()))
    }
}

impl Holds for HeldTurn {
    type Owner = Owner;

    fn status(&self) -> Status {
        self.grant.holding().status()
    }

    fn owner(&self) -> Owner {
        self.grant.owner()
    }

    fn is_bound(&self) -> bool {
        self.grant.is_bound()
    }

    fn has_holds(&self) -> bool {
        self.grant.has_holds()
    }
}

impl HeldAt {
    pub(super) fn add(&self, claim: &Claim, grant: &Arc<Grant>, queue: &Weak<LocalQueue>) {
        let turn = HeldTurn { grant: grant.clone(), queue: queue.clone() };
        lock_ignoring_poison(&self.0).add(claim, turn);
    }

    /// Forgets a grant that is over.
    pub(super) fn remove(&self, grant: &Arc<Grant>) {
        lock_ignoring_poison(&self.0).remove(|turn| Arc::ptr_eq(&turn.grant, grant));
    }

    /// Whether anybody in this process holds something here.
    pub(super) fn is_held(&self) -> bool {
        lock_ignoring_poison(&self.0).is_held()
    }

    /// Finds out what an owner that is about to wait for this claim holds here.
    pub(super) fn own(&self, owner: Owner, claim: &Claim) -> Own {
        lock_ignoring_poison(&self.0).own(&owner, claim)
    }

    pub(super) fn may_be_within(&self, owner: Owner, claim: &Claim) -> bool {
        lock_ignoring_poison(&self.0).may_be_within(&owner, claim)
    }

    /// Returns the owner's turn of the write side, if a reader with these claims may go inside of it.
    pub(super) fn writer(&self, owner: Owner, claims: &[Claim]) -> Option<HeldTurn> {
        lock_ignoring_poison(&self.0).writer(&owner, claims).cloned()
    }

    pub(super) fn note_kept(
        &self,
        role: Role,
        queue: &Weak<LocalQueue>,
        place: PlaceId,
        holding: &Arc<Holding>,
    ) {
        let kept = KeptPlace { queue: queue.clone(), place, holding: holding.clone() };
        lock_ignoring_poison(&self.0).note_kept(role, kept);
    }

    pub(super) fn forget_kept(&self, holding: &Arc<Holding>) {
        lock_ignoring_poison(&self.0).forget_kept(|kept| Arc::ptr_eq(&kept.holding, holding));
    }

    /// Gives up places that nobody uses and that exclude this role. Returns the holds whose release has begun and which
    /// exclude the role until it is done.
    pub(super) fn give_up_idle_for(&self, role: Role) -> Vec<watch::Receiver<HoldingState>> {
        let kept: Vec<_> = lock_ignoring_poison(&self.0).kept(role).cloned().collect();
        for KeptPlace { queue, place, .. } in &kept {
            queue.upgrade().iter().for_each(|queue| queue.tell(*place, Event::InTheWay));
        }
        let held = lock_ignoring_poison(&self.0);
        let released = held.releases(role).map(|turn| turn.grant.holding().watch()).collect::<Vec<_>>();
        drop(held);
        let given_up = kept.iter().map(|kept| kept.holding.watch());
        let given_up = given_up.filter(|state| state.borrow().status == Status::Releasing);
        released.into_iter().chain(given_up).collect()
    }
}
