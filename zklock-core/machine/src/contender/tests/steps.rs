//! The requests that are sent next, step by step, in cases where that matters.

use super::*;
use crate::claim::Foreign;

/// So long after a node was created that it has to be proven.
const LATE: Now =
    Now { moment: Moment::at(Duration::from_secs(4)), lease_until: Moment::at(Duration::from_secs(9)) };

fn set() -> Vec<Claim> {
    vec![Claim::new("/a", Scheme::Mutex), Claim::new("/b", Scheme::Mutex)]
}

/// The own node with this number is there.
fn found(number: u32) -> Outcome {
    Outcome::Found(node(own(number), i64::from(number) + 1, SESSION))
}

fn list() -> Operation {
    Operation::List { directory: "/a".into() }
}

fn watch(name: &str) -> Operation {
    Operation::Watch { path: format!("/a/{name}") }
}

fn delete(name: &str) -> Operation {
    Operation::Delete { path: format!("/a/{name}") }
}

fn only_deletes(flight: &[Operation]) -> bool {
    flight.iter().all(|operation| matches!(operation, Operation::Delete { .. }))
}

const SECOND: &str = "_c_another-lock-0000000001";

/// An attempt behind two others.
fn behind_two(patience: Patience, claims: Vec<Claim>) -> Contender {
    queued(claims, patience, &[OTHER, SECOND], 2)
}

#[test]
fn one_behind_two_watches_the_first_and_when_it_is_gone_the_other_and_holds_after_that() {
    for is_gone_before in [false, true] {
        let mut contender = behind_two(Patience::Waits, mutex());
        assert_eq!(next(&contender), [watch(OTHER)]);
        if is_gone_before {
            answer(&mut contender, vec![Outcome::NoNode]);
        } else {
            answer(&mut contender, vec![Outcome::Done]);
            assert!(contender.is_waiting());
            contender.handle_watch(WatchEvent::Deleted, NOW);
        }
        assert_eq!(contender.poll_verdict(), None);
        assert_eq!(next(&contender), [list(), watch(SECOND)]);
        let mut others = contender.clone();
        answer(&mut contender, vec![children(&[SECOND, &own(2)]), Outcome::Done]);
        assert!(contender.is_waiting() && next(&contender).is_empty());
        contender.handle_watch(WatchEvent::Deleted, NOW);
        assert!(is_granted(&mut contender));
        // The one that is left is not the other one.
        answer(&mut others, vec![children(&[OTHER, &own(2)]), Outcome::Done]);
        assert_eq!(next(&others), [watch(OTHER)]);
    }
}

#[test]
fn one_that_may_not_read_the_node_before_it_watches_the_directory() {
    let mut contender = behind_two(Patience::Waits, mutex());
    let looks = [Operation::ListAndWatch { directory: "/a".into() }];
    answer(&mut contender, vec![denied()]);
    assert_eq!(answer(&mut contender, vec![children(&[OTHER, &own(2)])]), looks);
    assert!(contender.is_waiting());
    contender.handle_watch(WatchEvent::Changed, NOW);
    assert_eq!(answer(&mut contender, vec![children(&[&own(2)])]), looks);
    assert!(is_granted(&mut contender));
}

fn permits(count: u32) -> Vec<Claim> {
    let (directory, limit_at) = ("/a/leases".into(), Some("/a/limit".into()));
    let permits = Permits { directory, count, limit: 2, limit_at, data: Default::default() };
    vec![Claim { permits: Some(permits), ..Claim::new("/a", Scheme::Mutex) }]
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
            assert_eq!(next(&contender), [list()]);
        }
    }
}

/// An attempt whose turn it is to take two permits.
fn taking(patience: Patience) -> Contender {
    queued(permits(2), patience, &[], 0)
}

const STRANGER: &str = "0123456789abcdef0123456789abcdef";

/// The answers to one that takes permits of these numbers: these others are in its queue, these permits are taken, and there may
/// be so many.
fn taken(own: &[u32], others: &[&str], all: Option<&[u32]>, limit: Option<u32>) -> Vec<Outcome> {
    let created = own.iter().map(|number| node(permit(*number), 2, SESSION)).collect();
    let all = all.map(|all| Outcome::Children(all.iter().map(|number| permit(*number)).collect()));
    let all = all.unwrap_or(Outcome::NoNode);
    vec![Outcome::Created(created), children(others), all, Outcome::Limit(limit), found(0)]
}

#[test]
fn permits_are_granted_as_long_as_there_are_so_many_and_busy_or_waited_for_otherwise() {
    for (patience, limit, told) in [
        (Patience::Waits, None, Some(true)),
        (Patience::Waits, Some(1), None),
        (Patience::TriesOnce, Some(1), Some(false)),
    ] {
        let mut contender = taking(patience);
        let outcomes = taken(&[5, 6], &["leases", "limit"], Some(&[5, 6]), limit);
        assert_eq!(answer(&mut contender, outcomes)[1], list());
        match told {
            Some(true) => assert!(is_granted(&mut contender)),
            Some(false) => assert_eq!(contender.poll_verdict(), failed(Refusal::Busy)),
            None => assert!(contender.is_waiting() && contender.poll_verdict().is_none()),
        }
    }
    // Contenders that take permits at this path in another layout are refused, or named in the grant.
    let strange = || taken(&[5, 6], &[STRANGER], Some(&[5, 6]), None);
    let mut contender = taking(Patience::Waits);
    answer(&mut contender, strange());
    assert_eq!(contender.poll_verdict(), failed(Refusal::ForeignContender(STRANGER.to_owned())));
    let mut contender = taking(Patience::Waits);
    contender.claims[0].foreign = Foreign::IgnoreUnknown;
    answer(&mut contender, strange());
    let Some(Verdict::Granted { ignored, .. }) = contender.poll_verdict() else { panic!("not granted") };
    assert_eq!(ignored[..], [format!("/a/{STRANGER}")]);
    // An attempt whose permit is not among the existing ones has lost it, and permits without their directory are counted by nobody.
    for all in [Some(&[5][..]), None] {
        let mut contender = taking(Patience::Waits);
        answer(&mut contender, taken(&[5, 6], &[], all, None));
        assert_eq!(contender.poll_verdict(), None);
        assert!(only_deletes(&next(&contender)));
    }
}

#[test]
fn one_that_is_refused_a_step_is_told_so_and_one_that_finds_no_directory_comes_again() {
    let refused = || failed(Refusal::Denied);
    let mut contender = begun(mutex(), Patience::Waits);
    answer(&mut contender, vec![denied(); 2]);
    assert_eq!((contender.poll_verdict(), contender.is_gone()), (refused(), true), "to create its node");
    let mut contender = begun(mutex(), Patience::Waits);
    answer_now(&mut contender, vec![created(0), children(&[&own(0)])], LATE);
    answer(&mut contender, vec![denied()]);
    assert_eq!(contender.poll_verdict(), refused(), "to check it");
    for (outcome, told) in [(denied(), refused()), (Outcome::NoNode, None)] {
        let mut contender = begun(mutex(), Patience::Waits);
        answer(&mut contender, vec![created(0), outcome.clone()]);
        assert_eq!(contender.poll_verdict(), told, "to look around");
        assert_eq!(matches!(next(&contender)[0], Operation::Create(_)), told.is_none());
        let mut contender = taking(Patience::Waits);
        answer(&mut contender, [vec![outcome], vec![Outcome::NoNode; 4]].concat());
        assert_eq!(contender.poll_verdict(), told, "to take permits");
        let parents = [Operation::CreateParents { directory: "/a/leases".into() }];
        assert_eq!(next(&contender) == parents, told.is_none());
    }
}

#[test]
fn an_answer_that_names_too_few_nodes_says_nothing() {
    for (mut contender, others) in [(begun(mutex(), Patience::Waits), 1), (after_two_permits(), 3)] {
        answer(&mut contender, [vec![Outcome::Created(Vec::new())], vec![Outcome::Done; others]].concat());
        assert!(matches!(next(&contender)[..], [Operation::Barrier { .. }, Operation::List { .. }]));
    }
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
    let inspect = Operation::Inspect { path: format!("/a/{}", own(4)) };
    let mut contender = found_again(mutex(), vec![children(&[&own(5), &own(4)])]);
    let outcomes = vec![found(4), Outcome::Done, children(&[&own(4)])];
    assert_eq!(answer(&mut contender, outcomes), [inspect, delete(&own(5)), list()]);
    answer(&mut contender, vec![Outcome::Done]);
    assert!(is_granted(&mut contender));
    contender.handle_end();
    assert_eq!(next(&contender), [delete(&own(4))]);

    let mut contender = found_again(mutex(), vec![children(&[&own(4)])]);
    answer(&mut contender, vec![Outcome::Found(node(own(4), 9, 8)), children(&[&own(4)])]);
    assert_eq!(contender.poll_verdict(), failed(Refusal::NotOurs(own(4))));
    assert!(contender.is_gone());
}

#[test]
fn places_that_were_not_taken_together_are_given_up_and_what_comes_next_has_another_mark() {
    for (second, is_kept) in [(9, true), (10, false)] {
        let listed = || children(&[&own(4)]);
        let mut contender = found_again(set(), vec![listed(), listed()]);
        let found = |czxid| Outcome::Found(node(own(4), czxid, SESSION));
        answer(&mut contender, vec![found(9), found(second), listed(), listed()]);
        let is_check = matches!(next(&contender)[..], [Operation::Check { .. }]);
        assert_eq!(is_check, is_kept, "{:?}", next(&contender));
    }
    // Nothing was created.
    let before = begun(mutex(), Patience::Waits).mark();
    assert_ne!(found_again(mutex(), vec![Outcome::NoNode]).mark(), before);
    // Permits have the mark of the place.
    let mut contender = taking(Patience::Waits);
    answer(&mut contender, vec![Outcome::Unknown; 5]);
    answer(&mut contender, vec![Outcome::Done, children(&[])]);
    assert_eq!(contender.mark(), before);
}

#[test]
fn a_check_that_fails_says_which_node_is_missing_only_where_there_is_one() {
    for (claims, is_one) in [(mutex(), true), (set(), false)] {
        let count = claims.len();
        let mut contender = begun(claims, Patience::Waits);
        let created = Outcome::Created(vec![node(own(0), 1, SESSION); count]);
        let listed = vec![children(&[&own(0)]); count];
        answer_now(&mut contender, [vec![created], listed].concat(), LATE);
        let checks = answer(&mut contender, vec![Outcome::NoNode]);
        assert!(matches!(checks[..], [Operation::Check { .. }]));
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
    answer(&mut refused, vec![Outcome::Done, denied()]);
    assert_eq!(refused.poll_verdict(), Some(Verdict::Wanted));
}

/// An attempt whose number is used up and that has left the directory, after these answers.
fn used_up(outcomes: Vec<Outcome>) -> Contender {
    let name = own(i32::MAX as u32);
    let mut contender = begun(mutex(), Patience::Waits);
    let created = Outcome::Created(vec![node(name.clone(), 1, SESSION)]);
    answer(&mut contender, vec![created, children(&[&name])]);
    answer(&mut contender, vec![Outcome::Done]);
    for outcome in outcomes {
        answer(&mut contender, vec![outcome]);
    }
    contender
}

#[test]
fn a_directory_whose_numbers_are_used_up_is_made_anew_or_the_attempt_fails() {
    let parents = [Operation::CreateParents { directory: "/a".into() }];
    let renews = [Operation::DeleteDirectory { directory: "/a".into() }];
    let is_used_up = || Refusal::UsedUp("/a".to_owned());
    assert_eq!(next(&used_up(vec![])), renews);
    for deleted in [Outcome::Done, Outcome::NoNode] {
        assert_eq!(next(&used_up(vec![deleted])), parents);
    }
    for (outcomes, refusal) in [
        (vec![denied()], Some(is_used_up())),
        (vec![Outcome::NotEmpty, Outcome::NoNode], None),
        (vec![Outcome::NotEmpty, children(&[])], None),
        (vec![Outcome::NotEmpty, children(&["settings"])], Some(is_used_up())),
        (vec![Outcome::NotEmpty, denied()], Some(Refusal::Denied)),
    ] {
        let mut contender = used_up(outcomes.clone());
        assert!(refusal.is_some() || next(&contender) == renews, "{outcomes:?}");
        assert_eq!(contender.poll_verdict(), refusal.map(Verdict::Failed), "{outcomes:?}");
    }
}

#[test]
fn one_that_is_next_holds_without_a_look_if_the_one_before_it_went_before_the_watch() {
    let first_of_two = || queued(mutex(), Patience::Waits, &[OTHER], 1);
    let mut contender = first_of_two();
    answer(&mut contender, vec![Outcome::NoNode]);
    assert!(is_granted(&mut contender));
    let mut contender = first_of_two();
    let refusal = Refusal::Answer("too many watches".to_owned());
    answer(&mut contender, vec![Outcome::Refused(refusal.clone())]);
    assert_eq!(contender.poll_verdict(), failed(refusal));
}

#[test]
fn one_that_may_not_look_for_its_nodes_fails_and_goes_on_to_look() {
    let mut contender = found_again(mutex(), vec![denied()]);
    assert_eq!(contender.poll_verdict(), failed(Refusal::Denied));
    contender.handle_timeout(at(1_000));
    assert!(matches!(next(&contender)[..], [Operation::Barrier { .. }, Operation::List { .. }]));
    let mut contender = found_again(mutex(), vec![children(&[&own(4)])]);
    answer(&mut contender, vec![denied(), children(&[&own(4)])]);
    assert_eq!(contender.poll_verdict(), failed(Refusal::Denied));
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
    // The check before the grant found that it was gone.
    let mut contender = queued(permits(1), Patience::Waits, &[], 0);
    answer_now(&mut contender, taken(&[5], &[], Some(&[5]), None), LATE);
    answer(&mut contender, vec![Outcome::NoNode]);
    assert_eq!(next(&contender), [delete(&format!("leases/{}", permit(5))), delete(&own(0))]);
    // It was found again, and then deleted.
    let mut contender = queued(permits(1), Patience::Waits, &[], 0);
    answer(&mut contender, vec![Outcome::Unknown; 5]);
    answer(&mut contender, vec![Outcome::Done, children(&[&permit(5)])]);
    answer(&mut contender, vec![Outcome::NoNode]);
    assert_eq!(next(&contender), [delete(&own(0))]);
}

/// Returns the requests of an attempt that leaves after it has found another contender with this
/// mark in its way.
fn departure(patience: Patience, mark: Uuid, ends: bool) -> Vec<Operation> {
    let mut contender = Contender::new(mutex(), patience);
    contender.handle_tried_before();
    contender.handle_session(SESSION, Duration::from_secs(1), Uuid::of_attempt(7, 1));
    let own = format!("{}0000000001", Scheme::Mutex.prefix(contender.mark(), SESSION));
    let other = format!("{}0000000000", Scheme::Mutex.prefix(mark, SESSION));
    assert!(contender.poll_flight().is_some());
    if ends {
        contender.handle_end();
    }
    let created = Outcome::Created(vec![node(own.clone(), 1, SESSION)]);
    contender.handle_replies(vec![created, children(&[&other, &own])], at(0), NOW);
    if patience == Patience::Waits {
        contender.handle_end();
    }
    next(&contender)
}

#[test]
fn a_watch_is_left_by_a_try_of_one_mutex_that_another_session_has() {
    let (ours, anothers) = (Uuid::of_attempt(7, 0), Uuid::of_attempt(8, 0));
    for (patience, mark, ends, leaves, why) in [
        (Patience::TriesOnce, anothers, false, true, ""),
        (Patience::TriesOnce, ours, false, false, "its deletion may be under way"),
        (Patience::TriesOnce, anothers, true, false, "nobody tries again"),
        (Patience::Waits, anothers, false, false, "it is not a try"),
    ] {
        let flight = departure(patience, mark, ends);
        let watches = flight.iter().any(|operation| matches!(operation, Operation::Watch { .. }));
        assert_eq!(watches, leaves, "{why}");
    }
    let mut semaphore = begun(permits(1), Patience::TriesOnce);
    semaphore.handle_tried_before();
    answer(&mut semaphore, vec![created(2), children(&[OTHER, &own(2)])]);
    answer(&mut semaphore, vec![denied(), Outcome::Limit(None)]);
    assert_eq!(next(&semaphore), [delete(&own(2))]);
}
