use super::super::tests::queue;
use super::*;
use crate::base::wait::Wait;
use crate::machine::name::Scheme;
use crate::machine::turns::Passing;
use crate::session::fake::{FakeEnsemble, TIMEOUT, with_ensemble};
use std::time::Duration;

const DIRECTORY: &str = "/a";

/// An attempt for a mutex, whose task has not begun, and its session.
fn with_attempt<T>(test: impl AsyncFnOnce(FakeEnsemble, Arc<Session>, Attempt) -> T) -> T {
    with_ensemble(async |ensemble| {
        let (session, attempt) = attempt(&ensemble, Scheme::Mutex);
        test(ensemble, session, attempt).await
    })
}

fn attempt(ensemble: &FakeEnsemble, scheme: Scheme) -> (Arc<Session>, Attempt) {
    let queue = queue(ensemble, scheme, Passing::default());
    let session = queue.shared.pool.slot().current().unwrap();
    let (waiter, _) = Waiter::new(None, Patience::Waits, Wait::Forever, false);
    let (debt, wish) = (Debt::new(&queue.shared.counters), watch::Sender::new(Wish::GiveUp));
    let (asks, writer, holding) = (None, None, None);
    let record = PlaceRecord { debt, asks, nodes: Vec::new(), writer, holding, wish };
    (session, Attempt::new(queue, PlaceId(1), &record, &waiter, false))
}

async fn be_granted(attempt: &mut Attempt) {
    loop {
        if let Some(Verdict::Granted { nodes, czxid, proven, .. }) = attempt.machine.poll_verdict() {
            attempt.granted(nodes, czxid, proven);
            return;
        }
        attempt.next_event().await.unwrap();
    }
}

/// Returns what the session says of a node that exists in the ensemble.
async fn watched(session: &Arc<Session>, path: &str) -> Vec<Outcome> {
    session.send_for_attempt(vec![Operation::Watch { path: path.to_owned() }]).await.outcomes
}

#[test]
fn an_attempt_learns_that_servers_are_old() {
    with_ensemble(async |ensemble| {
        ensemble.be_old();
        let (_, mut attempt) = attempt(&ensemble, Scheme::Single);
        be_granted(&mut attempt).await;
        assert_eq!(ensemble.nodes(), ["/a/lock"], "there is no companion");
    });
}

#[test]
fn without_a_connection_nothing_is_begun_that_could_not_be_left() {
    with_attempt(async |ensemble, session, mut attempt| {
        session.set_connected(false);
        attempt.begin().await.unwrap();
        attempt.send_next().await;
        attempt.machine.handle_end();
        assert!(attempt.machine.is_gone(), "it waits for no answer");
        session.set_connected(true);
        attempt.send_next().await;
        assert_eq!(ensemble.flights(), 0);
    });
}

#[test]
fn an_attempt_that_waits_no_longer_watches_nothing() {
    with_ensemble(async |ensemble| {
        ensemble.create("/a/_c_00000000-0000-4000-8000-000000000000-lock-0000000000");
        let (_, mut attempt) = attempt(&ensemble, Scheme::Mutex);
        while ensemble.watches() == 0 {
            attempt.next_event().await.unwrap();
        }
        attempt.stop_watching();
        assert_eq!(ensemble.watches(), 0);
    });
}

#[test]
fn an_answer_that_ends_the_session_is_heard_though_it_comes_at_once() {
    with_attempt(async |ensemble, session, mut attempt| {
        be_granted(&mut attempt).await;
        ensemble.refuse_deletions();
        attempt.machine.handle_end();
        attempt.send_next().await;
        assert_eq!(session.loss(), Some(LossReason::SessionClosed), "it is rid of its node by that");
        attempt.next_event().await.unwrap();
        assert!(matches!(attempt.first_delete, Some(Outcome::Refused(_))), "{:?}", attempt.first_delete);
        assert!(attempt.machine.is_gone());
    });
}

#[test]
fn a_node_that_comes_back_is_nobodys_as_soon_as_its_machine_is_gone() {
    with_attempt(async |ensemble, session, mut attempt| {
        be_granted(&mut attempt).await;
        let nodes = ensemble.nodes();
        attempt.machine.handle_end();
        while !attempt.machine.is_gone() {
            attempt.next_event().await.unwrap();
        }
        assert_eq!(ensemble.nodes(), [""; 0]);
        ensemble.create(&nodes[0]);

        session.clone().send(vec![Operation::List { directory: DIRECTORY.into() }]).await;
        clock::sleep(Duration::from_millis(1)).await;
        assert_eq!(ensemble.nodes(), [""; 0], "the session that lists it deletes it");
    });
}

#[test]
fn an_attempt_that_is_dropped_before_it_sends_anything_has_no_node_and_has_been_nowhere() {
    with_attempt(async |ensemble, session, mut attempt| {
        attempt.begin().await.unwrap();
        let mark = attempt.machine.mark();
        drop(attempt);
        let node = format!("{DIRECTORY}/{}0000000001", Scheme::Mutex.prefix(mark, session.id()));
        ensemble.create(&node);
        assert_eq!(watched(&session, &node).await, [Outcome::NoNode]);
        session.clone().sweep().await;
        assert_eq!(ensemble.flights(), 0, "nobody has asked a server");
    });
}

#[test]
fn the_directory_of_an_attempt_that_is_dropped_is_swept_and_its_node_is_not_known_to_be_gone() {
    with_attempt(async |ensemble, session, mut attempt| {
        be_granted(&mut attempt).await;
        drop(attempt);
        assert_eq!(watched(&session, &ensemble.nodes()[0]).await, [Outcome::Done]);
        session.clone().sweep().await;
        clock::sleep(Duration::from_millis(1)).await;
        assert_eq!(ensemble.nodes(), [""; 0]);
    });
}

#[test]
fn the_session_knows_that_a_node_is_gone_once_its_attempt_creates_another() {
    with_attempt(async |ensemble, session, mut attempt| {
        // So late that the lease is too short for a grant, and the node is checked.
        ensemble.answer_late(TIMEOUT / 12 * 5);
        let mut earlier = Vec::new();
        let delete = async {
            clock::sleep(TIMEOUT / 12).await;
            earlier = ensemble.nodes();
            assert!(ensemble.delete_node(&earlier[0]));
            ensemble.answer_late(Duration::ZERO);
        };
        tokio::join!(be_granted(&mut attempt), delete);
        assert_ne!(ensemble.nodes(), earlier);
        ensemble.create(&earlier[0]);
        assert_eq!(watched(&session, &earlier[0]).await, [Outcome::NoNode]);
    });
}
