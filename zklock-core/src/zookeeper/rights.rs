//! Access lists in ZooKeeper's terms, and which right a client lacks on which node: the server only says that one is
//! missing.

use super::paths::parent;
use crate::connect::access::{Access, Entry};
use crate::machine::protocol::{Operation, Outcome, Refusal};
use crate::zookeeper::ensemble::Write;
use std::sync::Arc;
use zookeeper_client::{Acl, Acls, AuthId, Client, Permission};

/// The list that nodes are created with.
#[derive(Clone)]
pub(super) struct NodeList(Arc<[Acl]>);

impl NodeList {
    pub(super) fn of(access: &Access) -> Self {
        let creator = || Acl::new(Permission::ALL, AuthId::authed());
        Self(match access {
            Access::Open => [Acl::new(Permission::ALL, AuthId::anyone())].into(),
            Access::CreatorAll => [creator()].into(),
            Access::ReadOpen => [creator(), Acl::new(Permission::READ, AuthId::anyone())].into(),
            Access::List(list) => list.entries().iter().map(acl).collect(),
        })
    }

    /// Returns an upper bound for its bytes in a request.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|entry| entry.scheme().len() + entry.id().len() + 12).sum()
    }

    pub(super) fn list(&self) -> Acls<'_> {
        Acls::new(&self.0)
    }
}

fn acl(entry: &Entry) -> Acl {
    let permission = entry.rights.chars().fold(Permission::NONE, |all, letter| match letter {
        'c' => all | Permission::CREATE,
        'd' => all | Permission::DELETE,
        'r' => all | Permission::READ,
        'w' => all | Permission::WRITE,
        _ => all | Permission::ADMIN,
    });
    Acl::new(permission, AuthId::new(&entry.scheme, &entry.id))
}

/// Returns the same outcome, with the missing right if it was a missing right.
///
/// If a neighbour may not be watched, the outcome stays as it is, because the machine has another way to wait for it. The
/// same goes for a check: the quorum has answered, and that is what matters.
pub(super) async fn explained(client: &Client, operation: &Operation, outcome: Outcome) -> Outcome {
    if outcome != Outcome::Refused(Refusal::Denied) {
        return outcome;
    }
    let lack = match operation {
        Operation::Create(node) => lack("CREATE", &node.directory),
        Operation::CreateAll(nodes) => {
            let mut directories: Vec<&str> = nodes.iter().map(|node| &*node.directory).collect();
            directories.dedup();
            lack("CREATE", &directories.join(" or of "))
        }
        Operation::Open { path, renews: true, .. } => lack("WRITE", path),
        Operation::CreateWithin { path, .. }
        | Operation::CreateSingle { path, .. }
        | Operation::CreatePair { path, .. }
        | Operation::Open { path, .. } => lack("CREATE", parent(path)),
        Operation::CreateParents { directory } | Operation::CreateLastingParents { directory } => {
            return Outcome::Refused(Refusal::Answer(to_create(client, directory).await));
        }
        Operation::List { directory } | Operation::ListAndWatch { directory } => to_read(directory),
        Operation::Survey { directory } | Operation::ListMarked { directory, .. } => {
            format!("{} or of its children", to_read(directory))
        }
        Operation::Inspect { path } | Operation::InspectAndWatch { path } => to_read(path),
        Operation::ReadLimit { path } => to_read(path),
        Operation::Delete { path } | Operation::DeletePair { path, .. } | Operation::Close { path, .. } => {
            to_delete(path)
        }
        Operation::DeleteDirectory { directory } => to_delete(directory),
        Operation::Barrier { .. }
        | Operation::Check { .. }
        | Operation::Owns { .. }
        | Operation::Watch { .. }
        | Operation::WatchOwn { .. } => return outcome,
    };
    Outcome::Refused(Refusal::Answer(lack))
}

/// Returns the right that is missing if a write is denied.
pub(super) fn of_write(write: &Write) -> String {
    match write {
        Write::Create { path, .. } => lack("CREATE", parent(path)),
        Write::SetData { path, .. } => lack("WRITE", path),
        Write::Delete { path, .. } => to_delete(path),
    }
}

pub(super) fn to_read(node: &str) -> String {
    lack("READ", node)
}

pub(super) fn to_delete(path: &str) -> String {
    lack("DELETE", parent(path))
}

fn lack(right: &str, node: &str) -> String {
    format!("this client lacks the right {right} in the access list of {node}")
}

/// Returns the right that is missing if the node at this path cannot be created.
pub(super) async fn to_create(client: &Client, path: &str) -> String {
    lack("CREATE", &lowest_above(client, path).await)
}

/// Returns the lowest existing node above the path: nothing may be created below it.
async fn lowest_above(client: &Client, path: &str) -> String {
    let mut node = parent(path);
    while node != "/" && !matches!(client.check_stat(node).await, Ok(Some(_))) {
        node = parent(node);
    }
    node.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_to_create_and_to_delete_are_those_of_the_node_above() {
        assert_eq!(parent("/a/b"), "/a");
        assert_eq!(parent("/a"), "/");
        assert_eq!(to_delete("/a/b"), "this client lacks the right DELETE in the access list of /a");
        let set = Write::SetData { path: "/a/b".to_owned(), data: Vec::new(), version: None };
        assert!(of_write(&set).ends_with("WRITE in the access list of /a/b"));
    }
}
