//! A client learns the end of its session from one server. A leader without followers reports the end before it is committed.

use crate::support::{SESSION, SOON, client_of, comes, held, on_a_thread, soon};
use ground::wire::Admin;
use ground::{Direction, Ensemble, Proxy, connect_string, until};
use std::time::{Duration, Instant};
use zklock::ErrorKind;
use zklock::further::ConnectionState;

const TICK: Duration = Duration::from_millis(200);

/// Servers that tolerate the silence of other servers for five sessions.
fn patient_servers() -> Ensemble {
    let ensemble =
        Ensemble::builder().servers(3).tick(TICK).quorum_proxies(true).configure("syncLimit=100").start();
    ensemble.wait_until_whole(SOON * 6);
    ensemble
}

/// From now on the leader only hears its clients.
fn isolate_leader(ensemble: &Ensemble) -> Instant {
    let leader = ensemble.leader();
    for follower in ensemble.followers() {
        ensemble.quorum_link(follower, leader).freeze(Direction::Both);
    }
    Instant::now()
}

/// Kills the leader before its followers have heard anything, and waits until one of them leads.
fn leader_is_killed(ensemble: &Ensemble) -> Admin {
    let killed = ensemble.leader();
    let others = ensemble.followers();
    killed.kill();
    for other in &others {
        let link = ensemble.quorum_link(other, killed);
        // Drop what the leader has sent, too: the followers would log it.
        link.reset();
        link.thaw();
    }
    assert!(until(SOON * 2, || ensemble.leader_now().is_some()), "none of the two leads");
    Admin::connect(others[0].address())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_does_not_believe_it() {
    let ensemble = soon(on_a_thread(patient_servers)).await;
    let (near, far) = (Proxy::before(ensemble.followers()[0]), Proxy::before(ensemble.leader()));
    far.refuse(true);
    let client = client_of(&connect_string([near.address(), far.address()])).await;
    let hold = held(&client.mutex("/ended-and-released").unwrap()).await;
    let isolated = isolate_leader(&ensemble);
    // Late enough to be still waiting when the leader reports the end.
    tokio::time::sleep_until((isolated + SESSION * 2 / 5).into()).await;
    assert!(!hold.valid_for().is_zero());
    let node = hold.node().to_owned();
    let release = hold.release();
    let says_so = async {
        // By then the leader has ended a session that it has not heard of since. Asking it would keep the session alive.
        tokio::time::sleep_until((isolated + SESSION + 3 * TICK).into()).await;
        near.refuse(true);
        near.cut();
        far.refuse(false);
        comes(async || client.connection_state() == Some(ConnectionState::SessionLost)).await;
    };
    let (released, ()) = tokio::join!(release, says_so);
    assert_eq!(released.unwrap_err().kind(), ErrorKind::Timeout);
    let operator = on_a_thread(move || (leader_is_killed(&ensemble), ensemble)).await;
    assert!(operator.0.stat(&node).is_some(), "the session has been ended by the quorum");
}
