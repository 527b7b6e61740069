//! How an attempt learns of the end of another one in the same session without the network.
//!
//! Callers of one client often wait for one another. This process knows that the node ahead is gone as soon as its deletion
//! is confirmed, or one round trip earlier if it is not yet watched.

use super::Session;
use crate::base::clock;
use crate::base::sync::lock_ignoring_poison;
use crate::machine::marks::Neighbour;
use crate::machine::name::Uuid;
use crate::machine::protocol::{Operation, Outcome, WatchEvent};
use crate::zookeeper::ensemble::{Landing, Pending, either};
use std::collections::HashMap;
use std::future::{pending, ready};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The attempts that wait for the end of another, by its mark.
#[derive(Default)]
pub(super) struct Followers(HashMap<Uuid, Vec<oneshot::Sender<()>>>);

impl Followers {
    fn follow(&mut self, mark: Uuid) -> oneshot::Receiver<()> {
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

impl Session {
    /// Like [`send`](Self::send), for an attempt. If it watches a node of this session, it also learns of the node's end from
    /// here.
    pub(crate) fn send_for_attempt(self: &Arc<Self>, flight: Vec<Operation>) -> Pending<Landing> {
        let watched = flight.iter().find_map(|operation| match operation {
            Operation::Watch { path } => path.rsplit_once('/'),
            _ => None,
        });
        let is_alone = flight.len() == 1;
        let gone = watched.and_then(|(_, name)| self.end_of(name));
        let flight = self.clone().send(flight);
        match gone {
            Some(gone) => Box::pin(beside(flight, gone, is_alone)),
            None => flight,
        }
    }

    /// Returns a future that ends when the node is gone; `None` if it belongs to another session.
    fn end_of(&self, name: &str) -> Option<Pending<WatchEvent>> {
        // The followers are locked first, both here and where a mark ends, so that nobody misses it in between.
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
}

/// Runs a flight that watches a node. `gone` ends when that node is gone. Then the flight need not land if it does nothing
/// else (`is_alone`).
async fn beside(flight: Pending<Landing>, mut gone: Pending<WatchEvent>, is_alone: bool) -> Landing {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::virtual_clock;
    use crate::machine::name::Scheme;
    use crate::session::fake::FakeEnsemble;
    use crate::session::session::Marked;

    const DIRECTORY: &str = "/a";

    /// An attempt with a node, at this path.
    fn begin_ahead(ensemble: &FakeEnsemble, session: &Arc<Session>) -> (Marked, String) {
        let mut ahead = session.begin_attempt(vec![DIRECTORY.into()]);
        ahead.use_mark(ahead.mark());
        let node = format!("{DIRECTORY}/{}0000000001", Scheme::Mutex.prefix(ahead.mark(), session.id()));
        ensemble.create(&node);
        (ahead, node)
    }

    fn watch(path: &str) -> Vec<Operation> {
        vec![Operation::Watch { path: path.to_owned() }]
    }

    #[test]
    fn the_end_of_a_neighbour_is_heard_without_a_server() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let (mut ahead, node) = begin_ahead(&ensemble, &session);
            let landing = session.send_for_attempt(watch(&node)).await;
            assert_eq!(landing.outcomes, [Outcome::Done]);
            ensemble.fall_silent();
            let second = tokio::spawn(session.send_for_attempt(watch(&node)));
            tokio::task::yield_now().await;
            assert!(!second.is_finished(), "it is still there");
            ahead.end();
            assert_eq!(landing.watch.unwrap().await, WatchEvent::Deleted);
            // A follower that comes too late has its answer at once, and so does one whose watch is still under way.
            for late in [second.await.unwrap(), session.send_for_attempt(watch(&node)).await] {
                assert_eq!(late.outcomes, [Outcome::NoNode]);
            }
            assert_eq!(ensemble.nodes(), [node], "nobody has asked for it");
        });
    }

    #[test]
    fn an_attempt_that_is_dropped_in_the_middle_is_not_known_to_be_gone() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let (ahead, node) = begin_ahead(&ensemble, &session);
            let watched = session.send_for_attempt(watch(&node)).await.watch.unwrap();
            drop(ahead);
            let mut watched = tokio::spawn(watched);
            let again = session.send_for_attempt(watch(&node)).await;
            assert_eq!(again.outcomes, [Outcome::Done]);
            assert!(clock::timeout(crate::session::fake::TIMEOUT / 12, &mut watched).await.is_err());
            assert!(ensemble.delete_node(&node));
            assert_eq!(watched.await.unwrap(), WatchEvent::Deleted);
        });
    }
    #[test]
    fn a_node_with_an_earlier_mark_is_gone_when_the_attempt_has_another() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let (mut ahead, node) = begin_ahead(&ensemble, &session);
            let watched = session.send_for_attempt(watch(&node)).await.watch.unwrap();
            let mark = ahead.mark().to_string().replace('-', "");
            ahead.use_mark(Uuid::from_random(u128::from_str_radix(&mark, 16).unwrap() + 1));
            assert_eq!(watched.await, WatchEvent::Deleted);
        });
    }

    #[test]
    fn followers_that_have_gone_away_are_forgotten() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let (ahead, _) = begin_ahead(&ensemble, &session);
            let followers = || lock_ignoring_poison(&session.followers);
            let stays = followers().follow(ahead.mark());
            for _ in 0..1_000 {
                drop(followers().follow(ahead.mark()));
            }
            assert!(followers().0[&ahead.mark()].len() <= 8);
            assert!(!followers().0[&ahead.mark()][0].is_closed());
            drop(ahead);
            assert!(followers().0.is_empty());
            stays.await.unwrap_err();
        });
    }
}
