//! The number by which later grants are told from earlier ones.

use std::fmt;

/// A fencing token: of two grants of one path that exclude each other, the later has the greater token.
///
/// So tokens grow from one holder of a mutex to the next, from one writer to the next, and between a reader and a
/// writer both ways. Contenders that can hold together are granted in any order: of two readers without a writer between
/// them the later may have the smaller token, and so may the later of two permits of a semaphore. Holders of one process
/// that pass a node on, as those of a lock that [lingers](crate::LockSpec::linger) do, have the same.
///
/// Hand it to what the lock guards, and let that refuse a token smaller than one it has seen: so a
/// holder that was paused past its lease, and does not know yet, does no harm. If readers hand theirs over too, compare a
/// reader's token only with those of writers.
///
/// ```no_run
/// # fn example(hold: &zklock_core::Hold, seen: &mut u64) {
/// let token = hold.token().value();
/// assert!(token >= *seen, "a stale holder");
/// *seen = token;
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(u64);

impl Token {
    pub(crate) fn of(czxid: i64) -> Self {
        // The same bits, so that it goes on growing when an ensemble has seen 2³¹ leaders.
        Self(u64::from_ne_bytes(czxid.to_ne_bytes()))
    }

    /// The transaction that created the node.
    pub(crate) fn czxid(self) -> i64 {
        i64::from_ne_bytes(self.0.to_ne_bytes())
    }

    /// The number.
    pub fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
