//! The watches of a client, on its server.

use super::ensemble::{Tree, View};
use super::machine::protocol::WatchEvent;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Watch {
    pub(crate) on: Target,
    /// When its target had last changed as the watch was set.
    seen: i64,
    /// Its event, and the transaction that caused it.
    pub(crate) fired: Option<(WatchEvent, i64)>,
}

/// The target of a watch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Target {
    Node(String),
    Children(String),
    /// The node with the number of permits. It need not exist.
    Limit,
}

impl Target {
    /// When it last changed; `None` if it does not exist.
    fn changed(&self, tree: &Tree) -> Option<i64> {
        match self {
            Self::Node(path) => tree.find(path).map(|child| child.mzxid),
            Self::Children(path) => tree.directory(path).map(|directory| directory.changed),
            Self::Limit => Some(tree.limit.map_or(0, |limit| limit.1)),
        }
    }
}

impl Watch {
    /// A watch that is set in the oldest of these states, and fires with the first later one in which
    /// its target has changed.
    pub(crate) fn new(on: Target, views: &[View]) -> Option<Self> {
        let (first, later) = views.split_first()?;
        let mut watch = Self { seen: on.changed(&first.1)?, on, fired: None };
        for (zxid, tree) in later {
            watch.look(tree, *zxid);
        }
        Some(watch)
    }

    /// Lets the watch see a state. Returns whether it has just fired.
    pub(crate) fn look(&mut self, tree: &Tree, zxid: i64) -> bool {
        if self.fired.is_some() {
            return false;
        }
        self.fired = match self.on.changed(tree) {
            None => Some((WatchEvent::Deleted, zxid)),
            Some(changed) if changed != self.seen => Some((WatchEvent::Changed, zxid)),
            Some(_) => None,
        };
        self.fired.is_some()
    }

    /// The connection is lost, and the watch is set again on the next server. That server only sees the
    /// state, not the changes that led to it.
    pub(crate) fn leave_again(&mut self, head: &Tree, zxid: i64) {
        if let Some((event, at)) = &mut self.fired {
            let is_there = self.on.changed(head).is_some();
            *event = if is_there { WatchEvent::Changed } else { WatchEvent::Deleted };
            *at = zxid;
        }
    }
}
