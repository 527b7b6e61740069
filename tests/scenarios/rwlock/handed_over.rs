//! A write hold that anybody may release: another task may have it and write. So nobody may read beside it, not even the task
//! or thread that acquired it, which may have gone on to other work.

use crate::support::deadline::A_WHILE;
use crate::support::{SOON, client, operator, says, settled, soon};
use std::time::Duration;
use tokio::sync::oneshot;
use zklock::further::Naming;
use zklock::{ErrorKind, Hold, LockSpec};

/// The task that gets the hold writes until it is told to stop, and reports whether it was alone until then.
fn hand_over(hold: Hold) -> (oneshot::Sender<()>, tokio::task::JoinHandle<bool>) {
    let (stop, stopped) = oneshot::channel();
    let writes = tokio::spawn(async move {
        let _ = stopped.await;
        let was_held = !hold.valid_for().is_zero();
        hold.release().await.unwrap();
        was_held
    });
    (stop, writes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_task_that_acquired_it_reads_only_when_it_is_released() {
    for naming in [Naming::Curator, Naming::Kazoo] {
        let (client, operator, path) =
            (client().await, operator(), format!("/rwlock/handed-over-{naming:?}"));
        let write = client.lock(&LockSpec::write_lock(&path).unwrap().naming(naming.clone())).unwrap();
        for reentrant in [false, true] {
            let read = LockSpec::read_lock(&path).unwrap().reentrant(reentrant).naming(naming.clone());
            let read = client.lock(&read).unwrap();
            let hold = soon(write.acquire()).await.unwrap();
            let token = hold.token();
            let (stop, writes) = hand_over(hold);
            assert!(soon(read.try_acquire()).await.unwrap().is_none(), "a reader beside a writer");
            let busy = soon(read.acquire_timeout(Duration::ZERO)).await.unwrap_err();
            assert_eq!(busy.kind(), ErrorKind::Timeout, "{busy}");
            let late = soon(read.acquire_timeout(A_WHILE)).await.unwrap_err();
            says(&late, ErrorKind::Timeout, &[&path, "this thread or task holds it itself"]);
            settled(&client).await;
            operator.wait_for_children(&path, 1, SOON);

            let mut waits = Box::pin(read.acquire());
            assert!(tokio::time::timeout(A_WHILE, &mut waits).await.is_err(), "a reader beside a writer");
            operator.wait_for_children(&path, 2, SOON);
            stop.send(()).unwrap();
            let reading = soon(waits).await.unwrap();
            assert!(soon(writes).await.unwrap(), "it was lost");
            assert!(reading.token() > token, "it is a reader like any other");
            soon(reading.release()).await.unwrap();
        }
    }
}

/// The writer may be a set.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_writes_keeps_its_acquirer_from_reading() {
    let (client, root) = (client().await, "/rwlock/handed-over-set");
    let [one, two] = ["one", "two"].map(|name| format!("{root}/{name}"));
    let set = client.all(&[client.write_lock(&one).unwrap(), client.mutex(&two).unwrap()]).unwrap();
    let (stop, writes) = hand_over(soon(set.acquire()).await.unwrap());
    let read = client.read_lock(&one).unwrap();
    assert!(soon(read.try_acquire()).await.unwrap().is_none(), "a reader beside a writer");
    let late = soon(read.acquire_timeout(A_WHILE)).await.unwrap_err();
    says(&late, ErrorKind::Timeout, &[&one, "itself"]);
    stop.send(()).unwrap();
    soon(read.acquire()).await.unwrap().release().await.unwrap();
    assert!(soon(writes).await.unwrap(), "it was lost");
}
