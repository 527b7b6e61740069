//! The sessions of one client, one after the other, and the connection that they are on.

use super::ensemble::Child;
use super::machine::Moment;
use super::machine::lease::Lease;
use super::machine::protocol::Now;
use super::setup::TIMEOUT;

/// A session, as its client and as the servers know it.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Session {
    pub(crate) id: i64,
    pub(crate) lease: Lease,
    /// When the latest of the acknowledged writes was sent.
    pub(crate) last_sent: Moment,
    pub(crate) opened: Moment,
    /// When the leader last committed something of it. (A follower that is cut off still answers reads.)
    pub(crate) touched: Moment,
    /// When the servers ended it. From then on the model counts its lease as over, even if it still ran.
    pub(crate) expired: Option<Moment>,
}

impl Session {
    pub(crate) fn lease_until(&self) -> Moment {
        self.expired.map_or(self.lease.until(), |cut| cut.min(self.lease.until()))
    }
}

#[derive(Clone, Hash, Debug)]
pub(crate) struct Line {
    pub(crate) session: Option<Session>,
    /// The latest transaction that the client has seen. A server that is behind refuses the client.
    pub(crate) seen: i64,
    /// A transaction that its server has applied; it may be further.
    pub(crate) floor: i64,
    /// Whether there is no connection, so that nothing is sent.
    pub(crate) is_down: bool,
    /// Nodes that its server shows although they are deleted, or although there are others by now.
    pub(crate) ghosts: Vec<(&'static str, Child)>,
    /// Sessions and attempts so far, for marks that differ.
    serial: u8,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { session: None, seen: 0, floor: 0, is_down: false, ghosts: Vec::new(), serial: 0 }
    }

    /// A new session, on a server that has applied `floor`.
    pub(crate) fn open(&mut self, number: usize, now: Moment, seen: i64, floor: i64) {
        let id = (i64::try_from(number).unwrap_or(0) + 1) * 100 + i64::from(self.next_serial());
        let lease = Lease::new(TIMEOUT, now);
        self.session = Some(Session { id, lease, last_sent: now, opened: now, touched: now, expired: None });
        (self.seen, self.floor, self.is_down) = (seen, floor, false);
    }

    pub(crate) fn next_serial(&mut self) -> u8 {
        self.serial += 1;
        self.serial
    }

    /// The connection is lost: the next server knows only what this client has seen.
    pub(crate) fn disconnect(&mut self) {
        self.floor = self.seen;
        self.is_down = true;
        self.ghosts.clear();
    }

    pub(crate) fn close(&mut self) {
        self.session = None;
        (self.seen, self.floor) = (0, 0);
        self.ghosts.clear();
    }

    /// Whether the servers know the session.
    pub(crate) fn is_live(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.expired.is_none())
    }

    pub(crate) fn now(&self, moment: Moment) -> Now {
        let lease_until = self.session.as_ref().map_or(Moment::default(), Session::lease_until);
        Now { moment, lease_until }
    }
}
