//! How a member goes on after each answer, even the rare ones.

use super::{NOW, Server, has_entered, member, two, wake};
use crate::drive::Machine;
use crate::member::{Answer, Member};
use crate::protocol::{Node, Operation, Origin, Outcome, Patience, Refusal};

const DENIED: Outcome = Outcome::Refused(Refusal::Denied);

/// Answers the next flight with these outcomes, and returns it.
fn answer(member: &mut Member, outcomes: Vec<Outcome>) -> Vec<Operation> {
    let flight = member.poll_flight().unwrap();
    assert_eq!(flight.len(), outcomes.len(), "{flight:?}");
    member.handle_replies(outcomes, NOW.moment, NOW);
    flight
}

/// The next flight.
fn next(member: &Member) -> Vec<Operation> {
    member.clone().poll_flight().unwrap_or_default()
}

fn node(name: &str, czxid: i64) -> Node {
    Node { name: name.to_owned(), origin: Some(Origin { czxid, session: 1 }) }
}

fn has_failed(member: &mut Member) -> bool {
    member.poll_verdict() == Some(Answer::Failed(Refusal::Denied))
}

/// One of two members. This transaction created its node when it arrived.
fn arrived(czxid: i64, ready: Outcome) -> Member {
    let mut one = member(1, 2, Patience::Waits);
    let name = one.name.clone();
    let created = Outcome::Created(vec![node(&name, czxid)]);
    answer(&mut one, vec![created, ready, Outcome::Children(vec![name])]);
    one
}

fn ready(czxid: i64) -> Outcome {
    Outcome::Found(node("ready", czxid))
}

fn is_arrival(flight: &[Operation]) -> bool {
    flight.iter().any(|operation| matches!(operation, Operation::InspectAndWatch { .. }))
}

#[test]
fn a_directory_that_is_missing_is_created() {
    let mut one = member(1, 2, Patience::Waits);
    answer(&mut one, vec![Outcome::NoNode; 3]);
    let parents = [Operation::CreateParents { directory: "/b".into() }];
    assert_eq!(answer(&mut one, vec![Outcome::Unknown]), parents);
    assert_eq!(answer(&mut one, vec![Outcome::Done]), parents);
    assert!(matches!(next(&one)[0], Operation::CreateSingle { .. }));
}

#[test]
fn one_that_may_not_create_its_node_deletes_nothing() {
    for listing in [DENIED, Outcome::Children(Vec::new())] {
        let mut one = member(1, 2, Patience::Waits);
        answer(&mut one, vec![DENIED, Outcome::NoNode, listing]);
        assert!(has_failed(&mut one) && one.is_gone());
    }
    // It was created, but the children may not be listed.
    let mut one = member(1, 2, Patience::Waits);
    let created = Outcome::Created(vec![node(&one.name.clone(), 5)]);
    answer(&mut one, vec![created, Outcome::NoNode, DENIED]);
    assert!(has_failed(&mut one) && !one.is_gone());
    // The first creation had no answer, and may have been done before the right was taken away.
    let mut one = member(1, 2, Patience::Waits);
    answer(&mut one, vec![Outcome::Unknown; 3]);
    answer(&mut one, vec![Outcome::Done, DENIED, Outcome::NoNode, Outcome::Children(Vec::new())]);
    assert!(has_failed(&mut one) && !one.is_gone());
}

#[test]
fn one_that_does_not_know_whether_its_node_was_created_asks_again_by_the_same_name() {
    for listing in [Outcome::Children(Vec::new()), Outcome::NoNode] {
        let mut one = member(1, 2, Patience::Waits);
        let name = one.name.clone();
        answer(&mut one, vec![Outcome::Unknown, Outcome::NoNode, listing]);
        let [barrier, create, ..] = &next(&one)[..] else { panic!("{:?}", next(&one)) };
        assert!(matches!(barrier, Operation::Barrier { .. }));
        assert!(matches!(create, Operation::CreateSingle { path, .. } if *path == format!("/b/{name}")));
    }
}

#[test]
fn a_ready_that_is_newer_lets_one_in_and_any_other_is_looked_at() {
    let mut one = arrived(5, ready(6));
    let compares = [Operation::Read { path: "/b/ready".to_owned() }];
    assert_eq!(answer(&mut one, vec![ready(6)]), compares);
    assert!(has_entered(&mut one));
    let surveys = [Operation::Survey { directory: "/b".into() }];
    for answered in [ready(4), ready(5), Outcome::NoNode] {
        let mut one = arrived(5, ready(4));
        answer(&mut one, vec![answered]);
        assert_eq!((next(&one), one.poll_verdict()), (surveys.to_vec(), None));
    }
    let mut refused = arrived(5, ready(6));
    answer(&mut refused, vec![DENIED]);
    assert!(has_failed(&mut refused));
    let mut lost = arrived(5, ready(6));
    answer(&mut lost, vec![Outcome::Unknown]);
    assert!(is_arrival(&next(&lost)));
}

#[test]
fn the_survey_tells_whether_a_round_goes_on() {
    let surveying = || {
        let mut one = arrived(5, ready(4));
        answer(&mut one, vec![ready(4)]);
        one
    };
    let mut one = surveying();
    let name = one.name.clone();
    // One of its round is inside, and another waits as we do.
    let seen = [node("older", 3), node("ready", 4), node(&name, 5), node("later", 6)];
    answer(&mut one, vec![Outcome::Surveyed(seen.to_vec())]);
    let guards = [&name, "older"].map(|guard| format!("/b/{guard}")).to_vec();
    let data = b"ours"[..].into();
    let opens = Operation::Open { guards, path: "/b/ready".to_owned(), replaces: true, data };
    assert_eq!(next(&one), [opens]);
    answer(&mut one, vec![Outcome::Done]);
    assert!(has_entered(&mut one));
    // It waits for the one that is inside, and for no other.
    assert_eq!(one.others.entered.iter().collect::<Vec<_>>(), ["older"]);
    let mut left_behind = surveying();
    answer(&mut left_behind, vec![Outcome::Surveyed(seen[1..3].to_vec())]);
    assert!(left_behind.is_waiting());
    let mut refused = surveying();
    answer(&mut refused, vec![DENIED]);
    assert!(has_failed(&mut refused));
    let mut lost = surveying();
    answer(&mut lost, vec![Outcome::Unknown]);
    assert!(is_arrival(&next(&lost)));
}

#[test]
fn one_that_could_not_open_looks_again_or_fails() {
    let opening = || {
        let mut one = member(1, 1, Patience::Waits);
        let name = one.name.clone();
        let created = Outcome::Created(vec![node(&name, 5)]);
        answer(&mut one, vec![created, Outcome::NoNode, Outcome::Children(vec![name])]);
        assert!(matches!(next(&one)[..], [Operation::Open { replaces: false, .. }]));
        one
    };
    let mut one = opening();
    for _ in 0..3 {
        answer(&mut one, vec![Outcome::NoNode]);
        assert!(matches!(next(&one)[0], Operation::Barrier { .. }) && is_arrival(&next(&one)));
        // It goes on at once, because this was an answer.
        assert_eq!(one.poll_timeout(), None);
        let listing = Outcome::Children(vec![one.name.clone()]);
        answer(&mut one, vec![Outcome::Done, Outcome::NoNode, listing]);
    }
    let mut refused = opening();
    answer(&mut refused, vec![DENIED]);
    assert!(has_failed(&mut refused));
}

/// Two members that are inside. The one whose name comes first, which stays to the end, is about to leave.
fn leaving(patience: Patience) -> (Member, Server) {
    let mut server = Server::default();
    let (mut first, _) = two(&mut server);
    first.handle_leave(patience);
    assert_eq!(next(&first), [Operation::List { directory: "/b".into() }]);
    (first, server)
}

#[test]
fn one_that_leaves_is_lost_without_its_node_and_fails_where_it_may_not_look() {
    let (mut first, _) = leaving(Patience::Waits);
    answer(&mut first, vec![Outcome::NoNode]);
    assert_eq!(first.poll_verdict(), Some(Answer::Lost));
    let (mut first, _) = leaving(Patience::Waits);
    answer(&mut first, vec![DENIED]);
    assert!(has_failed(&mut first));
    for refused in [[DENIED, Outcome::NoNode], [Outcome::NoNode, DENIED]] {
        let (mut first, mut server) = leaving(Patience::Waits);
        assert!(server.answer(&mut first));
        answer(&mut first, refused.to_vec());
        assert!(has_failed(&mut first));
    }
}

#[test]
fn one_that_waits_for_others_watches_one_of_them_and_looks_again_when_it_is_gone() {
    let looking = || {
        let (mut first, mut server) = leaving(Patience::Waits);
        assert!(server.answer(&mut first) && server.answer(&mut first));
        assert!(matches!(next(&first)[..], [Operation::Watch { .. }]));
        first
    };
    let look = next_look();
    let (mut first, mut server) = leaving(Patience::Waits);
    assert!(server.answer(&mut first) && server.answer(&mut first));
    for _ in 0..3 {
        answer(&mut first, vec![Outcome::NoNode]);
        assert_eq!((next(&first), first.poll_timeout()), (look.clone(), None));
        assert!(server.answer(&mut first));
    }
    answer(&mut first, vec![Outcome::NoNode]);
    // The directory is gone, and so are all others, so the node goes.
    answer(&mut first, vec![Outcome::NoNode; 2]);
    assert_eq!(next(&first), [Operation::Survey { directory: "/b".into() }]);
    let mut first = looking();
    answer(&mut first, vec![DENIED]);
    assert!(has_failed(&mut first));
    let mut first = looking();
    answer(&mut first, vec![Outcome::Done]);
    assert!(first.is_waiting());
    wake(&mut first);
    assert_eq!(next(&first), look);
}

fn next_look() -> Vec<Operation> {
    let ready = Operation::InspectAndWatch { path: "/b/ready".to_owned() };
    vec![ready, Operation::List { directory: "/b".into() }]
}

#[test]
fn one_of_whom_the_name_does_not_tell_whether_it_has_entered_is_looked_at() {
    let doubting = || {
        let (mut first, mut server) = leaving(Patience::Waits);
        // It came while the first one was inside.
        server.create("/b/stranger");
        assert!(server.answer(&mut first) && server.answer(&mut first));
        assert_eq!(next(&first), [Operation::Survey { directory: "/b".into() }]);
        (first, server)
    };
    let (mut first, mut server) = doubting();
    assert!(server.answer(&mut first));
    // It does not wait for the stranger, but for the other.
    let [Operation::Watch { path }] = &next(&first)[..] else { panic!("{:?}", next(&first)) };
    assert_ne!(path, "/b/stranger");
    // It waits for a member that has joined the round since then.
    let (mut first, mut server) = doubting();
    server.delete("/b/ready");
    server.create("/b/ready");
    assert!(server.answer(&mut first));
    assert_eq!(next(&first), [Operation::Watch { path: "/b/stranger".to_owned() }]);
    // An empty survey tells nothing beyond the names.
    let (mut first, _) = doubting();
    answer(&mut first, vec![Outcome::Surveyed(Vec::new())]);
    assert!(matches!(next(&first)[..], [Operation::Watch { .. }]));
    let (mut first, _) = doubting();
    answer(&mut first, vec![DENIED]);
    assert!(has_failed(&mut first));
    let (mut first, _) = doubting();
    answer(&mut first, vec![Outcome::Unknown]);
    assert_eq!(next(&first), next_look());
}

#[test]
fn a_deletion_of_which_nothing_is_known_begins_anew_with_a_look() {
    let mut server = Server::default();
    let mut alone = member(1, 1, Patience::Waits);
    server.serve(&mut alone);
    alone.handle_end();
    assert!(server.answer(&mut alone));
    assert!(matches!(next(&alone)[..], [Operation::DeleteAll { .. }]));
    answer(&mut alone, vec![Outcome::Unknown]);
    let surveys = [Operation::Survey { directory: "/b".into() }];
    assert_eq!(next(&alone), surveys);
    assert!(server.answer(&mut alone));
    answer(&mut alone, vec![Outcome::NoNode]);
    assert!(matches!(next(&alone)[..], [Operation::Delete { .. }]));
    answer(&mut alone, vec![Outcome::Unknown]);
    alone.handle_timeout(alone.poll_timeout().unwrap());
    assert_eq!(next(&alone), surveys);
}
