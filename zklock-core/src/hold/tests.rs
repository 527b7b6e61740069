use super::*;
use crate::clock::virtual_clock;
use crate::fake::{FakeEnsemble, TIMEOUT};
use crate::heartbeat;
use crate::session::Nodes;

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
        // Timers are counted in milliseconds.
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

#[test]
fn a_release_is_confirmed_by_the_end_of_the_session_only_if_the_servers_have_said_so() {
    let kind_after = |end: &dyn Fn(&Session)| {
        virtual_clock::run(async move {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let hold = ensemble.hold(&session, "/a", Owner::unique());
            let release = hold.begin_release(Owner::current()).unwrap().unwrap();
            end(&session);
            // As the attempt that owns the node does then.
            hold.grant.holding.end(None, session.loss());
            release.await.map_err(|error| error.kind())
        })
    };
    assert_eq!(kind_after(&|session| session.end(LossReason::SessionExpired)), Ok(()));
    assert_eq!(kind_after(&Session::abandon_nodes), Err(ErrorKind::Unreachable));
    let closed = |session: &Session, nodes| {
        session.end(LossReason::SessionClosed);
        session.set_nodes(nodes);
    };
    assert_eq!(kind_after(&|session| closed(session, Nodes::Gone)), Ok(()));
    assert_eq!(kind_after(&|session| closed(session, Nodes::Left)), Err(ErrorKind::Unreachable));
}
