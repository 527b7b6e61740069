//! The sessions of a client: each slot has one at a time and opens the next when it is over.
//!
//! There is one slot, unless very many attempts wait at once: the client library cannot re-register
//! more than 128 KiB of watched paths, and loses the session on the next reconnect instead. So no
//! slot takes more waiting attempts than stay well under that, and the next gets a session of its own.

use crate::error::{Error, ErrorKind, LossReason};
use crate::heartbeat;
use crate::locks::locked;
use crate::options::ClientOptions;
use crate::platform;
use crate::session::{Link, Session};
use crate::zookeeper::{self, Change, Changes, Opened};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Bytes of watched paths in a session.
const WATCHED_AT_MOST: usize = 90 * 1024;
/// The longest name of a contender that is likely to be watched.
const LONGEST_NAME: usize = 96;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long a server may take to say good-bye: a follower may hang up instead.
const GOOD_BYE: Duration = Duration::from_secs(1);

pub(crate) struct Pool {
    options: Arc<ClientOptions>,
    runtime: Handle,
    slots: Mutex<Vec<Arc<Slot>>>,
    closing: Arc<watch::Sender<bool>>,
    /// How many slots are kept.
    kept: Arc<watch::Sender<usize>>,
    opened: Arc<AtomicU64>,
}

/// A place for one session after the other.
pub(crate) struct Slot {
    stage: watch::Sender<Stage>,
    watched: AtomicUsize,
}

#[derive(Clone)]
pub(crate) enum Stage {
    /// Why the last try failed, if there was one.
    Opening(Option<Arc<str>>),
    Open(Arc<Session>),
    Closed,
    /// The chroot does not exist.
    NoRoot,
}

/// An attempt's share of what its session may watch; given back when dropped.
pub(crate) struct Reservation {
    slot: Arc<Slot>,
    bytes: usize,
}

impl Pool {
    pub(crate) fn new(options: ClientOptions, runtime: Handle) -> Self {
        Self {
            options: Arc::new(options),
            runtime,
            slots: Mutex::default(),
            closing: Arc::new(watch::Sender::new(false)),
            kept: Arc::new(watch::Sender::new(0)),
            opened: Arc::default(),
        }
    }

    pub(crate) fn options(&self) -> &ClientOptions {
        &self.options
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.closing.borrow()
    }

    /// How many sessions have been opened.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// The first slot: the one for all that does not wait.
    pub(crate) fn first(&self) -> Arc<Slot> {
        let mut slots = locked(&self.slots);
        match slots.first() {
            Some(slot) => slot.clone(),
            None => self.add(&mut slots),
        }
    }

    /// A slot in which an attempt in this directory may leave a watch.
    pub(crate) fn reserve(&self, directory: &str) -> Reservation {
        let bytes = self.options.hosts.chroot.len() + directory.len() + 1 + LONGEST_NAME;
        let mut slots = locked(&self.slots);
        let roomy = |slot: &&Arc<Slot>| slot.watched.load(Ordering::Relaxed) + bytes <= WATCHED_AT_MOST;
        let slot = slots.iter().find(roomy).cloned();
        let slot = slot.unwrap_or_else(|| self.add(&mut slots));
        slot.watched.fetch_add(bytes, Ordering::Relaxed);
        Reservation { slot, bytes }
    }

    fn add(&self, slots: &mut Vec<Arc<Slot>>) -> Arc<Slot> {
        let slot =
            Arc::new(Slot { stage: watch::Sender::new(Stage::Opening(None)), watched: AtomicUsize::new(0) });
        let keeper = Keeper {
            slot: slot.clone(),
            options: self.options.clone(),
            closing: self.closing.clone(),
            kept: self.kept.clone(),
            opened: self.opened.clone(),
        };
        self.kept.send_modify(|kept| *kept += 1);
        self.runtime.spawn(keeper.run());
        slots.push(slot.clone());
        slot
    }

    /// Begins to close all sessions.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Waits until they are closed.
    pub(crate) async fn closed(&self) {
        // It cannot fail: the sender is ours.
        let _ = self.kept.subscribe().wait_for(|kept| *kept == 0).await;
    }
}

impl Slot {
    pub(crate) fn stage(&self) -> Stage {
        self.stage.borrow().clone()
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.current().is_some_and(|session| session.is_connected())
    }

    /// The session that is open now.
    pub(crate) fn current(&self) -> Option<Arc<Session>> {
        match &*self.stage.borrow() {
            Stage::Open(session) if !session.is_over() => Some(session.clone()),
            _ => None,
        }
    }

    /// The session, as soon as there is one.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Error> {
        let mut stage = self.stage.subscribe();
        loop {
            match &*stage.borrow_and_update() {
                Stage::Open(session) if !session.is_over() => return Ok(session.clone()),
                Stage::Closed => return Err(Error::closed()),
                Stage::NoRoot => return Err(Error::new(ErrorKind::Refused, "the chroot does not exist")),
                Stage::Open(_) | Stage::Opening(_) => {}
            }
            if stage.changed().await.is_err() {
                return Err(Error::closed());
            }
        }
    }
}

impl Reservation {
    /// In a slot that no pool keeps.
    #[cfg(test)]
    pub(crate) fn alone(stage: Stage) -> Self {
        let slot = Slot { stage: watch::Sender::new(stage), watched: AtomicUsize::new(0) };
        Self { slot: Arc::new(slot), bytes: 0 }
    }

    pub(crate) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.slot.watched.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Keeps one slot filled until the client is closed.
struct Keeper {
    slot: Arc<Slot>,
    options: Arc<ClientOptions>,
    closing: Arc<watch::Sender<bool>>,
    kept: Arc<watch::Sender<usize>>,
    opened: Arc<AtomicU64>,
}

/// Also where its runtime is gone, and it has never run.
impl Drop for Keeper {
    fn drop(&mut self) {
        self.closing.send_replace(true);
        // Whoever waits for a session, or to be told of its end, is told.
        if let Stage::Open(session) = self.slot.stage() {
            session.end(LossReason::ClientClosed);
        }
        self.slot.stage.send_if_modified(|stage| {
            let changes = !matches!(stage, Stage::NoRoot);
            if changes {
                *stage = Stage::Closed;
            }
            changes
        });
        self.kept.send_modify(|kept| *kept -= 1);
    }
}

impl Keeper {
    async fn run(self) {
        let mut closing = self.closing.subscribe();
        let mut pause = FIRST_PAUSE;
        loop {
            let asked = platform::now();
            let opened = tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => return,
                opened = self.open() => opened,
            };
            match opened {
                // Later it may be about to come back.
                Ok(None) if self.opened.load(Ordering::Relaxed) == 0 => {
                    self.slot.stage.send_replace(Stage::NoRoot);
                    return;
                }
                Ok(None) => {
                    self.pause(&mut pause, "the chroot does not exist".to_owned(), &mut closing).await;
                }
                Ok(Some(opened)) => {
                    pause = FIRST_PAUSE;
                    self.opened.fetch_add(1, Ordering::Relaxed);
                    let Opened { ensemble, mut changes, session, timeout } = opened;
                    let session = Session::new(Arc::new(ensemble), session, timeout, asked);
                    if self.follow(&session, &mut changes, &mut closing).await == LossReason::ClientClosed {
                        return part(changes).await;
                    }
                }
                Err(problem) => self.pause(&mut pause, problem, &mut closing).await,
            }
        }
    }

    /// A new session; `None` if it has no root.
    async fn open(&self) -> Result<Option<Opened>, String> {
        let opened = zookeeper::open(&self.options).await?;
        // What cannot be found out now will be told by the first acquire.
        let has_root =
            self.options.hosts.chroot.is_empty() || opened.ensemble.has_root().await != Some(false);
        Ok(has_root.then_some(opened))
    }

    async fn pause(&self, pause: &mut Duration, problem: String, closing: &mut watch::Receiver<bool>) {
        tracing::debug!(problem, "no session could be opened");
        self.slot.stage.send_replace(Stage::Opening(Some(problem.into())));
        tokio::select! {
            _ = closing.wait_for(|closing| *closing) => {}
            () = tokio::time::sleep(*pause) => {}
        }
        *pause = (*pause * 2).min(LONGEST_PAUSE);
    }

    /// Lets everyone work with the session until it is over, and says why it is.
    async fn follow(
        &self,
        session: &Arc<Session>,
        changes: &mut Changes,
        closing: &mut watch::Receiver<bool>,
    ) -> LossReason {
        self.slot.stage.send_replace(Stage::Open(session.clone()));
        tracing::info!(session = format_args!("{:#x}", session.id()), timeout = ?session.timeout(), "session opened");
        let mut heart = std::pin::pin!(heartbeat::run(session.clone()));
        let mut link = session.link();
        let reason = loop {
            tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => break LossReason::ClientClosed,
                change = changes.next() => match change {
                    Change::Connected => session.set_connected(true),
                    Change::Disconnected => {
                        tracing::info!(session = format_args!("{:#x}", session.id()), "connection lost");
                        session.set_connected(false);
                    }
                    Change::Over => break LossReason::SessionExpired,
                },
                // A reply may say so before the library does.
                _ = link.wait_for(|link| matches!(link, Link::Over(_))) => break LossReason::SessionExpired,
                never = &mut heart => match never {},
            }
        };
        session.end(reason);
        tracing::info!(session = format_args!("{:#x}", session.id()), %reason, "session over");
        self.slot.stage.send_if_modified(|stage| {
            let closing = reason == LossReason::ClientClosed;
            *stage = if closing { Stage::Closed } else { Stage::Opening(None) };
            true
        });
        reason
    }
}

/// Waits for the server to confirm that the session is closed, so that its nodes are gone.
async fn part(mut changes: Changes) {
    let closed = async { while changes.next().await != Change::Over {} };
    if tokio::time::timeout(GOOD_BYE, closed).await.is_err() {
        tracing::debug!("no server said good-bye; the session times out");
    }
}
