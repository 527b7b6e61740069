//! More locks at once than one session, or one request, can bear.

use crate::common::{client, operator, proxied_client, soon};
use std::time::Duration;
use tokio::task::JoinSet;

/// Long paths, so that few locks are enough: the library loses a session that watches more than 128 KiB of them.
fn paths(name: &str, count: usize, length: usize) -> Vec<String> {
    (0..count).map(|index| format!("/{name}/{}-{index:04}", "x".repeat(length))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_attempts_beyond_what_a_session_can_watch_get_another_and_survive_a_reconnect() {
    let paths = paths("crowd-waits", 300, 400);
    let (holder, (waiter, proxy)) = (client().await, proxied_client().await);
    let mut holds = Vec::new();
    for path in &paths {
        holds.push(holder.mutex(path).unwrap().acquire().await.unwrap());
    }
    let mut waits = JoinSet::new();
    for path in &paths {
        let lock = waiter.mutex(path).unwrap();
        waits.spawn(async move { soon(lock.acquire()).await.unwrap().release().await.unwrap() });
    }
    let admin = operator();
    for path in &paths {
        admin.wait_for_children(path, 2, Duration::from_secs(10));
    }
    let sessions = waiter.stats().sessions;
    assert!((2..=4).contains(&sessions), "150 KiB of watched paths stand in {sessions} sessions");
    proxy.reset();
    // With all watches still there: they shrink as holds are released.
    soon(waiter.mutex("/crowd-again").unwrap().acquire()).await.unwrap().release().await.unwrap();
    for hold in &holds {
        hold.release().await.unwrap();
    }
    while let Some(wait) = soon(waits.join_next()).await {
        wait.unwrap();
    }
    assert_eq!(waiter.stats().sessions, sessions, "a session was lost in the reconnect");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_holds_of_a_session_are_all_kept_alive() {
    // Their paths are more than a server takes in one request.
    let paths = paths("crowd-holds", 800, 1600);
    let client = client().await;
    let mut holds = Vec::new();
    for path in &paths {
        holds.push(soon(client.mutex(path).unwrap().acquire()).await.unwrap());
    }
    // Longer than any lease that is not renewed.
    let enough = client.session_timeout().unwrap();
    tokio::time::sleep(enough).await;
    for hold in &holds {
        assert!(hold.valid_for() > enough / 10, "{:?} {:?}", hold.state(), hold.valid_for());
    }
    client.close().await;
}
