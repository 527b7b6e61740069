//! Looks out for contenders that cannot see a hold.
//!
//! An acquire refuses to hold the lock beside one. But one may come later: kazoo's `Lock` does not see our node, and
//! is granted while we hold. So after a heartbeat, a holder watches the children of the lock's node. That costs one
//! listing, and one more per heartbeat while others come and go. A short hold costs nothing. Each child whose name does not
//! say what it is costs one look.
//!
//! A client may have thousands of holds. So the silence of such a watch is not doubted, as a waiter's is: that would cost a
//! question for each. And few holders look for strangers at a time, because all must after a reconnect: neither the
//! heartbeat nor what users wait for should be behind them.

use crate::base::clock;
use crate::machine::claim::{Claim, Foreign};
use crate::machine::lasting::looks;
use crate::machine::protocol::{Node, Outcome};
use crate::machine::queue::{Standing, standing};
use crate::session::session::Holding;
use crate::session::session::Session;
use crate::zookeeper::ensemble::WatchedQueues;
use std::sync::Arc;

/// Waits until there is a contender that cannot see the hold, and returns the name of its node.
pub(crate) async fn stranger(session: Arc<Session>, claims: Arc<[Claim]>, holding: Arc<Holding>) -> String {
    let queues: Vec<(&Claim, &str)> =
        claims.iter().filter_map(|claim| queue_and_node(claim, &holding)).collect();
    if queues.is_empty() {
        std::future::pending::<()>().await;
    }
    let mut suspect = None;
    loop {
        clock::sleep(session.heartbeat()).await;
        let directories = queues.iter().map(|(claim, _)| claim.directory.clone()).collect();
        let WatchedQueues { children, watch } = session.watch_queues(directories).await;
        let mut looks = queues.iter().zip(&children);
        let found = looks.find_map(|((claim, own), children)| stranger_in(claim, own, children.as_deref()?));
        let found = match found {
            None => unknown_contender(&session, &queues, &children).await,
            found => found.map(str::to_owned),
        };
        match (found, watch) {
            // A contender of ours with another naming scheme may be there for a moment, until it has been refused.
            (Some(name), _) if suspect.as_ref() == Some(&name) => return name,
            (Some(name), _) => suspect = Some(name),
            // It also reports the end of its connection.
            (None, Some(watch)) => drop(watch.await),
            (None, None) => {}
        }
    }
}

/// Returns the queue of this claim and our node in it, if strangers in that queue should be refused.
fn queue_and_node<'a>(claim: &'a Claim, holding: &'a Holding) -> Option<(&'a Claim, &'a str)> {
    if claim.foreign != Foreign::Refuse || !claim.has_queue() || claim.permits.is_some() {
        return None;
    }
    let mut nodes = holding.nodes.iter().filter_map(|node| node.rsplit_once('/'));
    nodes.find(|(directory, _)| **directory == *claim.directory).map(|(_, name)| (claim, name))
}

fn stranger_in<'a>(claim: &Claim, own: &str, children: &'a [String]) -> Option<&'a str> {
    match standing(children, own, claim) {
        Standing::Foreign { name } => Some(name),
        _ => None,
    }
}

/// Looks at the children whose names do not say what they are, and returns the first one that is ephemeral.
async fn unknown_contender(
    session: &Arc<Session>,
    queues: &[(&Claim, &str)],
    children: &[Option<Vec<String>>],
) -> Option<String> {
    for ((claim, _), children) in queues.iter().zip(children) {
        let Some(children) = children else { continue };
        let mut unclear = session.lasting().unclear(&claim.directory, children);
        while !unclear.is_empty() {
            let looks = looks(&claim.directory, &unclear);
            let seen = session.clone().send(looks).await.outcomes;
            let is_ephemeral = |seen: &Outcome| matches!(seen, Outcome::Found(Node { origin: Some(_), .. }));
            if let Some(number) = seen.iter().position(is_ephemeral) {
                return Some(unclear.swap_remove(number));
            }
            unclear.drain(..seen.len().clamp(1, unclear.len()));
        }
    }
    None
}
