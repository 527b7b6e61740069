//! How an attempt runs its machine: one loop, in one session after the other. It owns the machine's nodes until they are gone.

use super::Attempt;
use crate::attempt::entry;
use crate::base::clock;
use crate::base::error::{Error, LossReason};
use crate::machine::Moment;
use crate::machine::claim::Claim;
use crate::machine::drive::Machine;
use crate::machine::name::Uuid;
use crate::machine::protocol::{Operation, Outcome, WatchEvent};
use crate::session::session::{Link, Session};
use crate::zookeeper::ensemble::{Landing, Pending};
use futures_util::FutureExt;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::watch;

/// A session, and what is under way in it.
pub(super) struct InSession {
    session: Arc<Session>,
    directories: Box<[Arc<str>]>,
    /// The mark of its nodes, among those that the session knows.
    mark: Uuid,
    /// Whether it has sent anything.
    has_begun: bool,
    has_ended: bool,
    link: watch::Receiver<Link>,
    flight: Option<Pending<Landing>>,
    /// The operations of the flight.
    operations: Vec<Operation>,
    pub(super) watch: Option<Pending<WatchEvent>>,
}

impl Attempt {
    /// Returns the session that it works in, or last worked in.
    pub(super) fn session(&self) -> Option<&Arc<Session>> {
        self.work.as_ref().map(|work| &work.session)
    }

    /// Returns why that session is over; `None` if it is not.
    pub(super) fn loss(&self) -> Option<LossReason> {
        self.session().and_then(|session| session.loss())
    }

    /// Waits for a session if the machine needs one, and gives it to the machine. It may be dropped at any moment.
    pub(super) async fn begin(&mut self) -> Result<(), Error> {
        if !self.machine.is_idle() {
            return Ok(());
        }
        let session = match &self.within {
            Some(session) => session.clone(),
            None => self.queue.shared.pool.slot().session().await?,
        };
        let work = InSession::begin(session, self.claims.iter().flat_map(directories).collect());
        self.machine.handle_lasting(&work.session.lasting());
        self.machine.handle_session(work.session.id(), work.session.heartbeat(), work.mark);
        self.work = Some(work);
        Ok(())
    }

    /// Waits for the next event for the machine, and passes it on. Returns the names of new nodes, if they may have to wait. It
    /// may be dropped at any moment.
    pub(super) async fn next_event(&mut self) -> Result<Option<Vec<String>>, Error> {
        self.begin().await?;
        let Some(work) = &mut self.work else { return Ok(None) };
        // First, because nothing is sent in a session that is over, and `link` does not report an end that came before we
        // subscribed to it. Without this call the machine would wait for ever.
        if work.session.is_over() {
            // It says nothing about the next session.
            work.watch = None;
            // An answer that is already there may be the reason why it is over, such as a refused deletion. The caller has to
            // know it. The machine does not: its nodes go with the session.
            let landing = work.flight.take().and_then(FutureExt::now_or_never);
            let nodes = landing.and_then(|landing| self.hear(&landing.outcomes));
            self.machine.handle_session_over();
            return Ok(nodes);
        }
        work.take_up(&mut *self.machine);
        let timeout = self.machine.poll_timeout();
        // Everything that is under way stays in `work`, so nothing is lost if the caller drops this future.
        tokio::select! {
            biased;
            // Before the answer, because nothing may be granted in a session that is over. The next step looks at the new
            // state, and the answer is still there.
            _ = work.link.changed() => {}
            Landing { outcomes, sent, watch } = optional(&mut work.flight) => {
                (work.flight, work.watch) = (None, watch);
                let nodes = self.hear(&outcomes);
                let Some(work) = &mut self.work else { return Ok(nodes) };
                self.machine.handle_replies(outcomes, sent, work.session.now());
                if self.machine.is_gone() {
                    // Before anybody learns that it is gone. The next attempt of this session then begins, and must not wait for
                    // a node of this one that a server still shows.
                    work.end();
                }
                return Ok(nodes);
            }
            event = optional(&mut work.watch) => {
                work.watch = None;
                self.machine.handle_watch(event, work.session.now());
            }
            // Last, because the machine has set a time for the case that it hears nothing.
            () = until(timeout) => self.machine.handle_timeout(clock::now()),
        }
        Ok(None)
    }

    /// Sees the outcomes of the flight before the machine does.
    fn hear(&mut self, outcomes: &[Outcome]) -> Option<Vec<String>> {
        let (claims, flight) = (&self.claims, &*self.work.as_ref()?.operations);
        let ahead = entry::ahead(claims, flight, outcomes);
        entry::log(&self.queue.path, ahead, flight, outcomes, !self.held.is_empty());
        if self.first_delete.is_none() {
            self.first_delete = super::deletion(&self.held, flight, outcomes).cloned();
        }
        self.queue.shared.counters.queue_length.add_contenders(ahead?);
        entry::waiting_nodes(claims, ahead?, outcomes)
    }

    /// Sends the next flight, if there is one, without waiting for the reply.
    pub(super) async fn send_next(&mut self) {
        let Some(work) = &mut self.work else { return };
        work.take_up(&mut *self.machine);
        // A flight is sent when it is polled for the first time. A reply that comes at once is kept for the next step.
        poll_fn(|context| {
            if let Some(flight) = &mut work.flight {
                if let Poll::Ready(landing) = flight.as_mut().poll(context) {
                    work.flight = Some(Box::pin(async { landing }));
                }
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Drops the watch, since nobody waits any more.
    pub(super) fn stop_watching(&mut self) {
        if let Some(work) = &mut self.work {
            work.watch = None;
        }
    }
}

impl InSession {
    fn begin(session: Arc<Session>, directories: Box<[Arc<str>]>) -> Self {
        Self {
            mark: session.attempts().begin(),
            link: session.link(),
            session,
            directories,
            has_begun: false,
            has_ended: false,
            flight: None,
            operations: Vec::new(),
            watch: None,
        }
    }

    /// Sends nothing while there is no connection: such a request would wait without limit, and still run when nobody
    /// wants it any more.
    fn take_up(&mut self, machine: &mut dyn Machine) {
        if self.flight.is_none() && self.session.is_connected() {
            // Before each flight, because it may become known at any time.
            if !self.session.creates_in_transactions() {
                machine.handle_old_servers();
            }
            if let Some(flight) = machine.poll_flight() {
                self.watch = None;
                // Before a node can have the mark: the session deletes the nodes that it lists and whose marks it does not know.
                self.use_mark(machine.mark());
                self.operations.clone_from(&flight);
                self.flight = Some(self.session.send_for_attempt(flight));
            }
        }
    }

    /// Notes that it is about to send something, with this mark.
    fn use_mark(&mut self, mark: Uuid) {
        self.has_begun = true;
        if mark != self.mark {
            self.session.attempts().renew(self.mark, mark);
            self.mark = mark;
        }
    }

    /// Notes that its nodes are gone. If they are seen again, they belong to nobody.
    fn end(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        self.session.attempts().end(self.mark);
        if self.has_begun {
            self.session.attempts().leave(&self.directories);
        }
    }
}

impl Drop for InSession {
    fn drop(&mut self) {
        if !self.has_begun {
            // There is no node, and nobody else will end the mark.
            self.end();
        } else if !self.has_ended {
            // Its node may exist, and a hold that depends on it. Only the servers can tell those who wait for the node that it
            // is gone.
            self.session.attempts().abandon(self.mark);
            self.session.attempts().leave(&self.directories);
        }
    }
}

/// Returns the directories of its nodes.
fn directories(claim: &Claim) -> impl Iterator<Item = Arc<str>> {
    let permits = claim.permits.as_ref().map(|permits| permits.directory.clone());
    std::iter::once(claim.directory.clone()).chain(permits)
}

async fn optional<T>(future: &mut Option<Pending<T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

async fn until(moment: Option<Moment>) {
    match moment {
        Some(moment) => clock::sleep_until(moment).await,
        None => pending().await,
    }
}
