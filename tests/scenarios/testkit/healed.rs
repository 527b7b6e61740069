//! A node that reappears after its deletion was confirmed does not block anybody for long.

use crate::support::embedded::{client, settled, soon};
use zklock_core::Client;
use zklock_testkit::{Fault, Kind, Server};

const PATH: &str = "/locks/report";

/// A server on which the node of a lock that this client has released has reappeared.
async fn with_an_orphan() -> (Server, Client) {
    let server = Server::start().unwrap();
    let client = client(&server).await;
    let hold = soon(client.mutex(PATH).unwrap().acquire()).await.unwrap();
    let lost = server.inject(Fault::bring_back(Kind::Delete));
    soon(hold.release()).await.unwrap();
    assert_eq!(lost.strikes(), 1);
    assert_eq!(server.children(PATH).unwrap().len(), 1, "it is there again");
    (server, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_session_that_owns_it_deletes_it_when_it_queues_again() {
    let (server, client) = with_an_orphan().await;
    let hold = soon(client.mutex(PATH).unwrap().acquire()).await.unwrap();
    assert_eq!(server.children(PATH).unwrap().len(), 1, "there is one node, that of the hold");
    soon(hold.release()).await.unwrap();
    settled(&client).await;
    assert_eq!(server.children(PATH).unwrap_or_default(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_session_that_owns_it_deletes_it_once_it_is_connected_again() {
    let (server, client) = with_an_orphan().await;
    let other = crate::support::embedded::client(&server).await;
    let waiting = {
        let lock = other.mutex(PATH).unwrap();
        tokio::spawn(async move { lock.acquire().await })
    };
    // Deletions get lost when the leader changes, which also breaks all connections.
    server.cut();
    let hold = soon(waiting).await.unwrap().unwrap();
    soon(hold.release()).await.unwrap();
    drop(client);
}
