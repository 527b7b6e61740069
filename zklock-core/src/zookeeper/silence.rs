//! How to deal with a watch that has been silent for long.
//!
//! A waiter depends on one message: that the node ahead is gone. It may wait for that message in vain.
//!
//! * A server may have lost the watch, or the event.
//! * A server that was killed in the middle of a write can come back without transactions that the quorum has committed
//!   (ZOOKEEPER-4643, ZOOKEEPER-4785). It then keeps showing nodes that are gone everywhere else.
//! * An operator may have deleted the waiter's own node. Then a holder that would release the lock if others waited sees
//!   nobody.
//!
//! So after a long silence we ask the quorum what exists, and our server what it shows. If a server shows something that the
//! quorum knows to be gone, we leave it for another server. If all seems well, the watch reports that something may have
//! changed. Its owner then reads everything again, and sets another watch.
//!
//! Silence is counted per node, across successive watches. An owner that watches several nodes is woken by one, and sets new
//! watches on the others. If each of those started the count again, a node that a server shows in error would never be doubted
//! in a queue where others come and go.

use super::checks::check_all;
use super::operations::join;
use super::serving::{Serving, WatchKind};
use crate::clock;
use crate::ensemble::Pending;
use crate::machine::Moment;
use crate::machine::protocol::{Outcome, WatchEvent};
use crate::sync::lock_ignoring_poison;
use futures_util::FutureExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zookeeper_client::{Client, Error, OneshotWatcher, Stat};

/// How many session timeouts a silence lasts before we doubt it.
const TIMEOUTS: u32 = 2;
/// The least such time, however short the session timeout: a question costs the ensemble a write.
const SHORTEST: Duration = Duration::from_secs(5);
/// The largest number of children to ask about, roughly: more than there are permits, and far fewer than fit into a request.
const CHILDREN: usize = 1_000;
/// How many nodes a connection remembers before it forgets those that nobody watches.
const REMEMBERED: usize = 1_000;

/// How long the watched nodes of one connection have not been asked about.
#[derive(Default)]
pub(super) struct Silences(Mutex<HashMap<String, Silence>>);

#[derive(Clone, Copy)]
struct Silence {
    since: Moment,
    /// When the latest watch was set.
    watched: Moment,
}

impl Silences {
    /// Notes a new watch. Returns since when its node has been silent.
    fn since(&self, path: &str, now: Moment, longest: Duration) -> Moment {
        let mut silences = lock_ignoring_poison(&self.0);
        // That is longer than any watch waits without a question, so nobody has watched it meanwhile.
        let is_forgotten = |silence: &Silence| now.since(silence.watched) > longest * 2;
        if silences.len() >= REMEMBERED {
            silences.retain(|_, silence| !is_forgotten(silence));
        }
        let new = Silence { since: now, watched: now };
        let silence = silences.entry(path.to_owned()).or_insert(new);
        *silence = if is_forgotten(silence) { new } else { Silence { watched: now, ..*silence } };
        silence.since
    }

    /// Ends the silence: the servers have been asked, or have reported what happened to the node.
    fn end(&self, path: &str) {
        lock_ignoring_poison(&self.0).remove(path);
    }
}

/// The state when the watch was set.
pub(super) enum Left {
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

impl Left {
    fn kind(&self) -> WatchKind {
        match self {
            Self::Node(_) => WatchKind::Data,
            Self::Children(_) => WatchKind::Children,
        }
    }
}

impl From<&Stat> for Version {
    fn from(stat: &Stat) -> Self {
        Self { czxid: stat.czxid, mzxid: stat.mzxid }
    }
}

impl From<&Stat> for Left {
    fn from(stat: &Stat) -> Self {
        Self::Node(Some(stat.into()))
    }
}

impl From<Option<&Stat>> for Left {
    fn from(stat: Option<&Stat>) -> Self {
        Self::Node(stat.map(Version::from))
    }
}

impl From<&[String]> for Left {
    fn from(children: &[String]) -> Self {
        Self::Children(children.to_owned())
    }
}

/// The servers' answer to a doubt.
#[derive(PartialEq, Eq, Debug)]
enum Answer {
    /// Nothing has happened, as far as anybody can tell.
    Same,
    /// The watch should have reported this.
    Missed(WatchEvent),
    /// Our server shows a node that does not exist.
    Astray,
}

/// Waits for what the watch reports, or should have reported. If the connection ends, that is a change.
pub(super) fn attended(
    serving: &Arc<Serving>,
    path: &str,
    left: impl Into<Left>,
    watcher: OneshotWatcher,
) -> Pending<WatchEvent> {
    let left = left.into();
    let watch = serving.watch(path, left.kind(), watcher);
    match &left {
        Left::Children(names) if names.len() > CHILDREN => watch,
        _ => Box::pin(heard(serving.clone(), path.to_owned(), left, watch)),
    }
}

async fn heard(
    serving: Arc<Serving>,
    path: String,
    left: Left,
    mut watch: Pending<WatchEvent>,
) -> WatchEvent {
    // The client must not be kept, or nobody could close its session.
    let timeout = serving.client().map_or(Duration::ZERO, |client| client.session_timeout());
    let longest = (timeout * TIMEOUTS).max(SHORTEST);
    let since = serving.silences.since(&path, clock::now(), longest);
    tokio::select! {
        biased;
        event = &mut watch => {
            // A change among the children says nothing about the nodes that stay.
            if event == WatchEvent::Deleted || left.kind() == WatchKind::Data {
                serving.silences.end(&path);
            }
            return event;
        }
        () = clock::sleep_until(since + longest) => {}
    }
    serving.silences.end(&path);
    let Some(client) = serving.client() else { return watch.await };
    let answer = tokio::select! {
        biased;
        event = &mut watch => return event,
        answer = ask(&client, &path, &left) => answer,
    };
    // The event may have come with the answer.
    if let Some(event) = watch.now_or_never() {
        return event;
    }
    match answer {
        Answer::Same => WatchEvent::Changed,
        Answer::Missed(event) => {
            tracing::warn!(path, "the server did not tell what has become of a node that is watched");
            event
        }
        Answer::Astray => {
            tracing::warn!(
                path,
                "the server shows a node that the quorum knows to be gone: it has lost transactions, so another is \
                 looked for; restore that server from the others"
            );
            serving.give_up();
            WatchEvent::Changed
        }
    }
}

/// Asks the quorum, and then our server, which by then has seen everything that the quorum's answer is based on.
async fn ask(client: &Client, path: &str, left: &Left) -> Answer {
    match left {
        Left::Node(left) => {
            // Sent together, which takes one round trip.
            let (quorum, shown) = (check_all(client, [path]), client.check_stat(path));
            let quorum = quorum.await;
            let Ok(shown) = shown.await else { return Answer::Same };
            let shown = shown.as_ref().map(Version::from);
            compare(left, &shown, &quorum, left.is_some(), shown.is_none())
        }
        Left::Children(names) => {
            let all: Vec<String> = names.iter().map(|name| join(path, name)).collect();
            let (quorum, shown) = (check_all(client, &all), client.list_children(path));
            let quorum = quorum.await;
            let mut shown = match shown.await {
                Ok(shown) => shown,
                Err(Error::NoNode) => return Answer::Missed(WatchEvent::Deleted),
                Err(_) => return Answer::Same,
            };
            let mut names = names.clone();
            shown.sort_unstable();
            names.sort_unstable();
            compare(&names, &shown, &quorum, !all.is_empty(), false)
        }
    }
}

/// `asked` says whether the quorum was asked about anything that existed when the watch was set.
fn compare<T: PartialEq>(left: &T, shown: &T, quorum: &Outcome, asked: bool, is_gone: bool) -> Answer {
    if left != shown {
        return Answer::Missed(if is_gone { WatchEvent::Deleted } else { WatchEvent::Changed });
    }
    // A node that existed before was deleted before that answer. It does not matter which one: all belong to one transaction.
    if asked && *quorum == Outcome::NoNode { Answer::Astray } else { Answer::Same }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::protocol::Refusal;

    #[test]
    fn silence_lasts_over_one_watch_after_the_other_until_the_servers_are_asked() {
        let (silences, longest) = (Silences::default(), Duration::from_secs(5));
        let at = |seconds: u64| Moment::at(Duration::from_secs(100 + seconds));
        let since = |path, seconds| silences.since(path, at(seconds), longest);
        assert_eq!(since("/a/1", 0), at(0));
        // Woken by another node, its owner sets a watch again.
        assert_eq!([since("/a/1", 2), since("/a/1", 4), since("/a/2", 4)], [at(0), at(0), at(4)]);
        silences.end("/a/1");
        assert_eq!([since("/a/1", 5), since("/a/1", 7), since("/a/2", 7)], [at(5), at(5), at(4)]);
        // Nobody has watched it for a long time.
        assert_eq!(since("/a/2", 18), at(18));
    }

    #[test]
    fn nodes_that_nobody_watches_are_forgotten() {
        let (silences, longest) = (Silences::default(), Duration::from_secs(5));
        let watch = |number: usize, seconds| {
            silences.since(&format!("/a/{number}"), Moment::at(Duration::from_secs(seconds)), longest);
        };
        (0..REMEMBERED).for_each(|number| watch(number, 100));
        watch(REMEMBERED, 105);
        assert_eq!(lock_ignoring_poison(&silences.0).len(), REMEMBERED + 1);
        watch(REMEMBERED + 1, 112);
        assert_eq!(lock_ignoring_poison(&silences.0).len(), 2);
    }

    #[test]
    fn only_what_was_there_and_is_still_shown_leads_a_server_astray() {
        let there = Some(Version { czxid: 1, mzxid: 1 });
        let compared = |left, shown: Option<Version>, quorum: Outcome| {
            compare(&left, &shown, &quorum, left.is_some(), shown.is_none())
        };
        let missed = Answer::Missed;
        assert_eq!(compared(there, there, Outcome::Done), Answer::Same);
        assert_eq!(compared(there, there, Outcome::NoNode), Answer::Astray);
        assert_eq!(compared(None, None, Outcome::NoNode), Answer::Same);
        for quorum in [Outcome::Unknown, Outcome::Refused(Refusal::Denied), Outcome::SessionOver] {
            assert_eq!(compared(there, there, quorum), Answer::Same);
        }
        for quorum in [Outcome::Done, Outcome::NoNode] {
            assert_eq!(compared(there, None, quorum.clone()), missed(WatchEvent::Deleted));
            let written = Some(Version { czxid: 1, mzxid: 2 });
            assert_eq!(compared(there, written, quorum.clone()), missed(WatchEvent::Changed));
            assert_eq!(compared(None, there, quorum), missed(WatchEvent::Changed));
        }
    }
}
