//! Promise 2: tokens grow from writer to writer, from a writer to the readers after it, and from readers to the next
//! writer. Among readers, any order is allowed. A write guarded by a hold is refused once the hold is lost.

use crate::support::register::{Register, clients};
use crate::support::{SOON, client, expire_session, operator, proxied_client, soon};
use ground::{Action, Gate, Kind, Proxy, Trigger, shared};
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};
use zklock_core::{Client, ErrorKind, Hold, Lock, LossReason};

async fn granted(lock: &Lock) -> (u64, Hold) {
    let hold = soon(lock.acquire()).await.unwrap();
    (hold.token().value(), hold)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_grow_over_both_sides_over_sessions_and_over_the_deletion_of_the_directory() {
    let (client, proxy) = proxied_client().await;
    let (operator, path) = (operator(), "/rwlock/tokens");
    let (read, write) = (client.read(path).unwrap(), client.write(path).unwrap());
    let mut tokens = Vec::new();
    for round in 0..3 {
        for lock in [&read, &write, &write, &read] {
            let (token, hold) = granted(lock).await;
            let stat = operator.stat(hold.node()).unwrap();
            assert_eq!(token, u64::try_from(stat.czxid).unwrap());
            soon(hold.release()).await.unwrap();
            tokens.push(token);
        }
        let (token, stale) = granted(if round == 1 { &write } else { &read }).await;
        tokens.push(token);
        if round == 2 {
            expire_session(&proxy);
            assert_eq!(soon(stale.lost()).await, Some(LossReason::SessionExpired));
        } else {
            operator.delete_tree(path);
            assert_eq!(soon(stale.lost()).await, Some(LossReason::NodeDeleted));
        }
    }
    tokens.push(granted(&write).await.0);
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:x?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_guarded_by_either_side_is_refused_once_that_is_lost() {
    let (client, other, operator) = (client().await, client().await, operator());
    let path = "/rwlock/guarded";
    operator.create_all("/rwlock/guarded-state", "0");
    let readers = [&client, &other].map(|client| client.read(path).unwrap());
    let (_, one) = granted(&readers[0]).await;
    let (_, two) = granted(&readers[1]).await;
    one.guarded().set_data("/rwlock/guarded-state", b"1", None).commit().await.unwrap();
    operator.delete(one.node());
    let refused = one.guarded().set_data("/rwlock/guarded-state", b"2", None).commit().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Lost(LossReason::NodeDeleted));
    // The other reader still holds.
    two.guarded().set_data("/rwlock/guarded-state", b"3", None).commit().await.unwrap();
    soon(two.release()).await.unwrap();
    let (_, write) = granted(&client.write(path).unwrap()).await;
    operator.delete(write.node());
    let refused = write.guarded().set_data("/rwlock/guarded-state", b"4", None).commit().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Lost(LossReason::NodeDeleted));
    assert_eq!(operator.data("/rwlock/guarded-state"), b"3");
}

/// A waiter in the queue, behind its own proxy.
struct Queued {
    _client: Client,
    proxy: Proxy,
    task: JoinHandle<(u64, Hold)>,
}

impl Queued {
    async fn new(path: &str, side: fn(&Client, &str) -> Lock) -> Self {
        let (client, proxy) = proxied_client().await;
        let lock = side(&client, path);
        let watches = proxy.on(Trigger::reply(Kind::GetData));
        let task = tokio::spawn(async move { granted(&lock).await });
        assert!(watches.wait(SOON), "it does not wait");
        Self { _client: client, proxy, task }
    }
}

fn read(client: &Client, path: &str) -> Lock {
    client.read(path).unwrap()
}

fn write(client: &Client, path: &str) -> Lock {
    client.write(path).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_later_of_two_readers_may_have_the_smaller_token_and_no_writer_has_one_between_theirs() {
    let (first_client, path) = (client().await, "/rwlock/tokens-woken");
    let (before, writer) = granted(&write(&first_client, path)).await;
    let late = Queued::new(path, read).await;
    let early = Queued::new(path, read).await;
    let next = Queued::new(path, write).await;
    // Both are woken at the same time, but one of them receives the event later.
    let gate = Gate::new();
    let woken = late.proxy.on(Trigger::reply(Kind::Event).then(Action::Pause(gate.clone())));
    soon(writer.release()).await.unwrap();
    let (second, early_hold) = soon(early.task).await.unwrap();
    assert!(woken.wait(SOON));
    assert!(!late.task.is_finished());
    gate.open();
    let (first, late_hold) = soon(late.task).await.unwrap();
    assert!(before < first && first < second, "{before:#x}, {first:#x}, {second:#x}");
    soon(early_hold.release()).await.unwrap();
    assert!(!next.task.is_finished());
    soon(late_hold.release()).await.unwrap();
    let (after, last) = soon(next.task).await.unwrap();
    assert!(after > second, "{second:#x}, {after:#x}");
    soon(last.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_grow_between_readers_and_writers_both_ways_in_a_contest() {
    const ROUNDS: usize = 40;
    /// The weight of a writer. A reader has weight 1.
    const ALL: u32 = 100;
    let (path, register) = ("/rwlock/tokens-contest", Register::of(ALL));
    let mut contenders = JoinSet::new();
    for (number, client) in clients(&shared().connect_string(), 8).await.into_iter().enumerate() {
        let register = register.clone();
        contenders.spawn(async move {
            for round in 0..ROUNDS {
                let writes = (number + round) % 4 == 0;
                let (side, weight) =
                    if writes { (write(&client, path), ALL) } else { (read(&client, path), 1) };
                register.turn(&side, weight, Duration::from_millis(1)).await;
            }
        });
    }
    tokio::time::timeout(SOON * 3, contenders.join_all()).await.expect("all have their turns");
    let grants = register.grants();
    let readers: Vec<u64> =
        grants.iter().filter(|(_, weight)| *weight == 1).map(|(token, _)| *token).collect();
    let smaller = readers.windows(2).filter(|pair| pair[1] < pair[0]).count();
    println!("{smaller} of {} readers had a smaller token than the one before", readers.len());
    assert!(grants.len() > 4 * ROUNDS, "{} grants", grants.len());
    register.assert_growing();
}
