//! Deletes nodes of the session that none of its attempts knows. See [`marks`](crate::machine::marks).

use super::Session;
use crate::base::sync::lock_ignoring_poison;
use crate::machine::marks::Listing;
use crate::machine::name::{SINGLE_NAME, Uuid, mark_of_companion};
use crate::machine::protocol::{Operation, Outcome};
use std::sync::Arc;

/// How many of the directories that attempts have left are listed again after a reconnect.
const LEFT_AT_MOST: usize = 64;

impl Session {
    /// Returns the marks of a new attempt with nodes in these directories, until the result is dropped.
    pub(crate) fn begin_attempt(self: &Arc<Self>, directories: Vec<Arc<str>>) -> Marked {
        let mark = lock_ignoring_poison(&self.marks).begin();
        Marked { session: self.clone(), mark, directories, has_begun: false, has_ended: false }
    }

    /// Looks for nodes to [heal](Self::heal) where attempts were recently. An ensemble may lose transactions when
    /// the leader changes, and that breaks connections.
    pub(crate) async fn sweep(self: Arc<Self>) {
        let directories: Vec<_> = lock_ignoring_poison(&self.left).iter().cloned().collect();
        if directories.is_empty() {
            return;
        }
        let list = |directory: &Arc<str>| Operation::List { directory: directory.clone() };
        let flight: Vec<_> = directories.iter().map(list).collect();
        let looking = self.look_for_orphans(&flight);
        let landing = self.clone().send(flight).await;
        if let Some(looking) = looking {
            looking.heal(&landing.outcomes);
        }
    }

    /// Begins to look for orphans in the listings of a flight. Call this before the flight is sent.
    pub(crate) fn look_for_orphans(self: &Arc<Self>, flight: &[Operation]) -> Option<Looking> {
        let directories: Vec<_> = flight.iter().map(|operation| operation.listed().cloned()).collect();
        directories.iter().any(Option::is_some).then(|| {
            let listing = lock_ignoring_poison(&self.marks).begin_listing();
            Looking { session: self.clone(), listing, directories }
        })
    }

    /// Deletes the children that this session has created and none of its attempts knows, because the ensemble has
    /// lost their deletion. Nothing waits for it: the next listing tries again.
    fn heal(self: &Arc<Self>, listing: Listing, directory: &str, children: &[String]) {
        let mut marks = lock_ignoring_poison(&self.marks);
        let orphans: Vec<_> = marks.orphans(listing, children).cloned().collect();
        marks.disown(&orphans);
        drop(marks);
        if orphans.is_empty() {
            return;
        }
        tracing::warn!(directory, ?orphans, "nodes of this session that no attempt knows are deleted");
        let (companions, others): (Vec<_>, Vec<_>) =
            orphans.into_iter().partition(|name| mark_of_companion(name).is_some());
        let path_of = |name: String| format!("{directory}/{name}");
        let others: Vec<_> = others.into_iter().map(path_of).map(|path| Operation::Delete { path }).collect();
        if !others.is_empty() {
            tokio::spawn(self.clone().send(others));
        }
        for companion in companions.into_iter().map(path_of) {
            tokio::spawn(self.clone().heal_pair(directory.into(), companion));
        }
    }

    /// Deletes the companion of an exclusive lock's node, and that node if it is of the same transaction.
    async fn heal_pair(self: Arc<Self>, directory: Arc<str>, companion: String) {
        let path = format!("{directory}/{SINGLE_NAME}");
        let inspect = |path: &String| Operation::Inspect { path: path.clone() };
        let looks = vec![Operation::Barrier { directory }, inspect(&companion), inspect(&path)];
        let landing = self.clone().send(looks).await;
        let [Outcome::Done, Outcome::Found(seen), node] = &landing.outcomes[..] else { return };
        let is_pair = matches!(node, Outcome::Found(node) if node.origin == seen.origin);
        let delete = match is_pair {
            true => Operation::DeletePair { path, companion },
            false => Operation::Delete { path: companion },
        };
        self.send(vec![delete]).await;
    }
}

/// A flight whose listings may show nodes that no attempt knows.
pub(crate) struct Looking {
    session: Arc<Session>,
    listing: Listing,
    /// The directory that each of its operations lists.
    directories: Vec<Option<Arc<str>>>,
}

impl Looking {
    /// Heals what these outcomes of the flight show.
    pub(crate) fn heal(self, outcomes: &[Outcome]) {
        for (directory, outcome) in self.directories.iter().zip(outcomes) {
            if let (Some(directory), Outcome::Children(children)) = (directory, outcome) {
                self.session.heal(self.listing, directory, children);
            }
        }
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        lock_ignoring_poison(&self.session.marks).end_listing(self.listing);
    }
}

/// The marks of an attempt in its session. They end when this is dropped, if not earlier.
pub(crate) struct Marked {
    session: Arc<Session>,
    mark: Uuid,
    /// The directories of its nodes.
    directories: Vec<Arc<str>>,
    /// Whether it has sent anything.
    has_begun: bool,
    has_ended: bool,
}

impl Marked {
    pub(crate) fn mark(&self) -> Uuid {
        self.mark
    }

    /// Notes that the attempt is about to send something, with this mark.
    pub(crate) fn use_mark(&mut self, mark: Uuid) {
        self.has_begun = true;
        if mark != self.mark {
            let mut followers = lock_ignoring_poison(&self.session.followers);
            lock_ignoring_poison(&self.session.marks).renew(mark);
            followers.tell(self.mark);
            self.mark = mark;
        }
    }

    /// Notes that the nodes of the attempt are gone. If they are seen again, they belong to nobody.
    pub(crate) fn end(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let mut followers = lock_ignoring_poison(&self.session.followers);
        lock_ignoring_poison(&self.session.marks).end(self.mark);
        followers.tell(self.mark);
        drop(followers);
        self.leave();
    }

    /// Notes that it may have left something to heal.
    fn leave(&mut self) {
        if !self.has_begun {
            return;
        }
        let mut left = lock_ignoring_poison(&self.session.left);
        for directory in self.directories.drain(..) {
            if left.back() != Some(&directory) {
                left.retain(|other| *other != directory);
                left.push_back(directory);
            }
        }
        let surplus = left.len().saturating_sub(LEFT_AT_MOST);
        left.drain(..surplus);
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        if !self.has_begun {
            self.end();
        }
        if !self.has_ended {
            // Its node may exist, and a hold that depends on it.
            let mut followers = lock_ignoring_poison(&self.session.followers);
            lock_ignoring_poison(&self.session.marks).abandon(self.mark);
            followers.forget(self.mark);
            drop(followers);
            self.leave();
        }
    }
}
