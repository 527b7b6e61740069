//! The question that ends a long silence of watches: what exists, and what does our server show?
//!
//! Thousands of watches may be set at one moment, after a reconnect, and so fall due at one moment. A question for each
//! would be as many writes, and the heartbeat would wait behind them until all holds of the session are lost. So one request
//! asks about all that are due at about the same time, and the next is sent when that one is answered. The time at which it
//! asks differs at random between clients, which may all have lost their connections at one moment too.

use super::checks::check_in_order;
use super::paths::join;
use super::serving::{Serving, WatchKind};
use crate::base::clock;
use crate::base::platform::random_bits;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::machine::protocol::{Outcome, WatchEvent};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use zookeeper_client::{Client, Error, Stat};

/// The most bytes of paths in one request, of the megabyte that servers take by default.
pub(super) const BYTES_AT_MOST: usize = 128 * 1024;
/// The bytes that a check takes besides its path.
const CHECK_BYTES: usize = 32;

/// The doubts of one connection that are not settled.
pub(super) struct Doubts {
    serving: Arc<Serving>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    doubts: VecDeque<Doubt>,
    /// Whether a task settles them.
    is_settling: bool,
}

/// Something that is watched, and may no longer be as it was.
struct Doubt {
    path: String,
    known: Known,
    finding: oneshot::Sender<Finding>,
}

/// The state when the watch was set.
pub(super) enum Known {
    Node(Option<Version>),
    /// The names of the children.
    Children(Vec<String>),
}

/// The transactions that created a node and last wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Version {
    czxid: i64,
    mzxid: i64,
}

/// What the servers' answers show about a doubt.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Finding {
    /// Nothing has happened, as far as anybody can tell.
    Same,
    /// The watch should have reported this.
    Missed(WatchEvent),
    /// Our server shows a node that does not exist.
    Astray,
}

impl Known {
    pub(super) fn kind(&self) -> WatchKind {
        match self {
            Self::Node(_) => WatchKind::Data,
            Self::Children(_) => WatchKind::Children,
        }
    }

    /// Returns how much of a request the question takes.
    pub(super) fn bytes(&self, path: &str) -> usize {
        match self {
            Self::Node(_) => path.len() + CHECK_BYTES,
            Self::Children(names) => names.iter().map(|name| path.len() + name.len() + CHECK_BYTES).sum(),
        }
    }
}

impl From<&Stat> for Version {
    fn from(stat: &Stat) -> Self {
        Self { czxid: stat.czxid, mzxid: stat.mzxid }
    }
}

impl From<&Stat> for Known {
    fn from(stat: &Stat) -> Self {
        Self::Node(Some(stat.into()))
    }
}

impl From<Option<&Stat>> for Known {
    fn from(stat: Option<&Stat>) -> Self {
        Self::Node(stat.map(Version::from))
    }
}

impl From<&[String]> for Known {
    fn from(children: &[String]) -> Self {
        Self::Children(children.to_owned())
    }
}

impl Doubts {
    pub(super) fn of(serving: Arc<Serving>) -> Arc<Self> {
        Arc::new(Self { serving, waiting: Mutex::default() })
    }

    /// Returns the answer about what was left at this path; none if the connection ends before. It is asked for within
    /// `soon`, together with what else is raised until then.
    pub(super) fn raise(
        self: &Arc<Self>,
        path: String,
        known: Known,
        soon: Duration,
    ) -> oneshot::Receiver<Finding> {
        let (finding, settled) = oneshot::channel();
        let mut waiting = lock_ignoring_poison(&self.waiting);
        waiting.doubts.push_back(Doubt { path, known, finding });
        if !std::mem::replace(&mut waiting.is_settling, true) {
            self.serving.runtime.spawn(settle_all(self.clone(), soon));
        }
        settled
    }

    /// Returns doubts that fit into one request; none if there are none or nobody waits for an answer.
    fn take_some(&self) -> Vec<Doubt> {
        let waiting = &mut *lock_ignoring_poison(&self.waiting);
        let (mut bytes, mut some) = (0, Vec::new());
        while let Some(doubt) = waiting.doubts.pop_front() {
            if doubt.finding.is_closed() {
                continue;
            }
            bytes += doubt.known.bytes(&doubt.path);
            if bytes > BYTES_AT_MOST && !some.is_empty() {
                waiting.doubts.push_front(doubt);
                break;
            }
            some.push(doubt);
        }
        waiting.is_settling = !some.is_empty();
        some
    }
}

/// Settles all doubts, some at a time.
async fn settle_all(doubts: Arc<Doubts>, soon: Duration) {
    let half = soon / 2;
    clock::sleep(half + half / 1_000 * (random_bits() % 1_000) as u32).await;
    loop {
        let mut some = doubts.take_some();
        if some.is_empty() {
            return;
        }
        while !some.is_empty() {
            // The client must not be kept meanwhile, or nobody could close its session. Without it, the doubts are dropped.
            let Some(client) = doubts.serving.client() else { break };
            some = settle(&client, some).await;
        }
    }
}

/// Asks the quorum, and then our server, which by then has seen everything that the quorum's answer is based on. Returns the
/// doubts that are left.
async fn settle(client: &Client, mut doubts: Vec<Doubt>) -> Vec<Doubt> {
    // What has been reported meanwhile may well be gone, and each node that is gone costs a request.
    doubts.retain(|doubt| !doubt.finding.is_closed());
    if doubts.is_empty() {
        return doubts;
    }
    let (mut nodes, mut ends) = (Vec::new(), Vec::with_capacity(doubts.len()));
    for doubt in &doubts {
        nodes.extend(doubt.nodes());
        ends.push(nodes.len());
    }
    if nodes.is_empty() {
        nodes.push("/".to_owned());
    }
    let (passed, failure, rest) = match check_in_order(client, &nodes).await {
        Ok(()) => (doubts.len(), Outcome::Done, Vec::new()),
        // All before the first one that fails exist.
        Err((node, outcome)) if node < nodes.len() => {
            let passed = ends.partition_point(|end| *end <= node);
            let rest = doubts.split_off(doubts.len().min(passed + 1));
            (passed, outcome, rest)
        }
        Err((_, outcome)) => (0, outcome, Vec::new()),
    };
    let quorum = |number| if number < passed { &Outcome::Done } else { &failure };
    // Sent together.
    let asked = doubts.iter().enumerate().map(|(number, doubt)| doubt.compared(client, quorum(number)));
    let asked: Vec<_> = asked.collect();
    let mut findings = Vec::with_capacity(asked.len());
    for finding in asked {
        findings.push(finding.await);
    }
    for (doubt, finding) in doubts.into_iter().zip(findings) {
        // The watch may have reported something meanwhile.
        let _ = doubt.finding.send(finding);
    }
    rest
}

impl Doubt {
    /// Returns the nodes that existed.
    fn nodes(&self) -> Vec<String> {
        match &self.known {
            Known::Node(version) => version.iter().map(|_| self.path.clone()).collect(),
            Known::Children(names) => names.iter().map(|name| join(&self.path, name)).collect(),
        }
    }

    /// Compares what was left with what the quorum has answered, and with what our server shows. That is asked before this
    /// returns.
    fn compared<'a>(
        &'a self,
        client: &'a Client,
        quorum: &'a Outcome,
    ) -> Pin<Box<dyn Future<Output = Finding> + Send + 'a>> {
        match &self.known {
            Known::Node(known) => {
                let shown = client.check_stat(&self.path);
                Box::pin(async move {
                    let Ok(shown) = shown.await else { return Finding::Same };
                    let shown = shown.as_ref().map(Version::from);
                    compare(known, &shown, quorum, known.is_some(), shown.is_none())
                })
            }
            Known::Children(names) => {
                let shown = client.list_children(&self.path);
                Box::pin(async move {
                    let mut shown = match shown.await {
                        Ok(shown) => shown,
                        Err(Error::NoNode) => return Finding::Missed(WatchEvent::Deleted),
                        Err(_) => return Finding::Same,
                    };
                    let mut names = names.clone();
                    shown.sort_unstable();
                    names.sort_unstable();
                    compare(&names, &shown, quorum, !names.is_empty(), false)
                })
            }
        }
    }
}

/// `asked` says whether the quorum was asked about anything that existed when the watch was set.
fn compare<T: PartialEq>(known: &T, shown: &T, quorum: &Outcome, asked: bool, is_gone: bool) -> Finding {
    if known != shown {
        return Finding::Missed(if is_gone { WatchEvent::Deleted } else { WatchEvent::Changed });
    }
    // A node that existed before was deleted before that answer. It does not matter which one: all belong to one question.
    if asked && *quorum == Outcome::NoNode { Finding::Astray } else { Finding::Same }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::protocol::Refusal;

    #[test]
    fn only_what_was_there_and_is_still_shown_leads_a_server_astray() {
        let there = Some(Version { czxid: 1, mzxid: 1 });
        let compared = |known, shown: Option<Version>, quorum: Outcome| {
            compare(&known, &shown, &quorum, known.is_some(), shown.is_none())
        };
        let missed = Finding::Missed;
        assert_eq!(compared(there, there, Outcome::Done), Finding::Same);
        assert_eq!(compared(there, there, Outcome::NoNode), Finding::Astray);
        assert_eq!(compared(None, None, Outcome::NoNode), Finding::Same);
        for quorum in [Outcome::Unknown, Outcome::Refused(Refusal::Denied), Outcome::SessionOver] {
            assert_eq!(compared(there, there, quorum), Finding::Same);
        }
        for quorum in [Outcome::Done, Outcome::NoNode] {
            assert_eq!(compared(there, None, quorum.clone()), missed(WatchEvent::Deleted));
            let written = Some(Version { czxid: 1, mzxid: 2 });
            assert_eq!(compared(there, written, quorum.clone()), missed(WatchEvent::Changed));
            assert_eq!(compared(None, there, quorum), missed(WatchEvent::Changed));
        }
    }
}
