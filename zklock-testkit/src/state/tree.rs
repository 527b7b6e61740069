//! The nodes.
//!
//! [`Tree`] carries out changes and can undo them. Whether they are allowed is decided by
//! [`transaction`](crate::state::transaction).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::state::graveyard::Graveyard;
use crate::state::node::{Lifetime, Node};
use crate::wire::access::{Entry, right};
use crate::wire::jute::Writer;
use crate::wire::profile::Profile;

/// How to undo a change.
#[derive(Debug)]
pub(crate) enum Undo {
    Create { path: String, parent: (i32, i64) },
    Delete { path: String, node: Node, parent_pzxid: i64 },
    Replace { path: String, node: Node },
}

/// All nodes, by path.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: HashMap<String, Node>,
    pub(crate) ephemerals: HashMap<i64, BTreeSet<String>>,
    /// Nodes with a lifetime that has to be checked.
    reapable: BTreeSet<String>,
    pub(crate) undo: Vec<Undo>,
    pub(crate) graveyard: Graveyard,
    numbers_stick: bool,
}

impl Tree {
    /// The nodes of a new server.
    pub(crate) fn new(profile: Profile) -> Self {
        let mut tree = Self {
            nodes: HashMap::new(),
            ephemerals: HashMap::new(),
            reapable: BTreeSet::new(),
            undo: Vec::new(),
            graveyard: Graveyard::default(),
            numbers_stick: profile.numbers_stick(),
        };
        for &path in profile.first_nodes() {
            let rights = if path == "/zookeeper/config" { right::READ } else { right::ALL };
            let access = [Entry::anyone(rights)].into();
            let mut node = Node::new(Some(Vec::new()), access, Lifetime::Persistent, 0, 0);
            // It was never set, and still has its own list.
            node.aversion = if path == "/zookeeper/config" { -1 } else { 0 };
            tree.nodes.insert(path.to_owned(), node);
            if path != "/" {
                let (parent, name) = split(path);
                tree.known_mut(parent).children.insert(name.to_owned());
            }
        }
        tree
    }

    /// The empty path stands for the root too.
    pub(crate) fn node(&self, path: &str) -> Option<&Node> {
        self.nodes.get(if path.is_empty() { "/" } else { path })
    }

    /// The number of nodes. The root counts twice, as in ZooKeeper.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len() + 1
    }

    /// The number of nodes below this one.
    pub(crate) fn count_below(&self, path: &str) -> usize {
        if path == "/" {
            return self.nodes.len() - 1;
        }
        let prefix = format!("{path}/");
        self.nodes.keys().filter(|path| path.starts_with(&prefix)).count()
    }

    pub(crate) fn data_size(&self) -> usize {
        self.nodes.iter().map(|(path, node)| path.len() + node.data.as_ref().map_or(0, Vec::len)).sum()
    }

    pub(crate) fn ephemerals(&self, session: i64) -> impl Iterator<Item = &String> {
        self.ephemerals.get(&session).into_iter().flatten()
    }

    pub(crate) fn count_of_ephemerals(&self) -> usize {
        self.ephemerals.values().map(BTreeSet::len).sum()
    }

    /// Containers, and nodes with a time to live, that are due to be reaped.
    pub(crate) fn to_reap(&self, time: i64) -> Vec<String> {
        let is_over = |path: &&String| {
            let node = &self.nodes[*path];
            node.children.is_empty()
                && match node.lifetime {
                    // A new container that has never been used stays.
                    Lifetime::Container => node.created > 0,
                    Lifetime::Ttl(millis) => millis != 0 && time - node.mtime > millis,
                    Lifetime::Persistent | Lifetime::Ephemeral(_) => false,
                }
        };
        self.reapable.iter().filter(is_over).cloned().collect()
    }

    /// Sets the number of the next sequential child.
    pub(crate) fn set_created(&mut self, path: &str, number: i32) -> bool {
        self.nodes.get_mut(path).map(|node| node.created = number).is_some()
    }

    /// Creates a node where there is none, below an existing parent, which then counts this many children.
    ///
    /// Since 3.6, ZooKeeper only accepts a count that is larger than before. So the counter sticks at 2147483647, because
    /// the next number is negative. Then the parent's record of its last change stays too.
    pub(crate) fn create(&mut self, path: &str, node: Node, created: i32) {
        let (parent, name) = split(path);
        let zxid = node.czxid;
        let numbers_stick = self.numbers_stick;
        let parent = self.known_mut(parent);
        let undo = Undo::Create { path: path.to_owned(), parent: (parent.created, parent.pzxid) };
        parent.children.insert(name.to_owned());
        if created > parent.created || !numbers_stick {
            (parent.created, parent.pzxid) = (created, zxid);
        }
        self.put(path, node);
        self.undo.push(undo);
    }

    /// Removes an existing node that has no children.
    pub(crate) fn delete(&mut self, path: &str, zxid: i64) {
        let (parent, name) = split(path);
        let node = self.take(path);
        let parent = self.known_mut(parent);
        parent.children.remove(name);
        let parent_pzxid = std::mem::replace(&mut parent.pzxid, zxid);
        self.undo.push(Undo::Delete { path: path.to_owned(), node, parent_pzxid });
    }

    /// Changes an existing node's own fields. Returns its new metadata.
    pub(crate) fn change(&mut self, path: &str, change: impl FnOnce(&mut Node)) -> Writer {
        let node = self.known_mut(path);
        let children = std::mem::take(&mut node.children);
        let before = node.clone();
        node.children = children;
        change(node);
        let stat = node.stat();
        self.undo.push(Undo::Replace { path: path.to_owned(), node: before });
        stat
    }

    /// Makes everything since the last call of this or of [`Tree::roll_back`] final.
    pub(crate) fn commit(&mut self) {
        for undo in self.undo.drain(..) {
            if let Undo::Delete { path, node, .. } = undo {
                self.graveyard.bury(path, node);
            }
        }
    }

    /// Puts back the node that was deleted last at this path, exactly as it was; `false` if there is one again, or it can
    /// no longer exist because its session or its parent is gone.
    pub(crate) fn bring_back(&mut self, path: &str, is_open: impl Fn(i64) -> bool) -> bool {
        let (parent, name) = split(path);
        let Some(node) = self.graveyard.find(path).cloned() else { return false };
        let may_have_children = |node: &Node| node.lifetime.owner().is_none();
        let has_session = node.lifetime.owner().is_none_or(is_open);
        if self.node(path).is_some() || !has_session || !self.node(parent).is_some_and(may_have_children) {
            return false;
        }
        self.known_mut(parent).children.insert(name.to_owned());
        self.put(path, node);
        true
    }

    /// Undoes everything since the last [`Tree::commit`].
    pub(crate) fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Create { path, parent: (created, pzxid) } => {
                    self.take(&path);
                    let (parent, name) = split(&path);
                    let parent = self.known_mut(parent);
                    parent.children.remove(name);
                    (parent.created, parent.pzxid) = (created, pzxid);
                }
                Undo::Delete { path, node, parent_pzxid } => {
                    let (parent, name) = split(&path);
                    let parent = self.known_mut(parent);
                    parent.children.insert(name.to_owned());
                    parent.pzxid = parent_pzxid;
                    self.put(&path, node);
                }
                Undo::Replace { path, node } => {
                    let slot = self.known_mut(&path);
                    let children = std::mem::take(&mut slot.children);
                    *slot = Node { children, ..node };
                }
            }
        }
    }

    /// # Panics
    ///
    /// If the caller has not checked that first.
    pub(crate) fn known_mut(&mut self, path: &str) -> &mut Node {
        let path = if path.is_empty() { "/" } else { path };
        self.nodes.get_mut(path).expect("the caller has found this node")
    }

    fn put(&mut self, path: &str, node: Node) {
        match node.lifetime {
            Lifetime::Persistent => {}
            Lifetime::Ephemeral(session) => {
                self.ephemerals.entry(session).or_default().insert(path.to_owned());
            }
            Lifetime::Container | Lifetime::Ttl(_) => {
                self.reapable.insert(path.to_owned());
            }
        }
        self.nodes.insert(path.to_owned(), node);
    }

    pub(crate) fn take(&mut self, path: &str) -> Node {
        let node = self.nodes.remove(path).expect("the caller has found this node");
        self.reapable.remove(path);
        if let Some(session) = node.lifetime.owner() {
            if let Some(paths) = self.ephemerals.get_mut(&session) {
                paths.remove(path);
                if paths.is_empty() {
                    self.ephemerals.remove(&session);
                }
            }
        }
        node
    }
}

/// The parts before and after the last slash.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The nodes of a subtree as they are listed for people: path, data and owner of each.
pub(crate) fn listing(tree: &Tree, root: &str) -> BTreeMap<String, Node> {
    let prefix = format!("{}/", root.trim_end_matches('/'));
    let is_in = |path: &&String| *path == root || path.starts_with(&prefix);
    tree.nodes.keys().filter(is_in).map(|path| (path.clone(), tree.nodes[path].clone())).collect()
}
