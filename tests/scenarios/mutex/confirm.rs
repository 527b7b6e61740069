//! Promise 6: a caller that asks whether the lock is still held learns that it is, or how the hold ended, even if the
//! answer comes just when the hold is released or lost.

use crate::support::{SOON, client, operator, proxied_client, soon};
use ground::{Action, Gate, Kind, Trigger};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use zklock::{Error, ErrorKind, Hold, Lock, LossReason};

/// In each fourth the hold is lost.
const ROUNDS: u64 = 400;

/// A task that asks, or commits empty lists of writes, until it learns that the lock is no longer held.
fn asks(hold: &Arc<Hold>, writes: bool) -> JoinHandle<Error> {
    let hold = hold.clone();
    tokio::spawn(async move {
        loop {
            let told = if writes { hold.guarded().commit().await.err() } else { hold.confirm().await.err() };
            if let Some(error) = told {
                return error;
            }
        }
    })
}

async fn acquire(lock: &Lock) -> Arc<Hold> {
    Arc::new(soon(lock.acquire()).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_races_with_a_release_or_a_loss_is_done_or_told_of_it() {
    let (client, operator) = (client().await, operator());
    let lock = client.mutex("/confirm/races").unwrap();
    for round in 0..ROUNDS {
        let hold = acquire(&lock).await;
        let told = [false, true].map(|writes| asks(&hold, writes));
        // For a time that differs in each round.
        std::thread::sleep(Duration::from_micros(round * 37 % 1500));
        let end = if round % 4 == 0 {
            operator.delete(hold.node());
            ErrorKind::Lost(LossReason::NodeDeleted)
        } else {
            soon(hold.release()).await.unwrap();
            ErrorKind::NotHeld
        };
        for told in told {
            let error = soon(told).await.unwrap();
            assert_eq!(error.kind(), end, "round {round}: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirmation_that_waits_for_its_answer_is_told_of_a_release_at_once() {
    let (client, proxy) = proxied_client().await;
    let hold = acquire(&client.mutex("/confirm/waits").unwrap()).await;
    let gate = Gate::new();
    let asked = proxy.on(Trigger::reply(Kind::Multi).path(hold.node()).then(Action::Pause(gate.clone())));
    let told = asks(&hold, false);
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
