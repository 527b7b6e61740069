//! Looks out for contenders that cannot see a hold.
//!
//! An acquire refuses to hold beside one. But it may come later: kazoo's `Lock` does not see our node, and is granted
//! while we hold. So a holder of more than a heartbeat watches the children of the lock's node. It costs one listing,
//! and if others come and go one more in a heartbeat; a short hold costs nothing.

use crate::clock;
use crate::ensemble::{Landing, Pending};
use crate::machine::claim::{Claim, Foreign};
use crate::machine::protocol::{Operation, Outcome, WatchEvent};
use crate::machine::queue::{Standing, standing};
use crate::session::{Holding, Session};
use std::sync::Arc;

/// Comes to its end when a contender is there that cannot see the hold, and says what its node is called.
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
        match (found, watch) {
            // One of ours that speaks otherwise is there for a moment, until it has been refused.
            (Some(name), _) if suspect.as_deref() == Some(name) => return name.to_owned(),
            (Some(name), _) => suspect = Some(name.to_owned()),
            (None, Some(watch)) => changes(&session, watch).await,
            (None, None) => {}
        }
    }
}

/// The queue of this claim with our node in it, if there are strangers to be refused in it.
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

async fn changes(session: &Session, watch: Pending<WatchEvent>) {
    let mut link = session.link();
    link.borrow_and_update();
    tokio::select! {
        _ = watch => {}
        _ = link.changed() => {}
    }
}
