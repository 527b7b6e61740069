//! A turn: one grant of a place to one owner.

use super::ids::{PlaceId, TurnId};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Turn<O> {
    pub(super) id: TurnId,
    pub(super) place: PlaceId,
    pub(super) owner: O,
    /// Whether only the owner may release it.
    pub(super) is_bound: bool,
    /// The holds that share it. Without any, it only waits until its place is gone.
    pub(super) holds: usize,
}

impl<O: Copy + PartialEq> Turn<O> {
    pub(super) fn is_bound_to(&self, owner: O) -> bool {
        self.is_bound && self.owner == owner && self.holds > 0
    }
}

/// The result of releasing one hold of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReleaseOutcome {
    /// The owner has other holds of the turn.
    Others,
    /// The next holder in this process gets the place, or others have it too.
    PassedOn,
    /// The place is given up.
    Released,
    /// The hold had been lost.
    Lost,
}
