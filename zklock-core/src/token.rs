//! The number by which later grants are told from earlier ones.

use std::fmt;

/// A fencing token: of two grants of one path that cannot be held together, the later has the greater token.
///
/// Hand it to what the lock guards, and let that refuse a token smaller than one it has seen: so a
/// holder that was paused past its lease, and does not know yet, does no harm.
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
