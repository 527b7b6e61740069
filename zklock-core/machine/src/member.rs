//! One member of a double barrier, from the creation of its node to its deletion.
//!
//! A member comes, waits until the barrier is open, is inside, and leaves. It is not [gone](Machine::is_gone) before
//! its node is. [`barrier`] decides who may go on and who waits for whom.

#[cfg(test)]
mod tests;

use crate::Moment;
use crate::barrier::{self, BarrierChild, Entrance, Others, READY, Ready};
use crate::drive::Machine;
use crate::name::Uuid;
use crate::protocol::{Node, Now, Operation, Outcome, Patience, Refusal, WatchEvent};
use crate::retry::{Failures, Parented, Parents};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The number of heartbeats in a session timeout.
const HEARTBEATS: u32 = 10;

/// How many times others may be faster in opening the barrier.
const NOT_OPENED_AT_MOST: u32 = 8;

/// How long to wait before a refused deletion is tried again. Meanwhile the driver closes the session.
const UNTIL_ALLOWED: Duration = Duration::from_secs(1);

/// A flight that the member is about to send, or waits for replies to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    /// Create the node if it does not exist, and list the children.
    Come,
    CreateParents,
    /// See whether `ready` is newer than our node. These children have been listed.
    Compare {
        children: Vec<String>,
    },
    Survey(Purpose),
    /// Create `ready` if the guards exist, and go in together with these.
    Open {
        guards: Vec<String>,
        replaces: bool,
        entered: BTreeSet<String>,
    },
    /// List who is inside at the beginning of a leave.
    Depart,
    /// List who is still inside.
    Look,
    /// Watch one of the members that we wait for.
    Watch {
        name: String,
    },
    /// Delete our node and `ready` in one transaction.
    RemoveBoth,
    Remove,
}

/// Why the children are read, each with the transaction that created it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Purpose {
    /// To find out what `ready` means. These children have been listed.
    Entering { children: Vec<String> },
    /// To find out whom we wait for. These children have been listed.
    Awaiting { children: Vec<String> },
    /// To find out whether `ready` goes with us.
    Removing,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    /// There is no session to work in, and so no node.
    Idle,
    Ready(Step),
    InFlight(Step),
    Paused(Step, Moment),
    /// Waits for the watch to fire, but no longer than until this time: an operator may delete our node, which no watch
    /// reports, and a notification may be lost.
    Waiting(Step, Moment),
    Within,
    Gone,
}

/// The caller's wish.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Aim {
    Enter,
    Stay,
    /// To leave and wait for the others. `stays` says whether its node stays until they have left.
    Leave {
        stays: bool,
    },
    /// Only that the node is deleted.
    Nothing,
}

/// The answers to the caller: one for how it entered, and one for how it left.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// It is inside, with this node.
    Entered {
        /// Its path.
        node: String,
    },
    /// The barrier is not open, and the member did not want to wait.
    NotOpen,
    /// It has left, and so have all others.
    Left,
    /// It leaves. Others are still inside, and it did not want to wait for them.
    OthersWithin,
    /// Its node was gone before it left, so the others may have gone on without it.
    Lost,
    /// The ensemble refused something.
    Failed(Refusal),
}

/// One member of a double barrier.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zklock_machine::Moment;
/// use zklock_machine::drive::Machine;
/// use zklock_machine::protocol::*;
/// use zklock_machine::member::{Answer, Member};
/// use zklock_machine::name::Uuid;
///
/// let now = Now { moment: Moment::default(), lease_until: Moment::default() };
/// let mut member = Member::new("/b", 1, b"db7/4711"[..].into(), Patience::Waits);
/// member.handle_session(7, Duration::from_secs(1), Uuid::from_random(1));
/// let name = member.mark().to_string();
///
/// let flight = member.poll_flight().unwrap();
/// assert!(matches!(&flight[..], [Operation::CreateSingle { .. }, Operation::InspectAndWatch { .. }, Operation::List { .. }]));
/// let node = Node { name: name.clone(), origin: Some(Origin { czxid: 5, session: 7 }) };
/// let outcomes = vec![Outcome::Created(vec![node]), Outcome::NoNode, Outcome::Children(vec![name])];
/// member.handle_replies(outcomes, now.moment, now);
///
/// // One member is enough here, so it opens the barrier.
/// assert!(matches!(&member.poll_flight().unwrap()[..], [Operation::Open { replaces: false, .. }]));
/// member.handle_replies(vec![Outcome::Done], now.moment, now);
/// assert!(matches!(member.poll_verdict(), Some(Answer::Entered { .. })));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    directory: Arc<str>,
    /// How many members it takes to open the barrier.
    members: usize,
    /// The data of its node, and of `ready` if it opens the barrier.
    data: Arc<[u8]>,
    patience: Patience,
    aim: Aim,
    state: State,
    /// How long to wait for a watch.
    look_again_after: Duration,
    mark: Uuid,
    /// The name of the node, or of the last one.
    name: String,
    /// Whether the node exists, as far as we know.
    created: bool,
    /// Whether the node may exist.
    may_be_there: bool,
    /// The transaction that created it, if the server said so.
    czxid: Option<i64>,
    /// Whether the server may lag behind what we know or did.
    in_doubt: bool,
    /// Whether a watch has fired since our last look.
    woken: bool,
    /// Whether a deletion whose reply has not come may have been executed.
    delete_in_doubt: bool,
    /// Whom we wait for before we have left.
    others: Others,
    failures: Failures,
    parents: Parents,
    /// How many times the barrier could not be opened.
    not_opened: u32,
    answer: Option<Answer>,
}

impl Member {
    /// Creates a member that waits for its first session. It takes this many `members` to open the barrier. The nodes that
    /// it creates get this `data`.
    pub fn new(directory: &str, members: usize, data: Arc<[u8]>, patience: Patience) -> Self {
        Self {
            directory: directory.into(),
            members,
            data,
            patience,
            aim: Aim::Enter,
            state: State::Idle,
            look_again_after: Duration::ZERO,
            mark: Uuid::from_random(0),
            name: String::new(),
            created: false,
            may_be_there: false,
            czxid: None,
            in_doubt: false,
            woken: false,
            delete_in_doubt: false,
            others: Others::default(),
            failures: Failures::default(),
            parents: Parents::default(),
            not_opened: 0,
            answer: None,
        }
    }

    /// Makes a member that is inside leave. The answer comes when all others have left, or at once if it does not want
    /// to wait.
    pub fn handle_leave(&mut self, patience: Patience) {
        if self.state == State::Within {
            self.patience = patience;
            // Whether it stays is found out first.
            self.aim = Aim::Leave { stays: true };
            self.state = State::Ready(Step::Depart);
        }
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }

    fn tell(&mut self, answer: Answer) {
        if self.aim != Aim::Nothing {
            self.answer = Some(answer);
        }
    }

    /// Gives the caller this answer, and then deletes the node.
    fn end_with(&mut self, answer: Answer) {
        self.tell(answer);
        self.aim = Aim::Nothing;
        self.clean_up();
    }

    fn fail(&mut self, refusal: Refusal) {
        self.end_with(Answer::Failed(refusal));
    }

    /// Goes on with this step, or with the removal if nothing else is wanted any more.
    fn go(&mut self, step: Step) {
        if self.aim == Aim::Nothing && !step.removes() {
            self.clean_up();
        } else {
            self.state = State::Ready(step);
        }
    }

    /// Goes on in the same way, but not before this time.
    fn go_at(&mut self, step: Step, at: Option<Moment>) {
        self.go(step);
        if let (State::Ready(step), Some(at)) = (&self.state, at) {
            self.state = State::Paused(step.clone(), at);
        }
    }

    fn retry(&mut self, step: Step, now: Now) {
        let at = self.failures.next_try(now.moment);
        self.go_at(step, at);
    }

    /// Waits for the watch. If it has already fired since our last look, goes on at once.
    fn wait(&mut self, step: Step, now: Now) {
        if self.aim == Aim::Nothing || self.woken {
            self.go(step);
        } else {
            self.state = State::Waiting(step, now.moment + self.look_again_after);
        }
    }

    /// Chooses what is left to do when nothing is wanted any more.
    fn clean_up(&mut self) {
        self.state =
            if self.may_be_there { State::Ready(Step::Survey(Purpose::Removing)) } else { State::Gone };
    }

    /// Gives the next node this mark.
    fn name_after(&mut self, mark: Uuid) {
        (self.mark, self.name) = (mark, mark.to_string());
    }

    fn forget_node(&mut self) {
        (self.created, self.may_be_there, self.czxid) = (false, false, None);
        (self.in_doubt, self.delete_in_doubt) = (false, false);
    }

    /// Creates and lists in one flight. The list includes everybody who was there before us. So the last to come sees
    /// them all, and opens the barrier.
    fn arrival(&mut self) -> Vec<Operation> {
        let directory = self.directory.clone();
        let mut flight = Vec::new();
        if std::mem::take(&mut self.in_doubt) {
            flight.push(Operation::Barrier { directory: directory.clone() });
        }
        if !self.created {
            self.may_be_there = true;
            flight.push(Operation::CreateSingle { path: self.path_of(&self.name), data: self.data.clone() });
        }
        flight.push(Operation::InspectAndWatch { path: self.path_of(READY) });
        flight.push(Operation::List { directory });
        flight
    }

    fn arrived(&mut self, mut outcomes: Vec<Outcome>, now: Now) {
        if let Some(Outcome::Refused(refusal)) =
            outcomes.iter().find(|outcome| matches!(outcome, Outcome::Refused(_)))
        {
            // Without the node there is nothing to delete. Deleting it could be refused as well, and a session that may not delete
            // its node has to end.
            if !self.created && is_first_creation(&outcomes) && outcomes[0].refusal().is_some() {
                self.may_be_there = false;
            }
            return self.fail(refusal.clone());
        }
        let (list, ready) = (outcomes.pop(), outcomes.pop());
        if !self.created {
            match outcomes.pop() {
                Some(Outcome::Created(nodes)) => {
                    self.created = true;
                    self.czxid = nodes.first().and_then(|node| node.origin).map(|origin| origin.czxid);
                    self.parents.clear();
                }
                // Nobody else has this name, so it is ours, and only the reply was lost.
                Some(Outcome::NodeExists) => self.created = true,
                Some(Outcome::NoNode) => return self.go(Step::CreateParents),
                _ => {}
            }
        }
        match (ready, list) {
            (Some(ready @ (Outcome::Found(_) | Outcome::NoNode)), Some(Outcome::Children(children)))
                if self.created =>
            {
                if ready == Outcome::NoNode {
                    self.decide(&children, Ready::Missing, &[], now);
                } else if self.czxid.is_some() {
                    self.go(Step::Compare { children });
                } else {
                    self.go(Step::Survey(Purpose::Entering { children }));
                }
            }
            // An operator has deleted the whole barrier.
            (Some(Outcome::NoNode), Some(Outcome::NoNode)) if self.created => self.come_anew(now),
            _ => self.come_again(now),
        }
    }

    /// Comes again with another name, because the node was deleted. Others may wait for the end of the old one, and must
    /// not wait for a member of the next round.
    fn come_anew(&mut self, now: Now) {
        self.forget_node();
        self.name_after(self.mark.next());
        self.retry(Step::Come, now);
    }

    /// Comes again, because the server may have shown something old, or not have done what we asked for. The watch may
    /// have gone with the connection, so a closer look alone is never repeated.
    fn come_again(&mut self, now: Now) {
        self.in_doubt = true;
        self.retry(Step::Come, now);
    }

    fn parents_created(&mut self, outcome: Outcome, now: Now) {
        match self.parents.answered(vec![outcome]) {
            Parented::Created => self.go(Step::Come),
            Parented::Failed(refusal) => self.fail(refusal),
            Parented::Unknown => self.retry(Step::CreateParents, now),
        }
    }

    fn compared(&mut self, children: Vec<String>, ready: Outcome, now: Now) {
        match ready {
            Outcome::Found(node) => {
                let czxid = node.origin.map(|origin| origin.czxid);
                if czxid > self.czxid {
                    self.decide(&children, Ready::Newer, &[], now);
                } else {
                    self.go(Step::Survey(Purpose::Entering { children }));
                }
            }
            Outcome::NoNode => self.go(Step::Survey(Purpose::Entering { children })),
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.come_again(now),
        }
    }

    fn surveyed_to_enter(&mut self, children: &[String], survey: Outcome, now: Now) {
        match survey {
            Outcome::Surveyed(nodes) => {
                let seen = seen(&nodes);
                let name = self.name.clone();
                self.decide(children, Ready::of(&seen, &name), &seen, now);
            }
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.come_again(now),
        }
    }

    fn decide(&mut self, children: &[String], ready: Ready<'_>, seen: &[BarrierChild<'_>], now: Now) {
        let others = names(barrier::others(children, &self.name));
        match barrier::entrance(children, &self.name, self.members, ready) {
            // An operator has deleted it.
            Entrance::Absent => self.come_anew(now),
            Entrance::Passes => self.entered(others),
            Entrance::Opens { guards, replaces } => {
                let guards = guards.into_iter().map(str::to_owned).collect();
                let entered = match ready {
                    Ready::OfRound(_) => names(barrier::insiders(seen)),
                    _ => others,
                };
                self.go(Step::Open { guards, replaces, entered });
            }
            Entrance::Waits if self.patience == Patience::TriesOnce => self.end_with(Answer::NotOpen),
            Entrance::Waits => {
                self.failures.clear();
                self.wait(Step::Come, now);
            }
        }
    }

    fn opened(&mut self, entered: BTreeSet<String>, opened: Outcome, now: Now) {
        match opened {
            Outcome::Done => self.entered(entered),
            // Another member has opened it first.
            Outcome::NodeExists => self.not_opened(&format!("{READY} comes and goes in a loop")),
            // The `ready` that should have been replaced.
            Outcome::NotEmpty => self.not_opened(&format!("{READY} has children: delete them")),
            // One of the members that should have gone in is gone, or the `ready` that should have been replaced.
            Outcome::NoNode => {
                self.in_doubt = true;
                self.go(Step::Come);
            }
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.come_again(now),
        }
    }

    fn not_opened(&mut self, problem: &str) {
        self.not_opened += 1;
        if self.not_opened > NOT_OPENED_AT_MOST {
            return self.fail(Refusal::Answer(problem.to_owned()));
        }
        self.in_doubt = true;
        self.go(Step::Come);
    }

    fn entered(&mut self, others: BTreeSet<String>) {
        if self.aim == Aim::Nothing {
            return self.clean_up();
        }
        self.others.entered = others;
        self.tell(Answer::Entered { node: self.path_of(&self.name) });
        self.aim = Aim::Stay;
        self.failures.clear();
        self.state = State::Within;
    }

    fn on_departure(&mut self, listing: Outcome, now: Now) {
        let children = match listing {
            Outcome::Children(children) => children,
            Outcome::NoNode => Vec::new(),
            Outcome::Refused(refusal) => return self.fail(refusal),
            _ => return self.retry(Step::Depart, now),
        };
        self.failures.clear();
        if !children.contains(&self.name) {
            return self.end_with(Answer::Lost);
        }
        if self.aim == Aim::Nothing {
            return self.clean_up();
        }
        let stays = barrier::stays_to_the_end(&children, &self.name);
        self.aim = Aim::Leave { stays };
        self.others.stayed = names(barrier::others(&children, &self.name));
        self.go(if stays { Step::Look } else { Step::Survey(Purpose::Removing) });
    }

    fn on_listing(&mut self, ready: &Outcome, listing: Outcome, now: Now) {
        let children = match (ready, listing) {
            (Outcome::Refused(refusal), _) => return self.fail(refusal.clone()),
            (_, Outcome::Refused(refusal)) => return self.fail(refusal),
            (Outcome::Found(_) | Outcome::NoNode, Outcome::Children(children)) => children,
            (Outcome::Found(_) | Outcome::NoNode, Outcome::NoNode) => Vec::new(),
            _ => return self.retry(Step::Look, now),
        };
        if self.others.is_in_doubt(&children) {
            self.go(Step::Survey(Purpose::Awaiting { children }));
        } else {
            self.await_others(&by_name(&children));
        }
    }

    fn surveyed_to_wait(&mut self, children: &[String], survey: Outcome, now: Now) {
        match survey {
            Outcome::Surveyed(nodes) if nodes.is_empty() => self.await_others(&by_name(children)),
            Outcome::Surveyed(nodes) => self.await_others(&seen(&nodes)),
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Look, now),
        }
    }

    /// Waits for one of the members that have not left yet, if there are any.
    fn await_others(&mut self, seen: &[BarrierChild<'_>]) {
        let Aim::Leave { stays } = self.aim else { return self.clean_up() };
        let awaited = self.others.awaited(seen);
        match barrier::whom_to_watch(&awaited, stays) {
            None if stays => self.go(Step::Survey(Purpose::Removing)),
            None => self.end_with(Answer::Left),
            Some(_) if self.patience == Patience::TriesOnce => self.end_with(Answer::OthersWithin),
            Some(watched) => self.go(Step::Watch { name: watched.to_owned() }),
        }
    }

    fn watched(&mut self, outcome: Outcome, now: Now) {
        match outcome {
            Outcome::Done => {
                self.failures.clear();
                self.wait(Step::Look, now);
            }
            Outcome::NoNode => self.go(Step::Look),
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Look, now),
        }
    }

    fn surveyed_to_remove(&mut self, survey: Outcome, now: Now) {
        if let Outcome::Surveyed(nodes) = &survey {
            self.others.correct(&seen(nodes));
        }
        match survey {
            Outcome::Surveyed(nodes) if barrier::is_last(&seen(&nodes), &self.name) => {
                self.go(Step::RemoveBoth);
            }
            // The node must go even if the children cannot be read.
            Outcome::Surveyed(_) | Outcome::Refused(_) => self.go(Step::Remove),
            _ => self.retry(Step::Survey(Purpose::Removing), now),
        }
    }

    fn removed_both(&mut self, outcome: &Outcome, now: Now) {
        match outcome {
            Outcome::Done => self.on_deleted(true),
            Outcome::Unknown => self.deletion_lost(now),
            // One of the two is gone, or `ready` must not be deleted.
            _ => self.go(Step::Remove),
        }
    }

    fn removed(&mut self, outcome: &Outcome, now: Now) {
        match outcome {
            Outcome::Done => self.on_deleted(true),
            // If a reply was lost, it existed before.
            Outcome::NoNode => self.on_deleted(self.delete_in_doubt),
            Outcome::Refused(refusal) => {
                self.fail(refusal.clone());
                self.go_at(Step::Survey(Purpose::Removing), Some(now.moment + UNTIL_ALLOWED));
            }
            _ => self.deletion_lost(now),
        }
    }

    fn deletion_lost(&mut self, now: Now) {
        self.delete_in_doubt = true;
        self.retry(Step::Survey(Purpose::Removing), now);
    }

    /// The node is gone. Unless somebody else deleted it, a member that does not stay to the end only now begins to
    /// wait.
    fn on_deleted(&mut self, by_us: bool) {
        self.forget_node();
        self.failures.clear();
        match self.aim {
            Aim::Leave { .. } if !by_us => self.end_with(Answer::Lost),
            Aim::Leave { stays: true } => self.end_with(Answer::Left),
            Aim::Leave { stays: false } => self.go(Step::Look),
            Aim::Enter | Aim::Stay | Aim::Nothing => self.state = State::Gone,
        }
    }
}

impl Step {
    /// Whether it leads to the deletion of the node.
    fn removes(&self) -> bool {
        matches!(self, Self::Survey(Purpose::Removing) | Self::RemoveBoth | Self::Remove)
    }

    /// Whether it only takes a closer look at something that is already watched.
    fn keeps_watch(&self) -> bool {
        match self {
            Self::Compare { .. } | Self::Watch { .. } => true,
            Self::Survey(purpose) => *purpose != Purpose::Removing,
            _ => false,
        }
    }
}

impl Machine for Member {
    type Verdict = Answer;

    fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting(..))
    }

    fn mark(&self) -> Uuid {
        self.mark
    }

    fn poll_verdict(&mut self) -> Option<Answer> {
        self.answer.take()
    }

    fn poll_flight(&mut self) -> Option<Vec<Operation>> {
        let State::Ready(step) = &self.state else { return None };
        let step = step.clone();
        let (directory, ready) = (self.directory.clone(), self.path_of(READY));
        let flight = match &step {
            Step::Come => self.arrival(),
            Step::CreateParents => vec![Operation::CreateParents { directory }],
            Step::Compare { .. } => vec![Operation::Read { path: ready }],
            Step::Survey(_) => vec![Operation::Survey { directory }],
            Step::Open { guards, replaces, .. } => {
                let guards = guards.iter().map(|guard| self.path_of(guard)).collect();
                vec![Operation::Open { guards, path: ready, replaces: *replaces, data: self.data.clone() }]
            }
            Step::Depart => vec![Operation::List { directory }],
            // A member that enters late announces itself by a new `ready`.
            Step::Look => vec![Operation::InspectAndWatch { path: ready }, Operation::List { directory }],
            Step::Watch { name } => vec![Operation::Watch { path: self.path_of(name) }],
            Step::RemoveBoth => vec![Operation::DeleteAll { paths: vec![self.path_of(&self.name), ready] }],
            Step::Remove => vec![Operation::Delete { path: self.path_of(&self.name) }],
        };
        if !step.keeps_watch() {
            self.woken = false;
        }
        self.state = State::InFlight(step);
        Some(flight)
    }

    fn keeps_watch(&self) -> bool {
        matches!(&self.state, State::InFlight(step) if step.keeps_watch())
    }

    fn poll_timeout(&self) -> Option<Moment> {
        match self.state {
            State::Paused(_, until) | State::Waiting(_, until) => Some(until),
            _ => None,
        }
    }

    fn handle_session(&mut self, _: i64, heartbeat: Duration, uuid: Uuid) {
        if self.state != State::Idle {
            return;
        }
        self.look_again_after = heartbeat * HEARTBEATS;
        self.mark = uuid;
        self.state = match self.aim {
            // The node is already gone. Only the waiting is left.
            Aim::Leave { .. } => State::Ready(Step::Look),
            _ => {
                self.name_after(uuid);
                self.not_opened = 0;
                State::Ready(Step::Come)
            }
        };
    }

    fn handle_session_over(&mut self) {
        self.delete_in_doubt |= matches!(self.state, State::InFlight(Step::RemoveBoth | Step::Remove));
        let had_left = !self.may_be_there || self.delete_in_doubt;
        self.forget_node();
        self.failures.clear();
        self.state = match self.aim {
            Aim::Enter => State::Idle,
            // Nobody knows yet that it was inside.
            Aim::Stay if self.answer.is_some() => {
                (self.aim, self.answer) = (Aim::Enter, None);
                State::Idle
            }
            Aim::Leave { stays: false } if had_left => State::Idle,
            Aim::Leave { .. } => {
                self.tell(if had_left { Answer::Left } else { Answer::Lost });
                State::Gone
            }
            Aim::Stay | Aim::Nothing => State::Gone,
        };
    }

    fn handle_end(&mut self) {
        self.aim = Aim::Nothing;
        match &self.state {
            // The outcome of the flight under way decides what is left to do.
            State::InFlight(_) | State::Gone => {}
            State::Paused(step, _) if step.removes() => {}
            _ => self.clean_up(),
        }
    }

    fn handle_timeout(&mut self, now: Moment) {
        if let State::Paused(step, until) | State::Waiting(step, until) = &self.state {
            if now >= *until {
                self.state = State::Ready(step.clone());
            }
        }
    }

    fn handle_watch(&mut self, _: WatchEvent, _: Now) {
        match &self.state {
            State::Waiting(step, _) => self.state = State::Ready(step.clone()),
            _ => self.woken = true,
        }
    }

    fn handle_replies(&mut self, outcomes: Vec<Outcome>, _: Moment, now: Now) {
        let State::InFlight(step) = &self.state else { return };
        let step = step.clone();
        if outcomes.contains(&Outcome::SessionOver) {
            return self.handle_session_over();
        }
        let mut rest = outcomes.into_iter();
        let mut next = || rest.next().unwrap_or(Outcome::Unknown);
        match step {
            Step::Come => self.arrived(rest.collect(), now),
            Step::CreateParents => self.parents_created(next(), now),
            Step::Compare { children } => self.compared(children, next(), now),
            Step::Survey(Purpose::Entering { children }) => self.surveyed_to_enter(&children, next(), now),
            Step::Survey(Purpose::Awaiting { children }) => self.surveyed_to_wait(&children, next(), now),
            Step::Survey(Purpose::Removing) => self.surveyed_to_remove(next(), now),
            Step::Open { entered, .. } => self.opened(entered, next(), now),
            Step::Depart => self.on_departure(next(), now),
            Step::Look => self.on_listing(&next(), next(), now),
            Step::Watch { .. } => self.watched(next(), now),
            Step::RemoveBoth => self.removed_both(&next(), now),
            Step::Remove => self.removed(&next(), now),
        }
    }
}

/// The children in the form that `barrier` takes.
fn seen(children: &[Node]) -> Vec<BarrierChild<'_>> {
    let czxid = |child: &Node| child.origin.map_or(i64::MAX, |origin| origin.czxid);
    children.iter().map(|child| BarrierChild { name: &child.name, czxid: czxid(child) }).collect()
}

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Whether the flight of these answers began with a creation, and not with a barrier after an answer that was lost.
fn is_first_creation(outcomes: &[Outcome]) -> bool {
    outcomes.len() == 3
}

/// Returns the children with no known creation order: as if none of them had entered.
fn by_name(children: &[String]) -> Vec<BarrierChild<'_>> {
    children.iter().map(|name| BarrierChild { name, czxid: i64::MAX }).collect()
}
