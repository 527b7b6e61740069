//! The lock algorithm as pure state machines.
//!
//! Nothing here knows a clock, randomness, a task, a log or a connection. Time comes in as a [`Moment`], replies
//! come in as [`Outcome`](protocol::Outcome)s, and requests go out as [`Operation`](protocol::Operation)s. So a
//! model checker can drive the very code that ships through every order of events, and a failure replays exactly.
//! A lock written directly against a client library can only be tested by luck: the interesting orders (a reply
//! lost, a session expired between two lines) are those that a real server hardly ever produces.
//!
//! It is a crate of its own, so that the compiler keeps everything else out, and so that it can be checked from
//! outside in the form in which it ships. It serves only `zklock-core`, and promises no stable API.

// The layers: a module imports from lower lines, or from its own, and never in a circle. `tests/layers.py` checks that.
//
// ```text
// .  callers    the callers of one process that want the same lock
//    contender  one attempt to hold a lock that has a queue, from the creation of its node to its deletion
//    single     one attempt to hold a lock that is one node
//    drive      the interface of every machine, so that one loop can run them all
//    flow       the frame of an attempt: where it is, and how it goes on
//    queue      who holds, and which node to watch: a pure function of the children
//    claim      what an attempt wants: the places in which it queues, and how
//    barrier    who may go on at a double barrier, and who waits for whom
//    readiness  whether a grant may be delivered
//    retry      what to do about unknown outcomes
//    keeper     the holds of a session: when each must be proven, and when it is lost
//    status     the states of a hold, and why it is lost
//    turns      who may next take a node that is passed on within a process, and when it is given up
//    memory     remembers that a lock was busy, for callers that try again
//    lease      how long acknowledged writes prove that a session is alive
//    marks      how to recognise a node that no attempt knows of
//    layout     a pattern with the name of a lock filled in: which children are its contenders
//    lasting    which children are no contenders although their names end with a number
//    name       the names of the children of a lock's node, and their order
//    pattern    how the contenders of a home-made lock are named
//    times      the parts of the session timeout, and why they are what they are
//    protocol   the language between a machine and its driver
//    lib        moments in time
// ```

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

/// Defines an enum together with the list of its values. Other crates must expect further values; with the list
/// they can check at compile time that they know every one.
#[doc(hidden)]
#[macro_export]
macro_rules! listed {
    ($(#[$about:meta])* pub enum $Enum:ident { $($(#[$doc:meta])* $Value:ident $(($Inner:ident))?,)+ }) => {
        $(#[$about])*
        pub enum $Enum { $($(#[$doc])* $Value $(($Inner))?,)+ }

        impl $Enum {
            /// Every value. For a variant that contains another enum, only one value.
            #[doc(hidden)]
            pub const ALL: &'static [Self] = &[$(Self::$Value $(($Inner::ALL[0]))?),+];
        }
    };
}

pub mod barrier;
pub mod callers;
pub mod claim;
pub mod contender;
pub mod drive;
pub(crate) mod flow;
pub mod keeper;
pub mod lasting;
pub mod layout;
pub mod lease;
pub mod marks;
pub mod memory;
pub mod name;
pub mod pattern;
pub mod protocol;
pub mod queue;
pub(crate) mod readiness;
pub(crate) mod retry;
pub mod single;
pub mod status;
pub mod times;
pub mod turns;

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// A point in time, counted from an origin that only the caller knows.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zklock_machine::Moment;
///
/// let start = Moment::at(Duration::from_secs(10));
/// let later = start + Duration::from_secs(2);
/// assert_eq!(later.since(start), Duration::from_secs(2));
/// assert_eq!(start.since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// Returns the moment this long after the origin.
    pub const fn at(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    /// Returns the moment this long before this one, but not before the origin.
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }

    /// Returns how long after `earlier` this moment is; zero if it is earlier.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// Saturates, so that a timeout that is too large to count never comes.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_says_how_long_after_the_origin_it_is() {
        assert_eq!(format!("{:?}", Moment::at(Duration::from_millis(1_500))), "1.5s");
    }
}
