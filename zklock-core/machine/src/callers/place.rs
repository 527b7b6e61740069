//! A place: one attempt, from its beginning until nothing of it is left at the servers.

use super::{Caller, PlaceId, TurnId};
use crate::Moment;
use crate::turns::Turns;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Place<O> {
    pub(super) id: PlaceId,
    pub(super) stage: Stage,
    /// The one that it enters for; `None` once that one has its answer, or has gone.
    pub(super) caller: Option<Caller<O>>,
    /// Whether it counts against the width.
    pub(super) is_counted: bool,
    /// Since when it has had the lock, until the deletion of its node is sent. Only of a lock that excludes.
    pub(super) holds_since: Option<Moment>,
    /// Who may have it next, if it is passed on.
    pub(super) kept: Option<Turns>,
    pub(super) was_granted: bool,
    pub(super) is_lost: bool,
    /// Whether its holders were told that others want it.
    pub(super) is_wanted: bool,
    /// Whether it was a try that found the lock busy.
    pub(super) was_busy: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stage {
    /// It is on its way in.
    Entering,
    /// The servers have granted it, and its deletion has not begun.
    Held,
    /// Its nodes are being deleted, or nothing is left of them.
    Leaving,
}

impl<O> Place<O> {
    pub(super) fn new(id: PlaceId, caller: Caller<O>, is_counted: bool) -> Self {
        Self {
            id,
            stage: Stage::Entering,
            caller: Some(caller),
            is_counted,
            holds_since: None,
            kept: None,
            was_granted: false,
            is_lost: false,
            is_wanted: false,
            was_busy: false,
        }
    }

    /// Whether its hold goes on, as far as this machine was told.
    pub(super) fn is_held(&self) -> bool {
        self.stage == Stage::Held && !self.is_lost
    }

    /// Nobody takes it any more.
    pub(super) fn end_turns(&mut self) {
        if let Some(turns) = &mut self.kept {
            turns.handle_end();
        }
    }
}

/// One grant of a place to one owner.
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
