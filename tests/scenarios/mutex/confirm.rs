//! Promise 6: a caller that asks whether the lock is still held learns that it is, or how the hold ended, even if the
//! answer comes just when the hold is released or lost.

use crate::support::{SOON, client, operator, proxied_client, soon};
use ground::{Action, Gate, Kind, Trigger};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use zklock::{Error, ErrorKind, Hold, Lock, LossReason};

const ROUNDS: u64 = 300;

/// A task that asks until an answer says that the lock is no longer held, and returns that answer.
fn asks(hold: &Arc<Hold>) -> JoinHandle<Error> {
    let hold = hold.clone();
    tokio::spawn(async move {
        loop {
            if let Err(error) = hold.confirm().await {
                return error;
            }
        }
    })
}

/// The same for a task that keeps committing empty lists of writes.
fn writes(hold: &Arc<Hold>) -> JoinHandle<Error> {
    let hold = hold.clone();
    tokio::spawn(async move {
        loop {
            if let Err(error) = hold.guarded().commit().await {
                return error;
            }
        }
    })
}

/// Waits for a time that differs in each round.
fn in_the_middle(round: u64) {
    std::thread::sleep(Duration::from_micros(round * 37 % 1500));
}

async fn acquire(lock: &Lock) -> Arc<Hold> {
    Arc::new(soon(lock.acquire()).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_races_with_a_release_is_done_or_told_of_the_release() {
    let client = client().await;
    let lock = client.mutex("/confirm/release").unwrap();
    for round in 0..ROUNDS {
        let hold = acquire(&lock).await;
        let told = [asks(&hold), writes(&hold)];
        in_the_middle(round);
        soon(hold.release()).await.unwrap();
        for told in told {
            let error = soon(told).await.unwrap();
            assert_eq!(error.kind(), ErrorKind::NotHeld, "round {round}: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_races_with_a_loss_is_done_or_told_of_the_loss() {
    let (client, operator) = (client().await, operator());
    let lock = client.mutex("/confirm/loss").unwrap();
    for round in 0..ROUNDS / 3 {
        let hold = acquire(&lock).await;
        let told = [asks(&hold), writes(&hold)];
        in_the_middle(round);
        operator.delete(hold.node());
        for told in told {
            let error = soon(told).await.unwrap();
            assert_eq!(error.kind(), ErrorKind::Lost(LossReason::NodeDeleted), "round {round}: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirmation_that_waits_for_its_answer_is_told_of_a_release_at_once() {
    let (client, proxy) = proxied_client().await;
    let hold = acquire(&client.mutex("/confirm/waits").unwrap()).await;
    let gate = Gate::new();
    let asked = proxy.on(Trigger::reply(Kind::Multi).path(hold.node()).then(Action::Pause(gate.clone())));
    let told = asks(&hold);
    assert!(asked.wait(SOON));
    let releasing = hold.clone();
    let release = tokio::spawn(async move { releasing.release().await });
    // No reply can come through now, so this is not a server's answer.
    let error = soon(told).await.unwrap();
    assert_eq!(error.kind(), ErrorKind::NotHeld, "{error}");
    assert!(!release.is_finished());
    gate.open();
    soon(release).await.unwrap().unwrap();
}
