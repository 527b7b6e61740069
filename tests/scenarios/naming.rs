//! The names of the nodes in each naming scheme.

use crate::support::strangers::{SPOKEN, in_naming};
use crate::support::{held, operator, proxied_client, soon};
use ground::Kind;
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
        let create = proxy.requests().into_iter().rfind(|it| it.kind == Kind::Create).unwrap();
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
