//! Watches, and which of them fire.
//!
//! There are two tables, one for events of a node and one for changes of its children. The rules are those of ZooKeeper:
//! a watch fires once and is gone, unless it is persistent. A recursive watch sees everything below, but no changes of
//! children as such.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::wire::access;
use crate::wire::path::upwards;

/// A connection, as watches know it.
pub(crate) type Watcher = u64;

/// The type of an event, with ZooKeeper's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventType {
    Created = 1,
    Deleted = 2,
    DataChanged = 3,
    ChildrenChanged = 4,
}

/// An event of a node, or a change of its children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) event: EventType,
    pub(crate) path: String,
    /// Only clients that may read the node are told.
    pub(crate) access: access::List,
}

/// How long a watch stays, and how far it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Once,
    Persistent,
    Recursive,
}

/// The kinds of watches that a request is about, as ZooKeeper numbers them. 3 is both.
const OF_CHILDREN: i32 = 1;
const OF_DATA: i32 = 2;

#[derive(Debug, Default)]
struct Table {
    by_path: HashMap<String, BTreeMap<Watcher, Mode>>,
    by_watcher: BTreeMap<Watcher, BTreeSet<String>>,
}

impl Table {
    /// As in ZooKeeper, a client that asks for one event at a path that it watches for ever gets one event.
    fn add(&mut self, path: &str, watcher: Watcher, mode: Mode) {
        self.by_path.entry(path.to_owned()).or_default().insert(watcher, mode);
        self.by_watcher.entry(watcher).or_default().insert(path.to_owned());
    }

    /// The watches that see this event. Those for a single event are then gone.
    fn trigger(&mut self, path: &str, event: EventType) -> BTreeSet<Watcher> {
        let mut told = BTreeSet::new();
        for (up, place) in upwards(path).enumerate() {
            let hears = |mode: Mode| match mode {
                Mode::Once | Mode::Persistent => up == 0,
                Mode::Recursive => event != EventType::ChildrenChanged,
            };
            let here = self.by_path.get(place).into_iter().flatten().filter(|(_, mode)| hears(**mode));
            for (watcher, mode) in here.map(|(watcher, mode)| (*watcher, *mode)).collect::<Vec<_>>() {
                told.insert(watcher);
                if mode == Mode::Once {
                    self.remove(place, watcher);
                }
            }
        }
        told
    }

    fn remove(&mut self, path: &str, watcher: Watcher) -> bool {
        let Some(watchers) = self.by_path.get_mut(path) else { return false };
        let was_there = watchers.remove(&watcher).is_some();
        if watchers.is_empty() {
            self.by_path.remove(path);
        }
        if let Some(paths) = self.by_watcher.get_mut(&watcher) {
            paths.remove(path);
        }
        was_there
    }

    fn remove_watcher(&mut self, watcher: Watcher) {
        for path in self.by_watcher.get(&watcher).cloned().unwrap_or_default() {
            self.remove(&path, watcher);
        }
        self.by_watcher.remove(&watcher);
    }

    fn count(&self) -> usize {
        self.by_path.values().map(BTreeMap::len).sum()
    }
}

/// All watches.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    data: Table,
    children: Table,
}

impl Watches {
    pub(crate) fn watch_data(&mut self, path: &str, watcher: Watcher) {
        self.data.add(path, watcher, Mode::Once);
    }

    pub(crate) fn watch_children(&mut self, path: &str, watcher: Watcher) {
        self.children.add(path, watcher, Mode::Once);
    }

    /// Adds a watch that stays. It is in both tables, whatever its kind, and replaces the one that was there.
    pub(crate) fn watch_on(&mut self, path: &str, watcher: Watcher, mode: Mode) {
        self.data.add(path, watcher, mode);
        self.children.add(path, watcher, mode);
    }

    pub(crate) fn has_kind(kind: i32) -> bool {
        (OF_CHILDREN..=OF_CHILDREN | OF_DATA).contains(&kind)
    }

    /// Whether any client watches this path: this is what ZooKeeper checks.
    pub(crate) fn contains(&self, path: &str, kind: i32) -> bool {
        let is_in = |table: &Table, of: i32| kind & of != 0 && table.by_path.contains_key(path);
        // The root's other name is never found.
        !path.is_empty() && (is_in(&self.children, OF_CHILDREN) || is_in(&self.data, OF_DATA))
    }

    pub(crate) fn remove(&mut self, path: &str, kind: i32, watcher: Watcher) -> bool {
        let of_children = kind & OF_CHILDREN != 0 && self.children.remove(path, watcher);
        let of_data = kind & OF_DATA != 0 && self.data.remove(path, watcher);
        of_children || of_data
    }

    /// A connection is gone, and its watches with it.
    pub(crate) fn remove_watcher(&mut self, watcher: Watcher) {
        self.data.remove_watcher(watcher);
        self.children.remove_watcher(watcher);
    }

    /// The watches that a change fires. Those for a single event are then gone.
    pub(crate) fn fire(&mut self, change: &Change) -> BTreeSet<Watcher> {
        if change.event == EventType::ChildrenChanged {
            return self.children.trigger(&change.path, change.event);
        }
        let mut told = self.data.trigger(&change.path, change.event);
        if change.event == EventType::Deleted {
            // A client that watches both the node and its children is told of its end once.
            told.extend(self.children.trigger(&change.path, change.event));
        }
        told
    }

    pub(crate) fn count(&self) -> usize {
        self.data.count() + self.children.count()
    }

    /// The answer to `wchs`. As in ZooKeeper, it counts only the watches on nodes.
    pub(crate) fn summary(&self) -> String {
        let total: usize = self.data.by_watcher.values().map(BTreeSet::len).sum();
        let (watchers, paths) = (self.data.by_watcher.len(), self.data.by_path.len());
        format!("{watchers} connections watching {paths} paths\nTotal watches:{total}\n")
    }
}
