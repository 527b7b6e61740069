//! Behaviour that is easier to see in a single attempt than in the model check.

use super::Single;
use crate::Moment;
use crate::drive::Machine;
use crate::name::SINGLE_NAME;
use crate::name::Uuid;
use crate::protocol::{Node, Now, Operation, Origin, Outcome, Patience, Refusal, Verdict, WatchEvent};
use std::time::Duration;

const NOW: Now = Now { moment: Moment::at(Duration::ZERO), lease_until: Moment::at(Duration::from_secs(5)) };

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

/// The companion with the first mark of the attempt, and with the second.
const COMPANION: &str = "holder-00000000-0000-8000-8000-000000000001-of-lock";
const SECOND: &str = "holder-00000000-0000-8000-8000-000000000002-of-lock";

fn origin(czxid: i64, session: i64) -> Option<Origin> {
    Some(Origin { czxid, session })
}

/// The companion and the node, created by one transaction.
fn pair(origin: Option<Origin>) -> Outcome {
    let node = |name: &str| Node { name: name.to_owned(), origin };
    Outcome::Created(vec![node(COMPANION), node(SINGLE_NAME)])
}

fn found(czxid: i64, session: i64) -> Outcome {
    Outcome::Found(Node { name: SINGLE_NAME.to_owned(), origin: origin(czxid, session) })
}

fn denied() -> Outcome {
    Outcome::Refused(Refusal::Denied)
}

fn failed() -> Option<Verdict> {
    Some(Verdict::Failed(Refusal::Denied))
}

fn listed() -> Outcome {
    Outcome::Children(vec![SINGLE_NAME.to_owned()])
}

const PATH: fn() -> String = || "/a/lock".to_owned();

fn at_companion() -> String {
    format!("/a/{COMPANION}")
}

fn create(companion: &str) -> Vec<Operation> {
    let companion = format!("/a/{companion}");
    let create =
        Operation::CreatePair { path: PATH(), companion: companion.clone(), data: b"ours"[..].into() };
    vec![create, Operation::Inspect { path: companion }]
}

fn look() -> Vec<Operation> {
    let inspect = |path| Operation::Inspect { path };
    vec![Operation::Barrier { directory: "/a".into() }, inspect(at_companion()), inspect(PATH())]
}

fn delete_both() -> Vec<Operation> {
    vec![Operation::DeletePair { path: PATH(), companion: at_companion() }]
}

fn delete_companion() -> Vec<Operation> {
    vec![Operation::Delete { path: at_companion() }]
}

/// Answers the next flight with these outcomes, and returns it.
fn answer(single: &mut Single, outcomes: Vec<Outcome>) -> Vec<Operation> {
    let flight = single.poll_flight().unwrap();
    assert_eq!(flight.len(), outcomes.len(), "{flight:?}");
    single.handle_replies(outcomes, at(0), NOW);
    flight
}

/// Returns the flight that comes next.
fn next(single: &Single) -> Option<Vec<Operation>> {
    single.clone().poll_flight()
}

fn held() -> Single {
    let mut single = in_session(Patience::Waits);
    answer(&mut single, vec![pair(origin(3, OURS)), found(3, OURS)]);
    let nodes = vec![PATH(), at_companion()];
    assert_eq!(
        single.poll_verdict(),
        Some(Verdict::Granted { nodes, czxid: 3, proven: at(0), ignored: vec![] })
    );
    single
}

/// An attempt whose hold is being released.
fn released() -> Single {
    let mut single = held();
    single.handle_end();
    single
}

/// An attempt whose creation has not been answered.
fn unanswered(patience: Patience) -> Single {
    let mut single = in_session(patience);
    answer(&mut single, vec![Outcome::Unknown; 2]);
    assert_eq!(next(&single), Some(look()));
    single
}

#[test]
fn a_waiter_tries_again_whenever_something_changes_and_is_in_nobodys_way() {
    let mut single = in_session(Patience::Waits);
    assert_eq!(answer(&mut single, vec![Outcome::NodeExists, Outcome::NoNode]), create(COMPANION));
    assert_eq!(answer(&mut single, vec![listed()]), [Operation::ListAndWatch { directory: "/a".into() }]);
    assert!(single.is_waiting());
    single.handle_watch(WatchEvent::Changed, NOW);
    // Nothing was created with the mark, so it is used again.
    assert_eq!(next(&single), Some(create(COMPANION)));
    single.handle_end();
    assert!(single.is_gone());
}

#[test]
fn a_release_deletes_what_is_its_own_and_the_node_only_if_it_is_of_the_transaction_of_its_companion() {
    for (companion, node, deletes) in [
        (found(3, OURS), found(3, OURS), Some(delete_both())),
        // The server has lost the deletion of an earlier node, so it cannot show ours.
        (found(3, OURS), found(2, ANOTHERS), Some(delete_both())),
        // An operator has deleted the node. Perhaps somebody else has one now, or another attempt of this session.
        (found(3, OURS), Outcome::NoNode, Some(delete_companion())),
        (found(3, OURS), found(4, ANOTHERS), Some(delete_companion())),
        (found(3, OURS), found(4, OURS), Some(delete_companion())),
        // An operator has deleted the companion.
        (Outcome::NoNode, found(3, OURS), Some(vec![Operation::Delete { path: PATH() }])),
        (Outcome::NoNode, found(4, ANOTHERS), None),
        (Outcome::NoNode, found(4, OURS), None),
        (Outcome::NoNode, Outcome::NoNode, None),
    ] {
        let mut single = released();
        assert_eq!(answer(&mut single, vec![Outcome::Done, companion, node]), look());
        goes(single, deletes.as_deref());
    }
}

/// It is gone after this deletion, if there is one.
fn goes(mut single: Single, deletes: Option<&[Operation]>) {
    assert_eq!(next(&single).as_deref(), deletes);
    if deletes.is_some() {
        answer(&mut single, vec![Outcome::Done]);
    }
    assert!(single.is_gone());
}

#[test]
fn a_deletion_that_finds_no_companion_was_done_before() {
    let mut single = released();
    answer(&mut single, vec![Outcome::Done, found(3, OURS), found(3, OURS)]);
    answer(&mut single, vec![Outcome::Unknown]);
    // The server has lost that deletion, and shows the old nodes.
    assert_eq!(answer(&mut single, vec![Outcome::Done, found(3, OURS), found(3, OURS)]), look());
    assert_eq!(answer(&mut single, vec![Outcome::NoNode]), delete_both());
    // If an operator has deleted the node, the companion is still there.
    assert_eq!(answer(&mut single, vec![Outcome::NoNode]), delete_companion());
    assert!(single.is_gone());
}

#[test]
fn a_release_deletes_nodes_that_may_not_be_read_any_more_if_they_are_of_its_session() {
    let owns = || [at_companion(), PATH()].map(|path| Operation::Owns { path });
    let hidden = || {
        let mut single = released();
        answer(&mut single, vec![Outcome::Done, denied(), denied()]);
        single
    };
    for (outcomes, deletes) in [
        ([Outcome::Done, Outcome::Done], Some(delete_both())),
        ([Outcome::Done, Outcome::NoNode], Some(delete_companion())),
        ([Outcome::NoNode, Outcome::Done], None),
        ([Outcome::NoNode, Outcome::NoNode], None),
    ] {
        let mut single = hidden();
        assert_eq!(answer(&mut single, outcomes.to_vec()), owns());
        goes(single, deletes.as_deref());
    }
    let mut single = hidden();
    answer(&mut single, vec![Outcome::Done, Outcome::Unknown]);
    assert_eq!(next(&single), Some(look()));
}

/// Servers of version 3.4 cannot create two nodes in one transaction.
#[test]
fn a_node_without_a_companion_is_looked_at_before_it_is_deleted_or_granted() {
    let lone = || {
        let mut single = in_session(Patience::Waits);
        single.handle_old_servers();
        single
    };
    let inspect = || Operation::Inspect { path: PATH() };
    let created = || Outcome::Created(vec![Node { name: SINGLE_NAME.to_owned(), origin: None }]);
    let looks = || vec![Operation::Barrier { directory: "/a".into() }, inspect()];
    let mut single = lone();
    let create = Operation::CreateSingle { path: PATH(), data: b"ours"[..].into() };
    assert_eq!(answer(&mut single, vec![created(), found(3, OURS)]), [create, inspect()]);
    let nodes = vec![PATH()];
    assert_eq!(
        single.poll_verdict(),
        Some(Verdict::Granted { nodes, czxid: 3, proven: at(0), ignored: vec![] })
    );
    for (owner, is_deleted) in [(OURS, true), (ANOTHERS, false)] {
        let mut single = single.clone();
        single.handle_end();
        assert_eq!(answer(&mut single, vec![Outcome::Done, found(3, owner)]), looks());
        assert_eq!(next(&single), is_deleted.then(|| vec![Operation::Delete { path: PATH() }]));
    }
    single.handle_end();
    answer(&mut single, vec![Outcome::Done, denied()]);
    assert_eq!(answer(&mut single, vec![Outcome::Done]), [Operation::Owns { path: PATH() }]);
    answer(&mut single, vec![Outcome::Unknown]);
    assert_eq!(answer(&mut single, vec![Outcome::Done, Outcome::NoNode]), looks());
    assert!(single.is_gone());
    // This may become known while an attempt is under way.
    let mut single = unanswered(Patience::Waits);
    single.handle_old_servers();
    assert_eq!(answer(&mut single, vec![Outcome::Done, Outcome::NoNode, Outcome::NoNode]), look());
    assert!(matches!(next(&single).unwrap()[..], [Operation::CreateSingle { .. }, _]));
}

#[test]
fn a_new_session_begins_anew_and_a_hold_ends_with_its_session() {
    let mut single = in_session(Patience::Waits);
    answer(&mut single, vec![Outcome::SessionOver; 2]);
    assert!(single.is_idle());
    let mut single = held();
    single.handle_session_over();
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
    // It remembers nothing.
    assert_eq!(held.busy_since(), None);
}

#[test]
fn an_answer_that_does_not_name_both_nodes_says_nothing() {
    let node = || Node { name: SINGLE_NAME.to_owned(), origin: origin(3, OURS) };
    for nodes in [vec![], vec![node()], vec![node(), node(), node()]] {
        let mut single = in_session(Patience::Waits);
        answer(&mut single, vec![Outcome::Created(nodes), found(3, OURS)]);
        assert_eq!((single.poll_verdict(), next(&single)), (None, Some(look())));
    }
}

#[test]
fn what_is_above_the_node_is_created_when_it_is_missing() {
    let mut single = in_session(Patience::Waits);
    answer(&mut single, vec![Outcome::NoNode; 2]);
    let parents = Some(vec![Operation::CreateParents { directory: "/a".into() }]);
    assert_eq!(next(&single), parents);
    answer(&mut single, vec![Outcome::Unknown]);
    assert_eq!(next(&single), parents);
    answer(&mut single, vec![Outcome::Done]);
    assert_eq!(next(&single), Some(create(COMPANION)));
    answer(&mut single, vec![Outcome::NoNode; 2]);
    answer(&mut single, vec![denied()]);
    assert_eq!((single.poll_verdict(), single.is_gone()), (failed(), true));
}

#[test]
fn one_that_may_not_create_or_list_fails_and_one_that_has_given_up_is_told_nothing() {
    for ends in [false, true] {
        let mut single = in_session(Patience::Waits);
        assert_eq!(single.poll_flight(), Some(create(COMPANION)));
        if ends {
            single.handle_end();
        }
        single.handle_replies(vec![denied(), Outcome::NoNode], at(0), NOW);
        let told = failed().filter(|_| !ends);
        assert_eq!((single.poll_verdict(), single.is_gone()), (told, true));
    }
    let mut single = in_session(Patience::Waits);
    answer(&mut single, vec![Outcome::NodeExists, Outcome::NoNode]);
    answer(&mut single, vec![denied()]);
    assert_eq!((single.poll_verdict(), single.is_gone()), (failed(), true));
}

#[test]
fn a_node_that_is_not_there_any_more_is_created() {
    for listing in [Outcome::Children(vec!["other".to_owned()]), Outcome::NoNode] {
        let mut single = in_session(Patience::Waits);
        answer(&mut single, vec![Outcome::NodeExists, Outcome::NoNode]);
        answer(&mut single, vec![listing]);
        assert_eq!(next(&single), Some(create(COMPANION)));
    }
    let mut single = unanswered(Patience::Waits);
    answer(&mut single, vec![Outcome::Done, Outcome::NoNode, Outcome::NoNode]);
    assert_eq!(next(&single), Some(create(SECOND)));
}

/// An attempt whose node was created so long ago that it has to be proven.
fn to_be_checked() -> Single {
    let mut single = in_session(Patience::Waits);
    assert!(single.poll_flight().is_some());
    let late = Now { moment: at(4_000), lease_until: at(9_000) };
    single.handle_replies(vec![pair(origin(3, OURS)), found(3, OURS)], at(0), late);
    assert_eq!(single.poll_verdict(), None);
    single
}

#[test]
fn a_node_that_has_to_be_proven_is_granted_after_that() {
    let mut single = to_be_checked();
    answer(&mut single, vec![Outcome::Done, found(3, OURS)]);
    assert!(matches!(single.poll_verdict(), Some(Verdict::Granted { czxid: 3, .. })));
    let mut single = to_be_checked();
    answer(&mut single, vec![Outcome::NoNode; 2]);
    assert_eq!(next(&single), Some(look()), "what of it is left?");
    let mut single = to_be_checked();
    answer(&mut single, vec![denied(), Outcome::NoNode]);
    assert_eq!(single.poll_verdict(), failed());
    assert_eq!(next(&single), Some(delete_both()));
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
    single.handle_timeout(pause.before(Duration::from_millis(1)));
    assert_eq!((next(&single), single.poll_timeout()), (None, Some(pause)));
    single.handle_timeout(pause);
    answer(&mut single, vec![Outcome::Done]);
    assert_eq!((next(&single), single.poll_verdict()), (None, None));
    // It asks only once.
    single.handle_notice();
    assert_eq!(next(&single), None);
    single.handle_watch(WatchEvent::Changed, NOW);
    assert_eq!(next(&single), reads);
    answer(&mut single, vec![Outcome::Revoked]);
    assert_eq!((next(&single), single.poll_verdict()), (None, Some(Verdict::Wanted)));
    // A holder that has released the lock meanwhile is told nothing.
    let mut single = held();
    single.handle_notice();
    assert_eq!(single.poll_flight(), reads);
    single.handle_end();
    single.handle_replies(vec![Outcome::Revoked], at(0), NOW);
    assert_eq!(single.poll_verdict(), None);
    assert_eq!(next(&single), Some(look()));
}

#[test]
fn one_that_asks_before_it_holds_listens_from_the_grant_on() {
    let mut single = in_session(Patience::Waits);
    single.handle_notice();
    assert_eq!(next(&single), Some(create(COMPANION)));
    answer(&mut single, vec![pair(origin(3, OURS)), found(3, OURS)]);
    assert!(matches!(single.poll_verdict(), Some(Verdict::Granted { .. })));
    assert_eq!(next(&single), Some(vec![Operation::WatchOwn { path: "/a/lock".into() }]));
}
