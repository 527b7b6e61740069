//! The names by which the machine and its shell speak of callers, places and turns. None is given twice.

/// One call that waits for the lock, or tries it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallerId(pub u64);

/// One attempt, with its nodes at the servers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PlaceId(pub u64);

/// One grant of a place to one owner. All holds of a reentrant owner share it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TurnId(pub u64);
