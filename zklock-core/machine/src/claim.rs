//! The claims of an attempt: the places in which it queues, and how.
//!
//! A kind of lock is nothing but its claims. A mutex claims one place in one queue. A set of locks
//! has a claim for each, all made in one transaction. A semaphore also claims permits.

use super::name::{Dialect, Role, Scheme};
use std::sync::Arc;

/// A place in one queue.
///
/// # Examples
///
/// ```
/// use zklock_machine::claim::Claim;
/// use zklock_machine::name::Scheme;
///
/// let mutex = Claim::new("/locks/report", Scheme::Mutex);
/// assert_eq!(mutex.permits, None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Claim {
    /// The node whose children are the queue.
    pub directory: Arc<str>,
    /// The naming scheme of our node, which also says what we want.
    pub scheme: Scheme,
    /// What to do about a contender that cannot see ours.
    pub foreign: Foreign,
    /// What to watch while others are ahead.
    pub watching: Watching,
    /// The data of our node.
    pub data: Arc<[u8]>,
    /// The permits to take when it is our turn.
    pub permits: Option<Permits>,
    /// The node of the same owner's writer. A reader does not wait for it.
    pub within: Option<String>,
}

/// Permits of a semaphore.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Permits {
    /// The node whose children are the permits that are taken.
    pub directory: Arc<str>,
    /// How many are wanted.
    pub count: u32,
    /// How many there are.
    pub limit: u32,
    /// The node that stores how many there are, if it exists.
    pub limit_at: Option<Arc<str>>,
    /// The data of each permit's node.
    pub data: Arc<[u8]>,
}

crate::listed! {
    /// How to treat a contender that cannot see ours. Both could believe that they hold the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock_machine::claim::Foreign;
    /// assert_eq!(Foreign::default(), Foreign::Refuse);
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    #[non_exhaustive]
    pub enum Foreign {
        /// Fail, and name it: no lock is better than a false one.
        #[default]
        Refuse,
        /// Wait for it like for any other. That is right only if it is certain to see ours all the
        /// same. One that is in no queue of ours is ignored: a holder of kazoo's semaphore, or a
        /// contender of a home-made lock.
        GoAhead,
    }
}

crate::listed! {
    /// The nodes that a waiter watches.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock_machine::claim::Watching;
    /// assert_eq!(Watching::default(), Watching::Nearest);
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    #[non_exhaustive]
    pub enum Watching {
        /// The one node whose deletion can make it the waiter's turn.
        #[default]
        Nearest,
        /// All children, so that every change wakes every waiter. This is the simple way, for
        /// comparison.
        Children,
    }
}

impl Claim {
    /// Makes a claim without permits, with the defaults, whose node has no data.
    pub fn new(directory: &str, scheme: Scheme) -> Self {
        Self {
            directory: directory.into(),
            scheme,
            foreign: Foreign::default(),
            watching: Watching::default(),
            data: Arc::default(),
            permits: None,
            within: None,
        }
    }

    /// Returns the scheme for this role in this dialect; `None` if it has none.
    pub const fn scheme(role: Role, dialect: Dialect) -> Option<Scheme> {
        match (dialect, role) {
            (Dialect::Curator, Role::Exclusive) => Some(Scheme::Mutex),
            (Dialect::Curator, Role::Read) => Some(Scheme::Read),
            (Dialect::Curator, Role::Write) => Some(Scheme::Write),
            (Dialect::Kazoo, Role::Exclusive | Role::Write) => Some(Scheme::KazooLock),
            (Dialect::Kazoo, Role::Read) => Some(Scheme::KazooRead),
            (Dialect::WriteLock, Role::Exclusive) => Some(Scheme::WriteLock),
            (Dialect::WriteLock, Role::Read | Role::Write) => None,
        }
    }

    /// Whether the lock has a queue, not just one node for all.
    pub fn has_queue(&self) -> bool {
        self.scheme != Scheme::Single
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_is_of_the_dialect_and_the_role_that_it_was_asked_for() {
        for (&dialect, &role) in
            Dialect::ALL.iter().flat_map(|dialect| Role::ALL.iter().map(move |role| (dialect, role)))
        {
            let scheme = Claim::scheme(role, dialect);
            let Some(scheme) = scheme else {
                assert!(dialect == Dialect::WriteLock && role != Role::Exclusive, "{dialect} {role}");
                continue;
            };
            assert_eq!(scheme.dialect(), dialect);
            // kazoo's writers have the same names as its locks.
            let is_writer_of_kazoos = (dialect, role) == (Dialect::Kazoo, Role::Write);
            assert_eq!(scheme.role(), if is_writer_of_kazoos { Role::Exclusive } else { role });
        }
    }

    #[test]
    fn only_one_node_for_all_makes_no_queue() {
        assert!(Claim::new("/a", Scheme::Mutex).has_queue());
        assert!(!Claim::new("/a", Scheme::Single).has_queue());
    }
}
