//! Whether a set of locks holds, as others can tell from its nodes' data. See [`node_data`](crate::zookeeper::node_data).

use crate::base::failure::Failure;
use crate::machine::claim::{Claim, Foreign};
use crate::machine::name::{Name, Uuid};
use crate::machine::protocol::{Operation, Outcome};
use crate::machine::queue::{Standing, standing};
use crate::session::ask::request;
use crate::session::session::Session;
use crate::zookeeper::node_data::{self, Queue};
use std::sync::Arc;

/// Whether a set holds. One of its nodes, whose turn it is in `directory`, has this mark and names these queues. In a
/// queue that cannot be read, it counts as the set's turn; in one without its node, the set counts as having left.
pub(crate) async fn holds(
    session: &Arc<Session>,
    directory: &str,
    mark: Uuid,
    queues: &[Queue],
) -> Result<bool, Failure> {
    let mut queues = as_seen(queues, directory);
    if let [_, first] = &queues[..] {
        // The first node may name more.
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

/// A queue whose access list forbids reading it is treated as not seen.
fn seen<T>(read: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match read {
        Err(Failure::Refused(_)) => Ok(None),
        read => read.map(Some),
    }
}

/// Returns the queues that the node with this mark names.
async fn named_by(
    session: &Arc<Session>,
    directory: &str,
    mark: Uuid,
) -> Result<Option<Vec<Queue>>, Failure> {
    let children = names(session, directory).await?;
    let Some(own) = node_of(&children, mark) else { return Ok(None) };
    let child = session.child(directory.into(), own.text.to_owned()).await?;
    Ok(child.map(|(child, _)| node_data::read(&child.data).1).filter(|queues| !queues.is_empty()))
}

async fn names(session: &Arc<Session>, directory: &str) -> Result<Vec<String>, Failure> {
    match request(session, Operation::List { directory: directory.into() }).await? {
        (Outcome::Children(children), _) => Ok(children),
        _ => Ok(Vec::new()),
    }
}

fn node_of(children: &[String], mark: Uuid) -> Option<Name<'_>> {
    children.iter().filter_map(|child| Name::parse(child)).find(|name| name.uuid() == Some(mark))
}

fn is_at_its_turn(children: &[String], own: Name<'_>) -> bool {
    // Only a reader inside our own write side shares our number.
    let is_another = |name: &Name<'_>| name.text == own.text || name.sequence != own.sequence;
    let others = children.iter().filter(|child| Name::parse(child).is_none_or(|name| is_another(&name)));
    let claim = Claim { foreign: Foreign::IgnoreUnknown, ..Claim::new("", own.scheme) };
    standing(&others.cloned().collect::<Vec<_>>(), own.text, &claim) == Standing::Holds
}

/// Returns the queues as a client names them for which the first one is `directory`: with another chroot, paths begin
/// differently. Queues outside its chroot are left out.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(queues: &[Queue]) -> Vec<(&str, bool)> {
        queues.iter().map(|queue| (&*queue.directory, queue.is_left)).collect()
    }

    #[test]
    fn with_another_chroot_the_paths_begin_in_another_way() {
        let queues = ["/in/a", "/in/b/locks/", "/other"].map(Queue::parse);
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
