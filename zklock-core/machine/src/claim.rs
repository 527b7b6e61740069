//! The claims of an attempt: the places in which it queues, and how.
//!
//! A kind of lock is nothing but its claims. A mutex claims one place in one queue. A set of locks
//! has a claim for each, all made in one transaction. A semaphore also claims permits.

use super::layout::Layout;
use super::name::{Form, Name, Naming, Role, Scheme, Uuid, marked, parse_in, prefix_in};
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
    /// How the contenders of a home-made lock are named. All other children of its directory are none.
    pub layout: Option<Arc<Layout>>,
    /// What to do about a contender that cannot see ours.
    pub foreign: Foreign,
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
        /// Dangerous. Wait for one that can be read, which is of a known library. Ignore one that
        /// cannot be read, even if it holds the lock, and log its name at each grant: a contender of
        /// a custom lock, or a holder of kazoo's semaphore. This is right only if the former see
        /// ours, and the latter have nothing to do with the lock. Otherwise two may hold it.
        IgnoreUnknown,
    }
}

impl Claim {
    /// Makes a claim without permits, with the defaults, whose node has no data.
    pub fn new(directory: &str, scheme: Scheme) -> Self {
        Self {
            directory: directory.into(),
            scheme,
            layout: None,
            foreign: Foreign::default(),
            data: Arc::default(),
            permits: None,
            within: None,
        }
    }

    /// Returns the scheme for this role in this naming scheme; `None` if it has none.
    pub fn scheme(role: Role, naming: &Naming) -> Option<Scheme> {
        match (naming, role) {
            (Naming::Curator, Role::Exclusive) => Some(Scheme::Mutex),
            (Naming::Curator, Role::Read) => Some(Scheme::Read),
            (Naming::Curator, Role::Write) => Some(Scheme::Write),
            (Naming::Kazoo, Role::Exclusive | Role::Write) => Some(Scheme::KazooLock),
            (Naming::Kazoo, Role::Read) => Some(Scheme::KazooRead),
            (Naming::WriteLock, Role::Exclusive) => Some(Scheme::WriteLock),
            (Naming::WriteLock, Role::Read | Role::Write) => None,
            (Naming::Pattern(pattern), role) => match (pattern.has_sides(), role) {
                (true, Role::Exclusive) | (false, Role::Read | Role::Write) => None,
                _ => Some(Scheme::Pattern(role)),
            },
        }
    }

    /// Makes the claim of the lock at this path, whose contenders may be named by a pattern. The error says what is wrong with
    /// the pattern or the path.
    ///
    /// ```
    /// use zklock_machine::claim::Claim;
    /// use zklock_machine::name::{Naming, Role};
    ///
    /// let naming = Naming::pattern("{name}_lock_{sequence}").unwrap();
    /// let claim = Claim::at("/locks/report", Claim::scheme(Role::Exclusive, &naming).unwrap(), &naming).unwrap();
    /// assert_eq!(&*claim.directory, "/locks");
    /// assert!(claim.parse("report_lock_0000000001").is_some() && claim.parse("mail_lock_0000000001").is_none());
    /// ```
    pub fn at(path: &str, scheme: Scheme, naming: &Naming) -> Result<Self, String> {
        let Naming::Pattern(pattern) = naming else { return Ok(Self::new(path, scheme)) };
        let (directory, name) = match path.rsplit_once('/').filter(|_| pattern.has_name()) {
            None => (path, ""),
            Some(("", _)) => {
                return Err("has {name}, and so its contenders are children of the node above the lock's path: that is the \
                            root here, so give the lock a path such as /locks/report"
                    .into());
            }
            Some(split) => split,
        };
        let layout = Some(Layout::new(pattern, name)?.into());
        // A child that does not match is in no queue of ours, so there is nothing to refuse.
        Ok(Self { layout, foreign: Foreign::IgnoreUnknown, ..Self::new(directory, scheme) })
    }

    /// Recognises a contender in this queue; `None` for any other child.
    pub fn parse<'a>(&self, child: &'a str) -> Option<Name<'a>> {
        parse_in(self.forms(), child)
    }

    /// Whether this child may be a contender whose name does not say what it waits for.
    pub(crate) fn cannot_read(&self, child: &str) -> bool {
        self.layout.is_none() && (Name::is_unknown(child) || Name::is_holder_of_kazoos_semaphore(child))
    }

    /// Returns the part of a name that the contender with this mark chooses.
    pub fn prefix(&self, mark: Uuid, session: i64) -> String {
        prefix_in(self.forms(), self.scheme, mark, session)
    }

    fn forms(&self) -> &[Form] {
        self.layout.as_ref().map_or(Form::OF_CONTENDERS, |layout| &layout.forms)
    }

    /// Whether the mark is in the name of a node. If not, it is in its data.
    pub fn has_mark_in_name(&self) -> bool {
        self.layout.as_ref().is_none_or(|layout| layout.has_mark())
    }

    /// Returns the data of the node with this mark.
    pub(crate) fn data_with(&self, mark: Uuid) -> Arc<[u8]> {
        if self.has_mark_in_name() { self.data.clone() } else { marked(&self.data, mark) }
    }

    /// Returns a text that equal locks share, and no others at the same directory do: the directory, except for a home-made
    /// lock, which may have the directory in common with others.
    pub fn place(&self) -> Arc<str> {
        match &self.layout {
            Some(layout) => format!("{}/{layout:?}", self.directory).into(),
            None => self.directory.clone(),
        }
    }

    /// Returns the naming scheme of a contender of this claim, by the scheme of its name.
    pub fn naming_of(&self, scheme: Scheme) -> Naming {
        let pattern = || self.layout.as_ref().map(|layout| layout.naming());
        scheme.naming().or_else(pattern).unwrap_or_default()
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
    fn a_scheme_is_of_the_naming_and_the_role_that_it_was_asked_for() {
        let patterns = ["lock-{sequence}", "{R|W}-{sequence}"].map(|text| Naming::pattern(text).unwrap());
        let namings = [Naming::ALL, &patterns].concat();
        for (naming, &role) in
            namings.iter().flat_map(|naming| Role::ALL.iter().map(move |role| (naming, role)))
        {
            let scheme = Claim::scheme(role, naming);
            let Some(scheme) = scheme else {
                let has_sides = *naming == patterns[1];
                assert!(has_sides || [&Naming::WriteLock, &patterns[0]].contains(&naming), "{naming} {role}");
                assert_eq!(role == Role::Exclusive, has_sides, "{naming} {role}");
                continue;
            };
            assert!(scheme.naming().is_none_or(|of| of == *naming));
            // kazoo's writers have the same names as its locks.
            let is_writer_of_kazoos = (naming, role) == (&Naming::Kazoo, Role::Write);
            assert_eq!(scheme.role(), if is_writer_of_kazoos { Role::Exclusive } else { role });
        }
    }

    #[test]
    fn only_one_node_for_all_makes_no_queue() {
        assert!(Claim::new("/a", Scheme::Mutex).has_queue());
        assert!(!Claim::new("/a", Scheme::Single).has_queue());
    }
}
