//! The door to one machine: to the one that ships, and to each with a bug.

use super::explorer::fingerprint;
use super::machine::Moment;
use super::machine::callers::held::{HeldAt, Holds};
use super::machine::callers::{self, Action, CallerId, Callers, Open, PlaceId, Remembered, TurnId};
use super::machine::claim::{Claim, Permits};
use super::machine::contender::Contender;
use super::machine::drive;
use super::machine::keeper::{Check, HeldNode, HoldId, Keeper, Proof, Seen};
use super::machine::lease::Lease;
use super::machine::memory::Memory;
use super::machine::name::{Naming, Role, Scheme, Uuid};
use super::machine::protocol::{Now, Operation, Outcome, Patience, Verdict, WatchEvent};
use super::machine::single::Single;
use super::machine::status::{LossReason, Status};
use super::machine::turns::{Passing, Turns};
use super::subject::{
    self, Attempt, Company, Do, HeldTurn, Keeping, Look, Machine, Passes, ReleaseOutcome, Reply, Rules,
    Sharing, Sort, Term, Trust, Want,
};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// This machine.
pub(crate) const MACHINE: Machine = Machine {
    contender: |wants: &[Want], within: Option<String>, patience: Patience| {
        match wants {
            [Want { queue, sort: Sort::Single, .. }] => {
                return Box::new(Own(Single::new(queue, nothing(), patience)));
            }
            [Want { queue, sort: Sort::Lone, .. }] => {
                let mut single = Single::new(queue, nothing(), patience);
                drive::Machine::handle_old_servers(&mut single);
                return Box::new(Own(single));
            }
            _ => {}
        }
        let claims = wants.iter().map(|want| Claim { within: within.clone(), ..claim(want) });
        Box::new(Own(Contender::new(claims.collect(), patience)))
    },
    lease: |timeout, sent| Box::new(OwnLease(Lease::new(timeout, sent))),
    keeper: |timeout, opened, named_at_most, loss_timeout| {
        let keeper =
            Keeper::new(timeout, opened, opened).naming_at_most(named_at_most).telling_within(loss_timeout);
        Box::new(OwnKeeper { keeper, holds: Vec::new(), proofs: VecDeque::new() })
    },
    turns: |passes: Passes, is_shared| Box::new(OwnTurns(Turns::new(passing(passes, 5), is_shared))),
    callers: |want: Want, passes: Passes, timeout, now| {
        let callers = Callers::new(&[claim(&want)], passing(passes, 1_000));
        Box::new(OwnCallers { callers, lease: Lease::new(timeout, now) })
    },
    rules: Rules {
        is_deadlock: |held: &[HeldTurn], owner, sort| {
            matches!(held_at(held).own(&owner, &claim_of(sort)), callers::Own::Deadlock { .. })
        },
        writer: |held: &[HeldTurn], owner, sort| {
            held_at(held).writer(&owner, &[claim_of(sort)]).map(|turn| turn.number)
        },
        releases: |held: &[HeldTurn], sort| {
            held_at(held).releases(claim_of(sort).scheme.role()).map(|turn| turn.number).collect()
        },
        kept: |kept: &[Sort], sort| {
            let mut at = HeldAt::<HeldHere, usize>::default();
            for (number, sort) in kept.iter().enumerate() {
                at.note_kept(claim_of(*sort).scheme.role(), number);
            }
            at.kept(claim_of(sort).scheme.role()).copied().collect()
        },
    },
    renews: |answer| answer == subject::Answer::QuorumWrite,
};

fn claim(want: &Want) -> Claim {
    let scheme = match want.sort {
        Sort::Mutex | Sort::Unmarked | Sort::Semaphore { .. } => Scheme::Mutex,
        Sort::Read => Scheme::Read,
        Sort::Write => Scheme::Write,
        Sort::Latch => Scheme::Latch,
        Sort::Single | Sort::Lone => Scheme::Single,
    };
    let mut claim = match want.sort {
        Sort::Unmarked => unmarked(want.queue),
        _ => Claim::new(want.queue, scheme),
    };
    if let Sort::Semaphore { permits, count, limit, limit_at } = want.sort {
        let limit_at = limit_at.map(Into::into);
        claim.permits = Some(Permits { directory: permits.into(), count, limit, limit_at, data: nothing() });
    }
    claim
}

fn unmarked(queue: &str) -> Claim {
    let naming = Naming::pattern("lock-{sequence}").expect("a pattern");
    let scheme = Claim::scheme(Role::Exclusive, &naming).expect("a mutex");
    Claim::at(queue, scheme, &naming).expect("a path")
}

fn claim_of(sort: Sort) -> Claim {
    claim(&Want::new("/a", sort))
}

fn passing(passes: Passes, seconds: u64) -> Passing {
    let linger = if passes.lingers { Duration::from_secs(seconds) } else { Duration::ZERO };
    Passing { linger, turns: passes.turns }
}

/// A turn that is held here.
struct HeldHere {
    number: usize,
    turn: HeldTurn,
}

impl Holds for HeldHere {
    type Owner = u8;

    fn status(&self) -> Status {
        self.turn.status
    }

    fn owner(&self) -> u8 {
        self.turn.owner
    }

    fn is_bound(&self) -> bool {
        self.turn.is_bound
    }

    fn has_holds(&self) -> bool {
        self.turn.has_holds
    }
}

fn held_at(held: &[HeldTurn]) -> HeldAt<HeldHere, usize> {
    let mut at = HeldAt::default();
    for (number, turn) in held.iter().enumerate() {
        at.add(&claim_of(turn.sort), HeldHere { number, turn: *turn });
    }
    at
}

/// The data of nodes, which no machine reads.
fn nothing() -> Arc<[u8]> {
    Arc::default()
}

/// The types are wrapped because several doors lead to the same lease or machine.
#[derive(Clone, Hash, Debug)]
struct Own<M>(M);

#[derive(Clone, Hash, Debug)]
struct OwnLease(Lease);

#[derive(Clone, Hash, Debug)]
struct OwnTurns(Turns);

#[derive(Clone, Hash, Debug)]
struct OwnCallers {
    callers: Callers<Task>,
    lease: Lease,
}

/// An owner that comes back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Task(u8);

impl callers::Owner for Task {
    fn returns(self) -> bool {
        true
    }
}

#[derive(Clone, Hash, Debug)]
struct OwnKeeper {
    keeper: Keeper,
    holds: Vec<HoldId>,
    /// The checks on their way, in their order.
    proofs: VecDeque<Proof>,
}

/// Methods that the machine's type has as well: those that only look, and those that change it.
macro_rules! looks {
    ($($name:ident($($given:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $name(&self $(, $given: $type)*) -> $answer {
            self.0.$name($($given),*)
        }
    )*};
}
macro_rules! does {
    ($($name:ident($($given:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {$(
        fn $name(&mut self $(, $given: $type)*) $(-> $answer)? {
            self.0.$name($($given),*)
        }
    )*};
}
macro_rules! copied_as {
    ($door:ident) => {
        fn copy(&self) -> Box<dyn $door> {
            Box::new(self.clone())
        }

        fn fingerprint(&self) -> u64 {
            fingerprint(self)
        }
    };
}

impl<M: drive::Machine + Clone + Hash + Debug + 'static> Attempt for Own<M> {
    looks! {
        is_gone() -> bool;
        is_idle() -> bool;
        is_waiting() -> bool;
        poll_timeout() -> Option<Moment>;
        busy_since() -> Option<Moment>;
    }

    does! {
        poll_verdict() -> Option<Verdict>;
        poll_flight() -> Option<Vec<Operation>>;
        handle_session_over();
        handle_end();
        handle_notice();
        handle_tried_before();
        handle_timeout(now: Moment);
        handle_watch(event: WatchEvent, now: Now);
        handle_replies(outcomes: Vec<Outcome>, sent: Moment, now: Now);
    }

    fn handle_session(&mut self, session: i64, heartbeat: Duration, uuid: u128) {
        self.0.handle_session(session, heartbeat, Uuid::from_random(uuid));
    }

    copied_as!(Attempt);
}

impl Term for OwnLease {
    looks! {
        heartbeat() -> Duration;
        until() -> Moment;
    }

    does! {
        acknowledge(sent: Moment, now: Moment);
        ask();
        attach(sent: Moment, timeout: Duration, now: Moment);
    }

    fn is_good(&self, since: Moment, is_told: bool, now: Moment) -> bool {
        let mut memory = Memory::new(since);
        if is_told {
            memory.handle_watch();
        }
        memory.is_good(&self.0, now)
    }

    copied_as!(Term);
}

impl Sharing for OwnTurns {
    looks! {
        may_take() -> bool;
    }

    does! {
        take() -> bool;
        give_back(awaits: bool, now: Moment) -> bool;
        handle_wanted() -> bool;
        handle_untaken() -> bool;
        handle_timeout(now: Moment) -> bool;
        handle_end();
    }

    copied_as!(Sharing);
}

impl OwnKeeper {
    fn number(&self, hold: HoldId) -> usize {
        self.holds.iter().position(|other| *other == hold).expect("every hold was granted here")
    }
}

impl Keeping for OwnKeeper {
    fn lease_until(&self) -> Moment {
        self.keeper.lease().until()
    }

    fn valid_for(&self, hold: usize, now: Moment) -> Duration {
        self.keeper.valid_for(self.holds[hold], now)
    }

    fn handle_grant(&mut self, path: &str, proven: Moment) {
        let node = HeldNode { path: path.into(), origin: None };
        self.holds.push(self.keeper.handle_grant(vec![node], proven));
    }

    fn handle_write(&mut self, now: Moment) {
        self.keeper.handle_write(now, now);
    }

    fn handle_connection(&mut self, timeout: Duration, now: Moment) {
        self.keeper.handle_asked();
        self.keeper.handle_granted(now, timeout, now);
    }

    fn handle_over(&mut self) {
        self.keeper.handle_over(LossReason::SessionExpired);
    }

    fn handle_proof(&mut self, reply: &Reply, now: Moment) {
        let check = match reply.clone() {
            Reply::Answered { missing } => Check::Answered { missing },
            Reply::Unknown => Check::Unknown,
            Reply::SessionOver => Check::SessionOver,
        };
        if let Some(proof) = self.proofs.pop_front() {
            self.keeper.handle_proof(&proof, &check, now);
        }
    }

    fn poll_lost(&mut self, now: Moment) -> Option<(usize, LossReason)> {
        let (hold, reason) = self.keeper.poll_lost(now)?;
        Some((self.number(hold), reason))
    }

    fn handle_seen(&mut self, looks: &[(usize, Look)], now: Moment) {
        let seen = |(hold, look): &(usize, Look)| {
            let seen = match look {
                Look::There => Seen::There,
                Look::Gone => Seen::Gone,
                Look::Unknown => Seen::Unknown,
            };
            (self.holds[*hold], seen)
        };
        let seen: Vec<_> = looks.iter().map(seen).collect();
        self.keeper.handle_seen(&seen, now);
    }

    fn handle_event(&mut self, hold: usize, is_deleted: bool) {
        self.keeper.handle_event(self.holds[hold], is_deleted);
    }

    fn poll_watch(&mut self, now: Moment, is_connected: bool) -> Vec<usize> {
        let asked = self.keeper.poll_watch(now, is_connected);
        asked.iter().map(|to_watch| self.number(to_watch.hold)).collect()
    }

    fn poll_beat(&mut self, now: Moment, is_connected: bool) -> Option<Vec<usize>> {
        let proof = self.keeper.poll_beat(now, is_connected)?;
        let number = |path: &str| path[1..].parse().expect("the path of hold 7 is /7");
        let holds = proof.nodes.iter().map(|node| number(&node.path)).collect();
        self.proofs.push_back(proof);
        Some(holds)
    }

    copied_as!(Keeping);
}

/// What is known of a place, in the words of this machine.
fn trust(of: &dyn Fn(u64) -> Trust) -> impl Fn(PlaceId) -> callers::Trust {
    |place| match of(place.0) {
        Trust::Known => callers::Trust::Known,
        Trust::Unproven => callers::Trust::Unproven,
        Trust::Over => callers::Trust::Over,
    }
}

macro_rules! tells {
    ($($name:ident($($place:ident)?);)*) => {$(
        fn $name(&mut self $(, $place: u64)?) {
            self.callers.$name($(PlaceId($place))?);
        }
    )*};
}

impl Company for OwnCallers {
    tells! {
        give_up_idle(place);
        handle_busy(place);
        handle_failed(place);
        handle_wanted(place);
        handle_lost(place);
        handle_deserted();
        handle_closed();
        handle_watch();
    }

    fn is_bound_to(&self, owner: u8) -> bool {
        self.callers.is_bound_to(Task(owner))
    }

    fn again(&mut self, owner: u8) -> Option<u64> {
        self.callers.again(Task(owner)).map(|turn| turn.0)
    }

    fn take(&mut self, owner: u8, is_reentrant: bool, of: &dyn Fn(u64) -> Trust) -> Option<(u64, u64)> {
        self.callers.take(Task(owner), is_reentrant, trust(of)).map(|(turn, place)| (turn.0, place.0))
    }

    fn join(&mut self, call: subject::Call, session: i64, of: &dyn Fn(u64) -> Trust, now: Moment) -> u64 {
        let subject::Call { owner, is_reentrant, patience, is_within } = call;
        let call = callers::Call { owner: Task(owner), is_reentrant, patience, is_within };
        self.callers.join(call, Some(Open { session, lease: &self.lease }), trust(of), now).0
    }

    fn handle_gone(&mut self, caller: u64) {
        self.callers.handle_gone(CallerId(caller));
    }

    fn release(
        &mut self,
        turn: u64,
        is_unsettled: bool,
        of: &dyn Fn(u64) -> Trust,
        now: Moment,
    ) -> ReleaseOutcome {
        match self.callers.release(TurnId(turn), is_unsettled, trust(of), now) {
            callers::ReleaseOutcome::Others => ReleaseOutcome::Others,
            callers::ReleaseOutcome::PassedOn => ReleaseOutcome::PassedOn,
            callers::ReleaseOutcome::Released => ReleaseOutcome::Released,
            callers::ReleaseOutcome::Lost => ReleaseOutcome::Lost,
        }
    }

    fn end_passing(&mut self, turn: u64) -> bool {
        self.callers.end_passing(TurnId(turn))
    }

    fn handle_entered(&mut self, place: u64, of: &dyn Fn(u64) -> Trust, now: Moment) {
        self.callers.handle_entered(PlaceId(place), trust(of), now);
    }

    fn handle_checked(&mut self, place: u64, of: &dyn Fn(u64) -> Trust, now: Moment) {
        self.callers.handle_checked(PlaceId(place), trust(of), now);
    }

    fn handle_left(&mut self, place: u64, now: Moment) {
        self.callers.handle_left(PlaceId(place), now);
    }

    fn handle_ended(&mut self, place: u64, remembered: Option<(i64, Moment)>, now: Moment) {
        let remembered = remembered.map(|(session, since)| Remembered::new(session, since));
        self.callers.handle_ended(PlaceId(place), remembered, now);
    }

    fn handle_timeout(&mut self, of: &dyn Fn(u64) -> Trust, now: Moment) {
        self.callers.handle_timeout(trust(of), now);
    }

    fn poll_timeout(&self) -> Option<Moment> {
        self.callers.poll_timeout()
    }

    fn poll_action(&mut self) -> Option<Do> {
        Some(match self.callers.poll_action()? {
            Action::Begin { place, caller, tried_before, .. } => {
                Do::Begin { place: place.0, caller: caller.0, tried_before }
            }
            Action::Serve { place, caller } => Do::Serve { place: place.0, caller: caller.0 },
            Action::Grant { turn, place, owner, is_bound, is_kept } => {
                Do::Grant { turn: turn.0, place: place.0, owner: owner.0, is_bound, is_kept }
            }
            Action::Answer { caller, answer } => match answer {
                callers::Answer::Held(turn) => Do::Hold { caller: caller.0, turn: turn.0 },
                answer => Do::Refuse { caller: caller.0, is_busy: answer == callers::Answer::Busy },
            },
            Action::GiveUp { place } => Do::GiveUp { place: place.0 },
            Action::Prove { place } => Do::Prove { place: place.0 },
            Action::Wanted { place, is_wanted } => Do::Wanted { place: place.0, is_wanted },
            Action::Over { turn } => Do::Over { turn: turn.0 },
            Action::Asks { .. } | Action::StopWatching => Do::Nothing,
        })
    }

    fn kept(&self) -> Option<u64> {
        self.callers.kept().map(|place| place.0)
    }

    fn is_unused(&self) -> bool {
        self.callers.is_unused()
    }

    fn open(&mut self, now: Moment) {
        self.lease = Lease::new(self.lease.timeout(), now);
    }

    copied_as!(Company);
}
