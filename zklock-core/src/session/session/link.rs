//! A session's connection. A session outlives its connections: they are attached one after the other.
//!
//! A request that gets no reply in time ends the connection it was sent on, because nothing else would: a server may be alive and
//! never answer.

use super::{Session, in_millis};
use crate::base::clock;
use crate::base::error::LossReason;
use crate::base::sync::{lock_ignoring_poison, replace_if};
use crate::machine::Moment;
use crate::machine::times;
use crate::zookeeper::ensemble::{Ensemble, Pending};
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// The connection state of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    Connected,
    Disconnected,
    Over(LossReason),
}

/// The least time to wait for a reply, however short the session timeout.
const REPLY_AT_LEAST: Duration = Duration::from_secs(1);

impl Session {
    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    pub(crate) fn is_connected(&self) -> bool {
        *self.link.borrow() == Link::Connected
    }

    /// Waits for a connection, or the end of the session.
    pub(crate) async fn connected(&self) {
        // It cannot fail: the sender is ours.
        let _ = self.link().wait_for(|link| *link != Link::Disconnected).await;
    }

    /// Returns why the last try to attach a connection failed; `None` while there is a connection.
    pub(crate) fn trouble(&self) -> Option<String> {
        let trouble = self.lock().trouble.clone();
        trouble.filter(|_| !self.is_connected())
    }

    pub(crate) fn set_trouble(&self, trouble: Option<String>) {
        self.lock().trouble = trouble;
    }

    pub(crate) fn set_connected(&self, connected: bool) {
        let link = if connected { Link::Connected } else { Link::Disconnected };
        replace_if(&self.link, link, |old| !matches!(old, Link::Over(_)) && *old != link);
    }

    /// A server is about to be asked for the session, on another connection.
    pub(crate) fn ask(&self) {
        self.lock().keeper.handle_asked();
    }

    /// This server has granted the session with this timeout.
    pub(crate) fn granted(&self, server: &str, asked: Moment, timeout: Duration) {
        let before = self.timeout();
        let is_too_short = self.tell(|state| {
            let is_too_short = state.keeper.lease().is_too_short(timeout);
            state.keeper.handle_granted(asked, timeout, clock::now());
            self.timeout.store(in_millis(state.keeper.lease().timeout()), Ordering::Relaxed);
            is_too_short
        });
        if is_too_short {
            tracing::warn!(
                server,
                granted = ?timeout,
                ?before,
                "a server grants less than half of the session timeout that another one granted: all holds are lost, \
                 because no lease can rely on that; give all servers the same tickTime, minSessionTimeout and \
                 maxSessionTimeout"
            );
        }
        self.registered.notify_one();
    }

    /// Attaches another connection, on which the quorum has answered a write that was sent at `sent`.
    pub(crate) fn attach(&self, ensemble: Arc<dyn Ensemble>, sent: Moment) {
        self.lock().keeper.handle_write(sent, clock::now());
        let mut present = lock_ignoring_poison(&self.ensemble);
        // After the session's end there is no connection to replace.
        if let Some(present) = &mut *present {
            *present = ensemble;
            self.counters.reconnects.add();
            self.set_connected(true);
        }
    }

    /// Whether its servers can create a node in one transaction with other writes.
    pub(crate) fn creates_in_transactions(&self) -> bool {
        let ensemble = lock_ignoring_poison(&self.ensemble);
        ensemble.as_ref().is_none_or(|ensemble| ensemble.creates_in_transactions())
    }

    /// Returns how long to wait for a reply.
    pub(super) fn patience(&self) -> Duration {
        times::PATIENCE.of(self.timeout()).max(REPLY_AT_LEAST)
    }

    /// Does `call` as soon as there is a connection, and returns `over` if the session ends before the result is
    /// there. If the result does not come in time, the connection is given up, and the outcome is unknown.
    pub(super) async fn unless_over<T: Send>(
        &self,
        over: T,
        call: impl FnOnce(&dyn Ensemble) -> Pending<T>,
    ) -> T {
        self.connected().await;
        let Some(ensemble) = lock_ignoring_poison(&self.ensemble).clone() else { return over };
        let pending = call(&*ensemble);
        // The request keeps the connection alive, but not while it waits for the session's end.
        let weak = Arc::downgrade(&ensemble);
        drop(ensemble);
        // The result is left here, so that the code that waits for it is compiled once.
        let mut result = None;
        {
            let reply = pin!(async { result = Some(pending.await) });
            self.wait_for_reply(reply, &weak).await;
        }
        result.unwrap_or(over)
    }

    async fn wait_for_reply(
        &self,
        mut reply: Pin<&mut (dyn Future<Output = ()> + Send)>,
        connection: &Weak<dyn Ensemble>,
    ) {
        let mut link = self.link();
        let is_late = tokio::select! {
            biased;
            () = &mut reply => false,
            _ = link.wait_for(|link| matches!(link, Link::Over(_))) => return,
            () = clock::sleep(self.patience()) => true,
        };
        if is_late {
            tracing::info!(
                session = format_args!("{:#x}", self.id),
                "no reply in time: the connection is given up"
            );
            connection.upgrade().iter().for_each(|connection| connection.give_up());
            reply.await;
        }
        // As soon as anything notices the connection's end. Until then requests would fail again and again.
        let Some(ended) = connection.upgrade().filter(|connection| !connection.is_open()) else { return };
        // Locked to the end, because another connection may be attached at the same time, and nobody would report that again.
        let present = lock_ignoring_poison(&self.ensemble);
        if present.as_ref().is_some_and(|present| Arc::ptr_eq(present, &ended)) {
            self.set_connected(false);
        }
    }
}
