//! The simple way to wait: every waiter watches the list of children. The promises are the same, but there are more
//! notifications.

use crate::support::contest::Contest;
use crate::support::figures::{fired, watched};
use crate::support::queue::{acquire, granted, held};
use crate::support::register::{PATIENT, clients, patient_clients};
use crate::support::{SOON, soon};
use ground::wire::Admin;
use ground::{Ensemble, Server, until};
use std::collections::VecDeque;
use std::time::Duration;
use zklock::face::Watching;
use zklock::further::Foreign;
use zklock::{Client, Lock, LockSpec};

fn mutex(client: &Client, path: &str, watching: Watching) -> Lock {
    // Otherwise the holder would watch the children, too, to find contenders that cannot see it.
    let spec = LockSpec::mutex(path).unwrap().watching(watching).foreign(Foreign::IgnoreUnknown);
    client.lock(&spec).unwrap()
}

/// The number of notifications for each release, one holder after the other, until the queue is empty.
async fn releases(clients: &[Client], server: &Server, watching: Watching) -> Vec<u64> {
    let path = format!("/woken-{watching:?}");
    let operator = Admin::connect(server.address());
    let mut tasks = VecDeque::new();
    for (number, client) in clients.iter().enumerate() {
        tasks.push_back(acquire(&mutex(client, &path, watching)));
        let queued = || operator.stat(&path).map_or(0, |stat| stat.num_children);
        assert!(until(SOON, || queued() == number as i32 + 1));
    }
    let mut counted = Vec::new();
    for waiting in (0..clients.len()).rev() {
        let hold = granted(tasks.pop_front().unwrap()).await;
        // All waiters have looked, and will be notified of the next release.
        assert!(until(SOON, || watched(server) == waiting), "{} of {waiting} watch", watched(server));
        let before = fired(server);
        soon(hold.release()).await.unwrap();
        counted.push(fired(server) - before);
    }
    counted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_wakes_everybody_where_children_are_watched_and_two_where_the_nearest_are() {
    const WAITERS: usize = 40;
    // A server of its own: the figures are those of the whole server.
    let ensemble = Ensemble::builder().max_session_timeout(PATIENT).start();
    let clients = patient_clients(&ensemble.connect_string(), WAITERS + 1).await;
    let children = releases(&clients, ensemble.server(0), Watching::Children).await;
    let nearest = releases(&clients, ensemble.server(0), Watching::Nearest).await;
    assert_eq!(children, (0..=WAITERS as u64).rev().collect::<Vec<_>>());
    assert_eq!(nearest, [vec![2; WAITERS - 1], vec![1, 0]].concat());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_watches_no_more_even_if_its_turn_comes_at_once() {
    let ensemble = Ensemble::builder().start();
    let (path, server, clients) =
        ("/woken-at-once", ensemble.server(0), clients(&ensemble.connect_string(), 2).await);
    let operator = Admin::connect(server.address());
    let first = held(&mutex(&clients[0], path, Watching::Children)).await;
    let second = acquire(&mutex(&clients[1], path, Watching::Children));
    operator.wait_for_children(path, 2, SOON);
    soon(first.release()).await.unwrap();
    let _second = granted(second).await;
    assert!(until(SOON, || watched(server) == 0), "{} watch", watched(server));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_let_nobody_in_beside_the_holder() {
    let contest = Contest {
        path: "/children/faults",
        places: &[""],
        limit: 1,
        clients: 6,
        contenders: 12,
        lock: |client, path, _| (mutex(client, path, Watching::Children), 1),
        lasts: Duration::from_millis(2),
        meet: 1,
    };
    let (register, _) = contest.under_faults(Duration::from_secs(3)).await;
    register.assert_growing();
}
