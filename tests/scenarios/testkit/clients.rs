//! Every fault, with a zklock client: the client gets the lock, once, and leaves nothing.

use std::time::Duration;

use crate::support::embedded::{client, queue_of, settled, soon, struck};
use tokio::task::JoinSet;
use zklock_core::{Client, Hold, HoldState};
use zklock_testkit::{Fault, Injected, Kind, Server};

const PATH: &str = "/locks/report";
const LATE: Duration = Duration::from_millis(200);

type Make = fn(Kind) -> Fault;

/// All faults except a dropped reply, which a client cannot notice on a connection that goes on.
const FAULTS: [(&str, Make); 6] = [
    ("lose-request", Fault::lose_request),
    ("cut-before-reply", Fault::cut_before_reply),
    ("cut-after-reply", Fault::cut_after_reply),
    ("delay-reply", |kind| Fault::delay_reply(kind, LATE)),
    ("freeze", Fault::freeze),
    ("expire", Fault::expire),
];

/// Sets the fault, does the work at which it strikes, and ends a freeze after it has struck.
async fn through<T>(server: &Server, fault: Fault, work: impl Future<Output = T>) -> (T, Injected) {
    let injected = server.inject(fault.below(PATH));
    let thawed = async {
        struck(&injected).await;
        server.thaw();
    };
    let (done, ()) = tokio::join!(soon(work), thawed);
    (done, injected)
}

/// Asserts that the hold has the only node, of its client's session, which is the first unless the fault ended that.
async fn is_right(server: &Server, client: &Client, hold: &Hold, fault: &str) {
    // The client may have been disconnected just now, or still be about to notice that.
    soon(hold.confirm()).await.unwrap();
    soon(async {
        while hold.state() == HoldState::AtRisk {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let nodes = server.children(PATH).unwrap();
    assert!(nodes.len() == 1 && hold.node().ends_with(&nodes[0]), "{fault}: {nodes:?} for {hold:?}");
    assert_eq!(server.owner(hold.node()), client.session_id(), "{fault}");
    assert_eq!(client.stats().sessions, if fault == "expire" { 2 } else { 1 }, "{fault}");
    assert!(!matches!(hold.state(), HoldState::Lost(_)), "{fault}: {hold:?}");
}

async fn acquires_through((name, fault): (&str, Make), kind: Kind) {
    let server = Server::start().unwrap();
    server.put(PATH, "").unwrap();
    let client = client(&server).await;
    let lock = client.mutex(PATH).unwrap();
    let (hold, injected) = through(&server, fault(kind), lock.acquire()).await;
    let hold = hold.unwrap_or_else(|error| panic!("{name} at {kind}: {error}"));
    settled(&client).await;
    is_right(&server, &client, &hold, name).await;
    assert_eq!(injected.strikes(), 1, "{name} at {kind}");
    soon(hold.release()).await.unwrap();
    queue_of(&server, PATH, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_comes_through_every_fault_with_one_node() {
    let mut cases = JoinSet::new();
    for fault in FAULTS {
        cases.spawn(acquires_through(fault, Kind::Create));
        cases.spawn(acquires_through(fault, Kind::GetChildren));
    }
    cases.join_all().await;
}
