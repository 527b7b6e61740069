//! How an attempt learns of the end of another one in the same session without the network.
//!
//! Callers of one client often wait for one another. This process knows that the node ahead is gone as soon as its deletion
//! is confirmed, or one round trip earlier if it is not yet watched.

use crate::base::clock;
use crate::machine::name::Uuid;
use crate::machine::protocol::{Outcome, WatchEvent};
use crate::zookeeper::ensemble::{Landing, Pending, either};
use std::collections::HashMap;
use tokio::sync::oneshot;

/// The attempts that wait for the end of another, by its mark.
#[derive(Default)]
pub(super) struct Followers(pub(super) HashMap<Uuid, Vec<oneshot::Sender<()>>>);

impl Followers {
    pub(super) fn follow(&mut self, mark: Uuid) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let followers = self.0.entry(mark).or_default();
        if followers.len() == followers.capacity() {
            followers.retain(|other| !other.is_closed());
        }
        followers.push(sender);
        receiver
    }

    /// Tells the followers that the nodes with this mark are gone.
    pub(super) fn tell(&mut self, mark: Uuid) {
        for follower in self.0.remove(&mark).into_iter().flatten() {
            // A follower that has gone away need not be told.
            let _ = follower.send(());
        }
    }

    /// Forgets the followers of this mark, because nobody will know its end.
    pub(super) fn forget(&mut self, mark: Uuid) {
        self.0.remove(&mark);
    }
}

/// Runs a flight that watches a node. `gone` ends when that node is gone. Then the flight need not land if it does nothing
/// else (`is_alone`).
pub(super) async fn beside(
    flight: Pending<Landing>,
    mut gone: Pending<WatchEvent>,
    is_alone: bool,
) -> Landing {
    let mut landing = tokio::select! {
        biased;
        _ = &mut gone, if is_alone => {
            return Landing { sent: clock::now(), outcomes: vec![Outcome::NoNode], watch: None };
        }
        landing = flight => landing,
    };
    landing.watch = landing.watch.map(|watch| either(gone, watch));
    landing
}
