//! The requests that are sent next, step by step, in cases where that matters.

use super::{NOW, SESSION, after_two_permits, at, holder};
use crate::claim::{Claim, Foreign, Permits};
use crate::contender::Contender;
use crate::drive::Machine;
use crate::name::{Scheme, Uuid};
use crate::protocol::{Node, Now, Operation, Origin, Outcome, Patience, Refusal, Verdict, WatchEvent};
use std::time::Duration;

fn mutex() -> Vec<Claim> {
    vec![Claim::new("/a", Scheme::Mutex)]
}

fn set() -> Vec<Claim> {
    vec![Claim::new("/a", Scheme::Mutex), Claim::new("/b", Scheme::Mutex)]
}

fn begun(claims: Vec<Claim>, patience: Patience) -> Contender {
    let mut contender = Contender::new(claims, patience);
    contender.handle_session(SESSION, Duration::from_secs(1), Uuid::from_random(7));
    contender
}

/// Answers the next flight with these outcomes, and returns it.
fn answer(contender: &mut Contender, outcomes: Vec<Outcome>) -> Vec<Operation> {
    let flight = contender.poll_flight().unwrap();
    assert_eq!(flight.len(), outcomes.len(), "{flight:?}");
    contender.handle_replies(outcomes, at(0), NOW);
    flight
}

/// The next flight.
fn next(contender: &Contender) -> Vec<Operation> {
    contender.clone().poll_flight().unwrap_or_default()
}

fn own(number: u32) -> String {
    format!("{}{number:010}", Scheme::Mutex.prefix(Uuid::from_random(7), SESSION))
}

fn node(name: String, czxid: i64, session: i64) -> Node {
    Node { name, origin: Some(Origin { czxid, session }) }
}

fn children(names: &[&str]) -> Outcome {
    Outcome::Children(names.iter().map(|name| (*name).to_owned()).collect())
}

const FIRST: &str = "_c_other-lock-0000000000";
const SECOND: &str = "_c_another-lock-0000000001";

/// An attempt behind two others.
fn behind_two(patience: Patience, claim: Claim) -> Contender {
    let mut contender = begun(vec![claim], patience);
    let created = Outcome::Created(vec![node(own(2), 3, SESSION)]);
    answer(&mut contender, vec![created, children(&[FIRST, SECOND, &own(2)])]);
    contender
}

#[test]
fn one_behind_two_watches_the_first_and_when_it_is_gone_the_other_and_holds_after_that() {
    for is_gone_before in [false, true] {
        let mut contender = behind_two(Patience::Waits, Claim::new("/a", Scheme::Mutex));
        let watch = |name| Operation::Watch { path: format!("/a/{name}") };
        assert_eq!(next(&contender), [watch(FIRST)]);
        if is_gone_before {
            answer(&mut contender, vec![Outcome::NoNode]);
        } else {
            answer(&mut contender, vec![Outcome::Done]);
            assert!(contender.is_waiting());
            contender.handle_watch(WatchEvent::Deleted, NOW);
        }
        assert_eq!(contender.poll_verdict(), None);
        assert_eq!(next(&contender), [Operation::List { directory: "/a".into() }, watch(SECOND)]);
        let mut others = contender.clone();
        let listing = children(&[SECOND, &own(2)]);
        answer(&mut contender, vec![listing, Outcome::Done]);
        assert!(contender.is_waiting() && next(&contender).is_empty());
        contender.handle_watch(WatchEvent::Deleted, NOW);
        assert!(matches!(contender.poll_verdict(), Some(Verdict::Granted { .. })));
        // The one that is left is not the other one.
        answer(&mut others, vec![children(&[FIRST, &own(2)]), Outcome::Done]);
        assert_eq!(next(&others), [watch(FIRST)]);
    }
}

#[test]
fn one_that_may_not_read_the_node_before_it_watches_the_directory() {
    let mut contender = behind_two(Patience::Waits, Claim::new("/a", Scheme::Mutex));
    let looks = [Operation::ListAndWatch { directory: "/a".into() }];
    answer(&mut contender, vec![Outcome::Refused(Refusal::Denied)]);
    assert_eq!(answer(&mut contender, vec![children(&[FIRST, &own(2)])]), looks);
    assert!(contender.is_waiting());
    contender.handle_watch(WatchEvent::Changed, NOW);
    assert_eq!(answer(&mut contender, vec![children(&[&own(2)])]), looks);
    assert!(matches!(contender.poll_verdict(), Some(Verdict::Granted { .. })));
}

fn permits(count: u32) -> Claim {
    let permits = Permits {
        directory: "/a/leases".into(),
        count,
        limit: 2,
        limit_at: Some("/a/limit".into()),
        data: Default::default(),
    };
    Claim { permits: Some(permits), ..Claim::new("/a", Scheme::Mutex) }
}

#[test]
fn a_try_of_a_semaphore_waits_behind_others_only_while_there_are_permits() {
    let taken = |count| (0..count).map(|number| format!("_c_x-lease-{number:010}")).collect();
    for (count, limit, is_busy) in
        [(1, None, false), (2, None, true), (1, Some(1), true), (2, Some(3), false)]
    {
        let mut contender = behind_two(Patience::TriesOnce, permits(1));
        let outcomes = vec![Outcome::Children(taken(count)), Outcome::Limit(limit)];
        let asked = answer(&mut contender, outcomes);
        assert_eq!(asked[0], Operation::List { directory: "/a/leases".into() });
        let told = is_busy.then_some(Verdict::Failed(Refusal::Busy));
        assert_eq!(contender.poll_verdict(), told, "{count} of {limit:?}");
        if !is_busy {
            // It asks again when the one ahead of it goes.
            answer(&mut contender, vec![Outcome::Done]);
            contender.handle_watch(WatchEvent::Deleted, NOW);
            assert_eq!(next(&contender), [Operation::List { directory: "/a".into() }]);
        }
    }
}

/// An attempt that has asked for two permits, and the answers: what it got, and all permits that
/// are taken.
fn taking(patience: Patience) -> (Contender, Outcome, Vec<String>) {
    let mut contender = begun(vec![permits(2)], patience);
    let created = Outcome::Created(vec![node(own(0), 1, SESSION)]);
    answer(&mut contender, vec![created, children(&[&own(0)])]);
    let prefix = Scheme::Lease.prefix(Uuid::from_random(7), SESSION);
    let names = [5, 6].map(|number| format!("{prefix}{number:010}"));
    let created = Outcome::Created(names.iter().map(|name| node(name.clone(), 2, SESSION)).collect());
    (contender, created, names.to_vec())
}

#[test]
fn permits_are_granted_as_long_as_there_are_so_many_and_busy_or_waited_for_otherwise() {
    let place = || Outcome::Found(node(own(0), 1, SESSION));
    for (patience, limit, told) in [
        (Patience::Waits, None, Some(true)),
        (Patience::Waits, Some(1), None),
        (Patience::TriesOnce, Some(1), Some(false)),
    ] {
        let (mut contender, created, names) = taking(patience);
        let strangers = children(&["leases", "limit"]);
        let outcomes = vec![created, strangers, Outcome::Children(names), Outcome::Limit(limit), place()];
        let asked = answer(&mut contender, outcomes);
        assert_eq!(asked[1], Operation::List { directory: "/a".into() });
        match told {
            Some(true) => assert!(matches!(contender.poll_verdict(), Some(Verdict::Granted { .. }))),
            Some(false) => assert_eq!(contender.poll_verdict(), Some(Verdict::Failed(Refusal::Busy))),
            None => assert!(contender.is_waiting() && contender.poll_verdict().is_none()),
        }
    }
    // Contenders that take permits at this path in another layout are refused, or named in the grant.
    let (mut contender, created, names) = taking(Patience::Waits);
    let stranger = "0123456789abcdef0123456789abcdef";
    let listed = Outcome::Children(names.clone());
    answer(
        &mut contender,
        vec![created, children(&[stranger]), listed.clone(), Outcome::Limit(None), place()],
    );
    let told = Some(Verdict::Failed(Refusal::ForeignContender(stranger.to_owned())));
    assert_eq!(contender.poll_verdict(), told);
    let (mut contender, created, _) = taking(Patience::Waits);
    contender.claims[0].foreign = Foreign::IgnoreUnknown;
    answer(&mut contender, vec![created, children(&[stranger]), listed, Outcome::Limit(None), place()]);
    let granted = contender.poll_verdict();
    assert!(
        matches!(&granted, Some(Verdict::Granted { ignored, .. }) if ignored[..] == [format!("/a/{stranger}")])
    );
    // An attempt whose permit is not among the existing ones has lost it.
    let (mut contender, created, names) = taking(Patience::Waits);
    let listed = Outcome::Children(names[..1].to_vec());
    answer(&mut contender, vec![created, children(&[]), listed, Outcome::Limit(None), place()]);
    assert_eq!(contender.poll_verdict(), None);
    assert!(next(&contender).iter().all(|operation| matches!(operation, Operation::Delete { .. })));
}

#[test]
fn one_that_is_refused_a_step_is_told_so_and_one_that_finds_no_directory_comes_again() {
    let refused = || (Outcome::Refused(Refusal::Denied), Some(Verdict::Failed(Refusal::Denied)));
    let place = || Outcome::Created(vec![node(own(0), 1, SESSION)]);
    let mut contender = begun(mutex(), Patience::Waits);
    answer(&mut contender, vec![refused().0; 2]);
    assert_eq!((contender.poll_verdict(), contender.is_gone()), (refused().1, true), "to create its node");
    let late = Now { moment: at(4_000), lease_until: at(9_000) };
    let mut contender = begun(mutex(), Patience::Waits);
    assert!(contender.poll_flight().is_some());
    contender.handle_replies(vec![place(), children(&[&own(0)])], at(0), late);
    answer(&mut contender, vec![refused().0]);
    assert_eq!(contender.poll_verdict(), refused().1, "to check it");
    for (outcome, told) in [refused(), (Outcome::NoNode, None)] {
        let mut contender = begun(mutex(), Patience::Waits);
        answer(&mut contender, vec![place(), outcome.clone()]);
        assert_eq!(contender.poll_verdict(), told, "to look around");
        assert_eq!(matches!(next(&contender)[0], Operation::Create(_)), told.is_none());
        let (mut contender, ..) = taking(Patience::Waits);
        answer(&mut contender, [vec![outcome], vec![Outcome::NoNode; 4]].concat());
        assert_eq!(contender.poll_verdict(), told, "to take permits");
        let parents = [Operation::CreateParents { directory: "/a/leases".into() }];
        assert_eq!(next(&contender) == parents, told.is_none());
    }
    let (mut contender, created, _) = taking(Patience::Waits);
    answer(&mut contender, vec![created, children(&[]), Outcome::NoNode, Outcome::Limit(None), place()]);
    let leaves = |operation: &Operation| matches!(operation, Operation::Delete { .. });
    assert!(next(&contender).iter().all(leaves), "permits without their directory are counted by nobody");
}

#[test]
fn an_answer_that_names_too_few_nodes_says_nothing() {
    let mut contender = begun(mutex(), Patience::Waits);
    answer(&mut contender, vec![Outcome::Created(Vec::new()), children(&[])]);
    assert!(matches!(next(&contender)[..], [Operation::Barrier { .. }, Operation::List { .. }]));
    let mut contender = after_two_permits();
    let flight = contender.poll_flight().unwrap();
    let mut outcomes = vec![Outcome::Done; flight.len()];
    outcomes[0] = Outcome::Created(Vec::new());
    contender.handle_replies(outcomes, at(0), NOW);
    assert!(matches!(next(&contender)[..], [Operation::Barrier { .. }, Operation::List { .. }]));
}

/// An attempt that has found these of its nodes again.
fn found_again(claims: Vec<Claim>, listed: Vec<Outcome>) -> Contender {
    let mut contender = begun(claims, Patience::Waits);
    let unknown = vec![Outcome::Unknown; next(&contender).len()];
    answer(&mut contender, unknown);
    answer(&mut contender, [vec![Outcome::Done], listed].concat());
    contender
}

#[test]
fn a_node_that_is_found_twice_is_kept_once_and_one_of_another_session_is_left_alone() {
    let mut contender = found_again(mutex(), vec![children(&[&own(5), &own(4)])]);
    let [inspect, delete, list] = &next(&contender)[..] else { panic!("{:?}", next(&contender)) };
    assert_eq!(*inspect, Operation::Inspect { path: format!("/a/{}", own(4)) });
    assert_eq!(*delete, Operation::Delete { path: format!("/a/{}", own(5)) });
    assert_eq!(*list, Operation::List { directory: "/a".into() });
    let found = Outcome::Found(node(own(4), 9, SESSION));
    answer(&mut contender, vec![found, Outcome::Done, children(&[&own(4)])]);
    answer(&mut contender, vec![Outcome::Done]);
    assert!(matches!(contender.poll_verdict(), Some(Verdict::Granted { .. })));
    contender.handle_end();
    assert_eq!(next(&contender), [Operation::Delete { path: format!("/a/{}", own(4)) }]);

    let mut contender = found_again(mutex(), vec![children(&[&own(4)])]);
    answer(&mut contender, vec![Outcome::Found(node(own(4), 9, 8)), children(&[&own(4)])]);
    assert_eq!(contender.poll_verdict(), Some(Verdict::Failed(Refusal::NotOurs(own(4)))));
    assert!(contender.is_gone());
}

#[test]
fn places_that_were_not_taken_together_are_given_up_and_what_comes_next_has_another_mark() {
    for (second, is_kept) in [(9, true), (10, false)] {
        let mut contender = found_again(set(), vec![children(&[&own(4)]), children(&[&own(4)])]);
        let found = |czxid| Outcome::Found(node(own(4), czxid, SESSION));
        answer(&mut contender, vec![found(9), found(second), children(&[&own(4)]), children(&[&own(4)])]);
        let is_check = matches!(next(&contender)[..], [Operation::Check { .. }]);
        assert_eq!(is_check, is_kept, "{:?}", next(&contender));
    }
    // Nothing was created.
    let before = begun(mutex(), Patience::Waits).mark();
    let contender = found_again(mutex(), vec![Outcome::NoNode]);
    assert_ne!(contender.mark(), before);
    // Permits have the mark of the place.
    let (mut contender, ..) = taking(Patience::Waits);
    answer(&mut contender, vec![Outcome::Unknown; 5]);
    answer(&mut contender, vec![Outcome::Done, children(&[])]);
    assert_eq!(contender.mark(), before);
}

#[test]
fn a_check_that_fails_says_which_node_is_missing_only_where_there_is_one() {
    let late = Now { moment: at(4_000), lease_until: at(9_000) };
    for (claims, is_one) in [(mutex(), true), (set(), false)] {
        let count = claims.len();
        let mut contender = begun(claims, Patience::Waits);
        assert!(contender.poll_flight().is_some());
        let created = Outcome::Created(vec![node(own(0), 1, SESSION); count]);
        let listed = vec![children(&[&own(0)]); count];
        contender.handle_replies([vec![created], listed].concat(), at(0), late);
        assert!(matches!(next(&contender)[..], [Operation::Check { .. }]));
        answer(&mut contender, vec![Outcome::NoNode]);
        let creates = matches!(next(&contender)[0], Operation::Create(_));
        assert_eq!(creates, is_one, "{:?}", next(&contender));
    }
}

#[test]
fn a_holder_that_cannot_see_who_waits_takes_it_that_others_do_and_asks_again_if_there_was_no_answer() {
    let (mut contender, _) = holder();
    contender.handle_notice();
    let mut refused = contender.clone();
    let asks = answer(&mut contender, vec![Outcome::Done, Outcome::Unknown]);
    assert_eq!((contender.poll_verdict(), next(&contender)), (None, asks));
    answer(&mut refused, vec![Outcome::Done, Outcome::Refused(Refusal::Denied)]);
    assert_eq!(refused.poll_verdict(), Some(Verdict::Wanted));
}

/// An attempt whose number is used up and that has left the directory.
fn used_up() -> Contender {
    let mut contender = begun(mutex(), Patience::Waits);
    let name = own(i32::MAX as u32);
    let created = Outcome::Created(vec![node(name.clone(), 1, SESSION)]);
    answer(&mut contender, vec![created, children(&[&name])]);
    answer(&mut contender, vec![Outcome::Done]);
    assert_eq!(next(&contender), [Operation::DeleteDirectory { directory: "/a".into() }]);
    contender
}

#[test]
fn a_directory_whose_numbers_are_used_up_is_made_anew_or_the_attempt_fails() {
    let parents = [Operation::CreateParents { directory: "/a".into() }];
    for deleted in [Outcome::Done, Outcome::NoNode] {
        let mut contender = used_up();
        answer(&mut contender, vec![deleted]);
        assert_eq!(next(&contender), parents);
    }
    let failed = |refusal| Some(Verdict::Failed(refusal));
    let mut contender = used_up();
    answer(&mut contender, vec![Outcome::Refused(Refusal::Denied)]);
    assert_eq!(contender.poll_verdict(), failed(Refusal::UsedUp("/a".to_owned())));
    let renews = next(&used_up());
    for (listing, expected) in [
        (Outcome::NoNode, None),
        (children(&[]), None),
        (children(&["settings"]), failed(Refusal::UsedUp("/a".to_owned()))),
        (Outcome::Refused(Refusal::Denied), failed(Refusal::Denied)),
    ] {
        let mut contender = used_up();
        answer(&mut contender, vec![Outcome::NotEmpty]);
        answer(&mut contender, vec![listing.clone()]);
        assert_eq!(contender.poll_verdict(), expected, "{listing:?}");
        assert!(expected.is_some() || next(&contender) == renews, "{listing:?}");
    }
}

#[test]
fn one_that_is_next_holds_without_a_look_if_the_one_before_it_went_before_the_watch() {
    let first_of_two = || {
        let mut contender = begun(mutex(), Patience::Waits);
        let created = Outcome::Created(vec![node(own(1), 3, SESSION)]);
        answer(&mut contender, vec![created, children(&[FIRST, &own(1)])]);
        contender
    };
    let mut contender = first_of_two();
    answer(&mut contender, vec![Outcome::NoNode]);
    assert!(matches!(contender.poll_verdict(), Some(Verdict::Granted { .. })));
    let mut contender = first_of_two();
    let refusal = Refusal::Answer("too many watches".to_owned());
    answer(&mut contender, vec![Outcome::Refused(refusal.clone())]);
    assert_eq!(contender.poll_verdict(), Some(Verdict::Failed(refusal)));
}

#[test]
fn one_that_may_not_look_for_its_nodes_fails_and_goes_on_to_look() {
    let mut contender = found_again(mutex(), vec![Outcome::Refused(Refusal::Denied)]);
    assert_eq!(contender.poll_verdict(), Some(Verdict::Failed(Refusal::Denied)));
    contender.handle_timeout(at(1_000));
    assert!(matches!(next(&contender)[..], [Operation::Barrier { .. }, Operation::List { .. }]));
    let mut contender = found_again(mutex(), vec![children(&[&own(4)])]);
    answer(&mut contender, vec![Outcome::Refused(Refusal::Denied), children(&[&own(4)])]);
    assert_eq!(contender.poll_verdict(), Some(Verdict::Failed(Refusal::Denied)));
}

#[test]
fn a_node_whose_origin_the_server_does_not_tell_is_looked_at() {
    let mut contender = begun(mutex(), Patience::Waits);
    let untold = Node { name: own(0), origin: None };
    answer(&mut contender, vec![Outcome::Created(vec![untold]), children(&[&own(0)])]);
    assert_eq!(next(&contender)[0], Operation::Inspect { path: format!("/a/{}", own(0)) });
}

#[test]
fn one_that_has_lost_its_permit_leaves_its_place_before_it_comes_again() {
    let place = || Operation::Delete { path: format!("/a/{}", own(0)) };
    let permit = format!("{}0000000005", Scheme::Lease.prefix(Uuid::from_random(7), SESSION));
    let queued = |now: Now| {
        let mut contender = begun(vec![permits(1)], Patience::Waits);
        let created = Outcome::Created(vec![node(own(0), 1, SESSION)]);
        answer(&mut contender, vec![created, children(&[&own(0)])]);
        let created = Outcome::Created(vec![node(permit.clone(), 2, SESSION)]);
        let found = Outcome::Found(node(own(0), 1, SESSION));
        assert!(contender.poll_flight().is_some());
        let taken = Outcome::Children(vec![permit.clone()]);
        let outcomes = vec![created, children(&[]), taken, Outcome::Limit(None), found];
        contender.handle_replies(outcomes, at(0), now);
        contender
    };
    // The check before the grant found that it was gone.
    let mut contender = queued(Now { moment: at(4_000), lease_until: at(9_000) });
    answer(&mut contender, vec![Outcome::NoNode]);
    let departure = [Operation::Delete { path: format!("/a/leases/{permit}") }, place()];
    assert_eq!(next(&contender), departure);
    // It was found again, and then deleted.
    let mut contender = begun(vec![permits(1)], Patience::Waits);
    let created = Outcome::Created(vec![node(own(0), 1, SESSION)]);
    answer(&mut contender, vec![created, children(&[&own(0)])]);
    answer(&mut contender, vec![Outcome::Unknown; 5]);
    answer(&mut contender, vec![Outcome::Done, Outcome::Children(vec![permit])]);
    answer(&mut contender, vec![Outcome::NoNode]);
    assert_eq!(next(&contender), [place()]);
}

/// Returns the requests of an attempt that leaves after it has found another contender with this
/// mark in its way.
fn departure(patience: Patience, claim: Claim, mark: Uuid, ends: bool) -> Vec<Operation> {
    let mut contender = Contender::new(vec![claim], patience);
    contender.handle_tried_before();
    contender.handle_session(SESSION, Duration::from_secs(1), Uuid::of_attempt(7, 1));
    let own = format!("{}0000000001", Scheme::Mutex.prefix(contender.mark(), SESSION));
    let other = format!("{}0000000000", Scheme::Mutex.prefix(mark, SESSION));
    assert!(contender.poll_flight().is_some());
    if ends {
        contender.handle_end();
    }
    let created = Outcome::Created(vec![node(own.clone(), 1, SESSION)]);
    contender.handle_replies(vec![created, Outcome::Children(vec![other, own])], at(0), NOW);
    if patience == Patience::Waits {
        contender.handle_end();
    }
    next(&contender)
}

#[test]
fn a_watch_is_left_by_a_try_of_one_mutex_that_another_session_has() {
    let (ours, anothers) = (Uuid::of_attempt(7, 0), Uuid::of_attempt(8, 0));
    let mutex = || Claim::new("/a", Scheme::Mutex);
    let leaves = |patience, claim, mark, ends| {
        departure(patience, claim, mark, ends)
            .iter()
            .any(|operation| matches!(operation, Operation::Watch { .. }))
    };
    assert!(leaves(Patience::TriesOnce, mutex(), anothers, false));
    assert!(!leaves(Patience::TriesOnce, mutex(), ours, false), "its deletion may be under way");
    assert!(!leaves(Patience::TriesOnce, mutex(), anothers, true), "nobody tries again");
    assert!(!leaves(Patience::Waits, mutex(), anothers, false), "it is not a try");
    let mut semaphore = begun(vec![permits(1)], Patience::TriesOnce);
    semaphore.handle_tried_before();
    let created = Outcome::Created(vec![node(own(2), 3, SESSION)]);
    answer(&mut semaphore, vec![created, children(&[FIRST, &own(2)])]);
    answer(&mut semaphore, vec![Outcome::Refused(Refusal::Denied), Outcome::Limit(None)]);
    assert_eq!(next(&semaphore), [Operation::Delete { path: format!("/a/{}", own(2)) }]);
}
