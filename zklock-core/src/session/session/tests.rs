use super::requests::FLIGHTS_AT_MOST;
use super::*;
use crate::base::owner::Owner;
use crate::hold::hold::{Hold, HoldState};
use crate::machine::keeper::{Seen, ToWatch};
use crate::machine::name::{Scheme, Uuid};
use crate::machine::protocol::{Node, Operation, Origin, Outcome, WatchEvent};
use crate::machine::status::Status;
use crate::session::fake::{FakeEnsemble, SESSION, TIMEOUT, with_ensemble, with_hold, with_session};
use crate::session::heartbeat;
use crate::zookeeper::ensemble::{Deletion, HeldNode, Write};
use futures_util::FutureExt;

fn barrier() -> Vec<Operation> {
    vec![Operation::Barrier { directory: "/a".into() }]
}

#[test]
fn nothing_is_remembered_of_a_connection_once_a_server_is_asked_for_the_session_on_another() {
    with_session(async |_, session| {
        let now = clock::now();
        assert!(session.lease().is_connected_since(now));
        session.ask();
        assert!(!session.lease().is_connected_since(now));
    });
}

/// Before a watch or a check has shown it.
#[test]
fn an_answer_that_shows_that_its_node_is_gone_ends_a_hold() {
    let lists = || vec![Operation::List { directory: "/a".into() }];
    let gone = HoldState::Lost(LossReason::NodeDeleted);
    with_hold(async |ensemble, session, hold| {
        session.clone().send(lists()).await;
        assert_eq!(hold.state(), HoldState::Held);
        assert!(ensemble.delete_node(&ensemble.nodes()[0]));
        assert_eq!(hold.state(), HoldState::Held);
        session.clone().send(lists()).await;
        assert_eq!(hold.state(), gone);

        let hold = ensemble.hold(&session, "/a", Owner::unique());
        let seeing = session.seeing(&lists());
        session.see_flight(&seeing, &[Outcome::NoNode]);
        assert_eq!(hold.state(), gone, "the directory is gone");

        for (directory, version, deletion, state) in
            [("/b", None, Deletion::NotThere, gone), ("/c", Some(1), Deletion::Changed, HoldState::Held)]
        {
            let hold = ensemble.hold(&session, directory, Owner::unique());
            let node = ensemble.nodes().pop().unwrap();
            let deleted = session.delete(node.as_str().into(), version).await;
            assert_eq!((deleted.ok(), hold.state()), (Some(deletion), state));
        }

        let [guard, deleted] = ["/d", "/e"].map(|path| ensemble.hold(&session, path, Owner::unique()));
        let write = Write::Delete { path: deleted.node().to_owned(), version: None };
        session.commit(vec![guard.node().into()], vec![write]).await.unwrap();
        assert_eq!((guard.state(), deleted.state()), (HoldState::Held, gone));
    });
}

#[test]
fn a_hold_that_is_given_up_wakes_what_waits_for_its_end() {
    with_session(async |ensemble, session| {
        let grant = ensemble.grant(&session, "/a", Owner::unique(), false);
        let mut watch = grant.holding().watch();
        session.abandon(grant.holding());
        assert!(watch.has_changed().unwrap());
        assert_eq!(watch.borrow_and_update().status, Status::Lost(LossReason::ClientClosed));
        assert_eq!(session.valid_for(grant.holding()), Duration::ZERO);
    });
}

/// With rare beats a lease may end before two beats have failed.
#[test]
fn a_hold_without_a_lease_is_at_risk_although_no_beat_is_late() {
    with_ensemble(async |ensemble| {
        let keeper = Keeper::new(TIMEOUT, clock::now(), clock::now()).telling_within(TIMEOUT / 3);
        let session = Session::new(Arc::new(ensemble.clone()), SESSION, keeper, Arc::default());
        let grant = ensemble.grant(&session, "/a", Owner::unique(), false);
        let hold = Hold::new(grant.clone());
        clock::sleep(hold.valid_for()).await;
        assert!(!session.is_late(grant.holding()));
        assert_eq!((hold.valid_for(), hold.state()), (Duration::ZERO, HoldState::AtRisk));
    });
}

#[test]
fn a_child_that_no_session_owns_is_remembered_until_it_is_absent() {
    with_session(async |_, session| {
        let names = ["lock-0000000124".to_owned()];
        let show = |operation, outcome| {
            let seeing = session.seeing(&[operation]);
            session.see_flight(&seeing, &[outcome]);
            session.lasting().unclear("/a", &names).is_empty()
        };
        let inspect = || Operation::Inspect { path: "/a/lock-0000000124".into() };
        let found = |origin| Outcome::Found(Node { name: names[0].clone(), origin });
        assert!(!show(inspect(), found(Some(Origin { czxid: 1, session: 1 }))));
        assert!(show(inspect(), found(None)));
        assert!(!show(Operation::List { directory: "/a".into() }, Outcome::Children(Vec::new())));
    });
}

/// Thousands are sent at one moment after a reconnect.
#[test]
fn few_flights_are_without_a_reply_at_a_time_and_a_heartbeat_waits_for_none() {
    with_hold(async |ensemble, session, hold| {
        ensemble.fall_silent();
        let flights: Vec<_> =
            (0..FLIGHTS_AT_MOST * 3).map(|_| tokio::spawn(session.clone().send(barrier()))).collect();
        tokio::spawn(heartbeat::run(session.clone()));
        clock::sleep(TIMEOUT / 10).await;
        assert_eq!((ensemble.flights(), ensemble.checks().len()), (FLIGHTS_AT_MOST, 1));
        // What still waits for its turn learns of the end too.
        session.end(LossReason::SessionExpired);
        for flight in flights {
            assert_eq!(flight.await.unwrap().outcomes, [Outcome::SessionOver]);
        }
        drop(hold);
    });
}

/// The ensemble has lost the deletion of a single-node lock's nodes.
#[test]
fn nodes_of_a_single_node_lock_that_come_back_go_together_and_spare_that_of_another() {
    with_session(async |ensemble, session| {
        let mark = session.attempts.begin();
        let companion = format!("/a/{}", crate::machine::name::companion(mark));
        session.attempts.end(mark);
        let look = async || {
            session.clone().send(flight()).await;
            clock::sleep(Duration::from_millis(1)).await;
            ensemble.nodes()
        };
        let czxid = ensemble.create(&companion);
        ensemble.create_with("/a/lock", czxid);
        assert_eq!(look().await, [""; 0]);
        ensemble.create(&companion);
        ensemble.create("/a/lock");
        assert_eq!(look().await, ["/a/lock"]);
    });
}

#[test]
fn every_hold_is_told_the_first_reason_for_the_end_of_the_session() {
    with_hold(async |ensemble, session, hold| {
        session.end(LossReason::ClientClosed);
        session.end(LossReason::SessionExpired);
        assert_eq!(session.loss(), Some(LossReason::ClientClosed));
        let late = ensemble.hold(&session, "/b", Owner::unique());
        for hold in [hold, late] {
            assert_eq!(hold.lost().await, Ok(Some(LossReason::ClientClosed)));
            assert_eq!(hold.valid_for(), Duration::ZERO);
        }
        let landing = session.send(barrier()).await;
        assert_eq!(landing.outcomes, [Outcome::SessionOver]);
    });
}

/// The paths of two nodes. Only the first exists.
fn one_of_two(ensemble: &FakeEnsemble) -> [Arc<str>; 2] {
    ensemble.create("/a/there");
    ["/a/there".into(), "/a/gone".into()]
}

#[test]
fn what_a_server_answers_by_itself_or_refuses_does_not_prolong_the_lease() {
    with_session(async |ensemble, session| {
        let before = session.now().lease_until;
        clock::sleep(TIMEOUT / 4).await;
        let [there, gone] = one_of_two(&ensemble).map(|path| path.to_string());
        for flight in [Operation::Watch { path: there }, Operation::Delete { path: gone }] {
            session.clone().send(vec![flight]).await;
            assert_eq!(session.now().lease_until, before);
        }
    });
}

#[test]
fn a_session_that_is_over_stays_so() {
    with_session(async |_, session| {
        session.end(LossReason::SessionExpired);
        for connected in [true, false] {
            session.set_connected(connected);
            assert!(session.is_over() && !session.is_connected());
        }
    });
}

#[test]
fn the_servers_say_what_the_session_can_do_and_how_long_it_lives() {
    with_session(async |ensemble, session| {
        assert!(session.creates_in_transactions());
        ensemble.be_old();
        assert!(!session.creates_in_transactions());
        let (asked, until) = (clock::now(), session.now().lease_until);
        session.ask();
        session.granted("a:2181", asked, TIMEOUT / 2);
        assert_eq!((session.timeout(), session.heartbeat()), (TIMEOUT / 2, TIMEOUT / 20));
        assert_eq!(session.now().lease_until, until, "what was named is not taken back");
    });
}

#[test]
fn a_server_that_grants_less_than_half_loses_the_holds_at_once() {
    with_hold(async |_, session, hold| {
        session.ask();
        session.granted("a:2181", clock::now(), TIMEOUT / 2 - Duration::from_millis(1));
        assert_eq!(hold.lost().now_or_never(), Some(Ok(Some(LossReason::LeaseLapsed))));
        assert!(hold.valid_for().is_zero());
    });
}

#[test]
fn a_heartbeat_names_what_is_held_and_counts_how_late_its_answer_is() {
    with_session(async |ensemble, session| {
        let hold = |path| ensemble.hold(&session, path, Owner::unique());
        let (_held, released) = (hold("/a"), hold("/b"));
        let lost = ensemble.grant(&session, "/c", Owner::unique(), false);
        drop(released);
        session.lose(lost.holding(), LossReason::ForeignContender);
        tokio::spawn(heartbeat::run(session.clone()));
        clock::sleep(TIMEOUT / 8).await;
        assert_eq!(ensemble.checked(), [1]);
        assert_eq!(session.counters().read().heartbeat_lag.count(), 1);
    });
}

#[test]
fn a_hold_is_watched_only_if_all_its_nodes_are() {
    with_session(async |ensemble, session| {
        let [there, gone] = one_of_two(&ensemble);
        let hold = session.register("/a".into(), vec![there.clone()], 1, false, clock::now()).id;
        let held = |path: &Arc<str>| HeldNode { path: path.clone(), origin: None };
        let seen = async |nodes: Vec<HeldNode>| {
            let looked = session.clone().watch(vec![ToWatch { hold, nodes }]).await;
            (looked[0].seen, looked[0].watches.len())
        };
        assert_eq!(seen(vec![held(&there), held(&there)]).await, (Seen::There, 2));
        assert_eq!(seen(vec![held(&there), held(&gone)]).await, (Seen::Gone, 0));
        ensemble.be_unsure_of(1);
        assert_eq!(seen(vec![held(&there), held(&there)]).await, (Seen::Unknown, 0));
        ensemble.fall_silent();
        assert_eq!(seen(vec![held(&there)]).await, (Seen::Unknown, 0));
    });
}

#[test]
fn a_session_that_was_closed_is_gone_when_the_servers_say_so() {
    with_session(async |_, session| {
        session.end(LossReason::SessionClosed);
        let mut gone = Box::pin(session.gone());
        assert_eq!(gone.as_mut().now_or_never(), None);
        session.set_nodes(SessionNodes::Gone);
        assert!(gone.await);
    });
}

#[test]
fn a_node_that_may_not_be_deleted_ends_the_session_and_says_why() {
    with_session(async |ensemble, session| {
        assert_eq!(session.undeletable(), None);
        ensemble.refuse_deletions();
        session.clone().send(vec![Operation::Delete { path: "/a/b".into() }]).await;
        assert_eq!(session.loss(), Some(LossReason::SessionClosed));
        assert!(session.undeletable().unwrap().contains("access list"), "{:?}", session.undeletable());
    });
}

#[test]
fn a_holding_knows_its_names_a_refusal_and_its_loss() {
    with_session(async |_, session| {
        let register = |nodes: &[&str], is_reused| {
            session.register(
                "/a".into(),
                nodes.iter().map(|node| Arc::from(*node)).collect(),
                1,
                is_reused,
                clock::now(),
            )
        };
        let (own, reused, both) =
            (register(&["/a"], false), register(&["/a"], true), register(&["/a", "/b"], true));
        assert_eq!([&own, &reused, &both].map(|holding| holding.name_is_reused()), [false, true, true]);
        assert_eq!(
            [&own, &reused, &both].map(|holding| holding.all_names_are_reused()),
            [false, true, false]
        );
        session.release(&own);
        own.refuse();
        assert_eq!(own.status(), Status::Stuck);
        assert_eq!(reused.lost_at(), None);
        session.lose(&reused, LossReason::NodeDeleted);
        assert_eq!(reused.lost_at(), Some(clock::now()));
    });
}

/// An attempt with a node in that directory, after its end.
fn ended(ensemble: &FakeEnsemble, session: &Arc<Session>, directory: &str) -> String {
    let mark = session.attempts.begin();
    let node = format!("{directory}/{}0000000001", Scheme::Mutex.prefix(mark, session.id()));
    session.attempts.end(mark);
    session.attempts.leave(&[directory.into()]);
    ensemble.create(&node);
    node
}

#[test]
fn a_sweep_deletes_what_has_come_back_wherever_attempts_have_been() {
    with_session(async |ensemble, session| {
        session.clone().sweep().await;
        assert_eq!(ensemble.flights(), 0, "nobody has been anywhere");
        for directory in ["/a", "/b", "/a"] {
            ended(&ensemble, &session, directory);
        }
        assert_eq!(ensemble.nodes().len(), 3);
        session.clone().sweep().await;
        clock::sleep(Duration::from_millis(1)).await;
        assert_eq!(ensemble.nodes(), [""; 0]);
    });
}

#[test]
fn a_listing_that_is_over_is_forgotten() {
    with_session(async |ensemble, session| {
        ensemble.fall_silent();
        let mut listing = session.clone().send(flight());
        assert!(listing.as_mut().now_or_never().is_none());
        let known = || format!("{:?}", session.attempts);
        assert!(known().contains("under_way: {Listing(0)}"), "{}", known());
        drop(listing);
        assert!(known().contains("under_way: {}"), "{}", known());
    });
}

// Servers that answer late.

fn flight() -> Vec<Operation> {
    vec![Operation::List { directory: "/a".into() }]
}

#[test]
fn beats_go_along_with_a_late_answer_and_with_no_other() {
    with_session(async |ensemble, session| {
        tokio::spawn(heartbeat::run(session.clone()));
        // So long that the lease has lapsed.
        clock::sleep(TIMEOUT).await;
        ensemble.answer_late(TIMEOUT / 25);
        session.clone().send(flight()).await;
        assert_eq!(ensemble.checks(), []);

        ensemble.answer_late(TIMEOUT / 5);
        let start = clock::now();
        session.clone().send(flight()).await;
        clock::sleep(TIMEOUT).await;
        let sent: Vec<_> = ensemble.checks().iter().map(|check| check.since(start).as_millis()).collect();
        assert_eq!(sent, [500, 1_000, 1_500, 2_000], "none before it is late, none after its answer");
        // It is not worth that to delete something.
        session.clone().send(vec![Operation::Delete { path: "/a/b".into() }]).await;
        assert_eq!(ensemble.checks().len(), 4);
    });
}

#[test]
fn an_attempt_that_is_dropped_waits_for_nothing_any_more() {
    with_session(async |ensemble, session| {
        tokio::spawn(heartbeat::run(session.clone()));
        clock::sleep(TIMEOUT).await;
        ensemble.fall_silent();
        assert!(clock::timeout(TIMEOUT / 20, session.clone().send(flight())).await.is_err());
        clock::sleep(TIMEOUT / 4).await;
        assert_eq!(ensemble.checks().len(), 1);
    });
}

#[test]
fn the_latest_answer_says_how_late_they_are_as_long_as_there_are_any() {
    with_session(async |ensemble, session| {
        let mut said = Vec::new();
        for late in [Duration::ZERO, Duration::from_millis(1_200), Duration::from_millis(2_600)] {
            ensemble.answer_late(late);
            session.clone().send(flight()).await;
            said.push(session.lateness().map(|lateness| lateness.to_string()).unwrap_or_default());
        }
        assert_eq!(said[0], "");
        assert_eq!(
            said[1],
            "the servers' replies take 1.2s, and an acquire needs several of them: wait longer"
        );
        assert_eq!(
            said[2],
            "the servers' replies take 2.6s; with a session timeout of 12s they must come within 2.4s: use a longer \
             session timeout, or servers that are nearer or less busy"
        );
        session.set_connected(false);
        assert_eq!(session.lateness(), None);
        session.set_connected(true);
        assert!(session.lateness().is_some());
        clock::sleep(TIMEOUT / 2).await;
        assert_eq!(session.lateness(), None);
    });
}

// The end of a neighbour.

const DIRECTORY: &str = "/a";

/// An attempt with a node, at this path.
fn begin_ahead(ensemble: &FakeEnsemble, session: &Arc<Session>) -> (Uuid, String) {
    let ahead = session.attempts.begin();
    let node = format!("{DIRECTORY}/{}0000000001", Scheme::Mutex.prefix(ahead, session.id()));
    ensemble.create(&node);
    (ahead, node)
}

fn watch(path: &str) -> Vec<Operation> {
    vec![Operation::Watch { path: path.to_owned() }]
}

#[test]
fn the_end_of_a_neighbour_is_heard_without_a_server() {
    with_session(async |ensemble, session| {
        let (ahead, node) = begin_ahead(&ensemble, &session);
        let landing = session.send_for_attempt(watch(&node)).await;
        assert_eq!(landing.outcomes, [Outcome::Done]);
        ensemble.fall_silent();
        let second = tokio::spawn(session.send_for_attempt(watch(&node)));
        tokio::task::yield_now().await;
        assert!(!second.is_finished(), "it is still there");
        session.attempts.end(ahead);
        assert_eq!(landing.watch.unwrap().await, WatchEvent::Deleted);
        // A follower that comes too late has its answer at once, and so does one whose watch is still under way.
        for late in [second.await.unwrap(), session.send_for_attempt(watch(&node)).await] {
            assert_eq!(late.outcomes, [Outcome::NoNode]);
        }
        assert_eq!(ensemble.nodes(), [node], "nobody has asked for it");
    });
}

#[test]
fn an_attempt_that_is_abandoned_is_not_known_to_be_gone() {
    with_session(async |ensemble, session| {
        let (ahead, node) = begin_ahead(&ensemble, &session);
        let watched = session.send_for_attempt(watch(&node)).await.watch.unwrap();
        session.attempts.abandon(ahead);
        let mut watched = tokio::spawn(watched);
        let again = session.send_for_attempt(watch(&node)).await;
        assert_eq!(again.outcomes, [Outcome::Done]);
        assert!(clock::timeout(TIMEOUT / 12, &mut watched).await.is_err());
        assert!(ensemble.delete_node(&node));
        assert_eq!(watched.await.unwrap(), WatchEvent::Deleted);
    });
}

#[test]
fn a_node_with_an_earlier_mark_is_gone_when_the_attempt_has_another() {
    with_session(async |ensemble, session| {
        let (ahead, node) = begin_ahead(&ensemble, &session);
        let watched = session.send_for_attempt(watch(&node)).await.watch.unwrap();
        let mark = ahead.to_string().replace('-', "");
        let next = Uuid::from_random(u128::from_str_radix(&mark, 16).unwrap() + 1);
        session.attempts.renew(ahead, next);
        assert_eq!(watched.await, WatchEvent::Deleted);
    });
}
