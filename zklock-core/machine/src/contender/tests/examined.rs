//! Children with a number whose names are not of any library that we know.

use super::*;
use crate::lasting::Lasting;
use std::sync::Arc;

const UNKNOWN: [&str; 2] = ["lock-0000000001", "0000000002"];

fn seen(session: Option<i64>) -> Outcome {
    Outcome::Found(Node { name: own(3), origin: session.map(|session| Origin { czxid: 3, session }) })
}

fn listed(others: &[&str]) -> Outcome {
    children(&[others, &[&own(3)]].concat())
}

/// Queues behind these children.
fn behind(lasting: &Arc<Lasting>, others: &[&str]) -> Contender {
    let mut contender = Contender::new(mutex(), Patience::Waits);
    contender.handle_lasting(lasting);
    contender.handle_session(SESSION, Duration::from_secs(1), Uuid::from_random(7));
    answer(&mut contender, vec![created(3), listed(others)]);
    contender
}

#[test]
fn they_are_looked_at_before_a_grant_unless_they_are_known() {
    let mut contender = behind(&Arc::default(), &UNKNOWN);
    let looks = UNKNOWN.map(|name| Operation::Inspect { path: format!("/a/{name}") });
    assert_eq!(next(&contender), looks);
    // The second one has gone meanwhile.
    answer(&mut contender, vec![seen(None), Outcome::NoNode]);
    assert_eq!(contender.poll_verdict(), None);
    let list = Operation::List { directory: "/a".into() };
    assert_eq!(answer(&mut contender, vec![listed(&UNKNOWN[..1])]), [list]);
    assert!(is_granted(&mut contender));

    let mut known = Lasting::default();
    UNKNOWN.iter().for_each(|name| known.note(&format!("/a/{name}")));
    assert!(is_granted(&mut behind(&Arc::new(known), &UNKNOWN)));
    assert!(is_granted(&mut behind(&Arc::default(), &["config", "worker-7"])));
}

#[test]
fn one_that_is_ephemeral_is_refused() {
    let mut contender = behind(&Arc::default(), &UNKNOWN);
    answer(&mut contender, vec![seen(None), seen(Some(9))]);
    assert_eq!(contender.poll_verdict(), failed(Refusal::ForeignContender(UNKNOWN[1].to_owned())));
    assert!(matches!(contender.poll_flight().unwrap()[..], [Operation::Delete { .. }]));
}

#[test]
fn a_look_without_an_answer_is_repeated_and_one_that_is_refused_ends_the_attempt() {
    let mut contender = behind(&Arc::default(), &UNKNOWN);
    let looks = answer(&mut contender, vec![seen(None), Outcome::Unknown]);
    assert_eq!(contender.poll_flight(), Some(looks));
    contender.handle_replies(vec![Outcome::Unknown; 2], at(0), NOW);
    let due: Option<Moment> = contender.poll_timeout();
    contender.handle_timeout(due.expect("a pause"));
    answer(&mut contender, vec![denied(), Outcome::NoNode]);
    assert_eq!(contender.poll_verdict(), failed(Refusal::Denied));
}

#[test]
fn thousands_are_looked_at_in_several_flights_and_too_many_are_refused() {
    let names: Vec<String> = (0..1_000).map(|number| format!("{number:010}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut contender = behind(&Arc::default(), &names);
    let mut looked = 0;
    while let Some(flight) = contender.poll_flight() {
        let outcome = |operation: &Operation| match operation {
            Operation::Inspect { .. } => Outcome::NoNode,
            _ => listed(&[]),
        };
        looked += flight.len();
        contender.handle_replies(flight.iter().map(outcome).collect(), at(0), NOW);
    }
    assert_eq!(looked, names.len() + 1, "each of them, and one listing");
    assert!(is_granted(&mut contender));

    let names: Vec<String> = (0..=100_000).map(|number| format!("{number:010}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let verdict = behind(&Arc::default(), &names).poll_verdict();
    assert!(matches!(verdict, Some(Verdict::Failed(Refusal::ForeignContender(_)))), "{verdict:?}");
}
