//! The data of contenders' nodes: the contender's identity, and the queues of its set of locks.
//!
//! A holder is asked to let go by a word of Curator's in its node's data. A holder of Curator listens to that word alone, so
//! its identity is overwritten. One of zklock's keeps it below the word, or nobody could tell any more who holds the lock.
//!
//! A set holds nothing until it is its turn in all of its queues, so a reader of one queue has to look at the others. The
//! data of its nodes says, below the identity, where those are: each node names first its own queue and then the first
//! queue of the set, and the first node names all of them. (If each named all, the data would grow with the square of
//! their number.)
//!
//! A node of a home-made lock whose name has no room for a mark has its mark here, at the very end.

use crate::machine::claim::Claim;
use crate::machine::name::{Uuid, mark_in_data, marked};
use crate::machine::protocol::REVOKE;
use std::sync::Arc;

/// Separates the identity from the queues. An identity may contain it too, but a path cannot, so the last one counts.
const MARK: &str = "\nin a set of locks with the queues\n";
/// Stands between the word that asks a holder of zklock to let go, and its identity.
const ASKED: &str = "\nasked of\n";
/// Marks a queue that the set leaves when it holds. No path ends with it.
const LEFT: char = '/';
/// The bytes that a node needs for its set, besides the paths.
const BYTES_AT_MOST: usize = MARK.len() + 6;

/// A queue that a set is in, or was in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Queue {
    pub(crate) directory: String,
    /// Whether the set leaves it when it holds, as it does with a semaphore's.
    pub(crate) is_left: bool,
}

/// Returns the data of a node that is not part of a set, for a client with this identity.
pub(crate) fn of(identity: &str) -> Arc<[u8]> {
    identity.as_bytes().into()
}

/// Puts the data of their nodes into the claims of a lock, for a client with this identity.
pub(crate) fn write(claims: &mut [Claim], identity: &str) {
    let queues: Vec<_> = claims.iter().map(Queue::of).collect();
    for (number, claim) in claims.iter_mut().enumerate() {
        claim.data = match (&queues[..], number) {
            ([_], _) => of(identity),
            ([_, others @ ..], 0) => of(&naming(identity, &queues[0], others)),
            _ => of(&naming(identity, &queues[number], &queues[..1])),
        };
        if let Some(permits) = &mut claim.permits {
            permits.data = of(identity);
        }
    }
}

fn naming(identity: &str, own: &Queue, others: &[Queue]) -> String {
    format!("{identity}{}", below(std::iter::once(own).chain(others)))
}

fn below<'a>(queues: impl Iterator<Item = &'a Queue>) -> String {
    format!("{MARK}{}", queues.map(Queue::line).collect::<Vec<_>>().join("\n"))
}

/// Returns the data of a node of zklock's after its holder has been asked to let go. The queues stay, or a set that waits
/// would look as if it held. A mark stays, or the attempt could not find its node any more.
pub(crate) fn asking(identity: &str, queues: &[Queue], mark: Option<Uuid>) -> Vec<u8> {
    let below = if queues.is_empty() { String::new() } else { below(queues.iter()) };
    let data = [REVOKE, ASKED.as_bytes(), identity.as_bytes(), below.as_bytes()].concat();
    mark.map_or_else(|| data.clone(), |mark| marked(&data, mark).to_vec())
}

/// Whether the data says that the holder is asked to let go.
pub(crate) fn asks(data: &[u8]) -> bool {
    let after = data.strip_prefix(REVOKE);
    after.is_some_and(|after| after.is_empty() || after.starts_with(ASKED.as_bytes()))
}

/// Returns the most bytes that a set with these queues takes in the data of all its nodes, besides the identity.
pub(crate) fn bytes_of(claims: &[Claim]) -> usize {
    let first = claims.first().map_or(0, |claim| claim.directory.len());
    // Each queue is named by its own node and by the first one, and its own node names the first queue too.
    claims.iter().map(|claim| 2 * claim.directory.len() + first + BYTES_AT_MOST).sum()
}

/// Returns the identity and the queues that a node's data names, its own queue first. There are no queues if it is not
/// part of a set.
pub(crate) fn read(data: &[u8]) -> (String, Vec<Queue>) {
    let data = mark_in_data(data).map_or(data, |(above, _)| above);
    let asked = data.strip_prefix(REVOKE).and_then(|after| after.strip_prefix(ASKED.as_bytes()));
    let text = String::from_utf8_lossy(asked.unwrap_or(data));
    match text.rsplit_once(MARK) {
        Some((identity, queues)) if queues.split('\n').all(|line| line.starts_with('/')) => {
            (identity.to_owned(), queues.split('\n').map(Queue::parse).collect())
        }
        _ => (text.into_owned(), Vec::new()),
    }
}

impl Queue {
    fn of(claim: &Claim) -> Self {
        Self { directory: claim.directory.to_string(), is_left: claim.permits.is_some() }
    }

    pub(crate) fn parse(line: &str) -> Self {
        match line.strip_suffix(LEFT) {
            Some(directory) => Self { directory: directory.to_owned(), is_left: true },
            None => Self { directory: line.to_owned(), is_left: false },
        }
    }

    fn line(&self) -> String {
        if self.is_left { format!("{}{LEFT}", self.directory) } else { self.directory.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::claim::Permits;
    use crate::machine::name::Scheme;

    fn set() -> [Claim; 3] {
        let mut claims = ["/a", "/b/locks", "/c"].map(|directory| Claim::new(directory, Scheme::Mutex));
        let (directory, data) = ("/b/leases".into(), Arc::default());
        claims[1].permits = Some(Permits { directory, count: 2, limit: 5, limit_at: None, data });
        claims
    }

    /// The data of the nodes of these claims.
    fn said(claims: &[Claim], identity: &str) -> Vec<String> {
        let mut claims = claims.to_vec();
        write(&mut claims, identity);
        claims.into_iter().map(|claim| String::from_utf8(claim.data.to_vec()).unwrap()).collect()
    }

    fn shown(queues: &[Queue]) -> Vec<(&str, bool)> {
        queues.iter().map(|queue| (&*queue.directory, queue.is_left)).collect()
    }

    #[test]
    fn each_node_names_its_own_queue_and_the_first_and_the_first_names_all() {
        let all = said(&set(), "db7/4711");
        assert_eq!(all[0], "db7/4711\nin a set of locks with the queues\n/a\n/b/locks/\n/c");
        for (data, expected) in all.iter().zip([
            vec![("/a", false), ("/b/locks", true), ("/c", false)],
            vec![("/b/locks", true), ("/a", false)],
            vec![("/c", false), ("/a", false)],
        ]) {
            let (identity, queues) = read(data.as_bytes());
            assert_eq!((&*identity, shown(&queues)), ("db7/4711", expected));
        }
    }

    #[test]
    fn an_identity_may_be_anything() {
        for identity in ["", "\n", "a\n/b", MARK, &format!("x{MARK}/y"), "ü\n\n"] {
            let (read_again, queues) = read(said(&set(), identity)[2].as_bytes());
            assert_eq!((&*read_again, queues.len()), (identity, 2));
        }
        for identity in ["", "\n", "a\n/b", MARK, "in a set of locks with the queues\n/y"] {
            assert_eq!(read(said(&set()[..1], identity)[0].as_bytes()), (identity.to_owned(), vec![]));
        }
    }

    #[test]
    fn a_holder_is_asked_by_a_word_above_its_identity() {
        for claims in [&set()[..1], &set()] {
            for data in said(claims, "db7/4711") {
                let (identity, queues) = read(data.as_bytes());
                let asking = asking(&identity, &queues, None);
                assert!(asks(&asking) && !asks(data.as_bytes()));
                let (identity, kept) = read(&asking);
                assert_eq!((&*identity, shown(&kept)), ("db7/4711", shown(&queues)));
            }
        }
        assert!(asks(b"__REVOKE__") && !asks(b"__REVOKE__ not") && !asks(b"") && !asks(b"__REVOKE__\n/a"));
        assert_eq!(read(b"__REVOKE__").0, "__REVOKE__");
    }

    #[test]
    fn a_mark_stays_when_its_holder_is_asked_and_is_no_part_of_the_identity() {
        let mark = Uuid::from_random(7);
        for data in [marked(b"db7/4711", mark).to_vec(), asking("db7/4711", &[], Some(mark))] {
            assert_eq!(read(&data), ("db7/4711".to_owned(), vec![]));
            assert_eq!(mark_in_data(&data).map(|(_, mark)| mark), Some(mark));
        }
        assert!(asks(&asking("db7/4711", &[], Some(mark))));
        assert_eq!(read(b"db7\nmarked by hand").0, "db7\nmarked by hand");
    }

    #[test]
    fn permits_and_single_locks_name_no_queues() {
        let mut claims = set();
        write(&mut claims, "x");
        assert_eq!(&*claims[1].permits.as_ref().unwrap().data, b"x");
        for claim in set() {
            assert_eq!(said(&[claim], "x"), ["x"]);
        }
    }

    #[test]
    fn what_all_the_nodes_say_is_counted() {
        let said: usize = said(&set(), "").iter().map(String::len).sum();
        assert!(said <= bytes_of(&set()), "{said} bytes");
    }
}
