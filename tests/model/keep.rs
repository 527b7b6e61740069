//! The holds of one session under their keeper, compared with the servers' state.
//!
//! That a session lives while its lease runs is checked [elsewhere](super::pulse) and assumed here: the session may end
//! whenever its lease is over. This checks the keeper: no hold is valid once its session or node is gone, and every holder
//! learns of its loss in time, and of no loss that did not happen. If there are more holds than a check names, a server that
//! may lag behind watches the others.

use super::explorer::{Actions, Violation, World, possible};
use super::follower::{Follower, Message, Request};
use super::keeper::Numbered;
use super::machine::Moment;
use super::machine::keeper::{Check, Keeper, Seen};
use super::machine::status::LossReason;
use super::trouble::Trouble;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// The session's timeout. A beat is due two units after the last proof.
const TIMEOUT: Duration = Duration::from_secs(24);
/// How long a sleep of the process lasts.
const NIGHT: u8 = 16;
/// A hold that has lapsed is checked twice in a row. A check before that may have been too early for its watch, and one
/// before that sent while another was on its way. More checks at a time would be a flood.
const BEATS_AT_MOST: u8 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Tick,
    /// The server executes the next request.
    Execute,
    /// The server's next message arrives.
    Hear,
    /// The answer to the check says nothing about the nodes.
    Refuse,
    Stall,
    Resume,
    Break,
    Reconnect,
    Night,
    Write,
    Delete(usize),
    Expire,
    Grant,
    Lag,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Link {
    Up,
    /// It is stalled, and nobody has noticed.
    Stalled,
    Down,
}

/// A check on its way.
#[derive(Clone, Hash, Debug)]
struct Flight {
    sent: u8,
    /// The holds that it names, and those whose watches its sender knew of.
    named: Vec<usize>,
    watched: Vec<usize>,
}

/// A hold, and what its holder was told.
#[derive(Clone, Default, Hash, Debug)]
struct Held {
    /// When its node was deleted.
    deleted: Option<u8>,
    lost: Option<LossReason>,
    /// Since when it is not valid.
    lapsed: Option<u8>,
    /// The number of checks sent since then that have found its node.
    fresh: u8,
    /// How many of them were sent after the answer to the one before, and when the latest of these was answered.
    in_turn: u8,
    answered: u8,
    /// Whether its holder knows that its node is watched.
    is_watched: bool,
}

/// How many holds there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holds {
    pub(crate) name: &'static str,
    pub(crate) at_first: usize,
    /// The most that a check names, while others can be watched.
    pub(crate) named_at_most: usize,
    /// How soon their holders must learn of a loss.
    pub(crate) loss_timeout: Duration,
}

#[derive(Clone, Hash, Debug)]
pub(crate) struct Keep {
    now: u8,
    end: u8,
    trouble: Trouble,
    /// The most holds that a check names, while others can be watched.
    named_at_most: usize,
    /// In units of time.
    loss_timeout: u8,
    keeper: Numbered,
    holds: Vec<Held>,
    link: Link,
    server: Follower,
    /// The checks on their way, in their order.
    flights: VecDeque<Flight>,
    /// The holds for which watches were asked for.
    asked: Vec<usize>,
    expired: Option<u8>,
    /// When the servers were last out of reach, or the process last asleep.
    disturbed: Option<u8>,
    /// In this unit of time.
    beats: u8,
    has_written: bool,
    violation: Option<Violation>,
}

impl Keep {
    pub(crate) fn new(end: u8, trouble: Trouble, holds: Holds) -> Self {
        let keeper = Keeper::new(TIMEOUT, at(0), at(0)).naming_at_most(holds.named_at_most);
        let mut keeper = Numbered::new(keeper.telling_within(holds.loss_timeout));
        (0..holds.at_first).for_each(|_| keeper.handle_grant(at(0)));
        Self {
            now: 0,
            end,
            trouble,
            named_at_most: holds.named_at_most,
            loss_timeout: holds.loss_timeout.as_millis().div_ceil(1_000) as u8,
            keeper,
            holds: vec![Held::default(); holds.at_first],
            link: Link::Up,
            server: Follower::default(),
            flights: VecDeque::new(),
            asked: Vec::new(),
            expired: None,
            disturbed: None,
            beats: 0,
            has_written: false,
            violation: None,
        }
    }

    fn violate(&mut self, property: &'static str, detail: String) {
        self.violation.get_or_insert(Violation { property, detail });
    }

    fn is_valid(&self, hold: usize) -> bool {
        self.holds[hold].lost.is_none() && !self.keeper.valid_for(hold, at(self.now)).is_zero()
    }

    /// The holds of which this is so.
    fn those(&self, is_so: impl Fn(&Held) -> bool) -> Vec<usize> {
        (0..self.holds.len()).filter(|hold| is_so(&self.holds[*hold])).collect()
    }

    /// Does the driver's work after each action.
    fn drive(&mut self) {
        self.watch_validity();
        while let Some((hold, reason)) = self.keeper.poll_lost(at(self.now)) {
            self.judge_loss(hold, reason);
            self.holds[hold].lost = Some(reason);
        }
        let is_connected = self.link != Link::Down;
        let asked = self.keeper.poll_watch(at(self.now), is_connected);
        if !asked.is_empty() {
            self.server.requests.push_back(Request::Watch(asked.clone()));
            self.asked = asked;
        }
        if let Some(named) = self.keeper.poll_beat(at(self.now), is_connected) {
            self.beats += 1;
            self.judge_size(&named);
            self.server.requests.push_back(Request::Check(named.clone()));
            let watched = self.those(|held| held.is_watched);
            self.flights.push_back(Flight { sent: self.now, named, watched });
        }
    }

    fn judge_size(&mut self, named: &[usize]) {
        let is_calm = self.disturbed.is_none();
        // If more holds are due than a check may name, the next beat watches the others.
        let at_most = self.named_at_most.max(1);
        if is_calm && named.len() > at_most {
            self.violate("constant cost", format!("a check names {named:?}"));
        }
    }

    /// Notes which holds are valid.
    fn watch_validity(&mut self) {
        for number in 0..self.holds.len() {
            let is_valid = self.is_valid(number);
            let held = &mut self.holds[number];
            match held.lapsed {
                None if !is_valid => {
                    held.lapsed = Some(self.now);
                    (held.fresh, held.in_turn, held.answered) = (0, 0, self.now);
                }
                Some(_) if is_valid => {
                    held.lapsed = None;
                    if held.fresh < 2 {
                        let detail = format!("hold {number} is restored by {} checks of its own", held.fresh);
                        self.violate("restored by its own", detail);
                    }
                }
                Some(_) if held.in_turn >= 2 && held.lost.is_none() => {
                    let detail = format!("hold {number} has been found twice, and cannot be relied upon");
                    self.violate("restored", detail);
                }
                _ => {}
            }
        }
    }

    fn judge_loss(&mut self, number: usize, reason: LossReason) {
        let held = &self.holds[number];
        let has_happened = match reason {
            // A watch reports the end of a session in the same way as a deletion.
            LossReason::NodeDeleted => held.deleted.is_some() || self.expired.is_some(),
            LossReason::SessionExpired => self.expired.is_some(),
            LossReason::LeaseLapsed => held.lapsed.is_some_and(|since| self.now >= since + self.loss_timeout),
            _ => false,
        };
        if held.lost.is_some() || !has_happened {
            self.violate("told nothing false", format!("hold {number}: {reason}, it is {held:?}"));
        }
    }

    /// The server executes the next request.
    fn execute(&mut self) {
        match self.server.requests.pop_front() {
            Some(Request::Check(holds)) => {
                let deleted = self.those(|held| held.deleted.is_some());
                let missing = (0..holds.len()).filter(|index| deleted.contains(&holds[*index])).collect();
                let is_expired = self.expired.is_some();
                // The server has caught up by the time that the quorum has committed the check.
                self.server.learn(deleted.into_iter());
                let reply = if is_expired { Check::SessionOver } else { Check::Answered { missing } };
                self.server.messages.push_back(Message::Checked(reply));
            }
            Some(Request::Watch(holds)) => self.server.watch(&holds),
            None => {}
        }
    }

    /// The server's next message arrives.
    fn hear(&mut self) {
        match self.server.messages.pop_front() {
            Some(Message::Checked(reply)) => self.answer(&reply),
            Some(Message::Seen(seen)) => self.see(&seen),
            Some(Message::Gone(hold)) => self.unwatch(hold, true),
            None => {}
        }
    }

    fn see(&mut self, seen: &[(usize, Seen)]) {
        self.asked.clear();
        seen.iter().for_each(|(hold, look)| self.holds[*hold].is_watched = *look == Seen::There);
        self.keeper.handle_seen(seen, at(self.now));
    }

    fn unwatch(&mut self, hold: usize, is_deleted: bool) {
        self.holds[hold].is_watched = false;
        self.keeper.handle_event(hold, is_deleted);
    }

    fn answer(&mut self, reply: &Check) {
        let Some(flight) = self.flights.pop_front() else { return };
        let missing = if let Check::Answered { missing } = reply { Some(missing) } else { None };
        // A check that has found nothing proves nothing.
        if let Some(missing) = missing.filter(|missing| missing.len() < flight.named.len()) {
            let found = flight.named.iter().enumerate().filter(|(index, _)| !missing.contains(index));
            let silent = flight.watched.iter().filter(|hold| self.holds[**hold].is_watched);
            let proven: BTreeSet<usize> = found.map(|(_, hold)| *hold).chain(silent.copied()).collect();
            for hold in proven {
                let held = &mut self.holds[hold];
                held.fresh += u8::from(held.lapsed.is_some_and(|since| flight.sent >= since));
                if held.lapsed.is_some() && flight.sent >= held.answered {
                    (held.in_turn, held.answered) = (held.in_turn + 1, self.now);
                }
            }
        }
        self.keeper.handle_proof(reply, at(self.now));
    }

    /// The connection ends.
    fn disconnect(&mut self) {
        self.link = Link::Down;
        self.server.disconnect();
        while !self.flights.is_empty() {
            self.answer(&Check::Unknown);
        }
        let unseen: Vec<_> = self.asked.iter().map(|hold| (*hold, Seen::Unknown)).collect();
        if !unseen.is_empty() {
            self.see(&unseen);
        }
        self.those(|held| held.is_watched).into_iter().for_each(|hold| self.unwatch(hold, false));
    }

    fn pass(&mut self, units: u8) {
        self.now += units;
        (self.beats, self.has_written) = (0, false);
        if self.link != Link::Up || units > 1 {
            self.disturbed = Some(self.now);
        }
    }

    /// Whether an operator can delete the node of this hold.
    fn can_delete(&self, hold: usize) -> bool {
        self.trouble.deletions > 0 && self.holds[hold].deleted.is_none() && self.expired.is_none()
    }

    /// Since when the holder of a deleted node could have been told, without an outage.
    fn could_be_told_since(&self, held: &Held) -> Option<u8> {
        let gone = [held.deleted, self.expired].into_iter().flatten().min()?;
        (self.link == Link::Up).then(|| self.disturbed.map_or(gone, |disturbed| disturbed.max(gone)))
    }

    fn check_hold(&self, number: usize, held: &Held) -> Result<(), Violation> {
        let violation =
            |property, detail: &str| Violation { property, detail: format!("hold {number} {detail}") };
        let is_valid = self.is_valid(number);
        if is_valid && self.expired.is_some() {
            return Err(violation("exclusive", "is relied upon, and its session is over"));
        }
        let told_late = |since: Option<u8>| since.is_some_and(|since| self.now > since + self.loss_timeout);
        if held.lost.is_none() && told_late(self.could_be_told_since(held)) {
            return Err(violation("told", "is gone, and its holder has not been told"));
        }
        if held.lost.is_none() && held.lapsed.is_some_and(|since| self.now >= since + self.loss_timeout) {
            return Err(violation("told", "has no lease, and its holder has not been told"));
        }
        if !is_valid && self.disturbed.is_none() && held.deleted.is_none() && self.expired.is_none() {
            return Err(violation("kept", "cannot be relied upon, and nothing has gone wrong"));
        }
        Ok(())
    }
}

impl World for Keep {
    type Action = Action;

    fn actions(&self) -> Actions<Action> {
        use Action as A;
        let mut actions = Actions { progress: Vec::new(), faults: Vec::new() };
        if self.now >= self.end || self.holds.iter().all(|held| held.lost.is_some()) {
            return actions;
        }
        let trouble = self.trouble;
        let is_up = self.link == Link::Up;
        actions.progress.push(match &self.server {
            // The servers answer at once whatever they can.
            server if is_up && !server.messages.is_empty() && !self.is_late() => A::Hear,
            server if is_up && !server.requests.is_empty() => A::Execute,
            _ => A::Tick,
        });
        let resumption = match self.link {
            Link::Up => None,
            Link::Stalled => Some(A::Resume),
            Link::Down => Some(A::Reconnect),
        };
        actions.faults.extend(resumption);
        if trouble.steps == 0 {
            return actions;
        }
        let lives = self.expired.is_none();
        // The servers' confirmations may still arrive.
        let may_end = !self.server.has_answered_check() && self.lapses();
        actions.faults.extend(possible([
            (A::Stall, trouble.stalls > 0 && is_up),
            (A::Break, trouble.breaks > 0 && self.link != Link::Down),
            (A::Refuse, trouble.refusals > 0 && is_up && !self.flights.is_empty()),
            (A::Night, trouble.nights > 0 && self.now + NIGHT < self.end),
            (A::Write, trouble.writes > 0 && is_up && !self.has_written && lives),
            (A::Expire, trouble.expiries > 0 && lives && may_end),
            (A::Grant, trouble.grants > 0 && is_up && lives),
            (A::Lag, trouble.lags > 0 && is_up && !self.server.lags),
        ]));
        actions.faults.extend((0..self.holds.len()).filter(|hold| self.can_delete(*hold)).map(A::Delete));
        actions
    }

    fn apply(&mut self, action: Action) {
        use Action as A;
        let trouble = &mut self.trouble;
        let budget = match action {
            A::Tick | A::Execute | A::Hear | A::Resume | A::Reconnect => None,
            A::Refuse => Some(&mut trouble.refusals),
            A::Stall => Some(&mut trouble.stalls),
            A::Break => Some(&mut trouble.breaks),
            A::Night => Some(&mut trouble.nights),
            A::Write => Some(&mut trouble.writes),
            A::Delete(_) => Some(&mut trouble.deletions),
            A::Expire => Some(&mut trouble.expiries),
            A::Grant => Some(&mut trouble.grants),
            A::Lag => Some(&mut trouble.lags),
        };
        if let Some(budget) = budget {
            *budget -= 1;
            trouble.steps -= 1;
        }
        let now = at(self.now);
        match action {
            A::Tick => self.pass(1),
            A::Night => self.pass(NIGHT),
            A::Execute => self.execute(),
            A::Hear => self.hear(),
            A::Refuse => {
                self.server.forget_check();
                self.answer(&Check::Unknown);
                self.disturbed = Some(self.now);
            }
            A::Stall => self.link = Link::Stalled,
            A::Resume => {
                self.link = Link::Up;
                self.disturbed = Some(self.now);
            }
            A::Break => self.disconnect(),
            A::Lag => self.server.lags = true,
            A::Reconnect => {
                (self.link, self.disturbed) = (Link::Up, Some(self.now));
                // The server has caught up, because it has answered a write.
                self.server.learn(self.those(|held| held.deleted.is_some()).into_iter());
                if self.expired.is_some() {
                    self.keeper.keeper.handle_over(LossReason::SessionExpired);
                } else {
                    let keeper = &mut self.keeper.keeper;
                    keeper.handle_asked();
                    keeper.handle_granted(now, TIMEOUT, now);
                    keeper.handle_write(now, now);
                }
            }
            A::Write => {
                self.has_written = true;
                self.keeper.keeper.handle_write(now, now);
            }
            A::Delete(hold) => {
                self.holds[hold].deleted = Some(self.now);
                if !self.server.lags {
                    self.server.learn(std::iter::once(hold));
                }
            }
            A::Expire => {
                self.expired = Some(self.now);
                if !self.server.lags && self.link != Link::Down {
                    self.server.learn(0..self.holds.len());
                }
            }
            A::Grant => {
                self.keeper.keeper.handle_write(now, now);
                // The contender grants nothing without a live lease.
                if !self.lapses() {
                    self.keeper.handle_grant(now);
                    self.holds.push(Held::default());
                }
            }
        }
        self.drive();
    }

    fn check(&self) -> Result<(), Violation> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        if self.beats > BEATS_AT_MOST {
            let detail = format!("{} checks at a time", self.beats);
            return Err(Violation { property: "no flood", detail });
        }
        self.holds.iter().enumerate().try_for_each(|(number, held)| self.check_hold(number, held))
    }
}

impl Keep {
    /// Whether the next answer has still to come, because all answers are late.
    fn is_late(&self) -> bool {
        self.flights.front().is_some_and(|flight| flight.sent + self.trouble.late > self.now)
    }

    fn lapses(&self) -> bool {
        self.keeper.keeper.lease().until() <= at(self.now)
    }
}

fn at(units: u8) -> Moment {
    Moment::at(Duration::from_secs(u64::from(units)))
}
