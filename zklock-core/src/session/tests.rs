use super::*;
use crate::clock::virtual_clock;
use crate::fake::{FakeEnsemble, TIMEOUT};
use crate::owner::Owner;

fn barrier() -> Vec<Operation> {
    vec![Operation::Barrier { directory: "/a".into() }]
}

#[test]
fn a_reply_that_does_not_come_ends_the_connection() {
    virtual_clock::run(async {
        let (ensemble, start) = (FakeEnsemble::new(), clock::now());
        let session = ensemble.session();
        ensemble.fall_silent();
        let landing = session.clone().send(barrier()).await;
        assert_eq!(landing.outcomes, [Outcome::Unknown]);
        assert_eq!(clock::now().since(start), TIMEOUT / 2);
        assert!(ensemble.is_given_up() && !session.is_connected() && !session.is_over());
    });
}

#[test]
fn a_hold_is_valid_until_the_lease_ends_and_no_longer() {
    virtual_clock::run(async {
        let ensemble = FakeEnsemble::new();
        let session = ensemble.session();
        let hold = ensemble.hold(&session, "/a", Owner::unique());
        let left = session.now().lease_until.since(clock::now());
        assert!(left > TIMEOUT / 3);
        assert_eq!(hold.valid_for(), left);
        clock::sleep(left - Duration::from_millis(1)).await;
        assert_eq!(hold.valid_for(), Duration::from_millis(1));
        clock::sleep(Duration::from_millis(1)).await;
        assert_eq!(hold.valid_for(), Duration::ZERO);
    });
}

/// The ensemble has lost the deletion of an exclusive lock's nodes.
#[test]
fn nodes_of_an_exclusive_lock_that_come_back_go_together_and_spare_that_of_another() {
    virtual_clock::run(async {
        let ensemble = FakeEnsemble::new();
        let session = ensemble.session();
        let mut marked = session.begin_attempt(vec!["/a".into()]);
        let companion = format!("/a/{}", crate::machine::name::companion(marked.mark()));
        marked.end();
        let look = async || {
            let listing = vec![Operation::List { directory: "/a".into() }];
            let looking = session.look_for_orphans(&listing).unwrap();
            looking.heal(&session.clone().send(listing).await.outcomes);
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
fn only_a_quorum_write_prolongs_the_lease() {
    virtual_clock::run(async {
        let ensemble = FakeEnsemble::new();
        let session = ensemble.session();
        let before = session.now().lease_until;
        clock::sleep(TIMEOUT / 4).await;
        let read = vec![Operation::List { directory: "/a".into() }];
        session.clone().send(read).await;
        assert_eq!(session.now().lease_until, before);
        session.clone().send(barrier()).await;
        assert!(session.now().lease_until > before);
    });
}

#[test]
fn every_hold_is_told_the_first_reason_for_the_end_of_the_session() {
    virtual_clock::run(async {
        let ensemble = FakeEnsemble::new();
        let session = ensemble.session();
        let hold = ensemble.hold(&session, "/a", Owner::unique());
        session.end(LossReason::ClientClosed);
        session.end(LossReason::SessionExpired);
        assert_eq!(session.loss(), Some(LossReason::ClientClosed));
        let late = ensemble.hold(&session, "/b", Owner::unique());
        for hold in [hold, late] {
            assert_eq!(hold.lost().await, Some(LossReason::ClientClosed));
            assert_eq!(hold.valid_for(), Duration::ZERO);
        }
        let landing = session.send(barrier()).await;
        assert_eq!(landing.outcomes, [Outcome::SessionOver]);
    });
}
