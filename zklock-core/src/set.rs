//! What the nodes of a set of locks say of the set, for those who look: in which queues it stands.
//!
//! A set holds nothing before it is its turn in all of its queues, so whoever sees one of them has to look at the others.
//! The nodes say in their data, below the identity, where those are: each first its own queue, then the first one of the
//! set, and that one all the others. (Were each to name all, the data would grow with the square of their number.)

use crate::ask::request;
use crate::ensemble::ReadFailure;
use crate::machine::claim::{Claim, Foreign};
use crate::machine::name::{Name, Uuid};
use crate::machine::protocol::{NewNode, Operation, Outcome, Stay};
use crate::machine::queue::{Standing, standing};
use crate::session::Session;
use std::sync::Arc;

/// Stands between the identity and the queues. An identity may contain it as well, a path cannot: so the last one counts.
const MARK: &str = "\nin a set of locks with the queues\n";
/// At the end of a queue in which the set does not stay when it holds. No path ends with it.
const LEFT: char = '/';
/// What a node says of its set, beside the paths.
const BYTES_AT_MOST: usize = MARK.len() + 6;

/// A queue in which a set stands, or stood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Queue {
    directory: String,
    /// Whether the set leaves it when it holds: that of a semaphore.
    is_left: bool,
}

/// The data of the node with this number, of those that are created together.
pub(crate) fn data_of(identity: &[u8], nodes: &[NewNode], number: usize) -> Vec<u8> {
    let mut data = identity.to_vec();
    let is_set = nodes.len() > 1 && nodes.iter().all(|node| node.stay != Stay::AsPermit);
    if !is_set {
        return data;
    }
    let others = if number == 0 { &nodes[1..] } else { &nodes[..1] };
    let line = |node: &NewNode| match node.stay {
        Stay::UntilPermits => format!("{}{LEFT}", node.directory),
        _ => node.directory.to_string(),
    };
    let lines: Vec<_> = std::iter::once(&nodes[number]).chain(others).map(line).collect();
    data.extend_from_slice(MARK.as_bytes());
    data.extend_from_slice(lines.join("\n").as_bytes());
    data
}

/// How many bytes a set with these queues takes in all the data of its nodes, at most.
pub(crate) fn bytes_of(claims: &[Claim]) -> usize {
    let first = claims.first().map_or(0, |claim| claim.directory.len());
    // Each is named by its own node and by the first, and names the first.
    claims.iter().map(|claim| 2 * claim.directory.len() + first + BYTES_AT_MOST).sum()
}

/// The identity, and the queues that are named in a node's data: its own first. None if it is of no set.
pub(crate) fn read(data: &[u8]) -> (String, Vec<Queue>) {
    let text = String::from_utf8_lossy(data);
    match text.rsplit_once(MARK) {
        Some((identity, queues)) if queues.split('\n').all(|line| line.starts_with('/')) => {
            (identity.to_owned(), queues.split('\n').map(Queue::of).collect())
        }
        _ => (text.into_owned(), Vec::new()),
    }
}

/// Whether the set holds, one of whose nodes is at its turn in `directory`, bears this mark and names these queues. Where
/// a queue cannot be seen it is taken to be at its turn; and where it has no node any more, to have left.
pub(crate) async fn holds(
    session: &Arc<Session>,
    directory: &str,
    mark: Uuid,
    queues: &[Queue],
) -> Result<bool, ReadFailure> {
    let mut queues = as_seen(queues, directory);
    if let [_, first] = &queues[..] {
        // It may be that it names more.
        if let Some(more) = seen(named_by(session, &first.directory, mark).await)?.flatten() {
            queues = as_seen(&more, &first.directory);
        }
    }
    for queue in queues.iter().filter(|queue| queue.directory != directory) {
        let children = seen(names(session, &queue.directory).await)?.unwrap_or_default();
        if let Some(own) = node_of(&children, mark) {
            if queue.is_left || !is_at_its_turn(&children, own) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// What the access list of another queue forbids is not seen.
fn seen<T>(read: Result<T, ReadFailure>) -> Result<Option<T>, ReadFailure> {
    match read {
        Err(ReadFailure::Refused(_)) => Ok(None),
        read => read.map(Some),
    }
}

/// The queues that the node with this mark names.
async fn named_by(
    session: &Arc<Session>,
    directory: &str,
    mark: Uuid,
) -> Result<Option<Vec<Queue>>, ReadFailure> {
    let children = names(session, directory).await?;
    let Some(own) = node_of(&children, mark) else { return Ok(None) };
    let child = session.child(directory.into(), own.text.to_owned()).await?;
    Ok(child.map(|(child, _)| read(&child.data).1).filter(|queues| !queues.is_empty()))
}

async fn names(session: &Arc<Session>, directory: &str) -> Result<Vec<String>, ReadFailure> {
    match request(session, Operation::List { directory: directory.into() }).await? {
        (Outcome::Children(children), _) => Ok(children),
        _ => Ok(Vec::new()),
    }
}

fn node_of(children: &[String], mark: Uuid) -> Option<Name<'_>> {
    children.iter().filter_map(|child| Name::parse(child)).find(|name| name.uuid() == Some(mark))
}

fn is_at_its_turn(children: &[String], own: Name<'_>) -> bool {
    // Only a reader within our own write side shares our number.
    let is_another = |name: &Name<'_>| name.text == own.text || name.sequence != own.sequence;
    let others = children.iter().filter(|child| Name::parse(child).is_none_or(|name| is_another(&name)));
    let claim = Claim { foreign: Foreign::GoAhead, ..Claim::new("", own.scheme) };
    standing(&others.cloned().collect::<Vec<_>>(), own.text, &claim) == Standing::Holds
}

/// The queues as one sees them who sees the first of them as `directory`: with another chroot the paths differ in what
/// they begin with. Without those that are out of sight.
fn as_seen(queues: &[Queue], directory: &str) -> Vec<Queue> {
    let Some(own) = queues.first().map(|queue| &*queue.directory) else { return Vec::new() };
    let translated = |path: &str| match directory.strip_suffix(own) {
        Some(above) => Some(format!("{above}{path}")),
        None => path.strip_prefix(own.strip_suffix(directory)?).map(str::to_owned),
    };
    let visible = |queue: &Queue| {
        let directory = translated(&queue.directory).filter(|path| path.starts_with('/'))?;
        Some(Queue { directory, is_left: queue.is_left })
    };
    queues.iter().filter_map(visible).collect()
}

impl Queue {
    fn of(line: &str) -> Self {
        match line.strip_suffix(LEFT) {
            Some(directory) => Self { directory: directory.to_owned(), is_left: true },
            None => Self { directory: line.to_owned(), is_left: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(directory: &str, stay: Stay) -> NewNode {
        NewNode { directory: directory.into(), prefix: String::new(), stay }
    }

    fn set() -> [NewNode; 3] {
        [node("/a", Stay::WithHold), node("/b/locks", Stay::UntilPermits), node("/c", Stay::WithHold)]
    }

    fn shown(queues: &[Queue]) -> Vec<(&str, bool)> {
        queues.iter().map(|queue| (&*queue.directory, queue.is_left)).collect()
    }

    #[test]
    fn each_node_names_its_own_queue_and_the_first_and_the_first_names_all() {
        for (number, expected) in [
            (0, vec![("/a", false), ("/b/locks", true), ("/c", false)]),
            (1, vec![("/b/locks", true), ("/a", false)]),
            (2, vec![("/c", false), ("/a", false)]),
        ] {
            let (identity, queues) = read(&data_of(b"db7/4711", &set(), number));
            assert_eq!((&*identity, shown(&queues)), ("db7/4711", expected));
        }
    }

    #[test]
    fn an_identity_may_be_anything() {
        for identity in ["", "\n", "a\n/b", MARK, &format!("x{MARK}/y"), "ü\n\n"] {
            let (read_again, queues) = read(&data_of(identity.as_bytes(), &set(), 2));
            assert_eq!((&*read_again, queues.len()), (identity, 2));
        }
        for identity in ["", "\n", "a\n/b", MARK, "in a set of locks with the queues\n/y"] {
            assert_eq!(read(&data_of(identity.as_bytes(), &set()[..1], 0)), (identity.to_owned(), vec![]));
        }
    }

    #[test]
    fn permits_and_single_locks_name_no_queues() {
        let permits = [node("/a/leases", Stay::AsPermit), node("/b/leases", Stay::AsPermit)];
        assert_eq!(data_of(b"x", &permits, 0), b"x");
        assert_eq!(data_of(b"x", &set()[..1], 0), b"x");
    }

    #[test]
    fn what_all_the_nodes_say_is_counted() {
        let claims = set().map(|node| Claim::new(&node.directory, crate::machine::name::Scheme::Mutex));
        let said: usize = (0..3).map(|number| data_of(b"", &set(), number).len()).sum();
        assert!(said <= bytes_of(&claims), "{said} bytes");
    }

    #[test]
    fn with_another_chroot_the_paths_begin_in_another_way() {
        let queues = ["/in/a", "/in/b/locks/", "/other"].map(Queue::of);
        let all = |above: &str| {
            [("in/a", false), ("in/b/locks", true), ("other", false)]
                .map(|(path, is_left)| (format!("{above}/{path}"), is_left))
        };
        for (directory, above) in [("/in/a", ""), ("/top/in/a", "/top")] {
            let found = as_seen(&queues, directory);
            let found: Vec<_> = found.into_iter().map(|queue| (queue.directory, queue.is_left)).collect();
            assert_eq!(found, all(above));
        }
        assert_eq!(shown(&as_seen(&queues, "/a")), [("/a", false), ("/b/locks", true)]);
        assert_eq!(shown(&as_seen(&queues, "/unlike")), []);
    }

    #[test]
    fn a_reader_within_the_own_write_side_is_not_in_the_way() {
        let children = ["_c_x-__READ__0000000007", "_c_w-__WRIT__0000000007"].map(String::from);
        assert!(is_at_its_turn(&children, Name::parse(&children[1]).unwrap()));
        let children = ["_c_x-__READ__0000000006", "_c_w-__WRIT__0000000007"].map(String::from);
        assert!(!is_at_its_turn(&children, Name::parse(&children[1]).unwrap()));
    }
}
