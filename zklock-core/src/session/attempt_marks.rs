//! The marks of a session's attempts, who waits for their end, and where they have been.
//!
//! By its marks a session tells the nodes that it has created from others. So it finds those that none of its attempts
//! knows (see [`marks`](crate::machine::marks)), and an attempt learns of the end of another one without the network.
//!
//! Callers of one client often wait for one another. This process knows that the node ahead is gone as soon as its deletion
//! is confirmed. An attempt that does not watch it yet saves a round trip by that.

use crate::base::platform;
use crate::base::sync::{Mutex, MutexGuard, lock_ignoring_poison};
use crate::machine::marks::{self, Marks, Neighbour};
use crate::machine::name::Uuid;
use crate::machine::protocol::WatchEvent;
use crate::zookeeper::ensemble::Pending;
use std::collections::{HashMap, VecDeque};
use std::future::{pending, ready};
use std::sync::Arc;
use tokio::sync::oneshot;

/// How many of the directories that attempts have left are listed again after a reconnect.
const LEFT_AT_MOST: usize = 64;

/// Tells an attempt that the nodes it waits for are gone.
type Follower = oneshot::Sender<()>;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct AttemptMarks(Mutex<State>);

/// One mutex for all of it, so that no mark ends between the look at a mark and the wait for its end.
#[derive(Debug)]
struct State {
    marks: Marks,
    /// The attempts that wait for the end of another, by its mark.
    followers: HashMap<Uuid, Vec<Follower>>,
    /// The directories that attempts have left, the most recent last.
    left: VecDeque<Arc<str>>,
}

impl AttemptMarks {
    pub(super) fn new() -> Self {
        let marks = Marks::new(platform::uuid().session());
        Self(Mutex::new(State { marks, followers: HashMap::new(), left: VecDeque::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock_ignoring_poison(&self.0)
    }

    /// Returns the mark of a new attempt.
    pub(crate) fn begin(&self) -> Uuid {
        self.lock().marks.begin()
    }

    /// Replaces the mark of an attempt. It has no node with the old one any more.
    pub(crate) fn renew(&self, old: Uuid, new: Uuid) {
        tell(self.change(old, |marks| marks.renew(new)));
    }

    /// Notes that there is no node with this mark any more.
    pub(crate) fn end(&self, mark: Uuid) {
        tell(self.change(mark, |marks| marks.end(mark)));
    }

    /// Notes that nobody will know whether there is a node with this mark.
    pub(crate) fn abandon(&self, mark: Uuid) {
        drop(self.change(mark, |marks| marks.abandon(mark)));
    }

    /// Makes a change after which nobody can follow this mark, and returns those who do. Telling or dropping them wakes their
    /// tasks, so the caller does that, after the mutex is unlocked.
    fn change(&self, mark: Uuid, change: impl FnOnce(&mut Marks)) -> Vec<Follower> {
        let mut state = self.lock();
        change(&mut state.marks);
        state.followers.remove(&mark).unwrap_or_default()
    }

    /// Returns a future that ends when the node with this name is gone; `None` if it belongs to another session.
    pub(super) fn end_of(&self, name: &str) -> Option<Pending<WatchEvent>> {
        let mut state = self.lock();
        let ended = match state.marks.neighbour(name) {
            Neighbour::Here(mark) => state.follow(mark),
            Neighbour::Gone => return Some(Box::pin(ready(WatchEvent::Deleted))),
            Neighbour::Elsewhere => return None,
        };
        Some(Box::pin(async {
            match ended.await {
                Ok(()) => WatchEvent::Deleted,
                Err(_) => pending().await,
            }
        }))
    }

    /// Begins to look for orphans in listings. Call this before they are sent.
    pub(super) fn begin_listing(&self) -> Listing<'_> {
        Listing(self, self.lock().marks.begin_listing())
    }

    /// Notes that attempts may have left something in these directories.
    pub(crate) fn leave(&self, directories: &[Arc<str>]) {
        let left = &mut self.lock().left;
        for directory in directories {
            if left.back() != Some(directory) {
                left.retain(|other| other != directory);
                left.push_back(directory.clone());
            }
        }
        let surplus = left.len().saturating_sub(LEFT_AT_MOST);
        left.drain(..surplus);
    }

    /// Returns the directories that attempts have left, the most recent last.
    pub(super) fn left(&self) -> Vec<Arc<str>> {
        self.lock().left.iter().cloned().collect()
    }
}

/// Listings that may show nodes that no attempt knows. Dropping it ends them.
pub(super) struct Listing<'a>(&'a AttemptMarks, marks::Listing);

impl Listing<'_> {
    /// Returns the listed children that this session has created and none of its attempts knows, and notes that nobody will.
    pub(super) fn disown_orphans(&self, children: &[String]) -> Vec<String> {
        let marks = &mut self.0.lock().marks;
        let orphans: Vec<_> = marks.orphans(self.1, children).cloned().collect();
        marks.disown(&orphans);
        orphans
    }
}

impl Drop for Listing<'_> {
    fn drop(&mut self) {
        self.0.lock().marks.end_listing(self.1);
    }
}

impl State {
    fn follow(&mut self, mark: Uuid) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let followers = self.followers.entry(mark).or_default();
        if followers.len() == followers.capacity() {
            followers.retain(|other| !other.is_closed());
        }
        followers.push(sender);
        receiver
    }
}

fn tell(followers: Vec<Follower>) {
    for follower in followers {
        // A follower that has gone away need not be told.
        let _ = follower.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn followers_that_have_gone_away_are_forgotten() {
        let attempts = AttemptMarks::new();
        let mark = attempts.begin();
        let mut stays = attempts.lock().follow(mark);
        for _ in 0..1_000 {
            drop(attempts.lock().follow(mark));
        }
        assert!(attempts.lock().followers[&mark].len() <= 8);
        assert!(!attempts.lock().followers[&mark][0].is_closed());
        attempts.abandon(mark);
        assert!(attempts.lock().followers.is_empty());
        assert_eq!(stays.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }
}
