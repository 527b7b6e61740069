//! Children with a number whose names are not of any library that we know.

use super::{NOW, SESSION, at};
use crate::Moment;
use crate::claim::Claim;
use crate::contender::Contender;
use crate::drive::Machine;
use crate::lasting::Lasting;
use crate::name::{Scheme, Uuid};
use crate::protocol::{Node, Operation, Origin, Outcome, Patience, Refusal, Verdict};
use std::sync::Arc;
use std::time::Duration;

const UNKNOWN: [&str; 2] = ["lock-0000000001", "0000000002"];

fn own() -> String {
    format!("{}0000000003", Scheme::Mutex.prefix(Uuid::from_random(7), SESSION))
}

fn node(session: Option<i64>) -> Node {
    Node { name: own(), origin: session.map(|session| Origin { czxid: 3, session }) }
}

fn listed(others: &[&str]) -> Outcome {
    Outcome::Children(others.iter().map(|&name| name.to_owned()).chain([own()]).collect())
}

/// Queues behind these children.
fn begun(claim: Claim, lasting: &Arc<Lasting>, others: &[&str]) -> Contender {
    let mut contender = Contender::new(vec![claim], Patience::Waits);
    contender.handle_lasting(lasting);
    contender.handle_session(SESSION, Duration::from_secs(1), Uuid::from_random(7));
    answer(&mut contender, vec![Outcome::Created(vec![node(Some(SESSION))]), listed(others)]);
    contender
}

fn answer(contender: &mut Contender, outcomes: Vec<Outcome>) -> Vec<Operation> {
    let flight = contender.poll_flight().unwrap();
    contender.handle_replies(outcomes, at(0), NOW);
    flight
}

fn is_granted(contender: &mut Contender) -> bool {
    matches!(contender.poll_verdict(), Some(Verdict::Granted { .. }))
}

fn mutex() -> Claim {
    Claim::new("/a", Scheme::Mutex)
}

#[test]
fn they_are_looked_at_before_a_grant_unless_they_are_known() {
    let mut contender = begun(mutex(), &Arc::default(), &UNKNOWN);
    let looks = UNKNOWN.map(|name| Operation::Inspect { path: format!("/a/{name}") });
    assert_eq!(contender.clone().poll_flight().unwrap(), looks);
    // The second one has gone meanwhile.
    let seen = vec![Outcome::Found(node(None)), Outcome::NoNode];
    answer(&mut contender, seen);
    assert_eq!(contender.poll_verdict(), None);
    let list = Operation::List { directory: "/a".into() };
    assert_eq!(answer(&mut contender, vec![listed(&UNKNOWN[..1])]), [list]);
    assert!(is_granted(&mut contender));

    let mut known = Lasting::default();
    UNKNOWN.iter().for_each(|name| known.note(&format!("/a/{name}")));
    assert!(is_granted(&mut begun(mutex(), &Arc::new(known), &UNKNOWN)));
    assert!(is_granted(&mut begun(mutex(), &Arc::default(), &["config", "worker-7"])));
}

#[test]
fn one_that_is_ephemeral_is_refused() {
    let mut contender = begun(mutex(), &Arc::default(), &UNKNOWN);
    answer(&mut contender, vec![Outcome::Found(node(None)), Outcome::Found(node(Some(9)))]);
    let refusal = Refusal::ForeignContender(UNKNOWN[1].to_owned());
    assert_eq!(contender.poll_verdict(), Some(Verdict::Failed(refusal)));
    assert!(matches!(contender.poll_flight().unwrap()[..], [Operation::Delete { .. }]));
}

#[test]
fn a_look_without_an_answer_is_repeated_and_one_that_is_refused_ends_the_attempt() {
    let mut contender = begun(mutex(), &Arc::default(), &UNKNOWN);
    let looks = answer(&mut contender, vec![Outcome::Found(node(None)), Outcome::Unknown]);
    assert_eq!(contender.poll_flight(), Some(looks));
    contender.handle_replies(vec![Outcome::Unknown; 2], at(0), NOW);
    let due: Option<Moment> = contender.poll_timeout();
    contender.handle_timeout(due.expect("a pause"));
    answer(&mut contender, vec![Outcome::Refused(Refusal::Denied), Outcome::NoNode]);
    assert_eq!(contender.poll_verdict(), Some(Verdict::Failed(Refusal::Denied)));
}

#[test]
fn thousands_are_looked_at_in_several_flights_and_too_many_are_refused() {
    let names: Vec<String> = (0..1_000).map(|number| format!("{number:010}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut contender = begun(mutex(), &Arc::default(), &names);
    let mut looked = 0;
    while let Some(flight) = contender.poll_flight() {
        let seen = match flight[0] {
            Operation::Inspect { .. } => vec![Outcome::NoNode; flight.len()],
            _ => vec![listed(&[])],
        };
        looked += flight.len();
        contender.handle_replies(seen, at(0), NOW);
    }
    assert_eq!(looked, names.len() + 1, "each of them, and one listing");
    assert!(is_granted(&mut contender));

    let names: Vec<String> = (0..=100_000).map(|number| format!("{number:010}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let verdict = begun(mutex(), &Arc::default(), &names).poll_verdict();
    assert!(matches!(verdict, Some(Verdict::Failed(Refusal::ForeignContender(_)))), "{verdict:?}");
}
