//! The ensemble as its leader has it, and as a follower may still see it.
//!
//! It consists of a few directories. A follower has applied some beginning of the history, so
//! it shows one of the states that they have had.

use super::machine::name::{Name, Sequence};
use super::machine::protocol::NewNode;
use std::rc::Rc;
use std::sync::Arc;

/// A child of a directory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) czxid: i64,
    pub(crate) mzxid: i64,
    /// Its place in the queue: the transaction that created it, or the node whose number it took.
    pub(crate) place: i64,
    pub(crate) owner: Owner,
    /// Whether its data asks its holder to release.
    pub(crate) is_revoked: bool,
    /// The data that it was created with.
    pub(crate) data: Arc<[u8]>,
}

/// The owner of a node: as the servers know it, and as the model knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Owner {
    pub(crate) session: i64,
    pub(crate) client: usize,
    pub(crate) attempt: u8,
}

/// A queue, or the permits of a semaphore.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Directory {
    pub(crate) path: &'static str,
    pub(crate) exists: bool,
    /// The next sequence number.
    counter: i32,
    /// When the list of children last changed.
    pub(crate) changed: i64,
    /// In the order of their names, not of their creation.
    pub(crate) children: Vec<Child>,
}

impl Directory {
    /// Whether the next number is the last there is.
    pub(crate) fn is_at_the_end(&self) -> bool {
        self.counter == i32::MAX
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.children.iter().map(|child| child.name.clone()).collect()
    }

    fn insert(&mut self, name: String, place: Option<i64>, zxid: i64, owner: Owner) -> Child {
        // Counts every creation, even if the number is not appended. Since 3.6 it is never decreased, so it stays at the
        // largest number.
        self.counter = self.counter.max(self.counter.wrapping_add(1));
        self.changed = zxid;
        let place = place.unwrap_or(zxid);
        let data = Arc::default();
        let child = Child { name, czxid: zxid, mzxid: zxid, place, owner, is_revoked: false, data };
        let index = self.children.partition_point(|other| other.name < child.name);
        self.children.insert(index, child.clone());
        child
    }
}

/// Everything at one time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Tree {
    pub(crate) directories: Vec<Rc<Directory>>,
    /// The value of the node with the number of permits, and when it was written.
    pub(crate) limit: Option<(u32, i64)>,
}

impl Tree {
    pub(crate) fn directory(&self, path: &str) -> Option<&Directory> {
        self.directories.iter().map(|it| &**it).find(|it| it.path == path && it.exists)
    }

    pub(crate) fn find(&self, path: &str) -> Option<&Child> {
        let (directory, name) = path.rsplit_once('/')?;
        self.directory(directory)?.children.iter().find(|child| child.name == name)
    }

    pub(crate) fn children_of(&self, path: &str) -> impl Iterator<Item = &Child> {
        self.directory(path).into_iter().flat_map(|directory| &directory.children)
    }

    /// All children, each with its directory.
    pub(crate) fn children(&self) -> impl Iterator<Item = (&'static str, &Child)> {
        self.directories.iter().flat_map(|it| it.children.iter().map(|child| (it.path, child)))
    }

    fn at(&mut self, path: &str) -> &mut Directory {
        let found = self.directories.iter_mut().find(|it| it.path == path);
        Rc::make_mut(found.expect("the setup names all directories"))
    }
}

/// A state, and the transaction that made it.
pub(crate) type View = (i64, Rc<Tree>);

/// The leader's history, as far back as any server may still be.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Ensemble {
    history: Vec<View>,
}

impl Ensemble {
    pub(crate) fn new(paths: &[&'static str], counter: Option<i32>, limit: Option<u32>) -> Self {
        let (exists, counter) = (counter.is_some(), counter.unwrap_or(0));
        let directory =
            |path: &&'static str| Directory { path, exists, counter, changed: 1, children: Vec::new() };
        let directories = paths.iter().map(|path| Rc::new(directory(path))).collect();
        let limit = limit.map(|limit| (limit, 1));
        Self { history: vec![(1, Rc::new(Tree { directories, limit }))] }
    }

    pub(crate) fn zxid(&self) -> i64 {
        self.history.last().map_or(0, |state| state.0)
    }

    pub(crate) fn head(&self) -> &Tree {
        &self.history[self.history.len() - 1].1
    }

    /// The states that a server can show which has applied at least `floor`.
    pub(crate) fn views(&self, floor: i64) -> &[View] {
        let later = self.history.iter().rev().take_while(|state| state.0 > floor).count();
        // One more: the state that was current at `floor`.
        &self.history[self.history.len().saturating_sub(later + 1)..]
    }

    /// Forgets the states that no server can show any more.
    pub(crate) fn forget_before(&mut self, floor: i64) {
        let kept = self.views(floor).len();
        self.history.drain(..self.history.len() - kept);
    }

    fn commit<T>(&mut self, change: impl FnOnce(&mut Tree, i64) -> T) -> T {
        let zxid = self.zxid() + 1;
        let mut tree = self.head().clone();
        let result = change(&mut tree, zxid);
        self.history.push((zxid, Rc::new(tree)));
        result
    }

    /// Creates nodes with appended numbers in one transaction, unless a directory is missing.
    ///
    /// At the end of the counter a creation may also get a number beyond it, because of other creations in flight.
    pub(crate) fn create(&mut self, nodes: &[NewNode], owner: Owner, in_flight: bool) -> Option<Vec<Child>> {
        if nodes.iter().any(|node| self.head().directory(&node.directory).is_none()) {
            return None;
        }
        let create = |tree: &mut Tree, zxid, node: &NewNode| {
            let directory = tree.at(&node.directory);
            let number = if in_flight { directory.counter.wrapping_add(1) } else { directory.counter };
            let name = format!("{}{}", node.prefix, Sequence::new(number));
            let is_read = Name::parse(&name).or_else(|| Name::parse_lease(&name)).is_some();
            assert!(is_read || !node.data.is_empty(), "the server writes what can be read");
            let mut child = directory.insert(name, None, zxid, owner);
            let created = directory.children.iter_mut().find(|other| other.name == child.name);
            created.expect("it was inserted").data.clone_from(&node.data);
            child.data.clone_from(&node.data);
            child
        };
        Some(self.commit(|tree, zxid| nodes.iter().map(|node| create(tree, zxid, node)).collect()))
    }

    /// Creates a node with exactly this path. If it takes the number of another, it also takes its place. The directory must
    /// exist, and the node must not.
    pub(crate) fn create_fixed(&mut self, path: &str, place: Option<i64>, owner: Owner) -> Option<Child> {
        let (directory, name) = path.rsplit_once('/')?;
        Some(self.commit(|tree, zxid| tree.at(directory).insert(name.to_owned(), place, zxid, owner)))
    }

    /// Creates two nodes of one directory, in one transaction. The directory must exist, and they must not.
    pub(crate) fn create_pair(&mut self, one: &str, other: &str, owner: Owner) -> Option<Vec<Child>> {
        let (one, other) = (one.rsplit_once('/')?, other.rsplit_once('/')?);
        let create = |tree: &mut Tree, zxid, (directory, name): (&str, &str)| {
            tree.at(directory).insert(name.to_owned(), None, zxid, owner)
        };
        Some(self.commit(|tree, zxid| [one, other].map(|node| create(tree, zxid, node)).into()))
    }

    pub(crate) fn create_directory(&mut self, path: &str) {
        if self.head().directory(path).is_none() {
            self.commit(|tree, zxid| {
                let directory = tree.at(path);
                (directory.exists, directory.counter, directory.changed) = (true, 0, zxid);
            });
        }
    }

    /// Deletes the chosen children in one transaction. Returns whether there were any.
    pub(crate) fn delete(&mut self, goes: impl Fn(&str, &Child) -> bool) -> bool {
        let found = self.head().children().any(|(path, child)| goes(path, child));
        if found {
            self.commit(|tree, zxid| {
                for directory in &mut tree.directories {
                    if directory.children.iter().any(|child| goes(directory.path, child)) {
                        let directory = Rc::make_mut(directory);
                        directory.children.retain(|child| !goes(directory.path, child));
                        directory.changed = zxid;
                    }
                }
            });
        }
        found
    }

    /// Deletes an empty directory. Returns whether it existed; `None` if it has children.
    pub(crate) fn delete_if_empty(&mut self, path: &str) -> Option<bool> {
        let is_empty = self.head().directory(path).map(|directory| directory.children.is_empty());
        if is_empty == Some(true) {
            self.delete_directory(path);
        }
        is_empty.map_or(Some(false), |is_empty| is_empty.then_some(true))
    }

    /// Deletes the nodes in one transaction, if all of them exist.
    pub(crate) fn delete_all(&mut self, paths: &[String]) -> bool {
        let are_there = paths.iter().all(|path| self.head().find(path).is_some());
        are_there && self.delete(|directory, child| paths.contains(&format!("{directory}/{}", child.name)))
    }

    pub(crate) fn delete_directory(&mut self, path: &str) {
        self.commit(|tree, zxid| {
            let directory = tree.at(path);
            (directory.exists, directory.changed) = (false, zxid);
            directory.children.clear();
        });
    }

    /// Changes the data of the child with this number, counted over all directories, and may ask its holder to release with that.
    pub(crate) fn change(&mut self, index: usize, revokes: bool) {
        self.commit(|tree, zxid| {
            let mut index = index;
            for directory in &mut tree.directories {
                if index < directory.children.len() {
                    let child = &mut Rc::make_mut(directory).children[index];
                    (child.mzxid, child.is_revoked) = (zxid, revokes);
                    return;
                }
                index -= directory.children.len();
            }
        });
    }

    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.commit(|tree, zxid| tree.limit = Some((limit, zxid)));
    }
}
