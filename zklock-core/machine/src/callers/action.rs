//! What the shell has to do.

use super::{CallerId, PlaceId, TurnId};

/// Something for the shell to do. [`Callers::poll_action`](super::Callers::poll_action) returns them in their order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Action<O> {
    /// Start an attempt for this caller. If it tries, wait first for the releases that are [in its
    /// way](super::held::HeldAt::releases): otherwise it would find the lock busy because of a node that we are deleting.
    Begin {
        place: PlaceId,
        caller: CallerId,
        /// Whether to send its first requests before anything else is done, because a deletion has just been sent.
        is_at_once: bool,
        /// Whether a try has found the lock busy before, so that this one should leave a watch.
        tried_before: bool,
    },
    /// The caller of this attempt has gone. The attempt goes on for another.
    Serve { place: PlaceId, caller: CallerId },
    /// The caller waits for the servers from now on, and not for others: the node that it is to take is being checked.
    Asks { caller: CallerId },
    /// Make the grant of this turn. The answers follow that say who has it.
    Grant {
        turn: TurnId,
        place: PlaceId,
        owner: O,
        /// Whether only the owner may release it.
        is_bound: bool,
        /// Whether the place is kept from now on, for the next callers of this process. The shell asks to be told when others
        /// wait, and notes the place at the path.
        is_kept: bool,
    },
    /// Answer this caller, once. If it has gone meanwhile, the shell [releases](super::Callers::release) what it was given.
    Answer { caller: CallerId, answer: Answer },
    /// Delete the nodes of this place. Its caller has gone, or its last hold was released, or nobody may take it any more.
    /// If it may still be granted, withdraw it.
    GiveUp { place: PlaceId },
    /// Let the quorum confirm the nodes of this place, then call [`handle_checked`](super::Callers::handle_checked).
    Prove { place: PlaceId },
    /// Tell those who have this place whether others want it.
    Wanted { place: PlaceId, is_wanted: bool },
    /// This turn is over. Forget its grant, also [at its paths](super::held::HeldAt::remove).
    Over { turn: TurnId },
    /// Drop the watch that the last busy try has left.
    StopWatching,
}

/// The answer to a caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// It has a hold of this turn.
    Held(TurnId),
    /// It did not want to wait, and the lock is busy.
    Busy,
    /// Its attempt has failed. The shell knows why.
    Failed,
    /// The client is closed.
    Closed,
}
