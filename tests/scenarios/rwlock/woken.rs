//! Promise 3: a release wakes the waiters that can go on, and the next writer after them.

use crate::support::figures::{fired, watched};
use crate::support::register::{PATIENT, patient_clients};
use crate::support::{SOON, client, proxied_client, soon};
use ground::wire::Admin;
use ground::{Ensemble, Kind, Proxy, Trigger, until};
use tokio::task::{JoinHandle, JoinSet};
use zklock::further::Foreign;
use zklock::{Client, Hold, Lock, LockSpec};

/// Holders do not watch for strangers: only the waiters' watches are counted.
fn careless(client: &Client, spec: LockSpec) -> Lock {
    client.lock(&spec.foreign(Foreign::IgnoreUnknown)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_readers_behind_three_writers_are_woken_by_the_last_of_these_alone() {
    const READERS: usize = 200;
    // A server of its own: the figures are those of the whole server.
    let ensemble = Ensemble::builder().max_session_timeout(PATIENT).start();
    let (server, path) = (ensemble.server(0), "/woken");
    let operator = Admin::connect(server.address());
    // Without the directory, a client that waits for it would leave a watch, which would be counted.
    operator.create(path, "");
    let clients = patient_clients(&ensemble.connect_string(), READERS + 3).await;
    let (writers, readers) = clients.split_at(3);
    let mut writing = Vec::new();
    for (number, client) in writers.iter().enumerate() {
        let lock = careless(client, LockSpec::write_lock(path).unwrap());
        writing.push(tokio::spawn(async move { lock.acquire().await.unwrap() }));
        operator.wait_for_children(path, number + 1, SOON);
    }
    let mut reading = JoinSet::new();
    for client in readers {
        let lock = careless(client, LockSpec::read_lock(path).unwrap());
        reading.spawn(async move { lock.acquire().await.unwrap() });
    }
    assert!(until(SOON * 2, || watched(server) == READERS + 2), "{} watches", watched(server));
    // The operator's own waits have fired watches, too, so count from here.
    let mut before = fired(server);
    let mut releases = Vec::new();
    for (number, writer) in writing.into_iter().enumerate() {
        assert!(reading.try_join_next().is_none(), "a reader beside a writer");
        let hold = soon(writer).await.unwrap();
        assert!(until(SOON, || watched(server) == READERS + 2 - number), "{} watches", watched(server));
        soon(hold.release()).await.unwrap();
        // By the time the deletion is answered, the server has counted the watches that it fired.
        releases.push(fired(server) - before);
        before = fired(server);
    }
    let holds = soon(reading.join_all()).await;
    assert!(holds.iter().all(|hold| !hold.valid_for().is_zero()));
    assert_eq!(releases, [2, 1, READERS as u64], "notifications for each release of a writer");
    assert_eq!(watched(server), 0);
    // Nobody waits for a reader.
    for hold in holds {
        soon(hold.release()).await.unwrap();
    }
    assert_eq!(fired(server), before);
}

/// A waiter in the queue, behind its own proxy, with its watch set.
struct Queued {
    _client: Client,
    proxy: Proxy,
    task: JoinHandle<Hold>,
}

impl Queued {
    async fn new(path: &str, side: char) -> Self {
        let (client, proxy) = proxied_client().await;
        let lock: Lock = if side == 'r' { client.read_lock(path) } else { client.write_lock(path) }.unwrap();
        let watches = proxy.on(Trigger::reply(Kind::GetData));
        let task = tokio::spawn(async move { lock.acquire().await.unwrap() });
        assert!(watches.wait(SOON), "it does not wait");
        proxy.record();
        Self { _client: client, proxy, task }
    }

    /// How often it was woken, and how often it looked, since it began to wait.
    fn heard(&self) -> (usize, usize) {
        let counts = self.proxy.counts();
        (counts.replies(Kind::Event), counts.requests(Kind::GetChildren) + counts.requests(Kind::GetData))
    }

    /// How many answers it has had to that.
    fn answered(&self) -> usize {
        let counts = self.proxy.counts();
        counts.replies(Kind::GetChildren) + counts.replies(Kind::GetData)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_goes_wakes_the_readers_up_to_the_next_writer_and_nobody_else() {
    let path = "/rwlock/woken-groups";
    let first = soon(client().await.write_lock(path).unwrap().acquire()).await.unwrap();
    let mut queue = Vec::new();
    for side in "rrrWrrW".chars() {
        queue.push(Queued::new(path, side).await);
    }
    soon(first.release()).await.unwrap();
    let mut group = Vec::new();
    for reader in &mut queue[..3] {
        group.push(soon(&mut reader.task).await.unwrap());
        // Only the writer was in the way of any of them: readers do not wait for readers.
        assert_eq!(reader.heard(), (1, 0));
    }
    for (number, other) in queue.iter().enumerate().skip(3) {
        assert_eq!(other.heard(), (0, 0), "number {number} was disturbed");
    }
    // The writer watches the second reader ahead of it, then the nearest, and does not notice the others.
    soon(group[0].release()).await.unwrap();
    assert_eq!(queue[3].heard(), (0, 0));
    soon(group[1].release()).await.unwrap();
    assert!(until(SOON, || queue[3].heard() == (1, 2)), "it looks once, and watches the nearest");
    // Otherwise the nearest could go before its watch is set.
    assert!(until(SOON, || queue[3].answered() == 2), "it has its answers");
    soon(group[2].release()).await.unwrap();
    let writer = soon(&mut queue[3].task).await.unwrap();
    assert_eq!(queue[3].heard(), (2, 2), "it knows that nobody is left");
    for (number, other) in queue.iter().enumerate().skip(4) {
        assert_eq!(other.heard(), (0, 0), "number {number} was disturbed");
    }
    soon(writer.release()).await.unwrap();
    for number in [4, 5] {
        group.push(soon(&mut queue[number].task).await.unwrap());
        assert_eq!(queue[number].heard().0, 1);
    }
    assert_eq!(queue[6].heard(), (0, 0));
    drop(group);
    let last = soon(&mut queue[6].task).await.unwrap();
    soon(last.release()).await.unwrap();
}
