//! Any one of several locks: whichever message is the last or is lost, and in contest.

use crate::support::register::Register;
use crate::support::{SOON, client, operator, options, settled, soon};
use ground::{Direction, Proxy, shared};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use zklock::{Client, ErrorKind, Lock};

fn pair(client: &Client, root: &str) -> Lock {
    client.any(&["a", "b"].map(|name| client.mutex(&format!("{root}/{name}")).unwrap())).unwrap()
}

/// Rivals with overlapping lists, some of which want a single lock: no lock has two holders, and all finish.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rivals_with_overlapping_lists_never_hold_the_same_and_all_have_their_turns() {
    const PATHS: usize = 4;
    const TURNS: usize = 25;
    let registers: Arc<Vec<_>> = Arc::new((0..PATHS).map(|_| Register::of(1)).collect());
    let mut rivals = JoinSet::new();
    for rival in 0..9 {
        let (client, registers) = (client().await, registers.clone());
        rivals.spawn(async move {
            let path = |number: usize| format!("/any/contest/{}", number % PATHS);
            let locks: Vec<_> =
                (0..1 + rival % 3).map(|more| client.mutex(&path(rival + more)).unwrap()).collect();
            let choice = client.any(&locks).unwrap();
            for turn in 0..TURNS {
                let hold = match turn % 5 {
                    4 => soon(choice.try_acquire()).await.unwrap(),
                    _ => Some(soon(choice.acquire()).await.unwrap()),
                };
                let Some(hold) = hold.map(Arc::new) else { continue };
                let number: usize = hold.path().rsplit('/').next().unwrap().parse().unwrap();
                registers[number].enter(&hold, 1);
                tokio::task::yield_now().await;
                registers[number].leave();
                soon(hold.release()).await.unwrap();
            }
            settled(&client).await;
        });
    }
    soon(rivals.join_all()).await;
    for number in 0..PATHS {
        operator().wait_for_children(&format!("/any/contest/{number}"), 0, SOON);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_not_taken_for_locks_that_others_hold() {
    let proxy = Proxy::before(shared().server(0));
    // So long that the client still trusts its connection when the time is over.
    let options = options(&proxy.connect_string()).session_timeout(Duration::from_secs(8));
    let options = options.try_timeout(Duration::from_millis(200));
    let client = Client::connect(options).await.unwrap();
    let choice = pair(&client, "/any/outage");
    proxy.freeze(Direction::Both);
    let error = soon(choice.acquire_timeout(Duration::from_millis(300))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    proxy.thaw();
    soon(soon(choice.acquire()).await.unwrap().release()).await.unwrap();
}
