//! Promise 5 beside a leader that was deposed while it was paused: when it wakes it has not noticed, and answers from
//! its old state.

use crate::support::queue::acquire;
use crate::support::{settled, soon};
use ground::{Action, Ensemble, Kind, Message, Proxy, Server, Side, Trigger, connect_string, until};
use std::time::Duration;
use zklock::{Client, ClientOptions};

/// How long an election may take on a busy machine.
const ELECTION: Duration = Duration::from_secs(60);
const PATH: &str = "/locks/report";

async fn client_of(hosts: &str) -> Client {
    let options = ClientOptions::new(hosts).session_timeout(Duration::from_secs(20));
    soon(Client::connect(options)).await.unwrap()
}

/// Whether one of them leads the other.
fn are_a_quorum(servers: &[&Server]) -> bool {
    let mut modes: Vec<_> = servers.iter().filter_map(|server| server.mode()).collect();
    modes.sort();
    modes == ["follower", "leader"]
}

/// Whether it still takes itself for the leader.
fn old_leads(old: &Server) -> bool {
    old.mode().as_deref() == Some("leader")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_only_the_new_quorum_knows_is_found_behind_a_leader_that_was_deposed() {
    let ensemble =
        Ensemble::builder().servers(3).tick(Duration::from_secs(2)).configure("syncLimit=2").start();
    ensemble.wait_until_whole(ELECTION);
    let (old, followers) = (ensemble.leader(), ensemble.followers());
    let (before_follower, before_old) = (Proxy::before(followers[0]), Proxy::before(old));
    before_old.refuse(true);
    let client = client_of(&connect_string([before_follower.address(), before_old.address()])).await;
    let witness = client_of(&connect_string([followers[1].address()])).await;
    let lock = client.mutex(PATH).unwrap();
    soon(soon(lock.acquire()).await.unwrap().release()).await.unwrap();

    before_follower.record();
    old.pause();
    assert!(until(ELECTION, || are_a_quorum(&followers)), "no new quorum");
    // The client must not ask for anything now: a server that is behind what the client has seen would refuse it.
    let is_back = |message: &Message| message.side == Side::Reply && message.kind == Kind::Connect;
    assert!(until(ELECTION, || before_follower.messages().iter().any(is_back)), "the client is not back");
    let lost = before_follower.on(Trigger::request(Kind::Create).path(PATH).then(Action::DropReplyAndReset));
    before_follower.refuse(true);
    before_old.refuse(false);
    before_old.record();
    old.resume();
    let waiting = acquire(&lock);
    assert!(lost.wait(ELECTION), "its node was never created");
    // It asks the old leader, which soon gives up by itself. Until then nobody else is there to be asked.
    let asks = |message: &Message| [Kind::Sync, Kind::Multi].contains(&message.kind);
    let has_asked =
        || before_old.messages().iter().any(|message| message.side == Side::Request && asks(message));
    assert!(until(ELECTION, || has_asked() && !old_leads(old)), "the old leader was never asked");
    before_follower.refuse(false);
    let granted = tokio::time::timeout(ELECTION, waiting).await.expect("nothing blocks it").unwrap();
    let hold = granted.unwrap();
    let queue = soon(witness.mutex(PATH).unwrap().contenders()).await.unwrap();
    let nodes: Vec<_> = queue.iter().map(|contender| contender.node.as_str()).collect();
    assert_eq!(nodes, [hold.node()]);
    soon(hold.release()).await.unwrap();
    settled(&client).await;
    soon(soon(witness.mutex(PATH).unwrap().acquire()).await.unwrap().release()).await.unwrap();
}
