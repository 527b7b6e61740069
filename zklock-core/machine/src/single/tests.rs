//! What is easier to see in one attempt by itself than in the model check.

use super::Single;
use crate::Moment;
use crate::drive::Machine;
use crate::name::SINGLE_NAME;
use crate::name::Uuid;
use crate::protocol::{Node, Now, Operation, Origin, Outcome, Patience, Refusal, Verdict, WatchEvent};
use std::time::Duration;

const OURS: i64 = 7;
const ANOTHERS: i64 = 8;

fn at(millis: u64) -> Moment {
    Moment::at(Duration::from_millis(millis))
}

fn in_session(patience: Patience) -> Single {
    let mut single = Single::new("/a", b"ours"[..].into(), patience);
    single.handle_session(OURS, Duration::from_secs(1), Uuid::from_random(1));
    single
}

fn node(czxid: i64, session: i64) -> Node {
    Node { name: SINGLE_NAME.to_owned(), origin: Some(Origin { czxid, session }) }
}

fn listed() -> Outcome {
    Outcome::Children(vec![SINGLE_NAME.to_owned()])
}

/// What is sent next, and answered with these outcomes.
fn answer(single: &mut Single, outcomes: Vec<Outcome>) -> Vec<Operation> {
    let flight = single.poll_flight().unwrap();
    assert_eq!(flight.len(), outcomes.len(), "{flight:?}");
    single.handle_replies(outcomes, at(0), Now { moment: at(0), lease_until: at(5_000) });
    flight
}

fn held() -> Single {
    let mut single = in_session(Patience::Waits);
    answer(&mut single, vec![Outcome::Created(vec![node(3, OURS)])]);
    let granted = Verdict::Granted { nodes: vec!["/a/lock".to_owned()], czxid: 3, proven: at(0) };
    assert_eq!(single.poll_verdict(), Some(granted));
    single
}

#[test]
fn a_waiter_tries_again_whenever_something_changes_and_is_in_nobodys_way() {
    let mut single = in_session(Patience::Waits);
    answer(&mut single, vec![Outcome::NodeExists]);
    assert_eq!(answer(&mut single, vec![listed()]), [Operation::ListAndWatch { directory: "/a".into() }]);
    assert!(single.is_waiting());
    single.handle_watch(WatchEvent::Changed, Now { moment: at(0), lease_until: at(5_000) });
    let create = Operation::CreateSingle { path: "/a/lock".into(), data: b"ours"[..].into() };
    assert_eq!(single.clone().poll_flight(), Some(vec![create]));
    single.handle_end();
    assert!(single.is_gone());
}

#[test]
fn a_release_looks_whose_the_node_is_before_it_deletes_it() {
    for (owner, is_deleted) in [(OURS, true), (ANOTHERS, false)] {
        let mut single = held();
        single.handle_end();
        answer(&mut single, vec![Outcome::Done, listed()]);
        answer(&mut single, vec![Outcome::Found(node(3, owner))]);
        assert_eq!(single.is_gone(), !is_deleted);
        if is_deleted {
            let flight = answer(&mut single, vec![Outcome::Done]);
            assert_eq!(flight, [Operation::Delete { path: "/a/lock".into() }]);
            assert!(single.is_gone());
        }
    }
}

#[test]
fn a_release_deletes_a_node_that_may_not_be_read_any_more_if_it_is_of_its_session() {
    for (owns, is_deleted) in [(Outcome::Done, true), (Outcome::NoNode, false)] {
        let mut single = held();
        single.handle_end();
        answer(&mut single, vec![Outcome::Done, listed()]);
        answer(&mut single, vec![Outcome::Refused(Refusal::Denied)]);
        let flight = answer(&mut single, vec![owns]);
        assert_eq!(flight, [Operation::Owns { path: "/a/lock".into() }]);
        assert_eq!(single.is_gone(), !is_deleted);
        if is_deleted {
            let flight = answer(&mut single, vec![Outcome::Done]);
            assert_eq!(flight, [Operation::Delete { path: "/a/lock".into() }]);
            assert!(single.is_gone());
        }
    }
}

#[test]
fn a_node_whose_token_may_not_be_read_is_no_grant_but_made_anew() {
    let mut single = in_session(Patience::Waits);
    answer(&mut single, vec![Outcome::Unknown]);
    answer(&mut single, vec![Outcome::Done, listed()]);
    answer(&mut single, vec![Outcome::Refused(Refusal::Denied)]);
    answer(&mut single, vec![Outcome::Done]);
    assert_eq!(answer(&mut single, vec![Outcome::Done]), [Operation::Delete { path: "/a/lock".into() }]);
    assert_eq!(single.poll_verdict(), None);
    answer(&mut single, vec![Outcome::Created(vec![node(5, OURS)])]);
    assert!(matches!(single.poll_verdict(), Some(Verdict::Granted { czxid: 5, .. })));
}

#[test]
fn a_deletion_that_is_refused_is_told_to_a_caller_who_waits() {
    let mut single = in_session(Patience::Waits);
    answer(&mut single, vec![Outcome::Unknown]);
    answer(&mut single, vec![Outcome::Done, listed()]);
    answer(&mut single, vec![Outcome::Refused(Refusal::Denied)]);
    answer(&mut single, vec![Outcome::Done]);
    answer(&mut single, vec![Outcome::Refused(Refusal::Denied)]);
    assert_eq!(single.poll_verdict(), Some(Verdict::Failed(Refusal::Denied)));
    // It goes on with the cleaning.
    assert!(!single.is_gone());
}

#[test]
fn a_deletion_whose_reply_is_lost_is_not_repeated_before_the_node_has_been_looked_at() {
    let mut single = held();
    single.handle_end();
    answer(&mut single, vec![Outcome::Done, listed()]);
    answer(&mut single, vec![Outcome::Found(node(3, OURS))]);
    answer(&mut single, vec![Outcome::Unknown]);
    let flight = answer(&mut single, vec![Outcome::Done, listed()]);
    assert!(matches!(flight[..], [Operation::Barrier { .. }, Operation::List { .. }]), "{flight:?}");
    answer(&mut single, vec![Outcome::Found(node(4, ANOTHERS))]);
    assert!(single.is_gone());
}

#[test]
fn a_node_that_was_created_anew_under_a_check_is_not_granted() {
    let mut single = in_session(Patience::Waits);
    // The server does not tell whose it is.
    answer(&mut single, vec![Outcome::Created(vec![Node { name: SINGLE_NAME.to_owned(), origin: None }])]);
    single.proven = None;
    answer(&mut single, vec![Outcome::Found(node(3, OURS))]);
    let flight = answer(&mut single, vec![Outcome::Done, Outcome::Found(node(4, ANOTHERS))]);
    assert!(matches!(flight[..], [Operation::Check { .. }, Operation::Inspect { .. }]), "{flight:?}");
    assert_eq!(single.poll_verdict(), None);
    answer(&mut single, vec![Outcome::NodeExists]);
    assert_eq!(single.poll_verdict(), None);
}

#[test]
fn a_try_is_refused_where_the_node_is_found_to_be_anothers() {
    let mut single = in_session(Patience::TriesOnce);
    answer(&mut single, vec![Outcome::Unknown]);
    answer(&mut single, vec![Outcome::Done, listed()]);
    answer(&mut single, vec![Outcome::Found(node(4, ANOTHERS))]);
    assert_eq!(single.poll_verdict(), Some(Verdict::Failed(Refusal::Busy)));
    assert!(single.is_gone());
}

#[test]
fn a_new_session_begins_anew_and_a_hold_ends_with_its_session() {
    let mut single = in_session(Patience::Waits);
    answer(&mut single, vec![Outcome::SessionOver]);
    assert!(single.is_idle());
    let mut single = held();
    single.handle_session_over();
    assert!(single.is_gone());
}

#[test]
fn one_that_may_not_list_is_released_all_the_same() {
    let mut single = held();
    single.handle_end();
    answer(&mut single, vec![Outcome::Done, Outcome::Refused(Refusal::Denied)]);
    answer(&mut single, vec![Outcome::Found(node(3, OURS))]);
    assert_eq!(answer(&mut single, vec![Outcome::Done]), [Operation::Delete { path: "/a/lock".into() }]);
    assert!(single.is_gone());
    // Another has the path by now.
    let mut single = held();
    single.handle_end();
    answer(&mut single, vec![Outcome::Done, Outcome::Refused(Refusal::Denied)]);
    answer(&mut single, vec![Outcome::Found(node(5, ANOTHERS))]);
    assert!(single.is_gone());
}

#[test]
fn it_says_what_it_is_waiting_for() {
    let mut single = Single::new("/a", b"ours"[..].into(), Patience::Waits);
    assert!(single.is_idle() && !single.is_waiting());
    single.handle_session(OURS, Duration::from_secs(1), Uuid::from_random(1));
    assert!(!single.is_idle() && !single.is_waiting());
    let held = held();
    assert!(!held.is_idle() && !held.is_waiting() && !held.is_gone());
    // It keeps no watch beside that of its latest flight, and remembers nothing.
    assert!(!held.keeps_watch());
    assert_eq!(held.busy_since(), None);
}

#[test]
fn an_answer_that_names_no_node_or_several_says_nothing() {
    for nodes in [vec![], vec![node(3, OURS), node(4, OURS)]] {
        let mut single = in_session(Patience::Waits);
        answer(&mut single, vec![Outcome::Created(nodes)]);
        assert_eq!(single.poll_verdict(), None);
        assert!(matches!(
            single.poll_flight().unwrap()[..],
            [Operation::Barrier { .. }, Operation::List { .. }]
        ));
    }
}

#[test]
fn to_be_told_again_that_it_is_over_makes_no_haste() {
    let mut single = held();
    single.handle_end();
    for _ in 0..2 {
        answer(&mut single, vec![Outcome::Unknown, Outcome::Unknown]);
    }
    let pause = single.poll_timeout();
    assert!(pause.is_some());
    single.handle_end();
    assert_eq!((single.poll_timeout(), single.poll_flight()), (pause, None));
}

const CREATE: fn() -> Operation =
    || Operation::CreateSingle { path: "/a/lock".into(), data: b"ours"[..].into() };

/// What it is about to send.
fn next(single: &Single) -> Option<Vec<Operation>> {
    single.clone().poll_flight()
}

#[test]
fn what_is_above_the_node_is_created_when_it_is_missing() {
    let mut single = in_session(Patience::Waits);
    answer(&mut single, vec![Outcome::NoNode]);
    let parents = Some(vec![Operation::CreateParents { directory: "/a".into() }]);
    assert_eq!(next(&single), parents);
    answer(&mut single, vec![Outcome::Unknown]);
    assert_eq!(next(&single), parents);
    answer(&mut single, vec![Outcome::Done]);
    assert_eq!(next(&single), Some(vec![CREATE()]));
    answer(&mut single, vec![Outcome::NoNode]);
    answer(&mut single, vec![Outcome::Refused(Refusal::Denied)]);
    assert_eq!((single.poll_verdict(), single.is_gone()), (Some(Verdict::Failed(Refusal::Denied)), true));
}

#[test]
fn one_that_may_not_create_or_list_fails_and_one_that_has_given_up_is_told_nothing() {
    let denied = || Outcome::Refused(Refusal::Denied);
    for ends in [false, true] {
        let mut single = in_session(Patience::Waits);
        let flight = single.poll_flight();
        assert_eq!(flight, Some(vec![CREATE()]));
        if ends {
            single.handle_end();
        }
        single.handle_replies(vec![denied()], at(0), Now { moment: at(0), lease_until: at(5_000) });
        let told = (!ends).then_some(Verdict::Failed(Refusal::Denied));
        assert_eq!((single.poll_verdict(), single.is_gone()), (told, true));
    }
    let mut single = in_session(Patience::Waits);
    answer(&mut single, vec![Outcome::NodeExists]);
    answer(&mut single, vec![denied()]);
    assert_eq!((single.poll_verdict(), single.is_gone()), (Some(Verdict::Failed(Refusal::Denied)), true));
}

#[test]
fn a_node_that_is_not_there_any_more_is_created() {
    let others = || Outcome::Children(vec!["other".to_owned()]);
    for listing in [others(), Outcome::NoNode] {
        // After a lost reply, and for one that waits.
        let mut single = in_session(Patience::Waits);
        answer(&mut single, vec![Outcome::Unknown]);
        answer(&mut single, vec![Outcome::Done, listing.clone()]);
        assert_eq!(next(&single), Some(vec![CREATE()]));
        let mut single = in_session(Patience::Waits);
        answer(&mut single, vec![Outcome::NodeExists]);
        answer(&mut single, vec![listing]);
        assert_eq!(next(&single), Some(vec![CREATE()]));
    }
    let mut single = in_session(Patience::Waits);
    answer(&mut single, vec![Outcome::Unknown]);
    answer(&mut single, vec![Outcome::Done, listed()]);
    answer(&mut single, vec![Outcome::NoNode]);
    assert_eq!(next(&single), Some(vec![CREATE()]));
}

/// One whose node was created so long ago that it has to be proven.
fn to_be_checked() -> Single {
    let mut single = in_session(Patience::Waits);
    assert!(single.poll_flight().is_some());
    let late = Now { moment: at(4_000), lease_until: at(9_000) };
    single.handle_replies(vec![Outcome::Created(vec![node(3, OURS)])], at(0), late);
    assert_eq!(single.poll_verdict(), None);
    single
}

#[test]
fn a_node_that_has_to_be_proven_is_granted_after_that() {
    let mut single = to_be_checked();
    answer(&mut single, vec![Outcome::Done, Outcome::Found(node(3, OURS))]);
    assert!(matches!(single.poll_verdict(), Some(Verdict::Granted { czxid: 3, .. })));
    let mut single = to_be_checked();
    answer(&mut single, vec![Outcome::NoNode, Outcome::NoNode]);
    assert_eq!(next(&single), Some(vec![CREATE()]));
    let mut single = to_be_checked();
    answer(&mut single, vec![Outcome::Refused(Refusal::Denied), Outcome::NoNode]);
    assert_eq!(single.poll_verdict(), Some(Verdict::Failed(Refusal::Denied)));
}

#[test]
fn a_holder_that_asks_for_it_is_told_that_somebody_wants_the_lock() {
    let reads = Some(vec![Operation::WatchOwn { path: "/a/lock".into() }]);
    let mut single = held();
    assert_eq!((next(&single), single.poll_timeout()), (None, None));
    single.handle_notice();
    assert_eq!(next(&single), reads);
    answer(&mut single, vec![Outcome::Unknown]);
    assert_eq!(next(&single), reads);
    answer(&mut single, vec![Outcome::Unknown]);
    let pause = single.poll_timeout().unwrap();
    let now = |moment| Now { moment, lease_until: at(5_000) };
    single.handle_timeout(pause.before(Duration::from_millis(1)));
    assert_eq!((next(&single), single.poll_timeout()), (None, Some(pause)));
    single.handle_timeout(pause);
    answer(&mut single, vec![Outcome::Done]);
    assert_eq!((next(&single), single.poll_verdict()), (None, None));
    // It is asked once.
    single.handle_notice();
    assert_eq!(next(&single), None);
    single.handle_watch(WatchEvent::Changed, now(pause));
    assert_eq!(next(&single), reads);
    answer(&mut single, vec![Outcome::Revoked]);
    assert_eq!((next(&single), single.poll_verdict()), (None, Some(Verdict::Wanted)));
    // One that has let go meanwhile is told nothing.
    let mut single = held();
    single.handle_notice();
    assert_eq!(single.poll_flight(), reads);
    single.handle_end();
    single.handle_replies(vec![Outcome::Revoked], at(0), now(at(0)));
    assert_eq!(single.poll_verdict(), None);
    assert!(matches!(next(&single).unwrap()[..], [Operation::Barrier { .. }, Operation::List { .. }]));
}

#[test]
fn one_that_asks_before_it_holds_listens_from_the_grant_on() {
    let mut single = in_session(Patience::Waits);
    single.handle_notice();
    assert_eq!(next(&single), Some(vec![CREATE()]));
    answer(&mut single, vec![Outcome::Created(vec![node(3, OURS)])]);
    assert!(matches!(single.poll_verdict(), Some(Verdict::Granted { .. })));
    assert_eq!(next(&single), Some(vec![Operation::WatchOwn { path: "/a/lock".into() }]));
}
