//! More locks at once than one session, or one request, can bear.

use crate::support::{SESSION, SOON, all_held, client, operator, proxied_client, says, soon};
use ground::wire::Admin;
use ground::{Ensemble, Kind, Proxy, or_once_more, shared};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use zklock::{Client, ClientOptions, ErrorKind, LockSpec};

/// Long paths, so that few locks are enough.
fn paths(name: &str, count: usize, length: usize) -> Vec<String> {
    (0..count).map(|index| format!("/{name}/{}-{index:04}", "x".repeat(length))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_attempts_with_more_watches_than_fit_into_a_request_survive_a_reconnect_in_one_session() {
    let paths = paths("crowd-waits", 300, 400);
    // Nothing here is about the end of a session, which a busy machine would bring. A server grants twenty ticks at most.
    let ensemble = Ensemble::builder().tick(Duration::from_secs(2)).start();
    let long = |hosts: &str| ClientOptions::new(hosts).session_timeout(Duration::from_secs(30));
    let proxy = Proxy::before(ensemble.server(0));
    let holder = Client::connect(long(&ensemble.connect_string())).await.unwrap();
    let waiter = Client::connect(long(&proxy.connect_string())).await.unwrap();
    let holds = all_held(&holder, &paths).await;
    let mut waits = JoinSet::new();
    for path in &paths {
        let lock = waiter.mutex(path).unwrap();
        waits.spawn(async move { soon(lock.acquire()).await.unwrap().release().await.unwrap() });
    }
    let admin = Admin::connect(ensemble.server(0).address());
    for path in &paths {
        admin.wait_for_children(path, 2, SOON);
    }
    assert_eq!(waiter.stats().sessions, 1, "150 KiB of watched paths stand in one session");
    proxy.reset();
    // The client must reconnect while all watches are still wanted, so before any hold is released.
    soon(waiter.mutex("/crowd-again").unwrap().acquire()).await.unwrap().release().await.unwrap();
    for hold in &holds {
        hold.release().await.unwrap();
    }
    while let Some(wait) = soon(waits.join_next()).await {
        wait.unwrap();
    }
    assert_eq!(waiter.stats().sessions, 1, "the session was lost in the reconnect");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_holds_of_a_session_are_all_kept_alive() {
    // Their paths are more than a server takes in one request.
    let paths = paths("crowd-holds", 800, 1600);
    let client = client().await;
    let holds = all_held(&client, &paths).await;
    // Longer than any lease that is not renewed.
    let enough = client.session_timeout().unwrap();
    tokio::time::sleep(enough).await;
    // A process that stands still for longer than the lease has lost it.
    let late = holds.iter().find(|hold| hold.valid_for() <= enough / 10);
    or_once_more(late.is_none(), &format!("{late:?}"));
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_fills_more_than_a_heartbeats_request_does_not_push_out_the_others() {
    let client = client().await;
    let small = soon(client.mutex("/crowd-small").unwrap().acquire()).await.unwrap();
    let path = format!("/{}", "s".repeat(1000));
    let lock = client.lock(&LockSpec::semaphore(&path, 256).unwrap().permits(256)).unwrap();
    let huge = soon(lock.acquire()).await.unwrap();
    let enough = client.session_timeout().unwrap();
    let begun = Instant::now();
    while begun.elapsed() < enough * 2 {
        for hold in [&small, &huge] {
            // A process that stands still for longer than the lease has lost it.
            or_once_more(!hold.valid_for().is_zero(), &format!("{:?}: {hold:?}", begun.elapsed()));
        }
        tokio::time::sleep(enough / 40).await;
    }
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_evicted_node_costs_its_session_a_few_requests_and_a_deleted_directory_one_for_each() {
    const HOLDS: usize = 400;
    let (client, proxy) = proxied_client().await;
    let paths: Vec<_> = ["evicted", "deleted"]
        .into_iter()
        .flat_map(|what| (0..HOLDS / 2).map(move |index| format!("/crowd-{what}/{index}")))
        .collect();
    let holds = all_held(&client, &paths).await;
    let admin = operator();
    // The heartbeat covers all of them in one request now.
    tokio::time::sleep(SESSION / 4).await;
    for evicted in [vec![7], vec![100, 101, 150], (HOLDS / 2..HOLDS).collect()] {
        let begun = Instant::now();
        proxy.record();
        for index in &evicted {
            admin.delete(holds[*index].node());
        }
        for index in &evicted {
            soon(holds[*index].lost()).await.unwrap();
        }
        let checks = proxy.counts().requests(Kind::Multi);
        println!("{} of {HOLDS} nodes deleted: {checks} checks", evicted.len());
        // The limit includes the heartbeats of the time that this takes: on a quiet machine, or now if that is longer.
        let heartbeats = begun.elapsed().div_duration_f64(SESSION / 24) as usize;
        let (cost, quiet) = if evicted.len() < 5 { (4, 6) } else { (HOLDS, 20) };
        let at_most = cost + heartbeats.max(quiet);
        assert!(checks <= at_most, "{checks} requests for {} deleted nodes", evicted.len());
    }
    let kept = holds.iter().filter(|hold| !hold.valid_for().is_zero()).count();
    assert_eq!(kept, HOLDS / 2 - 4);
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permits_that_do_not_fit_into_one_request_are_refused_and_the_most_that_fit_are_granted() {
    let chroot = format!("/{}", "c".repeat(1000));
    operator().create_all(&chroot, "");
    let options = ClientOptions::new(&shared().connect_string()).session_timeout(SESSION);
    let options = options.chroot(&chroot).identity(&"i".repeat(1024));
    let client = soon(Client::connect(options)).await.unwrap();
    let semaphore = |length: usize| {
        let path = format!("/{}", "p".repeat(length));
        client.lock(&LockSpec::semaphore(&path, 256).unwrap().permits(256))
    };
    let error = semaphore(1700).unwrap_err();
    says(&error, ErrorKind::InvalidInput, &["256 permits", "too many for one request", "ask for fewer"]);
    let hold = soon(semaphore(1680).unwrap().acquire()).await.unwrap();
    let enough = client.session_timeout().unwrap();
    tokio::time::sleep(enough).await;
    or_once_more(!hold.valid_for().is_zero(), &format!("{:?}", hold.state()));
    client.close().await.unwrap();
}
