//! Readers of Curator that come after their own writer: their nodes are not sequential, and have the number of the
//! writer, which is below those of all waiters.

use crate::support::{SOON, Waiting, client, operator, soon};
use ground::wire::{Admin, Mode};
use ground::{Kind, Trigger, until};
use zklock::further::Role;

const UUID: &str = "01234567-89ab-4cde-8f01-23456789abcd";

fn strangers_writer(operator: &Admin, path: &str) -> String {
    operator.create_all(path, "");
    operator.create_mode(&format!("{path}/_c_{UUID}-__WRIT__"), "stranger", Mode::EphemeralSequential)
}

/// Lets the writer become a reader as well.
fn downgraded(operator: &Admin, writer: &str) -> String {
    let reader = writer.replace("__WRIT__", "__READ__").replace("_c_0", "_c_1");
    operator.create_mode(&reader, "stranger", Mode::Ephemeral)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_downgraded_reader_is_waited_for_by_writers_and_joined_by_readers() {
    let (operator, path) = (operator(), "/rwlock/curator");
    let writer = strangers_writer(&operator, path);
    let watches = || Trigger::reply(Kind::GetData);
    let reading = Waiting::new(|client| client.read_lock(path).unwrap(), watches().path(&writer)).await;
    let writing = Waiting::new(|client| client.write_lock(path).unwrap(), watches()).await;
    let reader = downgraded(&operator, &writer);
    assert!(!reading.task.is_finished(), "the stranger writes still");

    let watched = writing.proxy.on(watches().path(&reader));
    operator.delete(&writer);
    let (read, _reads) = reading.granted().await;
    let holders: Vec<_> = soon(client().await.read_lock(path).unwrap().contenders()).await.unwrap();
    let holds: Vec<_> = holders.iter().map(|it| (it.node.as_str(), it.role, it.holds)).collect();
    assert_eq!(holds[..2], [(&*reader, Role::Read, true), (read.node(), Role::Read, true)]);
    assert_eq!((holds.len(), holds[2].1, holds[2].2), (3, Role::Write, false));

    assert!(until(SOON, || watched.fired() || writing.task.is_finished()));
    soon(read.release()).await.unwrap();
    assert!(!writing.task.is_finished(), "a writer beside the reader {reader}");
    operator.delete(&reader);
    soon(writing.granted().await.0.release()).await.unwrap();
}

/// It was the only one before us when we looked, but it leaves a reader in its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_has_waited_for_one_alone_looks_again_for_what_it_left() {
    let (operator, path) = (operator(), "/rwlock/curator-alone");
    for reads_first in [true, false] {
        let writer = strangers_writer(&operator, path);
        let early = reads_first.then(|| downgraded(&operator, &writer));
        let watches = || Trigger::reply(Kind::GetData);
        let writing = Waiting::new(|client| client.write_lock(path).unwrap(), watches()).await;
        let reader = early.unwrap_or_else(|| downgraded(&operator, &writer));
        let watched = writing.proxy.on(watches().path(&reader));
        operator.delete(&writer);
        // If it waited for the reader from the beginning, nothing disturbs it.
        let calm = || watched.fired() || writing.task.is_finished();
        assert!(reads_first || until(SOON, calm));
        let read = writing.client.read_lock(path).unwrap();
        assert!(soon(read.try_acquire()).await.unwrap().is_none(), "behind a writer");
        assert!(!writing.task.is_finished(), "a writer beside the reader {reader}");
        operator.delete(&reader);
        soon(writing.granted().await.0.release()).await.unwrap();
        operator.wait_for_children(path, 0, SOON);
    }
}
