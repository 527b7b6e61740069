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

use super::doubts::{BYTES_AT_MOST, Doubts, Finding, Known};
use super::serving::{Serving, WatchKind};
use crate::base::clock;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::machine::Moment;
use crate::machine::protocol::WatchEvent;
use crate::machine::times;
use crate::zookeeper::ensemble::Pending;
use futures_util::FutureExt;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use zookeeper_client::OneshotWatcher;

/// The least time before a silence is doubted, however short the session timeout: a question costs the ensemble a write.
const SHORTEST: Duration = Duration::from_secs(5);

/// How long the watched nodes of one connection have not been asked about.
#[derive(Default)]
struct Silences(Mutex<HashMap<String, Silence>>);

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
        if silences.len() == silences.capacity() {
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

/// The watches of one connection on nodes that others are to change, and what follows from their silence.
pub(super) struct Watches {
    serving: Arc<Serving>,
    doubts: Arc<Doubts>,
    silences: Silences,
}

impl Watches {
    pub(super) fn of(serving: Arc<Serving>) -> Arc<Self> {
        Arc::new(Self { doubts: Doubts::of(serving.clone()), serving, silences: Silences::default() })
    }

    /// Waits for what the watch reports, or should have reported. If the connection ends, that is a change.
    pub(super) fn attended(
        self: &Arc<Self>,
        path: &str,
        known: impl Into<Known>,
        watcher: OneshotWatcher,
    ) -> Pending<WatchEvent> {
        let known = known.into();
        let watch = self.serving.watch(path, known.kind(), watcher);
        // More children than there are permits anywhere.
        if known.bytes(path) > BYTES_AT_MOST {
            return watch;
        }
        Box::pin(self.clone().heard(path.to_owned(), known, watch))
    }

    async fn heard(
        self: Arc<Self>,
        path: String,
        known: Known,
        mut watch: Pending<WatchEvent>,
    ) -> WatchEvent {
        // The client must not be kept, or nobody could close its session.
        let timeout = self.serving.client().map_or(Duration::ZERO, |client| client.session_timeout());
        let longest = times::DOUBTED.of(timeout).max(SHORTEST);
        let soon = longest / 8;
        let since = self.silences.since(&path, clock::now(), longest);
        tokio::select! {
            biased;
            event = &mut watch => {
                // A change among the children says nothing about the nodes that stay.
                if event == WatchEvent::Deleted || known.kind() == WatchKind::Data {
                    self.silences.end(&path);
                }
                return event;
            }
            () = clock::sleep_until(since + (longest - soon)) => {}
        }
        self.silences.end(&path);
        let finding = tokio::select! {
            biased;
            event = &mut watch => return event,
            finding = self.doubts.raise(path.clone(), known, soon) => finding,
        };
        // The event may have come with the answer.
        if let Some(event) = (&mut watch).now_or_never() {
            return event;
        }
        match finding {
            Ok(Finding::Same) => WatchEvent::Changed,
            Err(_) => watch.await,
            Ok(Finding::Missed(event)) => {
                tracing::warn!(path, "the server did not report what happened to a node that is watched");
                event
            }
            Ok(Finding::Astray) => {
                tracing::warn!(
                    path,
                    "the server shows a node that the quorum has deleted: it has lost transactions, so the \
                     client looks for another server; restore that server from the others"
                );
                self.serving.give_up();
                WatchEvent::Changed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for second in 0..1_000 {
            for number in 0..100 {
                let path = format!("/{second}/{number}");
                silences.since(&path, Moment::at(Duration::from_secs(second)), longest);
            }
            assert!(lock_ignoring_poison(&silences.0).len() < 4_000);
        }
    }
}
