//! Shortly before a wait times out, this finds out which contender is in the way, so that the error can name the holder.
//!
//! The question is asked before the deadline, not after it, because a call returns by its deadline. One answer serves all
//! callers of this client whose deadlines are near. A wait that ends in a grant asks nothing, and neither does one without a
//! deadline. A try that fails with an error asks when it knows that the lock is busy.

use super::{LocalQueue, Ticket};
use crate::base::clock;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::base::wait::{QUESTION, Wait};
use crate::machine::Moment;
use crate::machine::callers::CallerId;
use crate::machine::claim::Claim;
use crate::machine::name::{Name, Role, SINGLE_NAME};
use crate::machine::protocol::{Operation, Outcome};
use crate::machine::queue;
use crate::session::ask::request;
use crate::session::session::Session;
use crate::zookeeper::ensemble::Child;
use crate::zookeeper::node_data;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

/// How long an answer serves other callers that wait.
const FRESH: Duration = Duration::from_millis(100);
/// How long an answer serves tries, which a program may repeat without a pause.
const FRESH_FOR_TRIES: Duration = Duration::from_secs(1);
/// How old an answer may be when an error uses it: the time from the question to the deadline, and a moment more.
const TELLING: Duration = Duration::from_millis(400);
/// How much of an identity an error shows, since others may write anything into their nodes.
const IDENTITY: usize = 80;

/// The last answer.
#[derive(Default)]
pub(super) struct HolderLookup {
    /// Held by the task that asks.
    asks: tokio::sync::Mutex<()>,
    /// When the last answer came, and what was seen, if the servers answered.
    last: Mutex<Option<(Moment, Option<Arc<InTheWay>>)>>,
}

struct InTheWay {
    /// The first holder.
    first: Child,
    /// Whether the first holder is another caller of this client.
    is_ours: bool,
    holders: usize,
    /// How many more are ahead of the node that the next caller of this client waits with; `None` if that is unknown.
    ahead: Option<usize>,
}

/// The contenders in the way of one node, in one queue.
struct Rivals<'a> {
    directory: &'a Arc<str>,
    first: String,
    holders: usize,
    ahead: Option<usize>,
}

impl LocalQueue {
    /// Looks at the queue when a caller's wait is nearly over, if it is behind others at that time.
    pub(super) async fn look_up_holder(self: Arc<Self>, wait: Wait, caller: CallerId) -> Infallible {
        wait.nearly_over().await;
        if self.is_behind_others(caller) {
            // Boxed, because most waits end without it.
            Box::pin(self.see(FRESH)).await;
        }
        pending().await
    }

    /// Finds out who holds a lock that a try has just found busy, as part of an error. `None` if the servers do not answer
    /// at once, or before `wait` is over.
    pub(crate) async fn holder(&self, wait: Wait) -> Option<String> {
        tokio::select! {
            biased;
            () = self.see(FRESH_FOR_TRIES) => {}
            _ = wait.no_longer_than(QUESTION).over() => {}
        }
        Some(self.seen(FRESH_FOR_TRIES)?.holder())
    }

    /// Names the holder that a caller waits for, and says how many more are ahead, as part of an error. `None` if that is
    /// unknown.
    pub(crate) fn in_the_way(&self, ticket: &Ticket) -> Option<String> {
        let seen = self.seen(TELLING)?;
        // The caller with the node, and those that came before this one.
        let here = self.lock().callers.ahead_of(ticket.caller);
        Some(match seen.ahead.map(|ahead| ahead + here) {
            None => seen.holder(),
            Some(0) => format!("{}; we are next", seen.holder()),
            Some(more) => format!("{}; {more} more before us", seen.holder()),
        })
    }

    /// Returns what the last answer showed, if that was not longer ago.
    fn seen(&self, ago: Duration) -> Option<Arc<InTheWay>> {
        let (at, seen) = lock_ignoring_poison(&self.holder_lookup.last).clone()?;
        seen.filter(|_| clock::now().since(at) <= ago)
    }

    /// Asks the servers, unless the last answer is younger than `fresh`.
    async fn see(&self, fresh: Duration) {
        let _asks = self.holder_lookup.asks.lock().await;
        let is_fresh = |(at, _): &(Moment, _)| clock::now().since(*at) < fresh;
        if !lock_ignoring_poison(&self.holder_lookup.last).as_ref().is_some_and(is_fresh) {
            let seen = self.ask().await;
            *lock_ignoring_poison(&self.holder_lookup.last) = Some((clock::now(), seen.map(Arc::new)));
        }
    }

    /// Asks the servers; `None` if they do not answer.
    async fn ask(&self) -> Option<InTheWay> {
        let session = self.shared.pool.slot().current()?;
        // Of the counted place that is on its way in, if it may have to wait.
        let own = self.lock().entering().map_or(Vec::new(), |place| place.nodes.clone());
        for (number, (claim, held_at)) in self.claims.iter().zip(&self.held_at).enumerate() {
            let own = own.get(number).map(String::as_str);
            let Some(rivals) = rivals(&session, claim, own).await? else { continue };
            let child = session.shown(rivals.directory.clone(), rivals.first.clone()).await.ok()??;
            let is_ours = child.session == session.id();
            if is_ours && !held_at.is_held() {
                // The node of a try, which is not deleted yet.
                return None;
            }
            return Some(InTheWay { first: child, is_ours, holders: rivals.holders, ahead: rivals.ahead });
        }
        None
    }
}

impl InTheWay {
    fn holder(&self) -> String {
        sentence(&self.first, self.is_ours, self.holders, clock::age(self.first.created))
    }
}

/// Returns the contenders in the way in the queue of this claim; `None` if the servers do not answer.
async fn rivals<'a>(
    session: &Arc<Session>,
    claim: &'a Claim,
    own: Option<&str>,
) -> Option<Option<Rivals<'a>>> {
    let directory = claim.permits.as_ref().map_or(&claim.directory, |permits| &permits.directory);
    let listed = request(session, Operation::List { directory: directory.clone() }).await.ok()?;
    let (Outcome::Children(children), _) = listed else { return None };
    let rivals = |first: String, holders, ahead| Some(Rivals { directory, first, holders, ahead });
    if claim.permits.is_some() {
        // Our own permits exist before it is known whether there are enough. They have the mark of our node.
        let mark = own.and_then(Name::parse).and_then(|own| own.uuid());
        let is_ours = |permit: &Name<'_>| mark.is_some() && permit.uuid() == mark;
        let permits = children.iter().filter_map(|child| Name::parse_lease(child));
        let mut permits: Vec<_> = permits.filter(|permit| !is_ours(permit)).collect();
        permits.sort_by(Name::compare);
        return Some(permits.first().and_then(|first| rivals(first.text.to_owned(), permits.len(), None)));
    }
    if !claim.has_queue() {
        let holder = children.into_iter().find(|child| child == SINGLE_NAME);
        return Some(holder.and_then(|holder| rivals(holder, 1, None)));
    }
    let ahead = queue::in_the_way(&children, own, claim);
    let Some(first) = ahead.first().copied() else { return Some(None) };
    let reads = |name: &&&str| claim.parse(name).is_some_and(|name| name.scheme.role() == Role::Read);
    let holders = ahead.iter().take_while(reads).count().max(1);
    Some(rivals(first.to_owned(), holders, own.map(|_| ahead.len() - holders)))
}

/// Names the first holder.
fn sentence(first: &Child, is_ours: bool, holders: usize, age: Duration) -> String {
    let (identity, queues) = node_data::read(&first.data);
    let identity: String = identity.chars().filter(|letter| !letter.is_control()).take(IDENTITY).collect();
    let identity = match (is_ours, identity.as_str()) {
        (true, _) => "another caller of this client",
        (false, "") => "a contender without a name",
        (false, identity) => identity,
    };
    let others = match holders - 1 {
        0 => String::new(),
        1 => " and another".to_owned(),
        others => format!(" and {others} others"),
    };
    let verb = match (queues.is_empty(), holders) {
        // A set holds its locks only when it is its turn in all of its queues.
        (false, 1) => "is the first",
        (false, _) => "are the first",
        (true, 1) => "holds it",
        (true, _) => "hold it",
    };
    let (name, seconds) = (&first.name, age.as_secs_f64());
    format!("{identity}{others} {verb} (its node {name} is {seconds:.1} s old)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn child(data: &[u8]) -> Child {
        let name = "_c_a-lock-0000000001".to_owned();
        Child { name, data: data.to_vec(), czxid: 1, session: 1, created: SystemTime::UNIX_EPOCH }
    }

    #[test]
    fn a_holder_is_named_as_it_calls_itself() {
        let age = Duration::from_millis(12_340);
        let says = |data: &[u8], is_ours, holders| sentence(&child(data), is_ours, holders, age);
        let node = "(its node _c_a-lock-0000000001 is 12.3 s old)";
        assert_eq!(says(b"db7/4711", false, 1), format!("db7/4711 holds it {node}"));
        assert_eq!(says(b"db7/4711", false, 2), format!("db7/4711 and another hold it {node}"));
        assert_eq!(says(b"db7/4711", false, 5), format!("db7/4711 and 4 others hold it {node}"));
        assert_eq!(says(b"db7/4711", true, 1), format!("another caller of this client holds it {node}"));
        assert_eq!(says(b"", false, 1), format!("a contender without a name holds it {node}"));
    }

    #[test]
    fn what_others_write_into_their_nodes_does_not_break_a_line_or_fill_a_log() {
        let says = |data: &[u8]| sentence(&child(data), false, 1, Duration::ZERO);
        assert!(says(b"a\n\x1b[31mb\r\0").starts_with("a[31mb holds it"));
        assert!(says(&vec![b'x'; 1 << 20]).len() < 200);
        assert!(says(b"\xff\xfe").ends_with("holds it (its node _c_a-lock-0000000001 is 0.0 s old)"));
    }
}
