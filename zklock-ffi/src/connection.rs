//! Changes of a client's connection that its event loop has not fetched yet.

use zklock::further::ConnectionState;

/// The changes of the connection that are still to be reported. However much happens before they
/// are fetched, they are at most three events, but no lost session and no outage is left out.
#[derive(Default)]
pub(crate) struct Untold {
    told: Option<ConnectionState>,
    now: Option<ConnectionState>,
    /// A session was lost since the last event.
    was_lost: bool,
    /// The connection broke since the last event, and no session was lost after that.
    was_away: bool,
}

impl Untold {
    /// Records a change.
    pub(crate) fn note(&mut self, state: ConnectionState) {
        match state {
            ConnectionState::SessionLost => (self.was_lost, self.was_away) = (true, false),
            ConnectionState::Disconnected => self.was_away = true,
            _ => {}
        }
        self.now = Some(state);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next().is_none()
    }

    /// Gives the next event, and records that it was reported.
    pub(crate) fn tell(&mut self) -> Option<ConnectionState> {
        let next = self.next()?;
        match next {
            ConnectionState::SessionLost => self.was_lost = false,
            // Earlier states are not reported after this one.
            _ => self.was_away = false,
        }
        self.told = Some(next);
        self.told
    }

    fn next(&self) -> Option<ConnectionState> {
        if self.was_lost {
            return Some(ConnectionState::SessionLost);
        }
        let is_back = self.was_away && self.now == Some(ConnectionState::Connected);
        match self.now {
            // It went away and came back.
            now if now == self.told => is_back.then_some(ConnectionState::Disconnected),
            now => now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ConnectionState::{Closed, Connected, Disconnected, SessionLost};

    /// Records the changes, and gives all events.
    fn told(untold: &mut Untold, changes: &[ConnectionState]) -> Vec<ConnectionState> {
        for change in changes {
            untold.note(*change);
        }
        let mut all = Vec::new();
        while let Some(state) = untold.tell() {
            assert!(all.len() < 3, "{all:?} after {changes:?}");
            all.push(state);
        }
        assert!(untold.is_empty());
        all
    }

    #[test]
    fn outages_and_lost_sessions_are_told_however_late() {
        let mut untold = Untold::default();
        let outage = [Disconnected, Connected];
        assert_eq!(told(&mut untold, &[Connected]), [Connected]);
        assert_eq!(told(&mut untold, &outage), outage);
        assert_eq!(told(&mut untold, &outage.repeat(5)), outage);
        assert_eq!(told(&mut untold, &[Disconnected, SessionLost, Connected]), [SessionLost, Connected]);
        assert_eq!(told(&mut untold, &[SessionLost, Connected, SessionLost]), [SessionLost]);
        assert_eq!(told(&mut untold, &[Connected, SessionLost]), [SessionLost]);
        assert_eq!(told(&mut untold, &[Connected, Disconnected]), [Disconnected]);
        assert_eq!(told(&mut untold, &[Connected, Disconnected, Connected]), [Connected]);
        assert_eq!(told(&mut untold, &[SessionLost, Closed]), [SessionLost, Closed]);
    }
}
