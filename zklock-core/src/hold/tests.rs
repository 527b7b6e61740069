use super::*;
use crate::clock::virtual_clock;
use crate::fake::{FakeEnsemble, TIMEOUT};
use crate::heartbeat;
use crate::pool::SlotState;
use crate::session::Nodes;
use std::future::ready;

#[test]
fn a_hold_is_lost_a_heartbeat_after_its_lease_has_lapsed() {
    virtual_clock::run(async {
        let (ensemble, start) = (FakeEnsemble::new(), clock::now());
        let session = ensemble.session();
        let hold = ensemble.hold(&session, "/a", Owner::unique());
        tokio::spawn(heartbeat::run(session.clone()));
        ensemble.fall_silent();
        let lease = session.now().lease_until.since(start);
        clock::sleep(lease - Duration::from_millis(1)).await;
        assert_eq!((hold.state(), hold.valid_for()), (HoldState::AtRisk, Duration::from_millis(1)));
        clock::sleep(Duration::from_millis(1)).await;
        assert_eq!((hold.state(), hold.valid_for()), (HoldState::AtRisk, Duration::ZERO));
        assert_eq!(hold.lost().await, Some(LossReason::LeaseLapsed));
        // Timers count milliseconds.
        let late = clock::now().since(start) - (lease + TIMEOUT / 10);
        assert!(late <= Duration::from_millis(1), "{late:?}");
    });
}

#[test]
fn a_confirm_gives_up_when_the_lease_is_over() {
    virtual_clock::run(async {
        let (ensemble, start) = (FakeEnsemble::new(), clock::now());
        let session = ensemble.session();
        let hold = ensemble.hold(&session, "/a", Owner::unique());
        assert!(hold.confirm().await.unwrap() > TIMEOUT / 3);
        ensemble.fall_silent();
        let lease = session.now().lease_until.since(start);
        assert_eq!(hold.confirm().await.unwrap_err().kind(), ErrorKind::Unreachable);
        assert_eq!(clock::now().since(start), lease);
    });
}

#[test]
fn a_confirm_believes_nothing_but_an_answer() {
    virtual_clock::run(async {
        let ensemble = FakeEnsemble::new();
        let session = ensemble.session();
        let hold = ensemble.hold(&session, "/a", Owner::unique());
        ensemble.be_unsure_of(1);
        let asked = ensemble.checks().len();
        assert!(hold.confirm().await.unwrap() > TIMEOUT / 3);
        assert_eq!(ensemble.checks().len(), asked + 2, "it asks again if the first answer was lost");
        ensemble.be_unsure_of(2);
        assert!(!hold.valid_for().is_zero());
        assert_eq!(hold.confirm().await.unwrap_err().kind(), ErrorKind::Unreachable);
    });
}

#[test]
fn a_hold_names_its_lock() {
    virtual_clock::run(async {
        let ensemble = FakeEnsemble::new();
        let hold = ensemble.hold(&ensemble.session(), "/a", Owner::unique());
        assert_eq!(hold.path(), "/a");
    });
}

#[test]
fn a_hold_of_a_reentrant_lock_is_released_by_its_owner_alone() {
    virtual_clock::run(async {
        let ensemble = FakeEnsemble::new();
        let owner = Owner::unique();
        let hold = Hold::new(ensemble.grant(&ensemble.session(), "/a", owner, true));
        let refused = hold.begin_release(Owner::unique()).map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotOwner);
        assert_eq!((hold.state(), hold.is_released()), (HoldState::Held, false), "nothing changes");
        assert!(hold.begin_release(owner).unwrap().is_some());
        assert_eq!(hold.state(), HoldState::Released);
    });
}

#[test]
fn a_confirm_finds_that_the_node_is_gone() {
    virtual_clock::run(async {
        let ensemble = FakeEnsemble::new();
        let hold = ensemble.hold(&ensemble.session(), "/a", Owner::unique());
        ensemble.delete_node(hold.node());
        let lost = ErrorKind::Lost(LossReason::NodeDeleted);
        assert_eq!(hold.confirm().await.unwrap_err().kind(), lost);
        assert_eq!(hold.state(), HoldState::Lost(LossReason::NodeDeleted));
    });
}

#[test]
fn a_release_that_nobody_confirms_times_out_after_a_session_timeout() {
    virtual_clock::run(async {
        let (ensemble, start) = (FakeEnsemble::new(), clock::now());
        let hold = ensemble.hold(&ensemble.session(), "/a", Owner::unique());
        assert_eq!(hold.release().await.unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(clock::now().since(start), TIMEOUT);
        assert_eq!((hold.state(), hold.valid_for()), (HoldState::Released, Duration::ZERO));
        assert_eq!(hold.release().await.unwrap_err().kind(), ErrorKind::NotHeld);
    });
}

/// The outcome of a release that is under way while its session ends, and another one follows. `end` may do something
/// later.
fn kind_after<F: Future<Output = ()> + 'static>(
    end: impl FnOnce(FakeEnsemble, Arc<Session>, String) -> F,
) -> Result<(), ErrorKind> {
    virtual_clock::run(async move {
        let ensemble = FakeEnsemble::new();
        let session = ensemble.session();
        let hold = ensemble.hold(&session, "/a", Owner::unique());
        let release = hold.begin_release(Owner::current()).unwrap().unwrap();
        let later = end(ensemble.clone(), session.clone(), hold.node().to_owned());
        // What the pool and the attempt that owns the node do then.
        hold.grant.slot.set(SlotState::Open(ensemble.session()));
        hold.grant.holding.end(None, session.loss());
        let (released, ()) = tokio::join!(release, later);
        released.map_err(|error| error.kind())
    })
}

#[test]
fn a_release_is_confirmed_by_the_end_of_the_session_only_if_the_servers_have_said_so() {
    let closed = |nodes| {
        kind_after(move |_, session, _| {
            session.end(LossReason::SessionClosed);
            session.set_nodes(nodes);
            ready(())
        })
    };
    assert_eq!(closed(Nodes::Gone), Ok(()));
    assert_eq!(closed(Nodes::Left), Err(ErrorKind::Unreachable));
    let abandoned = kind_after(|_, session, _| {
        session.abandon_nodes();
        ready(())
    });
    assert_eq!(abandoned, Err(ErrorKind::Unreachable));
}

#[test]
fn a_release_is_not_confirmed_by_the_word_of_one_server_while_its_node_is_there() {
    let deleted_after = |time: Duration| {
        kind_after(move |ensemble, session, node| {
            session.end(LossReason::SessionExpired);
            async move {
                clock::sleep(time).await;
                assert!(ensemble.delete_node(&node));
            }
        })
    };
    assert_eq!(deleted_after(Duration::ZERO), Ok(()));
    assert_eq!(deleted_after(TIMEOUT / 2), Ok(()));
    assert_eq!(deleted_after(2 * TIMEOUT), Err(ErrorKind::Timeout));
}

#[test]
fn a_release_of_what_was_not_valid_any_more_says_at_once_that_it_is_lost() {
    virtual_clock::run(async {
        let ensemble = FakeEnsemble::new();
        let session = ensemble.session();
        let hold = ensemble.hold(&session, "/a", Owner::unique());
        clock::sleep(TIMEOUT).await;
        assert!(hold.valid_for().is_zero());
        let release = hold.begin_release(Owner::current()).unwrap().unwrap();
        session.end(LossReason::SessionExpired);
        hold.grant.slot.set(SlotState::Open(ensemble.session()));
        hold.grant.holding.end(None, session.loss());
        let before = clock::now();
        let lost = ErrorKind::Lost(LossReason::SessionExpired);
        assert_eq!(release.await.unwrap_err().kind(), lost);
        assert_eq!(clock::now(), before);
    });
}
