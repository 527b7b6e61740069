//! The names of the nodes in each naming scheme.

use crate::support::queue::held;
use crate::support::strangers::{FOREIGN, SPOKEN, in_naming, put};
use crate::support::{client, operator, proxied_client, soon};
use ground::{Kind, Side};
use zklock::further::{Naming, Role};

/// Whether this is the name, with a mark of this length, and the ten digits that the server appends. A mark with dashes is a UUID
/// of version 8.
fn is_named(name: &str, (before, length, after): (&str, usize, &str)) -> bool {
    let Some((mark, rest)) = name.strip_prefix(before).and_then(|rest| rest.split_at_checked(length)) else {
        return false;
    };
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let parts: Vec<_> = mark.split('-').collect();
    let is_uuid = || parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts[2].starts_with('8');
    let number = rest.strip_prefix(after);
    parts.iter().all(|part| is_hex(part))
        && (length == 32 || is_uuid())
        && number.is_some_and(|number| number.len() == 10 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_called_as_the_other_libraries_call_theirs() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let session = client.session_id().unwrap();
    let write_lock = format!("x-{session}-");
    let table = [
        (Naming::Curator, Role::Exclusive, ("_c_", 36, "-lock-")),
        (Naming::Curator, Role::Read, ("_c_", 36, "-__READ__")),
        (Naming::Curator, Role::Write, ("_c_", 36, "-__WRIT__")),
        (Naming::Kazoo, Role::Exclusive, ("", 32, "__lock__")),
        (Naming::Kazoo, Role::Read, ("", 32, "__rlock__")),
        (Naming::Kazoo, Role::Write, ("", 32, "__lock__")),
        (Naming::WriteLock, Role::Exclusive, (&*write_lock, 36, "-")),
    ];
    assert_eq!(table.clone().map(|(naming, role, _)| (naming, role)), SPOKEN);
    for (naming, role, parts) in table {
        let path = format!("/namings/name-{naming}-{role:?}");
        proxy.record();
        let hold = held(&in_naming(&client, &path, &naming, role)).await;
        let name = hold.node().rsplit_once('/').unwrap().1.to_owned();
        assert!(is_named(&name, parts), "{name} is not {parts:?}");
        assert_eq!(operator.children(&path), [name.as_str()]);
        // The create request had the same name, without the number.
        let record = proxy.messages();
        let create = record.iter().rfind(|it| it.side == Side::Request && it.kind == Kind::Create).unwrap();
        assert_eq!(format!("{}{}", create.path, &name[name.len() - 10..]), hold.node());
        soon(hold.release()).await.unwrap();
    }
    for (lock, directory, after) in [
        (client.election("/namings/election").unwrap(), "/namings/election", "-latch-"),
        (client.semaphore("/namings/semaphore", 1).unwrap(), "/namings/semaphore/leases", "-lease-"),
    ] {
        let hold = held(&lock).await;
        let name = &operator.children(directory)[0];
        assert!(is_named(name, ("_c_", 36, after)), "{name}");
        soon(hold.release()).await.unwrap();
    }
}

/// Includes nodes as other libraries name them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contenders_of_all_namings_are_recognised_and_other_children_are_not() {
    let (path, client, operator) = ("/namings/recognised", client().await, operator());
    for other in ["settings", "lock", "0000000001", "_c_-lock-0000000001", "x-0000000001"] {
        operator.create_all(&format!("{path}/{other}"), "");
    }
    let lock = client.mutex(path).unwrap();
    assert_eq!(soon(lock.contenders()).await.unwrap(), []);
    let made: Vec<_> = FOREIGN.iter().map(|(prefix, ..)| put(&operator, path, prefix)).collect();
    let found = soon(lock.contenders()).await.unwrap();
    let nodes: Vec<_> = found.iter().map(|contender| contender.node.clone()).collect();
    assert_eq!(nodes, made, "in the order of their numbers");
    for (contender, (prefix, naming, role)) in found.iter().zip(FOREIGN) {
        assert_eq!((&contender.naming, contender.role), (&naming, role), "{prefix}");
        assert_eq!(contender.identity, "stranger");
        assert_eq!(contender.session, operator.session());
    }
    assert!(found[0].holds && found[1..].iter().all(|contender| !contender.holds));
    made.iter().for_each(|node| operator.delete(node));
    // Children that are not contenders are in nobody's way.
    soon(held(&lock).await.release()).await.unwrap();
}
