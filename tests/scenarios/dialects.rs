//! The names of the nodes, and the queue that a lock of each dialect joins.

use crate::support::queue::{A_WHILE, acquire, held, nodes};
use crate::support::strangers::{FOREIGN, SPOKEN, in_dialect, put};
use crate::support::{SOON, client, operator, proxied_client, says, soon};
use ground::{Kind, Side};
use std::time::Duration;
use zklock_core::{Dialect, ErrorKind, LockSpec, Role};

/// Whether the name matches the pattern: `U` is a UUID of version 8 with its dashes, `H` its 32 digits alone, `N` a number with its
/// sign, `S` the ten digits of a sequence number. Everything else is literal.
fn is_like(name: &str, pattern: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return name.is_empty() };
    let rest = &pattern[1..];
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let split = |length: usize| name.split_at_checked(length);
    match first {
        'U' => split(36).is_some_and(|(uuid, after)| {
            let parts: Vec<_> = uuid.split('-').collect();
            parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
                && parts.iter().all(|part| hex(part))
                && parts[2].starts_with('8')
                && is_like(after, rest)
        }),
        'H' => split(32).is_some_and(|(digits, after)| hex(digits) && is_like(after, rest)),
        'S' => split(10).is_some_and(|(digits, after)| {
            digits.bytes().all(|byte| byte.is_ascii_digit()) && is_like(after, rest)
        }),
        'N' => (1..=name.len()).any(|end| {
            name.split_at_checked(end)
                .is_some_and(|(number, after)| number.parse::<i64>().is_ok() && is_like(after, rest))
        }),
        other => name.strip_prefix(other).is_some_and(|after| is_like(after, rest)),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_called_as_the_other_libraries_call_theirs() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let session = client.session_id().unwrap();
    // Patterns in which `_`, `c`, `lock` and the like stand for themselves.
    let write_lock = format!("x-{session}-U-S");
    let table = [
        (Dialect::Curator, Role::Exclusive, "_c_U-lock-S"),
        (Dialect::Curator, Role::Read, "_c_U-__READ__S"),
        (Dialect::Curator, Role::Write, "_c_U-__WRIT__S"),
        (Dialect::Kazoo, Role::Exclusive, "H__lock__S"),
        (Dialect::Kazoo, Role::Read, "H__rlock__S"),
        (Dialect::Kazoo, Role::Write, "H__lock__S"),
        (Dialect::WriteLock, Role::Exclusive, &write_lock),
    ];
    assert_eq!(table.map(|(dialect, role, _)| (dialect, role)), SPOKEN);
    for (dialect, role, pattern) in table {
        let path = format!("/dialects/name-{dialect}-{role:?}");
        proxy.record();
        let hold = held(&in_dialect(&client, &path, dialect, role)).await;
        let name = hold.node().rsplit_once('/').unwrap().1.to_owned();
        assert!(matches(&name, pattern), "{name} is not {pattern}");
        assert_eq!(operator.children(&path), [name.as_str()]);
        // The create request had the same name, without the number.
        let record = proxy.messages();
        let create = record.iter().rfind(|it| it.side == Side::Request && it.kind == Kind::Create).unwrap();
        assert_eq!(format!("{}{}", create.path, &name[name.len() - 10..]), hold.node());
        soon(hold.release()).await.unwrap();
    }
    for (lock, directory, pattern) in [
        (client.election("/dialects/election").unwrap(), "/dialects/election", "_c_U-latch-S"),
        (client.semaphore("/dialects/semaphore", 1).unwrap(), "/dialects/semaphore/leases", "_c_U-lease-S"),
    ] {
        let hold = held(&lock).await;
        let name = &operator.children(directory)[0];
        assert!(matches(name, pattern), "{name} is not {pattern}");
        soon(hold.release()).await.unwrap();
    }
}

/// Like [`is_like`], but escapes the letters of the pattern that are literal.
fn matches(name: &str, pattern: &str) -> bool {
    // These two contain letters that stand for something else.
    let plain = |text: &str| text.replace("__READ__", "\u{1}").replace("__WRIT__", "\u{2}");
    let name = name.replace("-__READ__", "-\u{1}").replace("-__WRIT__", "-\u{2}");
    is_like(&name, &plain(pattern))
}

/// Includes nodes as other libraries name them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contenders_of_all_dialects_are_recognised_and_other_children_are_not() {
    let (path, client, operator) = ("/dialects/recognised", client().await, operator());
    for other in ["settings", "lock", "0000000001", "_c_-lock-0000000001", "x-0000000001"] {
        operator.create_all(&format!("{path}/{other}"), "");
    }
    let lock = client.mutex(path).unwrap();
    assert_eq!(soon(lock.contenders()).await.unwrap(), []);
    let made: Vec<_> = FOREIGN.iter().map(|(prefix, ..)| put(&operator, path, prefix)).collect();
    let found = soon(lock.contenders()).await.unwrap();
    let nodes: Vec<_> = found.iter().map(|contender| contender.node.clone()).collect();
    assert_eq!(nodes, made, "in the order of their numbers");
    for (contender, (prefix, dialect, role)) in found.iter().zip(FOREIGN) {
        assert_eq!((contender.dialect, contender.role), (dialect, role), "{prefix}");
        assert_eq!(contender.identity, "stranger");
        assert_eq!(contender.session, operator.session());
    }
    assert!(found[0].holds && found[1..].iter().all(|contender| !contender.holds));
    made.iter().for_each(|node| operator.delete(node));
    // Children that are not contenders are in nobody's way.
    soon(held(&lock).await.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_stands_in_the_queue_of_its_dialect() {
    let (client, operator) = (client().await, operator());
    // It waits for a contender of its dialect that is ahead. One behind it does not disturb it.
    for (number, (dialect, role)) in SPOKEN.into_iter().enumerate() {
        let path = format!("/dialects/queue-{dialect}-{role:?}");
        let prefix = match (dialect, role) {
            (Dialect::Curator, Role::Exclusive) => FOREIGN[0].0,
            (Dialect::Curator, _) => FOREIGN[3].0,
            (Dialect::Kazoo, _) => FOREIGN[4].0,
            _ => FOREIGN[6].0,
        };
        let before = put(&operator, &path, prefix);
        let task = acquire(&in_dialect(&client, &path, dialect, role));
        operator.wait_for_children(&path, 2, SOON);
        let behind = put(&operator, &path, prefix);
        assert!(
            !ground::until(A_WHILE / 5, || task.is_finished()),
            "{number}: {dialect} {role:?} does not wait"
        );
        operator.delete(&before);
        let hold = soon(task).await.unwrap().unwrap();
        assert_eq!(nodes(&operator, &path), [hold.node(), behind.as_str()]);
        soon(hold.release()).await.unwrap();
        operator.delete(&behind);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_of_kazoos_waits_for_writers_alone_and_its_writer_for_both() {
    let (path, client, operator) = ("/dialects/kazoo-sides", client().await, operator());
    let reader = put(&operator, path, FOREIGN[5].0);
    let read = in_dialect(&client, path, Dialect::Kazoo, Role::Read);
    let hold = soon(read.acquire_timeout(Duration::from_secs(5))).await.unwrap();
    let write = acquire(&in_dialect(&client, path, Dialect::Kazoo, Role::Write));
    operator.wait_for_children(path, 3, SOON);
    operator.delete(&reader);
    assert!(!ground::until(A_WHILE / 5, || write.is_finished()), "beside a reader");
    soon(hold.release()).await.unwrap();
    soon(soon(write).await.unwrap().unwrap().release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dialect_that_a_kind_does_not_have_is_refused() {
    let client = client().await;
    let refused = |spec: Result<LockSpec, zklock_core::Error>, dialect, part: &str| {
        let result = client.lock(&spec.unwrap().dialect(dialect));
        says(&result.expect_err("no such dialect"), ErrorKind::InvalidInput, &["/dialects/none", part]);
    };
    let path = "/dialects/none";
    refused(LockSpec::read(path), Dialect::WriteLock, "writelock has no read and write sides");
    refused(LockSpec::write(path), Dialect::WriteLock, "writelock has no read and write sides");
    for dialect in [Dialect::Kazoo, Dialect::WriteLock] {
        let name = dialect.to_string();
        refused(LockSpec::semaphore(path, 1), dialect, &name);
        refused(LockSpec::election(path), dialect, &name);
        refused(LockSpec::exclusive(path), dialect, &name);
    }
}
