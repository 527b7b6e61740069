//! A call for the lock, and what is known of the one who calls.

use super::ids::CallerId;
use crate::protocol::Patience;

/// The unit to which a hold belongs, as a task or a thread.
pub trait Owner: Copy + Eq {
    /// Whether it can come back and release what it acquired.
    fn returns(self) -> bool;
}

/// A call for the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Call<O> {
    /// The owner of the call.
    pub owner: O,
    /// Whether its calls share one turn.
    pub is_reentrant: bool,
    /// Whether it waits.
    pub patience: Patience,
    /// Whether it goes inside a turn of its owner, which has the write side and is then [the last of its
    /// place](super::Callers::end_passing).
    pub is_within: bool,
}

impl<O: Owner> Call<O> {
    /// Whether only the owner may release what it gets.
    pub(super) fn is_bound(&self) -> bool {
        self.is_reentrant && self.owner.returns()
    }
}

/// A call, and its name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Caller<O> {
    pub(super) id: CallerId,
    pub(super) call: Call<O>,
}
