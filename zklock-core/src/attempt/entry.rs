//! Reports on an attempt that has a node: how many contenders were ahead of it, and what it waits behind.

use crate::machine::claim::Claim;
use crate::machine::protocol::{Operation, Outcome};
use crate::machine::queue::count_ahead;
use tracing::Level;

/// Returns how many contenders were ahead of the nodes that this flight has created and listed, in the longest of the
/// queues; `None` if it has not queued.
pub(super) fn ahead(claims: &[Claim], flight: &[Operation], outcomes: &[Outcome]) -> Option<usize> {
    let (
        Some(Operation::Create(_) | Operation::CreateAll(_) | Operation::CreateWithin { .. }),
        Some(Outcome::Created(nodes)),
    ) = (flight.first(), outcomes.first())
    else {
        return None;
    };
    let listed = flight.iter().zip(outcomes).skip(1).filter_map(|(operation, outcome)| {
        let (Operation::List { directory }, Outcome::Children(children)) = (operation, outcome) else {
            return None;
        };
        // Permits are created in the same way, but listed in their own directory.
        let number = claims.iter().position(|claim| claim.directory == *directory)?;
        count_ahead(children, &nodes.get(number)?.name, &claims[number])
    });
    listed.max()
}

/// Returns the names of the nodes that were created, in the order of the claims, if they may have to wait.
pub(super) fn waiting_nodes(claims: &[Claim], ahead: usize, outcomes: &[Outcome]) -> Option<Vec<String>> {
    let Some(Outcome::Created(nodes)) = outcomes.first() else { return None };
    // It may wait for permits even if nobody is ahead.
    let may_wait = ahead > 0 || claims.iter().any(|claim| claim.permits.is_some());
    may_wait.then(|| nodes.iter().map(|node| node.name.clone()).collect())
}

/// Logs the nodes that a flight has created, and which node it watches.
pub(super) fn log(
    path: &str,
    ahead: Option<usize>,
    flight: &[Operation],
    outcomes: &[Outcome],
    is_held: bool,
) {
    if !tracing::enabled!(Level::DEBUG) {
        return;
    }
    for (operation, outcome) in flight.iter().zip(outcomes) {
        match (operation, outcome) {
            (Operation::Watch { path: behind }, Outcome::Done) if !is_held => {
                tracing::debug!(path, behind, "waits behind another");
            }
            (_, Outcome::Created(nodes)) => {
                for (number, node) in nodes.iter().enumerate() {
                    let (directory, name) = (directory(operation, number), &*node.name);
                    tracing::debug!(path, node = format_args!("{directory}/{name}"), ahead, "node created");
                }
            }
            _ => {}
        }
    }
}

/// Returns the directory in which one of the nodes was created.
fn directory(operation: &Operation, number: usize) -> &str {
    let above = |path: &'_ str| path.rfind('/').unwrap_or(0);
    match operation {
        Operation::Create(node) => &node.directory,
        Operation::CreateAll(nodes) => nodes.get(number).map_or("", |node| &node.directory),
        Operation::CreateWithin { path, .. }
        | Operation::CreateSingle { path, .. }
        | Operation::CreatePair { path, .. } => &path[..above(path)],
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::name::Scheme;
    use crate::machine::protocol::Node;

    const MARK: &str = "b9b5d5f6-0a4f-4a5e-8a55-0d4a1c0d6a11";

    fn name(kind: &str, sequence: i32) -> String {
        format!("_c_{MARK}-{kind}{sequence:010}")
    }

    fn created(names: &[&str]) -> Outcome {
        Outcome::Created(names.iter().map(|name| Node { name: (*name).to_owned(), origin: None }).collect())
    }

    fn creation() -> Operation {
        Operation::CreateAll(Vec::new())
    }

    fn list(directory: &str) -> Operation {
        Operation::List { directory: directory.into() }
    }

    #[test]
    fn those_before_a_node_are_counted_if_they_exclude_it() {
        let (own, writer) = (name("__READ__", 5), name("__WRIT__", 9));
        let others = [name("__READ__", 1), name("__WRIT__", 2), name("__WRIT__", 4), name("__WRIT__", 7)];
        let ours = ["config".to_owned(), own.clone(), writer.clone()];
        let children = Outcome::Children(others.iter().cloned().chain(ours).collect());
        let read = [Claim::new("/a", Scheme::Read)];
        let flight = [creation(), list("/a")];
        assert_eq!(ahead(&read, &flight, &[created(&[&own]), children.clone()]), Some(2));
        let within = [Claim { within: Some(others[2].clone()), ..read[0].clone() }];
        assert_eq!(ahead(&within, &flight, &[created(&[&own]), children.clone()]), Some(1));
        let write = [Claim::new("/a", Scheme::Write)];
        assert_eq!(ahead(&write, &flight, &[created(&[&writer]), children]), Some(5));
    }

    #[test]
    fn a_free_lock_has_nobody_ahead() {
        let own = name("lock-", 3);
        let claims = [Claim::new("/a", Scheme::Mutex)];
        let outcomes = |children: &[&String]| {
            [created(&[&own]), Outcome::Children(children.iter().map(|name| (*name).clone()).collect())]
        };
        let flight = [creation(), list("/a")];
        assert_eq!(ahead(&claims, &flight, &outcomes(&[&own])), Some(0));
        assert_eq!(ahead(&claims, &flight, &outcomes(&[&own, &name("lock-", 4)])), Some(0));
        assert_eq!(
            ahead(&claims, &flight, &outcomes(&[&name("lock-", 2)])),
            None,
            "our node is gone already"
        );
    }

    #[test]
    fn of_a_set_the_longest_queue_counts() {
        let names = [name("lock-", 2), name("lock-", 8)];
        let others = [name("lock-", 0), name("lock-", 1)];
        let claims = [Claim::new("/a", Scheme::Mutex), Claim::new("/b", Scheme::Mutex)];
        let children =
            |names: &[&String]| Outcome::Children(names.iter().map(|name| (*name).clone()).collect());
        let outcomes = [
            created(&[&names[0], &names[1]]),
            children(&[&names[0]]),
            children(&[&others[0], &others[1], &names[1]]),
        ];
        assert_eq!(ahead(&claims, &[creation(), list("/a"), list("/b")], &outcomes), Some(2));
    }

    #[test]
    fn only_a_flight_that_queues_is_an_entry() {
        let own = name("lock-", 3);
        let claims = [Claim::new("/a", Scheme::Mutex)];
        let children = Outcome::Children(vec![own.clone()]);
        assert_eq!(ahead(&claims, &[list("/a")], std::slice::from_ref(&children)), None);
        assert_eq!(ahead(&claims, &[creation(), list("/a")], &[Outcome::Unknown, Outcome::Unknown]), None);
        assert_eq!(ahead(&claims, &[creation(), list("/a/leases")], &[created(&[&own]), children]), None);
    }
}
