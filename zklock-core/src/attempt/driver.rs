//! The one loop that runs any machine against the ensemble. It owns the machine's nodes until they are gone.
//!
//! A driver belongs to a task, never to a caller. A caller waits for an answer, and may go away at any moment. So no await
//! point of a caller can leak a node.

use crate::base::clock;
use crate::base::error::{Error, LossReason};
use crate::machine::Moment;
use crate::machine::drive::Machine;
use crate::machine::name::Uuid;
use crate::machine::protocol::{Operation, Outcome, WatchEvent};
use crate::session::session::{Link, Session};
use crate::session::slot::Slot;
use crate::zookeeper::ensemble::{Landing, Pending};
use futures_util::FutureExt;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::watch;

pub(crate) struct Driver<M: Machine + ?Sized> {
    pub(crate) machine: Box<M>,
    source: SessionSource,
    /// The directories of its nodes.
    directories: Arc<[Arc<str>]>,
    work: Option<InSession>,
}

/// Where a machine gets its sessions from.
pub(crate) enum SessionSource {
    /// One session after the other.
    Slot(Arc<Slot>),
    /// Only the session of the hold that it is inside.
    Session(Arc<Session>),
}

/// A session, and what is under way in it.
struct InSession {
    session: Arc<Session>,
    directories: Arc<[Arc<str>]>,
    /// The mark of its nodes, among those that the session knows.
    mark: Uuid,
    /// Whether it has sent anything.
    has_begun: bool,
    has_ended: bool,
    link: watch::Receiver<Link>,
    flight: Option<Pending<Landing>>,
    /// The operations of the flight.
    operations: Vec<Operation>,
    watch: Option<Pending<WatchEvent>>,
}

impl<M: Machine + ?Sized> Driver<M> {
    pub(crate) fn new(machine: Box<M>, source: SessionSource, directories: Vec<Arc<str>>) -> Self {
        Self { machine, source, directories: directories.into(), work: None }
    }

    /// Returns the session that it works in, or last worked in.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.work.as_ref().map(|work| &work.session)
    }

    /// Returns why that session is over; `None` if it is not.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.session().and_then(|session| session.loss())
    }

    /// Waits for the next event for the machine, and passes it on. It may be dropped at any moment.
    ///
    /// `hear` sees the outcomes of each flight before the machine does, and may correct them.
    pub(crate) async fn step(
        &mut self,
        hear: impl FnOnce(&[Operation], &mut [Outcome]),
    ) -> Result<(), Error> {
        self.begin().await?;
        let Some(work) = &mut self.work else { return Ok(()) };
        // First, because nothing is sent in a session that is over, and `link` does not report an end that came before we
        // subscribed to it. Without this call the machine would wait for ever.
        if work.session.is_over() {
            // An answer that is already there may be the reason why it is over, such as a refused deletion. The caller has to
            // know it. The machine does not: its nodes go with the session.
            if let Some(mut landing) = work.flight.take().and_then(FutureExt::now_or_never) {
                hear(&work.operations, &mut landing.outcomes);
            }
            // It says nothing about the next session.
            work.watch = None;
            self.machine.handle_session_over();
            return Ok(());
        }
        work.take_up(&mut *self.machine);
        let timeout = self.machine.poll_timeout();
        // Everything that is under way stays in `work`, so nothing is lost if the caller drops this future.
        tokio::select! {
            biased;
            // Before the answer, because nothing may be granted in a session that is over. The next step looks at the new
            // state, and the answer is still there.
            _ = work.link.changed() => {}
            // Before the watch: while a flight is under way, the watch is one of an earlier flight. The answer may be older than
            // the event, and the machine should hear the news last.
            landing = optional(&mut work.flight) => {
                work.flight = None;
                work.land(landing, &mut *self.machine, hear);
            }
            event = optional(&mut work.watch) => {
                work.watch = None;
                self.machine.handle_watch(event, work.session.now());
            }
            // Last, because the machine has set a time for the case that it hears nothing.
            () = until(timeout) => self.machine.handle_timeout(clock::now()),
        }
        Ok(())
    }

    /// Waits for a session if the machine needs one, and gives it to the machine. It may be dropped at any moment.
    pub(crate) async fn begin(&mut self) -> Result<(), Error> {
        if !self.machine.is_idle() {
            return Ok(());
        }
        let session = match &self.source {
            SessionSource::Slot(slot) => slot.session().await?,
            SessionSource::Session(session) => session.clone(),
        };
        let work = InSession::begin(session, self.directories.clone());
        self.machine.handle_lasting(&work.session.lasting());
        self.machine.handle_session(work.session.id(), work.session.heartbeat(), work.mark);
        self.work = Some(work);
        Ok(())
    }

    /// Sends the next flight, if there is one, without waiting for the reply.
    pub(crate) async fn send_next(&mut self) {
        let Some(work) = &mut self.work else { return };
        work.take_up(&mut *self.machine);
        // A flight is sent when it is polled for the first time. A reply that comes at once is kept for the next step, which
        // has a `hear` for it.
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

    /// Returns the watch that the last flight has left, for a caller to which it still matters.
    pub(crate) fn take_watch(&mut self) -> Option<Pending<WatchEvent>> {
        self.work.as_mut()?.watch.take()
    }

    /// Drops the watch, since nobody waits any more.
    pub(crate) fn stop_watching(&mut self) {
        if let Some(work) = &mut self.work {
            work.watch = None;
        }
    }
}

impl InSession {
    fn begin(session: Arc<Session>, directories: Arc<[Arc<str>]>) -> Self {
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
    fn take_up<M: Machine + ?Sized>(&mut self, machine: &mut M) {
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

    fn land<M: Machine + ?Sized>(
        &mut self,
        mut landing: Landing,
        machine: &mut M,
        hear: impl FnOnce(&[Operation], &mut [Outcome]),
    ) {
        self.watch = landing.watch.take();
        hear(&self.operations, &mut landing.outcomes);
        machine.handle_replies(landing.outcomes, landing.sent, self.session.now());
        if machine.is_gone() {
            // Before anybody learns that it is gone. The next attempt of this session then begins, and must not wait for a
            // node of this one that a server still shows.
            self.end();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::virtual_clock;
    use crate::machine::claim::Claim;
    use crate::machine::contender::Contender;
    use crate::machine::name::Scheme;
    use crate::machine::protocol::{Now, Patience, Verdict};
    use crate::session::fake::{FakeEnsemble, TIMEOUT};
    use std::time::Duration;

    const DIRECTORY: &str = "/a";

    fn driver(session: &Arc<Session>) -> Driver<Contender> {
        let claims = vec![Claim::new(DIRECTORY, Scheme::Mutex)];
        let machine = Box::new(Contender::new(claims, Patience::Waits));
        Driver::new(machine, SessionSource::Session(session.clone()), vec![DIRECTORY.into()])
    }

    async fn be_granted(driver: &mut Driver<Contender>) {
        while driver.machine.poll_verdict().is_none() {
            driver.step(|_, _| ()).await.unwrap();
        }
    }

    /// Returns what the session says of a node that exists in the ensemble.
    async fn watched(session: &Arc<Session>, path: &str) -> Vec<Outcome> {
        session.send_for_attempt(vec![Operation::Watch { path: path.to_owned() }]).await.outcomes
    }

    #[test]
    fn without_a_connection_nothing_is_begun_that_could_not_be_left() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let mut driver = driver(&session);
            session.set_connected(false);
            driver.begin().await.unwrap();
            driver.send_next().await;
            driver.machine.handle_end();
            assert!(driver.machine.is_gone(), "it waits for no answer");
            session.set_connected(true);
            driver.send_next().await;
            assert_eq!(ensemble.flights(), 0);
        });
    }

    /// A machine that watches two nodes, one flight after the other.
    struct Watcher {
        left: Vec<&'static str>,
        is_old: bool,
    }

    impl Machine for Watcher {
        fn is_gone(&self) -> bool {
            false
        }

        fn is_idle(&self) -> bool {
            self.left.len() == 2
        }

        fn is_waiting(&self) -> bool {
            true
        }

        fn mark(&self) -> Uuid {
            Uuid::from_random(1)
        }

        fn poll_verdict(&mut self) -> Option<Verdict> {
            None
        }

        fn poll_flight(&mut self) -> Option<Vec<Operation>> {
            self.left.pop().map(|path| vec![Operation::Watch { path: path.into() }])
        }

        fn poll_timeout(&self) -> Option<Moment> {
            None
        }

        fn handle_session(&mut self, _: i64, _: Duration, _: Uuid) {}

        fn handle_old_servers(&mut self) {
            self.is_old = true;
        }

        fn handle_session_over(&mut self) {}

        fn handle_end(&mut self) {}

        fn handle_timeout(&mut self, _: Moment) {}

        fn handle_watch(&mut self, _: WatchEvent, _: Now) {}

        fn handle_replies(&mut self, _: Vec<Outcome>, _: Moment, _: Now) {}
    }

    #[test]
    fn a_machine_learns_that_servers_are_old_and_has_the_last_watch_alone() {
        for is_so in [false, true] {
            virtual_clock::run(async {
                let ensemble = FakeEnsemble::new();
                if is_so {
                    ensemble.be_old();
                }
                let nodes = ["/a/1", "/a/2"];
                let _ = nodes.map(|path| ensemble.create(path));
                let machine = Watcher { left: nodes.to_vec(), is_old: false };
                let source = SessionSource::Session(ensemble.session());
                let mut driver = Driver::new(Box::new(machine), source, Vec::new());
                for _ in nodes {
                    driver.step(|_, _| ()).await.unwrap();
                }
                assert_eq!(driver.machine.is_old, is_so);
                assert_eq!(ensemble.watches(), 1);
            });
        }
    }

    #[test]
    fn an_attempt_that_waits_no_longer_watches_nothing() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            ensemble.create("/a/_c_00000000-0000-4000-8000-000000000000-lock-0000000000");
            let session = ensemble.session();
            let mut driver = driver(&session);
            while ensemble.watches() == 0 {
                driver.step(|_, _| ()).await.unwrap();
            }
            driver.stop_watching();
            assert_eq!(ensemble.watches(), 0);
        });
    }

    #[test]
    fn an_answer_that_ends_the_session_is_heard_though_it_comes_at_once() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let mut driver = driver(&session);
            be_granted(&mut driver).await;
            ensemble.refuse_deletions();
            driver.machine.handle_end();
            driver.send_next().await;
            assert_eq!(session.loss(), Some(LossReason::SessionClosed), "it is rid of its node by that");
            let mut heard = Vec::new();
            driver.step(|_, outcomes| heard.extend_from_slice(outcomes)).await.unwrap();
            assert!(matches!(heard[..], [Outcome::Refused(_)]), "{heard:?}");
            assert!(driver.machine.is_gone());
        });
    }

    #[test]
    fn a_node_that_comes_back_is_nobodys_as_soon_as_its_machine_is_gone() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let mut driver = driver(&session);
            be_granted(&mut driver).await;
            let nodes = ensemble.nodes();
            driver.machine.handle_end();
            while !driver.machine.is_gone() {
                driver.step(|_, _| ()).await.unwrap();
            }
            assert_eq!(ensemble.nodes(), [""; 0]);
            ensemble.create(&nodes[0]);

            session.clone().send(vec![Operation::List { directory: DIRECTORY.into() }]).await;
            clock::sleep(Duration::from_millis(1)).await;
            assert_eq!(ensemble.nodes(), [""; 0], "the session that lists it deletes it");
        });
    }

    #[test]
    fn an_attempt_that_is_dropped_before_it_sends_anything_has_no_node_and_has_been_nowhere() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let mut driver = driver(&session);
            driver.begin().await.unwrap();
            let mark = driver.machine.mark();
            drop(driver);
            let node = format!("{DIRECTORY}/{}0000000001", Scheme::Mutex.prefix(mark, session.id()));
            ensemble.create(&node);
            assert_eq!(watched(&session, &node).await, [Outcome::NoNode]);
            session.clone().sweep().await;
            assert_eq!(ensemble.flights(), 0, "nobody has asked a server");
        });
    }

    #[test]
    fn the_directory_of_an_attempt_that_is_dropped_is_swept_and_its_node_is_not_known_to_be_gone() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let mut driver = driver(&session);
            be_granted(&mut driver).await;
            drop(driver);
            assert_eq!(watched(&session, &ensemble.nodes()[0]).await, [Outcome::Done]);
            session.clone().sweep().await;
            clock::sleep(Duration::from_millis(1)).await;
            assert_eq!(ensemble.nodes(), [""; 0]);
        });
    }

    #[test]
    fn the_session_knows_that_a_node_is_gone_once_its_attempt_creates_another() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let mut driver = driver(&session);
            // So late that the lease is too short for a grant, and the node is checked.
            ensemble.answer_late(TIMEOUT / 12 * 5);
            let mut earlier = Vec::new();
            let delete = async {
                clock::sleep(TIMEOUT / 12).await;
                earlier = ensemble.nodes();
                assert!(ensemble.delete_node(&earlier[0]));
                ensemble.answer_late(Duration::ZERO);
            };
            tokio::join!(be_granted(&mut driver), delete);
            assert_ne!(ensemble.nodes(), earlier);
            ensemble.create(&earlier[0]);
            assert_eq!(watched(&session, &earlier[0]).await, [Outcome::NoNode]);
        });
    }
}
