//! The task that opens one session after the other, and looks after each until it is over.

use crate::base::clock;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::base::failure::Failure;
use crate::base::platform;
use crate::base::stats::Counters;
use crate::base::sync::replace_if;
use crate::connect::options::ClientOptions;
use crate::machine::Moment;
use crate::machine::keeper::Keeper;
use crate::machine::times;
use crate::session::attachment::{Attachment, GOOD_BYE};
use crate::session::diagnose;
use crate::session::heartbeat;
use crate::session::nodes::SessionNodes;
use crate::session::refusals::Refusals;
use crate::session::session::{Link, Session};
use crate::session::slot::{Slot, SlotState};
use crate::zookeeper::connecting::{self, Opened};
use crate::zookeeper::zookeeper::ZooKeeper;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// Between two tries to open a session.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Keeps the slot of a pool filled until the client is closed.
pub(super) struct SessionKeeper {
    pub(super) shared: Shared,
    /// Why the first session could not be opened.
    pub(super) failure: Option<Error>,
}

/// What a pool shares with its keeper.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) options: Arc<ClientOptions>,
    pub(super) slot: Arc<Slot>,
    pub(super) closing: Arc<watch::Sender<bool>>,
    /// Whether a keeper is running.
    pub(super) running: Arc<watch::Sender<bool>>,
    /// Whether the runtime has begun to run it.
    pub(super) has_begun: Arc<AtomicBool>,
    pub(super) counters: Arc<Counters>,
}

impl Shared {
    pub(super) fn new(options: ClientOptions, slot: Arc<Slot>, counters: Arc<Counters>) -> Self {
        Self {
            options: Arc::new(options),
            slot,
            closing: Arc::default(),
            running: Arc::default(),
            has_begun: Arc::default(),
            counters,
        }
    }
}

/// This runs even if its runtime is gone, and the keeper has never run.
impl Drop for SessionKeeper {
    fn drop(&mut self) {
        if self.has_failed() {
            return;
        }
        // First, so that nobody who wakes below waits for the next session.
        self.shared.closing.send_replace(true);
        // Wakes everybody who waits for a session or for its end.
        if let SlotState::Open(session) = self.shared.slot.state() {
            session.end(LossReason::ClientClosed);
            // Only now, because the end leaves open what becomes of the nodes.
            session.set_nodes(SessionNodes::Abandoned);
        }
        self.shared.slot.state.send_replace(SlotState::Closed);
        self.shared.slot.answer(&Err(Error::closed()));
        // Last, because those who wait for this may end the process.
        self.shared.running.send_replace(false);
    }
}

impl SessionKeeper {
    pub(super) async fn run(mut self) {
        self.shared.has_begun.store(true, Ordering::Relaxed);
        let mut closing = self.shared.closing.subscribe();
        let mut turn = platform::random_bits() as usize;
        let first = async {
            tokio::select! {
                biased;
                opened = self.open(&mut turn) => opened,
                hopeless = diagnose::hosts(&self.shared.options, &self.shared.slot) => Err(hopeless),
            }
        };
        let mut opened = match self.unless_closed(Box::pin(first)).await {
            Some(Ok(opened)) => opened,
            Some(Err(failure)) => {
                self.failure = Some(failure);
                return;
            }
            None => return,
        };
        loop {
            self.shared.counters.sessions.add();
            self.shared.slot.is_zookeeper();
            let Opened { ensemble, asked, session, timeout } = opened;
            let connection = Arc::new(ensemble);
            let keeper = keeper(&self.shared.options, timeout, asked);
            let session = Session::new(connection.clone(), session, keeper, self.shared.counters.clone());
            if self.follow(&session, connection, &mut closing).await == LossReason::ClientClosed {
                return;
            }
            let Some(Ok(next)) = self.unless_closed(Box::pin(self.open(&mut turn))).await else { return };
            opened = next;
        }
    }

    /// Does this work, unless the client is closed before it is done. It is boxed by the caller, because it is large.
    async fn unless_closed<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut closing = self.shared.closing.subscribe();
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => None,
            done = work => Some(done),
        }
    }

    /// Notes that the first session could not be opened, for those who wait for it: the next call tries again. `false` if
    /// that is not how it ends.
    fn has_failed(&mut self) -> bool {
        // A panic in its task is for lack of some resource.
        let panicked = std::thread::panicking() && self.shared.counters.sessions.read() == 0;
        let Some(failure) = self.failure.take().or_else(|| panicked.then(wanting)) else { return false };
        let has_failed = replace_if(&self.shared.slot.state, SlotState::Unopened, |_| {
            let has_failed = !*self.shared.closing.borrow();
            if has_failed {
                // Not later: the next call may already have started another keeper, which is running.
                self.shared.running.send_replace(false);
            }
            has_failed
        });
        if has_failed {
            self.shared.slot.answer(&Err(failure));
        }
        has_failed
    }

    /// Opens a session, in as many tries as it takes. It fails only if there was none before.
    async fn open(&self, turn: &mut usize) -> Result<Opened, Error> {
        let mut pause = FIRST_PAUSE;
        let mut refusals = Refusals::of(&self.shared.options);
        let is_first = self.shared.counters.sessions.read() == 0;
        loop {
            // Each try begins with the next host, so that one that does not work is not always the first.
            *turn = turn.wrapping_add(1);
            match self.try_to_open(*turn).await {
                Ok(Some(opened)) => return Ok(opened),
                // Later, the chroot may be about to come back.
                Ok(None) if is_first => return Err(self.without_root()),
                Ok(None) => self.pause(&mut pause, "the chroot does not exist".to_owned()).await,
                Err(Failure::Refused(why)) => {
                    // Later, the credentials may be about to change.
                    if refusals.count_one() && is_first {
                        return Err(Error::new(ErrorKind::Refused, why));
                    }
                    self.pause(&mut pause, why).await;
                }
                Err(failure) => {
                    // Not all hosts refuse the client, so the count begins again.
                    refusals = Refusals::of(&self.shared.options);
                    let problem = failure.to_string();
                    // Noted before the pause, in which callers may give up and ask why.
                    if let Failure::NotZooKeeper { server, why } = failure {
                        self.shared.slot.is_not_zookeeper(server, why);
                    }
                    self.pause(&mut pause, problem).await;
                }
            }
        }
    }

    fn without_root(&self) -> Error {
        let chroot = &self.shared.options.hosts.chroot;
        let message = format!(
            "the chroot {chroot} does not exist: create it, let the client create it, or leave it out of \
             the hosts"
        );
        Error::new(ErrorKind::Refused, message)
    }

    /// Tries once to open a session; `None` if the chroot does not exist.
    async fn try_to_open(&self, turn: usize) -> Result<Option<Opened>, Failure> {
        let bound =
            clock::timeout(self.shared.options.session_timeout, connecting::open(&self.shared.options, turn));
        let opened = bound.await.map_err(|_| Failure::TryAgain("no server answers in time".to_owned()))??;
        if self.shared.options.hosts.chroot.is_empty() {
            return Ok(Some(opened));
        }
        // If that cannot be found out now, the first acquire will report it.
        let has_root = clock::timeout(times::PATIENCE.of(opened.timeout), opened.ensemble.has_root()).await;
        if has_root != Ok(Some(false)) {
            return Ok(Some(opened));
        }
        if !self.shared.options.create_chroot {
            return Ok(None);
        }
        match clock::timeout(times::PATIENCE.of(opened.timeout), opened.ensemble.create_root()).await {
            Ok(Ok(true)) => Ok(Some(opened)),
            Ok(Err(why)) => Err(Failure::Refused(why)),
            Ok(Ok(false)) | Err(_) => {
                Err(Failure::TryAgain("no server has confirmed that it created the chroot".to_owned()))
            }
        }
    }

    async fn pause(&self, pause: &mut Duration, problem: String) {
        tracing::debug!(problem, "no session could be opened");
        let (problem, is_first) = (Some(problem.into()), self.shared.counters.sessions.read() == 0);
        // Before the pause, so that a caller whose time runs out in it can say why.
        let state = if is_first { SlotState::First(problem) } else { SlotState::Next(problem) };
        self.shared.slot.state.send_replace(state);
        clock::sleep(*pause).await;
        *pause = (*pause * 2).min(LONGEST_PAUSE);
    }

    /// Lets everybody work with the session until it is over, and returns the reason.
    async fn follow(
        &self,
        session: &Arc<Session>,
        connection: Arc<ZooKeeper>,
        closing: &mut watch::Receiver<bool>,
    ) -> LossReason {
        // First the event, so that a program that changes its log level when it has connected does not change what becomes of it.
        tracing::info!(session = format_args!("{:#x}", session.id()), timeout = ?session.timeout(), "session opened");
        self.shared.slot.state.send_replace(SlotState::Open(session.clone()));
        self.shared.slot.answer(&Ok(()));
        let mut link = session.link();
        let mut attachment = Attachment::of(connection);
        let mut nodes = SessionNodes::Abandoned;
        // The heart lives only in this block. The library closes the session when nothing has its client any more, not even a
        // heartbeat on its way.
        let reason = {
            let mut heart = std::pin::pin!(heartbeat::run(session.clone()));
            let reason = loop {
                // The order decides if several are ready. A client that is closed closes its session, whatever else has happened.
                // The attachment comes before the link, because the servers' word that the nodes are gone is worth more than our
                // reason to close the session. The heart comes last, because a beat is of use only if nothing above has happened.
                tokio::select! {
                    biased;
                    _ = closing.wait_for(|closing| *closing) => break LossReason::ClientClosed,
                    change = attachment.change(&self.shared.options, session) => match change {
                        Ok(next) => attachment = next,
                        Err(known) => {
                            nodes = known;
                            if nodes != SessionNodes::Gone {
                                session.abandon_nodes();
                            }
                            break LossReason::SessionExpired;
                        }
                    },
                    // A reply may report the end before the connection does.
                    over = link.wait_for(|link| matches!(link, Link::Over(_))) => match over.as_deref() {
                        Ok(Link::Over(reason)) => break *reason,
                        _ => break LossReason::SessionExpired,
                    },
                    never = &mut heart => match never {},
                }
            };
            // The heart's watches are dropped next, and the library would send a request for each of them.
            attachment.keep_watches();
            reason
        };
        // The holders learn that their locks are lost before the servers give the locks to others.
        session.end(reason);
        tracing::info!(session = format_args!("{:#x}", session.id()), %reason, "session over");
        // Before the farewell, which can take long. Callers learn now that the client is closed, or wait for the next session.
        let is_last = reason == LossReason::ClientClosed;
        self.shared.slot.state.send_replace(if is_last { SlotState::Closed } else { SlotState::Next(None) });
        let nodes = match reason {
            LossReason::ClientClosed => attachment.part().await,
            LossReason::SessionClosed => {
                // A caller that closes the client does not wait for servers that do not answer.
                let closes = async {
                    let _ = closing.wait_for(|closing| *closing).await;
                    clock::sleep(GOOD_BYE).await;
                };
                // Its other holds may have been asked for how long they last, just before.
                let ends = async {
                    session.keep_promises().await;
                    attachment.end(&self.shared.options, session).await
                };
                tokio::select! {
                    nodes = ends => nodes,
                    () = closes => SessionNodes::Abandoned,
                }
            }
            // The servers have ended the session, or it can get no connection, so there is nothing to close.
            _ => {
                attachment.give_up();
                nodes
            }
        };
        session.set_nodes(nodes);
        reason
    }
}

/// Makes the keeper of a session that was asked for at `asked`.
fn keeper(options: &ClientOptions, timeout: Duration, asked: Moment) -> Keeper {
    let keeper = Keeper::new(timeout, asked, clock::now());
    let keeper = keeper.telling_within(options.loss_timeout.unwrap_or_default());
    if options.heartbeat { keeper } else { keeper.without_heartbeat() }
}

fn wanting() -> Error {
    Error::new(ErrorKind::Refused, "the system has no more threads or descriptors: raise the limits")
}

#[cfg(test)]
mod tests;
