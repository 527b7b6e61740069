//! The state of a client's connection, for programs that want to know about outages.
//!
//! It is read from the state of the sessions. A tokio `watch` keeps only the latest value, and whether it has changed.
//! That is enough to report every lost session and every outage, however late it is read.

use crate::base::error::LossReason;
use crate::session::session::Link;
use crate::session::slot::{Slot, SlotState};
use std::fmt;
use tokio::sync::watch;
use zklock_machine::listed;

listed! {
    /// The state of a client's connection.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::ConnectionState;
    /// fn may_hold_locks(state: ConnectionState) -> bool {
    ///     matches!(state, ConnectionState::Connected | ConnectionState::Disconnected)
    /// }
    /// assert!(!may_hold_locks(ConnectionState::SessionLost));
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    #[non_exhaustive]
    pub enum ConnectionState {
        /// A server is connected.
        Connected,
        /// The connection broke, and the client is looking for another server. The session and its holds live on for now:
        /// [`Hold::valid_for`](crate::Hold::valid_for) says for how long.
        Disconnected,
        /// The session is over, and all its holds are lost. The client is opening the next session.
        SessionLost,
        /// The client was closed. This is final.
        Closed,
    }
}

impl fmt::Display for ConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connected => "connected",
            Self::Disconnected => "disconnected",
            Self::SessionLost => "session lost",
            Self::Closed => "closed",
        })
    }
}

/// Reports the state of a client's connection, and each change. See [`Client::connection`](crate::Client::connection).
///
/// It keeps neither the client nor its session open.
///
/// # Examples
///
/// ```no_run
/// use zklock::further::ConnectionState;
///
/// # async fn example(client: &zklock::Client) -> Result<(), zklock::Error> {
/// let mut connection = client.connection()?;
/// while let Some(state) = connection.next().await {
///     if state == ConnectionState::SessionLost {
///         println!("all holds are lost");
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Connection {
    slot: watch::Receiver<SlotState>,
    /// The link of the session that was reported last, until its end has been reported.
    link: Option<watch::Receiver<Link>>,
    /// The state that was reported last.
    reported: Option<ConnectionState>,
}

impl Connection {
    pub(crate) fn of(slot: &Slot) -> Self {
        Self { slot: slot.watch(), link: None, reported: None }
    }

    /// Returns the state at once the first time, and then as soon as it changes; `None` once
    /// [`Closed`](ConnectionState::Closed) has been reported.
    ///
    /// Changes that follow each other quickly may be reported as one. But a lost session is always reported as
    /// [`SessionLost`](ConnectionState::SessionLost); several that were lost since the last call are reported once.
    /// Between two reports of [`Connected`](ConnectionState::Connected), there is always a report of what happened in
    /// between.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped and the method called again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &zklock::Client) -> Result<(), zklock::Error> {
    /// let mut connection = client.connection()?;
    /// println!("now {:?}", connection.next().await);
    /// println!("then {:?}", connection.next().await);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next(&mut self) -> Option<ConnectionState> {
        while self.reported != Some(ConnectionState::Closed) {
            if let Some(state) = self.due() {
                self.reported = Some(state);
                return self.reported;
            }
            let changed = match &mut self.link {
                // A session reports its end before the slot does.
                Some(link) => link.changed().await,
                None => self.slot.changed().await,
            };
            if changed.is_err() {
                // Nothing is left that could open a session. If there never was one, there is nothing to report.
                self.reported?;
                self.reported = Some(ConnectionState::Closed);
                return self.reported;
            }
        }
        None
    }

    /// Returns the next state to report, if there is one.
    fn due(&mut self) -> Option<ConnectionState> {
        let Some(link) = &mut self.link else { return self.opened() };
        let was_away = link.has_changed().unwrap_or(false);
        let state = state_of(*link.borrow_and_update());
        match state {
            ConnectionState::SessionLost => self.link = None,
            // It was away and is back; the next call finds it connected.
            ConnectionState::Connected if self.reported == Some(state) && was_away => {
                return Some(ConnectionState::Disconnected);
            }
            state if self.reported == Some(state) => return None,
            _ => {}
        }
        Some(state)
    }

    /// Returns the next state to report if no session is being followed.
    fn opened(&mut self) -> Option<ConnectionState> {
        let state = {
            let slot = self.slot.borrow_and_update();
            let state = state_at(&slot)?;
            match &*slot {
                SlotState::Open(session) if state != ConnectionState::SessionLost => {
                    self.link = Some(session.link());
                }
                _ => {}
            }
            state
        };
        (self.reported != Some(state)).then_some(state)
    }
}

/// Returns the state of a client whose slot is in this state; `None` before its first session.
pub(crate) fn state_at(slot: &SlotState) -> Option<ConnectionState> {
    match slot {
        SlotState::Unopened | SlotState::First(_) => None,
        SlotState::Open(session) => Some(state_of(*session.link().borrow())),
        SlotState::Next(_) => Some(ConnectionState::SessionLost),
        SlotState::Closed => Some(ConnectionState::Closed),
    }
}

fn state_of(link: Link) -> ConnectionState {
    match link {
        Link::Connected => ConnectionState::Connected,
        Link::Disconnected => ConnectionState::Disconnected,
        Link::Over(LossReason::ClientClosed) => ConnectionState::Closed,
        Link::Over(_) => ConnectionState::SessionLost,
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("reported", &self.reported).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::fake::FakeEnsemble;
    use crate::session::session::Session;
    use ConnectionState::{Connected, Disconnected, SessionLost};
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    fn session() -> Arc<Session> {
        FakeEnsemble::new().session()
    }

    fn next(connection: &mut Connection) -> Poll<Option<ConnectionState>> {
        std::pin::pin!(connection.next()).poll(&mut Context::from_waker(Waker::noop()))
    }

    /// The reports that come without waiting.
    fn reports(connection: &mut Connection) -> Vec<ConnectionState> {
        let mut reports = Vec::new();
        while let Poll::Ready(Some(state)) = next(connection) {
            reports.push(state);
            assert!(reports.len() < 10, "reported again and again: {reports:?}");
        }
        reports
    }

    #[test]
    fn an_outage_and_a_lost_session_are_reported_however_late_they_are_looked_at() {
        let first = session();
        let slot = Slot::of(SlotState::Open(first.clone()));
        let mut connection = Connection::of(&slot);
        assert_eq!(reports(&mut connection), [Connected]);
        for _ in 0..3 {
            first.set_connected(false);
            first.set_connected(true);
        }
        assert_eq!(reports(&mut connection), [Disconnected, Connected]);
        first.set_connected(false);
        first.end(LossReason::SessionExpired);
        slot.set(SlotState::Next(None));
        let second = session();
        slot.set(SlotState::Open(second.clone()));
        second.set_connected(false);
        assert_eq!(reports(&mut connection), [SessionLost, Disconnected]);
        second.set_connected(true);
        assert_eq!(reports(&mut connection), [Connected]);
    }
}
