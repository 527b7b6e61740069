//! Any one of several locks that the caller holds already, or that linger.

use crate::support::{
    A_WHILE, SOON, acquire, client, comes, granted, held, on_the_shared_server, operator, proxied_client,
    says, settled, soon,
};
use ground::{Kind, until};
use std::time::Duration;
use zklock::{Client, ErrorKind, LockSpec};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_the_caller_holds_is_busy_and_a_reentrant_one_is_given_once_more() {
    let client = client().await;
    let [a, b] = ["a", "b"].map(|name| client.mutex(&format!("/any/own/{name}")).unwrap());
    let choice = client.any(&[a.clone(), b.clone()]).unwrap();
    let first = soon(choice.try_acquire()).await.unwrap().expect("free");
    let second = soon(choice.try_acquire()).await.unwrap().expect("the other is free");
    assert_eq!((first.path(), second.path()), ("/any/own/a", "/any/own/b"));
    assert!(soon(choice.try_acquire()).await.unwrap().is_none());
    // The release of either ends the wait.
    let waiter = acquire(&choice);
    soon(second.release()).await.unwrap();
    soon(granted(waiter).await.release()).await.unwrap();
    soon(first.release()).await.unwrap();
    let reentrant = client.lock(&LockSpec::mutex("/any/own/a").unwrap().reentrant(true)).unwrap();
    let outer = soon(reentrant.acquire()).await.unwrap();
    let again = soon(client.any(&[b.clone(), reentrant]).unwrap().acquire()).await.unwrap();
    assert_eq!(again.token(), outer.token());
    // Within its own write hold it may read, although that hold is in the queue.
    let write = client.lock(&LockSpec::write_lock("/any/own/w").unwrap().reentrant(true)).unwrap();
    let writer = soon(write.acquire()).await.unwrap();
    let reader = client.any(&[client.read_lock("/any/own/w").unwrap()]).unwrap();
    let reader = soon(reader.try_acquire()).await.unwrap().expect("it is the writer's");
    soon(reader.release()).await.unwrap();
    soon(writer.release()).await.unwrap();
    // A caller that could wait for another lock does not wait for one that only its owner can release.
    let other = crate::support::client().await;
    let busy = held(&other.mutex("/any/own/b").unwrap()).await;
    let in_vain = soon(choice.acquire_timeout(A_WHILE)).await.unwrap_err();
    says(&in_vain, ErrorKind::Timeout, &["none of the 2 locks"]);
    let deadlock = soon(client.any(&[a]).unwrap().acquire()).await.unwrap_err();
    says(&deadlock, ErrorKind::Deadlock, &["/any/own/a", "reentrant"]);
    soon(again.release()).await.unwrap();
    soon(outer.release()).await.unwrap();
    soon(busy.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reentrant_one_whose_lease_ended_before_its_owner_went_on_is_acquired_anew() {
    let (path, other, operator) = ("/any/stalled", client().await, operator());
    let held_by_other = held(&other.mutex(path).unwrap()).await;
    let t = Duration::from_secs(1);
    let options = on_the_shared_server().session_timeout(t).heartbeat(false);
    let client = Client::connect(options).await.unwrap();
    let reentrant = client.lock(&LockSpec::mutex(path).unwrap().reentrant(true)).unwrap();
    let choice = client.any(&[reentrant]).unwrap();
    let mut acquiring = Box::pin(async move { choice.acquire_timeout(SOON).await });
    tokio::select! {
        _ = &mut acquiring => panic!("another holds it"),
        () = comes(async || operator.children(path).len() == 2) => {}
    }
    soon(held_by_other.release()).await.unwrap();
    assert!(until(SOON, || client.stats().grants == 1));
    // The owner is held up past the lease, which nothing prolongs.
    std::thread::sleep(t);
    let (sender, ended) = std::sync::mpsc::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || sender.send(runtime.block_on(acquiring)));
    let hold = ended.recv_timeout(SOON).expect("it takes for ever").unwrap();
    assert!(!hold.valid_for().is_zero());
    drop(hold);
    settled(&client).await;
}

/// On one thread, so that the deletion cannot be sent before the try begins.
#[tokio::test]
async fn one_that_was_let_go_just_now_is_free() {
    let client = client().await;
    let choice = client.any(&[client.mutex("/any/let-go/a").unwrap()]).unwrap();
    let hold = soon(choice.acquire()).await.unwrap();
    drop(hold);
    let again = soon(choice.try_acquire()).await.unwrap().expect("nobody else wants it");
    soon(again.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lingers_is_taken_without_a_request() {
    let (client, proxy) = proxied_client().await;
    let lingering = LockSpec::mutex("/any/linger/b").unwrap().linger(Duration::from_secs(60));
    let lingering = client.lock(&lingering).unwrap();
    let first = held(&lingering).await;
    soon(first.release()).await.unwrap();
    let choice = client.any(&[client.mutex("/any/linger/a").unwrap(), lingering]).unwrap();
    proxy.record();
    let hold = soon(choice.try_acquire()).await.unwrap().expect("it is kept");
    assert_eq!((hold.path(), hold.token()), ("/any/linger/b", first.token()));
    assert_eq!(proxy.counts().requests(Kind::Create), 0);
    assert_eq!(operator().children("/any/linger/b").len(), 1);
    // While it is held, the other is free.
    let other = soon(choice.try_acquire()).await.unwrap().expect("it is free");
    assert_eq!(other.path(), "/any/linger/a");
    soon(other.release()).await.unwrap();
    soon(hold.release()).await.unwrap();
}
