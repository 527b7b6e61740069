//! The ensemble as its leader has it, and as a follower may still see it.
//!
//! One lock's directory is all there is. A follower has applied some beginning of the history, so
//! what it can show is one of the states that the directory has had.

use super::machine::exchange::WatchEvent;
use super::machine::name::{Name, Sequence};
use std::rc::Rc;

/// A child of the lock's node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) czxid: i64,
    pub(crate) mzxid: i64,
    pub(crate) session: i64,
    /// Whose it is: what the model knows and the servers do not.
    pub(crate) client: usize,
    pub(crate) attempt: u8,
}

/// The lock's node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Directory {
    pub(crate) exists: bool,
    /// The next sequence number.
    pub(crate) counter: i32,
    /// In the order of their names, which is not that of their creation.
    pub(crate) children: Vec<Child>,
}

impl Directory {
    pub(crate) fn find(&self, name: &str) -> Option<&Child> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.children.iter().map(|child| child.name.clone()).collect()
    }
}

/// The leader's history, as far back as any server may still be.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Ensemble {
    /// Each state of the directory, with the transaction that made it.
    history: Vec<(i64, Rc<Directory>)>,
}

impl Ensemble {
    pub(crate) fn new(exists: bool, counter: i32) -> Self {
        let directory = Directory { exists, counter, children: Vec::new() };
        Self { history: vec![(1, Rc::new(directory))] }
    }

    pub(crate) fn zxid(&self) -> i64 {
        self.history.last().map_or(0, |state| state.0)
    }

    pub(crate) fn head(&self) -> &Directory {
        &self.history[self.history.len() - 1].1
    }

    /// The states that a server can show which has applied at least `floor`.
    pub(crate) fn views(&self, floor: i64) -> &[(i64, Rc<Directory>)] {
        let later = self.history.iter().rev().take_while(|state| state.0 > floor).count();
        // One more: the state that was current at `floor`.
        &self.history[self.history.len().saturating_sub(later + 1)..]
    }

    /// Forgets what no server can show any more.
    pub(crate) fn forget_before(&mut self, floor: i64) {
        let kept = self.views(floor).len();
        self.history.drain(..self.history.len() - kept);
    }

    fn commit(&mut self, change: impl FnOnce(&mut Directory, i64)) -> i64 {
        let zxid = self.zxid() + 1;
        let mut directory = self.head().clone();
        change(&mut directory, zxid);
        self.history.push((zxid, Rc::new(directory)));
        zxid
    }

    /// Creates a child, named after `prefix`, unless the directory is missing.
    pub(crate) fn create(&mut self, prefix: &str, session: i64, owner: (usize, u8)) -> Option<Child> {
        if !self.head().exists {
            return None;
        }
        let mut created = None;
        self.commit(|directory, zxid| {
            let name = format!("{prefix}{}", Sequence::new(directory.counter));
            assert!(Name::parse(&name).is_some(), "the server writes what can be read");
            directory.counter = directory.counter.wrapping_add(1);
            let (client, attempt) = owner;
            let child = Child { name, czxid: zxid, mzxid: zxid, session, client, attempt };
            let place = directory.children.partition_point(|other| other.name < child.name);
            directory.children.insert(place, child.clone());
            created = Some(child);
        });
        created
    }

    pub(crate) fn create_directory(&mut self) {
        if !self.head().exists {
            self.commit(|directory, _| {
                directory.exists = true;
                directory.counter = 0;
            });
        }
    }

    /// Deletes the children that are to go, in one transaction, and says whether there were any.
    pub(crate) fn delete(&mut self, goes: impl Fn(&Child) -> bool) -> bool {
        let found = self.head().children.iter().any(&goes);
        if found {
            self.commit(|directory, _| directory.children.retain(|child| !goes(child)));
        }
        found
    }

    pub(crate) fn delete_directory(&mut self) {
        self.commit(|directory, _| {
            directory.exists = false;
            directory.children.clear();
        });
    }

    /// Changes a child's data.
    pub(crate) fn change(&mut self, index: usize) {
        self.commit(|directory, zxid| directory.children[index].mzxid = zxid);
    }
}

/// The one watch of a client, on its server.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Watch {
    pub(crate) name: String,
    mzxid: i64,
    /// What it has to tell, and as of which transaction.
    pub(crate) fired: Option<(WatchEvent, i64)>,
}

impl Watch {
    /// A watch on a child of the oldest of these states, which fires with the first later one in
    /// which the child is not what it was.
    pub(crate) fn new(name: &str, views: &[(i64, Rc<Directory>)]) -> Option<Self> {
        let (seen, later) = views.split_first()?;
        let mzxid = seen.1.find(name)?.mzxid;
        let mut watch = Self { name: name.to_owned(), mzxid, fired: None };
        for (zxid, directory) in later {
            watch.look(directory, *zxid);
        }
        Some(watch)
    }

    pub(crate) fn look(&mut self, directory: &Directory, zxid: i64) {
        if self.fired.is_none() {
            self.fired = match directory.find(&self.name) {
                None => Some((WatchEvent::Deleted, zxid)),
                Some(child) if child.mzxid > self.mzxid => Some((WatchEvent::Changed, zxid)),
                Some(_) => None,
            };
        }
    }
}
