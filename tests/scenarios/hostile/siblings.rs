//! Other programs that do anything they like below the lock's node, on a real server.

use crate::support::{SOON, acquire, client_of, granted, operator, proxied_client, settled, soon};
use ground::wire::{Admin, Connection, Mode};
use ground::{Ensemble, Kind, Proxy, or_once_more};
use std::time::Duration;

const MARK: &str = "_c_8ad38a9e-3c92-4c6d-9a4f-0a3f4b1f7f10-lock-";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_megabyte_of_data_on_whoever_is_waited_for_is_read_once() {
    let ((client, proxy), operator, path) = (proxied_client().await, operator(), "/hostile/megabyte");
    operator.create_all(path, "");
    // The most data that a server accepts in one request.
    let data = vec![b'x'; (1 << 20) - 300];
    let first = operator.create_mode(&format!("{path}/{MARK}"), data, Mode::EphemeralSequential);
    proxy.record();
    let task = acquire(&client.mutex(path).unwrap());
    operator.wait_for_children(path, 2, SOON);
    assert!(ground::until(SOON, || read(&proxy) > 0));
    assert!(!ground::until(Duration::from_millis(50), || task.is_finished()));
    operator.delete(&first);
    soon(granted(task).await.release()).await.unwrap();
    assert_eq!(read(&proxy), 1);
    settled(&client).await;
    operator.wait_for_children(path, 0, SOON);
}

/// How many answers with a node's data have come.
fn read(proxy: &Proxy) -> usize {
    proxy.counts().replies(Kind::GetData)
}

/// The list is five times as long as the longest request that a server accepts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_children_are_listed_once_for_each_acquire() {
    const CHILDREN: usize = 100_000;
    const TOGETHER: usize = 2_000;
    // A separate server, whose nodes need no clean-up.
    let ensemble = Ensemble::builder().tick(Duration::from_secs(5)).start();
    let (address, path) = (ensemble.server(0).address(), "/hostile/crowd");
    let proxy = Proxy::before(ensemble.server(0));
    let client = client_of(&proxy.connect_string()).await;
    Admin::connect(address).create_all(path, "");
    // What is asked of such a list may take a busy machine so long.
    let mut stranger = Connection::open(address, SOON * 3).unwrap();
    stranger.set_patience(SOON);
    let name = |number: usize| format!("{path}/{MARK}nobody-{number:0>30}-");
    tokio::task::block_in_place(|| {
        for begin in (0..CHILDREN).step_by(TOGETHER) {
            let names: Vec<_> = (begin..begin + TOGETHER).map(name).collect();
            stranger.create_together(&names, Mode::Ephemeral).unwrap();
        }
    });
    let lock = client.mutex(path).unwrap();
    proxy.record();
    let hold = tokio::time::timeout(SOON * 3, lock.acquire()).await.expect("it is granted").unwrap();
    let first = stranger.create(format!("{path}/{MARK}").as_bytes(), b"", Mode::EphemeralSequential).unwrap();
    soon(hold.release()).await.unwrap();
    // Waiting behind another contender must not need a second listing.
    let task = acquire(&lock);
    assert!(ground::until(SOON, || read(&proxy) > 0));
    stranger.delete(&first).unwrap();
    soon(granted(task).await.release()).await.unwrap();
    let lists = proxy.counts().replies(Kind::GetChildren);
    // A machine that is busy with such lists may look once more.
    or_once_more((2..=3).contains(&lists), &format!("{lists} lists"));
    assert_eq!(client.stats().sessions, 1);
    settled(&client).await;
}
