//! Reads of a hold, which are the basis for decisions after an uncertain write (see `fenced`).

use crate::support::{SOON, client_of, expire_session, operator, proxied_client, says, soon};
use ground::{Direction, Ensemble};
use std::time::Duration;
use zklock::{ErrorKind, LossReason};

fn of(node: Option<zklock::further::NodeData>) -> Option<(Vec<u8>, i32)> {
    node.map(|node| (node.data, node.version))
}

fn is(data: &[u8], version: i32) -> Option<(Vec<u8>, i32)> {
    Some((data.to_vec(), version))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_reads_nodes_as_long_as_its_client_is_open() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let hold = soon(client.mutex("/read/open").unwrap().acquire()).await.unwrap();
    let state = "/read/open-state";
    assert_eq!(of(soon(hold.read(state)).await.unwrap()), None);
    operator.create(state, "one");
    assert_eq!(of(soon(hold.read(state)).await.unwrap()), is(b"one", 0));
    says(&soon(hold.read("state")).await.unwrap_err(), ErrorKind::InvalidInput, &["is relative"]);
    soon(hold.guarded().set_data(state, b"two", Some(0)).commit()).await.unwrap();
    assert_eq!(of(soon(hold.read(state)).await.unwrap()), is(b"two", 1));
    expire_session(&proxy);
    assert_eq!(of(soon(hold.read(state)).await.unwrap()), is(b"two", 1));
    assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::SessionExpired)));
    let _ = hold.release().await;
    assert_eq!(of(soon(hold.read(state)).await.unwrap()), is(b"two", 1));
    proxy.freeze(Direction::Both);
    let error = tokio::time::timeout(SOON * 3, hold.read(state)).await.expect("it is bounded").unwrap_err();
    says(&error, ErrorKind::Unreachable, &[state]);
    proxy.thaw();
    client.close().await.unwrap();
    assert_eq!(soon(hold.read(state)).await.unwrap_err().kind(), ErrorKind::Closed);
}

/// A server that lags would answer from its old state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_is_as_new_as_what_the_quorum_has_committed() {
    let tick = Duration::from_secs(2);
    let ensemble = Ensemble::builder().servers(3).tick(tick).quorum_proxies(true).start();
    ensemble.wait_until_whole(SOON * 6);
    let _talk = ensemble.keep_talking();
    let (leader, follower) = (ensemble.leader(), ensemble.followers()[0]);
    let client = client_of(&follower.address().to_string()).await;
    let writer = client_of(&leader.address().to_string()).await;
    let hold = soon(client.mutex("/read/lag").unwrap().acquire()).await.unwrap();
    let writing = soon(writer.mutex("/read/writer").unwrap().acquire()).await.unwrap();
    soon(writing.guarded().create("/read/state", b"old").commit()).await.unwrap();
    assert_eq!(of(soon(hold.read("/read/state")).await.unwrap()), is(b"old", 0));
    let link = ensemble.quorum_link(follower, leader);
    link.freeze(Direction::Both);
    soon(writing.guarded().set_data("/read/state", b"new", None).commit()).await.unwrap();
    let read = async { hold.read("/read/state").await };
    let thaw = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        link.thaw();
    };
    // The read may fail, if the follower is so late that the session is over, but it never returns the old data.
    let (node, ()) = tokio::join!(read, thaw);
    match node {
        Ok(node) => assert_eq!(of(node), is(b"new", 1)),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}"),
    }
}
