//! The watches of a client, on its server.

use super::ensemble::{Tree, View};
use super::machine::protocol::WatchEvent;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Watch {
    pub(crate) on: Target,
    /// When what it is on had changed last as it was left.
    seen: i64,
    /// What it has to tell, and as of which transaction.
    pub(crate) fired: Option<(WatchEvent, i64)>,
}

/// What a watch is on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Target {
    Node(String),
    Children(String),
    /// A node that need not be there.
    Presence(String),
    /// The node that says how many permits there are. It need not be there.
    Limit,
}

impl Target {
    /// When it changed last; `None` if it is not there.
    fn changed(&self, tree: &Tree) -> Option<i64> {
        match self {
            Self::Node(path) => tree.find(path).map(|child| child.mzxid),
            Self::Children(path) => tree.directory(path).map(|directory| directory.changed),
            Self::Presence(path) => Some(tree.find(path).map_or(0, |child| child.mzxid)),
            Self::Limit => Some(tree.limit.map_or(0, |limit| limit.1)),
        }
    }
}

impl Watch {
    /// A watch on something in the oldest of these states, which fires with the first later one in
    /// which that is not what it was.
    pub(crate) fn new(on: Target, views: &[View]) -> Option<Self> {
        let (first, later) = views.split_first()?;
        let mut watch = Self { seen: on.changed(&first.1)?, on, fired: None };
        for (zxid, tree) in later {
            watch.look(tree, *zxid);
        }
        Some(watch)
    }

    /// Whether it has begun to have something to tell.
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

    /// The connection is lost: it is left again on the next server, which sees what happened meanwhile
    /// only as far as it can be seen.
    pub(crate) fn leave_again(&mut self, head: &Tree, zxid: i64) {
        if let Some((event, at)) = &mut self.fired {
            let is_there = self.on.changed(head).is_some();
            *event = if is_there { WatchEvent::Changed } else { WatchEvent::Deleted };
            *at = zxid;
        }
    }
}
