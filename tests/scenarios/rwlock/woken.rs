//! Promise 3: a release wakes the waiters that can go on, and the next writer after them.

use crate::support::{SOON, Waiting, client, soon};
use ground::{Kind, Trigger, until};
use zklock::Client;

/// How often it was woken, and how often it looked, since it began to wait.
fn heard(waiter: &Waiting) -> (usize, usize) {
    let counts = waiter.proxy.counts();
    (waiter.woken(), counts.requests(Kind::GetChildren) + counts.requests(Kind::GetData))
}

/// How many answers it has had to that.
fn answered(waiter: &Waiting) -> usize {
    let counts = waiter.proxy.counts();
    counts.replies(Kind::GetChildren) + counts.replies(Kind::GetData)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_goes_wakes_the_readers_up_to_the_next_writer_and_nobody_else() {
    let path = "/rwlock/woken-groups";
    let first = soon(client().await.write_lock(path).unwrap().acquire()).await.unwrap();
    let mut queue = Vec::new();
    for side in "rrrWrrW".chars() {
        let lock = |client: &Client| {
            if side == 'r' { client.read_lock(path) } else { client.write_lock(path) }.unwrap()
        };
        queue.push(Waiting::new(lock, Trigger::reply(Kind::GetData)).await);
    }
    soon(first.release()).await.unwrap();
    let mut group = Vec::new();
    for reader in &mut queue[..3] {
        group.push(soon(&mut reader.task).await.unwrap().unwrap());
        // Only the writer was in the way of any of them: readers do not wait for readers.
        assert_eq!(heard(reader), (1, 0));
    }
    for (number, other) in queue.iter().enumerate().skip(3) {
        assert_eq!(heard(other), (0, 0), "number {number} was disturbed");
    }
    // The writer watches the second reader ahead of it, then the nearest, and does not notice the others.
    soon(group[0].release()).await.unwrap();
    assert_eq!(heard(&queue[3]), (0, 0));
    soon(group[1].release()).await.unwrap();
    assert!(until(SOON, || heard(&queue[3]) == (1, 2)), "it looks once, and watches the nearest");
    // Otherwise the nearest could go before its watch is set.
    assert!(until(SOON, || answered(&queue[3]) == 2), "it has its answers");
    soon(group[2].release()).await.unwrap();
    let writer = soon(&mut queue[3].task).await.unwrap().unwrap();
    assert_eq!(heard(&queue[3]), (2, 2), "it knows that nobody is left");
    for (number, other) in queue.iter().enumerate().skip(4) {
        assert_eq!(heard(other), (0, 0), "number {number} was disturbed");
    }
    soon(writer.release()).await.unwrap();
    for number in [4, 5] {
        group.push(soon(&mut queue[number].task).await.unwrap().unwrap());
        assert_eq!(heard(&queue[number]).0, 1);
    }
    assert_eq!(heard(&queue[6]), (0, 0));
    drop(group);
    let last = soon(&mut queue[6].task).await.unwrap().unwrap();
    soon(last.release()).await.unwrap();
}
