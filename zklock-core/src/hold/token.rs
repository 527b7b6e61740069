//! The fencing token, a number that tells later grants from earlier ones.

use std::fmt;

/// A fencing token. Of two grants at one path that exclude each other, the later one has the greater token.
///
/// So tokens grow from one holder of a mutex to the next, from one writer to the next, from a reader to a later writer,
/// and from a writer to a later reader. Among grants that can be held together, the order of tokens means nothing: the
/// later of two readers with no writer between them may have the smaller token, and so may the later of two permits of a
/// semaphore. Holders in one process that pass a node on, as with a lock that [lingers](crate::LockSpec::linger), have
/// the same token.
///
/// Pass the token to the resource that the lock guards, and have it refuse any token smaller than the largest it has
/// seen. It then refuses a holder that was paused past its lease and has not noticed yet. If readers pass theirs too,
/// compare a reader's token only with those of writers.
///
/// # Examples
///
/// ```no_run
/// # fn example(hold: &zklock::Hold, seen: &mut u64) {
/// let token = hold.token().value();
/// assert!(token >= *seen, "a stale holder");
/// *seen = token;
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(u64);

impl Token {
    pub(crate) fn of(czxid: i64) -> Self {
        // The same bits, so that it keeps growing even after an ensemble has had 2³¹ leaders.
        Self(u64::from_ne_bytes(czxid.to_ne_bytes()))
    }

    /// Returns the transaction that created the node.
    pub(crate) fn czxid(self) -> i64 {
        i64::from_ne_bytes(self.0.to_ne_bytes())
    }

    /// Returns the token as a number.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(hold: &zklock::Hold) {
    /// // The database refuses what an earlier holder writes too late.
    /// let token = hold.token().value();
    /// println!("UPDATE report SET text = $1, token = {token} WHERE token <= {token}");
    /// # }
    /// ```
    pub fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
