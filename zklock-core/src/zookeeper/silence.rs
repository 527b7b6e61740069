//! What to make of a watch that says nothing for long.
//!
//! A waiter rests on one message: the one that tells that the node ahead is gone. It may wait for it in vain.
//!
//! * A server may have lost the watch, or the event.
//! * A server that was killed in the middle of a write can come back without transactions that the quorum has committed
//!   (ZOOKEEPER-4643, ZOOKEEPER-4785). It goes on to show nodes that are gone everywhere else.
//! * An operator may have deleted the waiter's own node. Then a holder that lets go when others wait sees nobody.
//!
//! So after a long silence the quorum is asked what is there, and our server what it shows. A server that shows what the quorum
//! knows to be gone is left for another. If all seems well, the watch tells that something may have changed. Then its owner looks at
//! everything again, and leaves another.

use super::operations::{check_all, join};
use super::serving::{Serving, WatchKind};
use crate::clock;
use crate::ensemble::Pending;
use crate::machine::protocol::{Outcome, WatchEvent};
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use zookeeper_client::{Client, Error, OneshotWatcher, Stat};

/// How many session timeouts a silence lasts until it is doubted.
const TIMEOUTS: u32 = 2;
/// How long it lasts at least, however short the session: a question costs the ensemble a write.
const SHORTEST: Duration = Duration::from_secs(5);
/// About how many children the servers are asked, at most: more than there are permits, and far less than fits into a request.
const CHILDREN: usize = 1_000;

/// What was there when the watch was left.
pub(super) enum Left {
    Node(Option<Version>),
    /// The names of the children.
    Children(Vec<String>),
}

/// The transactions that created a node and wrote it last.
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

/// What the servers say.
#[derive(PartialEq, Eq, Debug)]
enum Answer {
    /// Nothing has happened, as far as can be told.
    Same,
    /// The watch should have told this.
    Missed(WatchEvent),
    /// Our server shows a node that is not there.
    Astray,
}

/// What the watch tells, or should have told. When the connection is gone: that something may have changed.
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
    // It must not be kept: nobody could close its session.
    let timeout = serving.client().map_or(Duration::ZERO, |client| client.session_timeout());
    let silence = (timeout * TIMEOUTS).max(SHORTEST);
    tokio::select! {
        biased;
        event = &mut watch => return event,
        () = clock::sleep(silence) => {}
    }
    let Some(client) = serving.client() else { return watch.await };
    let answer = tokio::select! {
        biased;
        event = &mut watch => return event,
        answer = ask(&client, &path, &left) => answer,
    };
    // It may have come with the answer.
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

/// Asks the quorum, and then our server, which has seen by then all that the quorum's answer rests on.
async fn ask(client: &Client, path: &str, left: &Left) -> Answer {
    match left {
        Left::Node(left) => {
            // Together: so it is one round trip.
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

/// `asked` tells whether the quorum was asked about anything that was there when the watch was left.
fn compare<T: PartialEq>(left: &T, shown: &T, quorum: &Outcome, asked: bool, is_gone: bool) -> Answer {
    if left != shown {
        return Answer::Missed(if is_gone { WatchEvent::Deleted } else { WatchEvent::Changed });
    }
    // A node that was there before has gone before that answer. Names do not matter: it is the same transaction's.
    if asked && *quorum == Outcome::NoNode { Answer::Astray } else { Answer::Same }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::protocol::Refusal;

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
