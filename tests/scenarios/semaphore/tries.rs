//! A try succeeds if there are permits that nobody ahead waits for. Otherwise it leaves nothing.

use crate::support::permits::{has, head, semaphore, take};
use crate::support::{client, operator, options, proxied_client, settled, soon};
use ground::wire::Mode;
use ground::{Kind, Message, shared};
use std::time::Duration;
use zklock::{Client, Hold};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_right_after_a_grant_in_the_same_client_finds_the_permits_that_are_free() {
    let (client, operator, path) = (client().await, operator(), "/semaphore/try");
    for _ in 0..20 {
        let mut holds: Vec<Hold> = vec![soon(semaphore(&client, path, 4, 1).acquire()).await.unwrap()];
        for permits in [1, 2] {
            let hold = soon(semaphore(&client, path, 4, permits).try_acquire()).await.unwrap();
            holds.push(hold.expect("there are enough, and nobody is in the queue"));
        }
        assert!(soon(semaphore(&client, path, 4, 1).try_acquire()).await.unwrap().is_none());
        for hold in &holds {
            soon(hold.release()).await.unwrap();
        }
    }
    settled(&client).await;
    has(&operator, path, 0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_does_not_overtake_who_waits_for_more() {
    let (client, operator, path) = (client().await, operator(), "/semaphore/try-behind");
    let holds = take(&client, path, 3, 1).await;
    let head = head(path, 3, 3).await;
    let (other, proxy) = proxied_client().await;
    proxy.record();
    // Two permits are free, but the waiter is ahead.
    assert!(soon(semaphore(&other, path, 3, 1).try_acquire()).await.unwrap().is_none());
    settled(&other).await;
    // It took no permit, which would have woken the head, and left no watch.
    let asked = proxy.requests();
    let takes = |it: &Message| it.kind == Kind::Create && it.path.contains("/leases");
    assert!(asked.iter().all(|it| !it.watch && !takes(it)), "{asked:?}");
    assert_eq!(proxy.counts().asked, [Kind::Create, Kind::GetChildren, Kind::GetChildren, Kind::Delete]);
    assert_eq!(head.woken(), 0);
    drop(holds);
    drop(head.granted().await);
    has(&operator, path, 0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_behind_one_that_takes_no_permit_is_told_that_it_is_busy_when_its_time_is_over() {
    let (operator, path) = (operator(), "/semaphore/try-behind-nobody");
    let options = options(&shared().connect_string()).try_timeout(Duration::from_millis(300));
    let client = soon(Client::connect(options)).await.unwrap();
    drop(take(&client, path, 3, 1).await);
    settled(&client).await;
    // A contender whose process is paused, or is dead while its session still lives.
    let node = format!("{path}/locks/_c_01234567-89ab-4cde-8f01-23456789abcd-lock-");
    let node = operator.create_mode(&node, "", Mode::EphemeralSequential);
    assert!(soon(semaphore(&client, path, 3, 1).try_acquire()).await.unwrap().is_none());
    settled(&client).await;
    operator.delete(&node);
    let hold = soon(semaphore(&client, path, 3, 1).try_acquire()).await.unwrap();
    soon(hold.expect("nobody is before it").release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_tries_at_once_as_many_succeed_as_there_are_permits() {
    let (one, other) = (client().await, client().await);
    for (path, clients, limit, succeed) in [
        ("/semaphore/try-twice", vec![&one, &other], 100, 2),
        ("/semaphore/try-many-at-once", vec![&one; 8], 5, 5),
    ] {
        for round in 0..50 {
            let begin = |client: &&Client| {
                let lock = semaphore(client, path, limit, 1);
                tokio::spawn(async move { lock.try_acquire().await })
            };
            let mut holds = Vec::new();
            for task in clients.iter().map(begin).collect::<Vec<_>>() {
                holds.extend(soon(task).await.unwrap().unwrap());
            }
            assert_eq!(holds.len(), succeed, "of {limit} permits, in round {round}");
            for hold in &holds {
                soon(hold.release()).await.unwrap();
            }
        }
        settled(&one).await;
        settled(&other).await;
        has(&operator(), path, 0, 0);
    }
}
