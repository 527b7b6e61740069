//! The least rights: the list of the guide says which rights on which node each operation needs. Each right is taken away
//! by itself.

use crate::support::kinds::{ELECTION, LockKind, MUTEX, PERMIT, READER, SET, SINGLE_NODE, WRITER};
use crate::support::members::{barrier, enters};
use crate::support::users::{ANN, BOB, Operator};
use crate::support::{acquire, comes, held, settled, soon};
use ground::Proxy;
use zklock::further::Access;
use zklock::{Client, Error, ErrorKind, Lock, LockSpec, LossReason};
use zookeeper_client::Permission;

const RIGHTS: [(char, &str, Permission); 5] = [
    ('c', "CREATE", Permission::CREATE),
    ('d', "DELETE", Permission::DELETE),
    ('r', "READ", Permission::READ),
    ('w', "WRITE", Permission::WRITE),
    ('a', "ADMIN", Permission::ADMIN),
];

const GUIDE: &str = include_str!("../../../docs/securing.md");

/// A part of the list: an operation, a node, and the rights on that node that the operation needs.
struct Row {
    what: &'static str,
    node: &'static str,
    rights: &'static str,
}

fn rows() -> Vec<Row> {
    let section = GUIDE.split("## Least rights").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut rows = Vec::new();
    // - `rights` on a node and another: an operation; another
    for (rights, rest) in section.lines().filter_map(|line| line.strip_prefix("- `")?.split_once("` on ")) {
        let (nodes, operations) = rest.split_once(": ").unwrap();
        for what in operations.split("; ") {
            rows.extend(nodes.split(" and ").map(|node| Row { what, node, rights }));
        }
    }
    // "None on other nodes."
    rows.push(Row { what: "a semaphore", node: "its node", rights: "" });
    rows.push(Row { what: "to remove or to wait for a barrier", node: "the node itself", rights: "" });
    rows
}

/// The nodes below the operation's path that must exist before it.
fn nodes(what: &str) -> &'static [&'static str] {
    match what {
        "a semaphore" => &["", "/locks", "/leases"],
        "a semaphore with `limit_at`" | "to write a limit" => &["", "/locks", "/leases", "/limit"],
        "a set of locks" => &["", "/a", "/b"],
        "to remove or to wait for a barrier" | "a guarded `set_data`, `delete` or `read`" => &["", "/there"],
        _ => &[""],
    }
}

/// The position, below the path, of the node that a row is about.
fn place(row: &Row) -> &'static str {
    match row.node {
        "its node" | "its parent" => "",
        "its `locks`" => "/locks",
        "its `leases`" => "/leases",
        "the limit" => "/limit",
        "the node of each" => "/a",
        "the node itself" => "/there",
        other => panic!("{other}: no such node"),
    }
}

/// Bob's lock waits for one of Ann's, is held, and is released.
async fn takes_its_turn(
    kind: LockKind,
    (ann, bob): (&Client, &Client),
    proxy: &Proxy,
    path: &str,
) -> Result<(), Error> {
    let first = held(&(kind.rival)(ann, path)).await;
    let has_begun = proxy.on((kind.waits)(path));
    let waits = acquire(&(kind.lock)(bob, path));
    comes(async || waits.is_finished() || has_begun.fired()).await;
    has_begun.cancel();
    soon(first.release()).await.unwrap();
    soon(soon(waits).await.unwrap()?.release()).await
}

fn mutex(client: &Client, path: &str) -> Lock {
    client.mutex(path).unwrap()
}

fn limited(client: &Client, path: &str) -> Lock {
    let spec = LockSpec::semaphore(path, 1).unwrap().limit_at(&format!("{path}/limit"));
    client.lock(&spec).unwrap()
}

/// Performs an operation as Bob, whose requests go through the proxy.
async fn act(what: &str, proxy: &Proxy, ann: &Client, bob: &Client, path: &str) -> Result<(), Error> {
    let in_turn = |kind| takes_its_turn(kind, (ann, bob), proxy, path);
    let there = format!("{path}/there");
    match what {
        "a mutex" => in_turn(MUTEX).await,
        "the read side" => in_turn(READER).await,
        "the write side" => in_turn(WRITER).await,
        "an election" => in_turn(ELECTION).await,
        "a single-node lock" => in_turn(SINGLE_NODE).await,
        "a semaphore" => in_turn(PERMIT).await,
        "a semaphore with `limit_at`" => in_turn(LockKind { lock: limited, ..PERMIT }).await,
        "a set of locks" => in_turn(SET).await,
        "to write a limit" => soon(bob.set_limit(&format!("{path}/limit"), 3)).await,
        "to set a barrier" => soon(bob.barrier(&format!("{path}/new")).unwrap().set()).await.map(drop),
        "to remove or to wait for a barrier" => {
            let gate = bob.barrier(&there).unwrap();
            assert!(soon(gate.is_set()).await?);
            assert!(soon(gate.remove()).await?);
            soon(gate.wait()).await
        }
        "a double barrier" => {
            let other = enters(ann, path, 2);
            let member = match soon(barrier(bob, path, 2).enter()).await {
                Ok(member) => member,
                Err(error) => {
                    other.abort();
                    return Err(error);
                }
            };
            let other = soon(other).await.unwrap().unwrap();
            let (left, others) = soon(async { tokio::join!(member.leave(), other.leave()) }).await;
            others.unwrap();
            left
        }
        "to list contenders" | "to observe" | "to break a lock" | "to ask holders to release" => {
            let (hold, lock) = (held(&mutex(ann, path)).await, mutex(bob, path));
            let done = match what {
                "to list contenders" => soon(lock.contenders()).await.map(drop),
                "to observe" => soon(bob.election(path).unwrap().observe().unwrap().next()).await.map(drop),
                "to break a lock" => soon(lock.break_lock()).await.map(drop),
                _ => soon(lock.request_release()).await.map(drop),
            };
            let released = soon(hold.release()).await;
            assert!(released.is_ok() || what == "to break a lock", "{released:?}");
            done
        }
        "a guarded `create`" | "a guarded `set_data`, `delete` or `read`" => {
            let hold = held(&mutex(bob, &path.replace("/rights", "/rights-guards"))).await;
            let written = async {
                if what == "a guarded `create`" {
                    let created = hold.guarded().create(&format!("{path}/new"), b"");
                    return soon(created.commit()).await.map(drop);
                }
                soon(hold.read(&there)).await?;
                soon(hold.guarded().set_data(&there, b"", None).commit()).await?;
                soon(hold.guarded().delete(&there, None).commit()).await.map(drop)
            };
            let written = written.await;
            soon(hold.release()).await.unwrap();
            written
        }
        other => panic!("{other}: nobody knows how to do that"),
    }
}

/// Waits until no contender is left below these nodes.
async fn is_clean(seer: &Operator, path: &str, nodes: &[&str]) {
    let stays = ["locks", "leases", "limit", "a", "b", "there", "new", "ready"];
    for node in nodes {
        let directory = format!("{path}{node}");
        let stays = |child: &String| stays.iter().any(|name| child.ends_with(&format!("/{name}")));
        comes(async || seer.children(&directory).await.iter().all(stays)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_right_of_the_table_is_needed_and_no_other() {
    let (bob, proxy) = BOB.proxied(Access::Open).await;
    let (ann, seer) = (ANN.client(Access::Open).await, ANN.operator().await);
    let (rows, mut wrong) = (rows(), Vec::new());
    assert!(rows.len() >= 22, "the list is there");
    seer.create("/rights", &[ANN.may_all(), BOB.may_all()]).await;
    for (number, row) in rows.iter().enumerate() {
        for (letter, right, permission) in RIGHTS {
            let path = format!("/rights/{number}{letter}");
            let lacking = format!("{path}{}", place(row));
            for node in nodes(row.what) {
                let node = format!("{path}{node}");
                let others =
                    RIGHTS.into_iter().map(|(_, _, right)| right).filter(|right| *right != permission);
                let but_one = others.fold(Permission::NONE, |all, right| all | right);
                let rights = if node == lacking { but_one } else { Permission::ALL };
                seer.create(&node, &[ANN.may_all(), BOB.may(rights)]).await;
            }
            if nodes(row.what).contains(&"/limit") {
                soon(ann.set_limit(&format!("{path}/limit"), 3)).await.unwrap();
            }
            let done = act(row.what, &proxy, &ann, &bob, &path).await;
            let is_fine = match &done {
                Ok(()) => !row.rights.contains(letter),
                Err(error) => {
                    let is_typed = matches!(
                        error.kind(),
                        ErrorKind::Refused | ErrorKind::Conflict | ErrorKind::Lost(LossReason::SessionClosed)
                    );
                    let is_of_a_write = row.what.starts_with("a guarded") && letter != 'r';
                    let is_typed = is_typed && is_of_a_write == (error.kind() == ErrorKind::Conflict);
                    let said = error.to_string();
                    let names =
                        said.contains(right) && said.contains(&format!("in the access list of {lacking}"));
                    row.rights.contains(letter) && is_typed && names
                }
            };
            if !is_fine {
                wrong.push(format!("{}, {}, without {right} on {lacking}: {done:?}", row.what, row.node));
            }
            settled(&bob).await;
            settled(&ann).await;
            is_clean(&seer, &path, nodes(row.what)).await;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Only waiting needs that right.
#[tokio::test]
async fn a_single_node_lock_that_is_free_is_held_and_released_without_the_right_to_list() {
    let (bob, seer) = (BOB.client(Access::Open).await, ANN.operator().await);
    let rights = Permission::CREATE | Permission::DELETE;
    seer.create("/rights-unlisted", &[ANN.may_all(), BOB.may(rights)]).await;
    let lock = bob.single_node("/rights-unlisted").unwrap();
    soon(held(&lock).await.release()).await.unwrap();
    assert_eq!(seer.children("/rights-unlisted").await, [""; 0]);
    settled(&bob).await;
}
