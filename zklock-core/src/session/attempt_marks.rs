//! The marks of a session's attempts, who waits for their end, and where they have been.
//!
//! By its marks a session tells the nodes that it has created from others. So it finds those that none of its attempts
//! knows (see [`marks`](crate::machine::marks)), and an attempt learns of the end of another one without the network.

use crate::base::platform;
use crate::base::sync::lock_ignoring_poison;
use crate::machine::marks::{Listing, Marks, Neighbour};
use crate::machine::name::Uuid;
use crate::machine::protocol::WatchEvent;
use crate::session::followers::Followers;
use crate::zookeeper::ensemble::Pending;
use std::collections::VecDeque;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex};

/// How many of the directories that attempts have left are listed again after a reconnect.
const LEFT_AT_MOST: usize = 64;

/// See the [module](self). The followers are locked before the marks, both where somebody begins to wait and where a mark
/// ends, so that nobody misses it in between.
pub(super) struct AttemptMarks {
    pub(super) marks: Mutex<Marks>,
    pub(super) followers: Mutex<Followers>,
    /// The directories that attempts have left, the most recent last.
    left: Mutex<VecDeque<Arc<str>>>,
}

impl AttemptMarks {
    pub(super) fn new() -> Self {
        Self {
            marks: Mutex::new(Marks::new(platform::uuid().session())),
            followers: Mutex::default(),
            left: Mutex::default(),
        }
    }

    /// Returns the mark of a new attempt.
    pub(super) fn begin(&self) -> Uuid {
        lock_ignoring_poison(&self.marks).begin()
    }

    /// Replaces the mark of an attempt. It has no node with the old one any more.
    pub(super) fn renew(&self, old: Uuid, new: Uuid) {
        let mut followers = lock_ignoring_poison(&self.followers);
        lock_ignoring_poison(&self.marks).renew(new);
        followers.tell(old);
    }

    /// Notes that there is no node with this mark any more.
    pub(super) fn end(&self, mark: Uuid) {
        let mut followers = lock_ignoring_poison(&self.followers);
        lock_ignoring_poison(&self.marks).end(mark);
        followers.tell(mark);
    }

    /// Notes that nobody will know whether there is a node with this mark.
    pub(super) fn abandon(&self, mark: Uuid) {
        let mut followers = lock_ignoring_poison(&self.followers);
        lock_ignoring_poison(&self.marks).abandon(mark);
        followers.forget(mark);
    }

    /// Returns a future that ends when the node with this name is gone; `None` if it belongs to another session.
    pub(super) fn end_of(&self, name: &str) -> Option<Pending<WatchEvent>> {
        let mut followers = lock_ignoring_poison(&self.followers);
        let told = match lock_ignoring_poison(&self.marks).neighbour(name) {
            Neighbour::Here(mark) => followers.follow(mark),
            Neighbour::Gone => return Some(Box::pin(ready(WatchEvent::Deleted))),
            Neighbour::Elsewhere => return None,
        };
        Some(Box::pin(async {
            match told.await {
                Ok(()) => WatchEvent::Deleted,
                Err(_) => pending().await,
            }
        }))
    }

    /// Begins to look for orphans in a listing. Call this before it is sent.
    pub(super) fn begin_listing(&self) -> Listing {
        lock_ignoring_poison(&self.marks).begin_listing()
    }

    pub(super) fn end_listing(&self, listing: Listing) {
        lock_ignoring_poison(&self.marks).end_listing(listing);
    }

    /// Returns the listed children that this session has created and none of its attempts knows, and notes that nobody will.
    pub(super) fn disown_orphans(&self, listing: Listing, children: &[String]) -> Vec<String> {
        let mut marks = lock_ignoring_poison(&self.marks);
        let orphans: Vec<_> = marks.orphans(listing, children).cloned().collect();
        marks.disown(&orphans);
        orphans
    }

    /// Notes that attempts may have left something in these directories.
    pub(super) fn leave(&self, directories: impl Iterator<Item = Arc<str>>) {
        let mut left = lock_ignoring_poison(&self.left);
        for directory in directories {
            if left.back() != Some(&directory) {
                left.retain(|other| *other != directory);
                left.push_back(directory);
            }
        }
        let surplus = left.len().saturating_sub(LEFT_AT_MOST);
        left.drain(..surplus);
    }

    /// Returns the directories that attempts have left, the most recent last.
    pub(super) fn left(&self) -> Vec<Arc<str>> {
        lock_ignoring_poison(&self.left).iter().cloned().collect()
    }
}
