//! Looks out for contenders that cannot see a hold.
//!
//! An acquire refuses to hold the lock beside one. But one may come later: kazoo's `Lock` does not see our node, and
//! is granted while we hold. So after a heartbeat, a holder watches the children of the lock's node. That costs one
//! listing, and one more per heartbeat while others come and go. A short hold costs nothing. Each child whose name does not
//! say what it is costs one look.

use crate::clock;
use crate::ensemble::{Landing, Pending};
use crate::machine::claim::{Claim, Foreign};
use crate::machine::lasting::looks;
use crate::machine::protocol::{Node, Operation, Outcome, WatchEvent};
use crate::machine::queue::{Standing, standing};
use crate::session::{Holding, Session};
use std::sync::Arc;

/// Waits until there is a contender that cannot see the hold, and returns the name of its node.
pub(crate) async fn stranger(session: Arc<Session>, claims: Arc<[Claim]>, holding: Arc<Holding>) -> String {
    let queues: Vec<(&Claim, &str)> = claims.iter().filter_map(|claim| guarded(claim, &holding)).collect();
    if queues.is_empty() {
        std::future::pending::<()>().await;
    }
    let mut suspect = None;
    loop {
        clock::sleep(session.heartbeat()).await;
        let list =
            |(claim, _): &(&Claim, &str)| Operation::ListAndWatch { directory: claim.directory.clone() };
        let Landing { outcomes, watch, .. } = session.clone().send(queues.iter().map(list).collect()).await;
        let mut looks = queues.iter().zip(&outcomes);
        let found = looks.find_map(|((claim, own), outcome)| stranger_in(claim, own, outcome));
        let found = match found {
            None => unknown_contender(&session, &queues, &outcomes).await,
            found => found.map(str::to_owned),
        };
        match (found, watch) {
            // A contender of ours with another dialect may be there for a moment, until it has been refused.
            (Some(name), _) if suspect.as_ref() == Some(&name) => return name,
            (Some(name), _) => suspect = Some(name),
            (None, Some(watch)) => changes(&session, watch).await,
            (None, None) => {}
        }
    }
}

/// Returns the queue of this claim and our node in it, if strangers in that queue should be refused.
fn guarded<'a>(claim: &'a Claim, holding: &'a Holding) -> Option<(&'a Claim, &'a str)> {
    if claim.foreign != Foreign::Refuse || !claim.has_queue() || claim.permits.is_some() {
        return None;
    }
    let mut nodes = holding.nodes.iter().filter_map(|node| node.rsplit_once('/'));
    nodes.find(|(directory, _)| **directory == *claim.directory).map(|(_, name)| (claim, name))
}

fn stranger_in<'a>(claim: &Claim, own: &str, outcome: &'a Outcome) -> Option<&'a str> {
    let Outcome::Children(children) = outcome else { return None };
    match standing(children, own, claim) {
        Standing::Foreign { name } => Some(name),
        _ => None,
    }
}

/// Looks at the children whose names do not say what they are, and returns the first one that is ephemeral.
async fn unknown_contender(
    session: &Arc<Session>,
    queues: &[(&Claim, &str)],
    outcomes: &[Outcome],
) -> Option<String> {
    for ((claim, _), outcome) in queues.iter().zip(outcomes) {
        let Outcome::Children(children) = outcome else { continue };
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

async fn changes(session: &Session, watch: Pending<WatchEvent>) {
    let mut link = session.link();
    link.borrow_and_update();
    tokio::select! {
        _ = watch => {}
        _ = link.changed() => {}
    }
}
