//! The watch that a try leaves behind when it has found the lock busy, so that the next try need not ask.
//!
//! The watch costs two requests, to set it and to remove it. So only the try of a caller that has tried before sets it. It
//! is sent with the deletion of the try's own node, and after it. So it is at least as new as that write, and costs no
//! round trip. While the contender that was in the way exists, a new node would be behind it.
//!
//! No watch is set if a single node does not prove that the lock is busy: for a set of locks, and for permits. Nor is one
//! set if the node belongs to our own session: its deletion may be under way, and the next try waits for that. So none is set
//! either if names do not show whose nodes they are.

use super::{Contender, State, Step};
use crate::Moment;
use crate::protocol::{Now, Operation, Outcome, Patience};
use crate::queue::oldest_ahead;

/// Whether to leave such a watch, on which node, and since when.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Busy {
    pub(super) is_wanted: bool,
    /// The path of the node in the way. The try fails because of it.
    in_the_way: Option<String>,
    /// When the request that set the watch was sent.
    pub(super) since: Option<Moment>,
}

impl Contender {
    /// Notes what is in the way of a try.
    pub(super) fn note_in_the_way(&mut self, children: &[String]) {
        let [claim] = &self.claims[..] else { return };
        if !self.busy.is_wanted
            || self.flow.patience != Patience::TriesOnce
            || claim.permits.is_some()
            || !claim.has_mark_in_name()
        {
            return;
        }
        let is_others = |name: &&str| {
            let uuid = claim.parse(name).and_then(|name| name.uuid());
            uuid.is_none_or(|uuid| uuid.session() != self.flow.mark.session())
        };
        let oldest = oldest_ahead(children, self.queue.slots[0].name(), claim).filter(is_others);
        self.busy.in_the_way = oldest.map(|name| format!("{}/{name}", claim.directory));
    }

    /// Returns the deletion of our nodes, and the watch that a try leaves.
    pub(super) fn departure(&self, step: &Step) -> Vec<Operation> {
        let watched = self.busy.in_the_way.clone().filter(|_| *step == Step::Leave && self.flow.answered);
        let watch = watched.map(|path| Operation::Watch { path });
        self.doomed().map(|path| Operation::Delete { path }).chain(watch).collect()
    }

    /// The place in the queue comes last, because the next head of the queue counts the permits.
    fn doomed(&self) -> impl Iterator<Item = String> {
        self.permits.paths().chain(self.queue.paths())
    }

    pub(super) fn departed(&mut self, step: Step, outcomes: &[Outcome], sent: Moment, now: Now) {
        let (deleted, watched) = outcomes.split_at(self.doomed().count().min(outcomes.len()));
        self.on_deleted(step, deleted, now);
        if self.flow.state == State::Gone && watched == [Outcome::Done] {
            self.busy.since = Some(sent);
        }
    }
}
