//! Behaviour that is easier to see in a few callers than in the model check.

mod kept;
mod tries;

use super::{Action, Answer, BRIEF, Call, CallerId, Callers, Owner, PlaceId, ReleaseOutcome, Trust, TurnId};
use crate::Moment;
use crate::claim::{Claim, Permits};
use crate::name::Scheme;
use crate::protocol::Patience;
use crate::turns::Passing;
use std::time::Duration;

/// Owners from 100 on never come back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Task(u32);

impl Owner for Task {
    fn returns(self) -> bool {
        self.0 < 100
    }
}

const NEVER: Passing = Passing { linger: Duration::ZERO, turns: 1 };
const LINGERS: Passing = Passing { linger: Duration::from_secs(60), turns: 1 };

fn at(millis: u64) -> Moment {
    Moment::at(Duration::from_millis(millis))
}

fn waits(owner: u32) -> Call<Task> {
    Call { owner: Task(owner), is_reentrant: false, patience: Patience::Waits, is_within: false }
}

fn tries(owner: u32) -> Call<Task> {
    Call { patience: Patience::TriesOnce, ..waits(owner) }
}

fn reentrant(owner: u32) -> Call<Task> {
    Call { is_reentrant: true, ..waits(owner) }
}

/// The callers of one lock, and a shell that remembers what it was told.
struct Scene {
    callers: Callers<Task>,
    clock: u64,
    trust: Trust,
    /// The answers that nobody has looked at.
    answers: Vec<(CallerId, Answer)>,
    /// The attempts that have begun, each with the one that it serves now.
    begun: Vec<(PlaceId, CallerId)>,
    given_up: Vec<PlaceId>,
    others: Vec<Action<Task>>,
}

impl Scene {
    fn new(scheme: Scheme, passing: Passing) -> Self {
        Self::of(&[Claim::new("/a", scheme)], passing)
    }

    fn of(claims: &[Claim], passing: Passing) -> Self {
        Self {
            callers: Callers::new(claims, passing),
            clock: 1_000,
            trust: Trust::Known,
            answers: Vec::new(),
            begun: Vec::new(),
            given_up: Vec::new(),
            others: Vec::new(),
        }
    }

    fn now(&self) -> Moment {
        at(self.clock)
    }

    /// Calls the machine, and does what it wants.
    fn call<T>(
        &mut self,
        call: impl FnOnce(&mut Callers<Task>, &dyn Fn(PlaceId) -> Trust, Moment) -> T,
    ) -> T {
        let (trust, now) = (self.trust, self.now());
        let result = call(&mut self.callers, &|_| trust, now);
        self.act();
        result
    }

    fn act(&mut self) {
        while let Some(action) = self.callers.poll_action() {
            match action {
                Action::Begin { place, caller, .. } => {
                    self.begun.push((place, caller));
                    self.others.push(action);
                }
                Action::Serve { place, caller } => {
                    let served = self.begun.iter_mut().find(|(begun, _)| *begun == place);
                    served.expect("it has begun").1 = caller;
                }
                Action::Answer { caller, answer } => self.answers.push((caller, answer)),
                Action::GiveUp { place } => self.given_up.push(place),
                _ => self.others.push(action),
            }
        }
    }

    fn join(&mut self, call: Call<Task>) -> CallerId {
        self.call(|callers, trust, now| callers.join(call, None, trust, now))
    }

    fn gone(&mut self, caller: CallerId) {
        self.call(|callers, _, _| callers.handle_gone(caller));
    }

    fn enters(&mut self, place: PlaceId) {
        self.call(|callers, trust, now| callers.handle_entered(place, trust, now));
    }

    fn release(&mut self, turn: TurnId) -> ReleaseOutcome {
        self.call(|callers, trust, now| callers.release(turn, false, trust, now))
    }

    fn take(&mut self, owner: u32) -> Option<TurnId> {
        let trust = self.trust;
        let taken = self.callers.take(Task(owner), false, |_| trust).map(|(turn, _)| turn);
        assert_eq!(self.callers.poll_action(), None, "it leads to no action");
        taken
    }

    fn leaves(&mut self, place: PlaceId) {
        self.call(|callers, _, now| callers.handle_left(place, now));
    }

    fn ends(&mut self, place: PlaceId) {
        self.call(|callers, _, now| callers.handle_ended(place, None, now));
    }

    fn goes(&mut self, place: PlaceId) {
        self.leaves(place);
        self.ends(place);
    }

    fn times_out(&mut self) {
        self.call(|callers, trust, now| callers.handle_timeout(trust, now));
    }

    /// The answer to this caller, once.
    fn answer(&mut self, caller: CallerId) -> Option<Answer> {
        let at = self.answers.iter().position(|(its, _)| *its == caller)?;
        Some(self.answers.remove(at).1)
    }

    fn turn(&mut self, caller: CallerId) -> TurnId {
        match self.answer(caller) {
            Some(Answer::Held(turn)) => turn,
            answer => panic!("{caller:?} has {answer:?}"),
        }
    }

    /// The attempt for this caller.
    fn place(&self, caller: CallerId) -> PlaceId {
        let begun = self.begun.iter().rev().find(|(_, its)| *its == caller);
        begun.unwrap_or_else(|| panic!("{caller:?} has no place")).0
    }

    fn has_begun(&self, caller: CallerId) -> bool {
        self.begun.iter().any(|(_, its)| *its == caller)
    }

    /// A caller acquires the free lock.
    fn acquires(&mut self, call: Call<Task>) -> (PlaceId, TurnId) {
        let caller = self.join(call);
        self.is_granted(caller)
    }

    fn is_granted(&mut self, caller: CallerId) -> (PlaceId, TurnId) {
        let place = self.place(caller);
        self.enters(place);
        (place, self.turn(caller))
    }
}

#[test]
fn where_holds_are_brief_the_next_begins_at_their_end_or_after_a_moment() {
    let mut scene = Scene::new(Scheme::Mutex, NEVER);
    let callers: Vec<_> = (0..4).map(|owner| scene.join(waits(owner))).collect();
    let mut begun = Vec::new();
    for (number, caller) in callers.iter().enumerate() {
        let place = scene.place(*caller);
        scene.enters(place);
        let at_once = scene.begun.len();
        // Only the second hold is longer.
        if number == 1 {
            scene.clock += 3;
            assert_eq!(scene.callers.poll_timeout(), Some(at(1_000) + BRIEF));
            scene.times_out();
        }
        if number == 3 {
            assert_eq!(scene.callers.poll_timeout(), None, "nobody is held back");
        }
        begun.push((at_once, scene.begun.len()));
        let turn = scene.turn(*caller);
        scene.release(turn);
        scene.goes(place);
    }
    assert_eq!(begun, [(2, 2), (2, 3), (4, 4), (4, 4)]);
    let behind = |action: &Action<Task>| matches!(action, Action::Begin { is_at_once: true, .. });
    assert_eq!(scene.others.iter().filter(|action| behind(action)).count(), 0, "each had begun before that");
}

#[test]
fn a_hold_that_is_no_shorter_than_a_brief_one_makes_nobody_wait() {
    let mut scene = Scene::new(Scheme::Mutex, NEVER);
    let (place, turn) = scene.acquires(waits(0));
    scene.clock += u64::try_from(BRIEF.as_millis()).unwrap();
    scene.release(turn);
    scene.goes(place);
    let (holder, next) = (scene.join(waits(1)), scene.join(waits(2)));
    scene.is_granted(holder);
    assert!(scene.has_begun(next));
}

#[test]
fn one_that_begins_behind_a_deletion_sends_at_once_unless_it_tries_or_needs_several_nodes() {
    let one = [Claim::new("/a", Scheme::Mutex)];
    let two = [Claim::new("/a", Scheme::Mutex), Claim::new("/b", Scheme::Mutex)];
    for (claims, call, is_at_once) in
        [(one.as_slice(), waits(2), true), (&one, tries(2), false), (&two, waits(2), false)]
    {
        let mut scene = Scene::of(claims, NEVER);
        let (place, turn) = scene.acquires(waits(0));
        scene.release(turn);
        scene.goes(place);
        let (holder, next) = (scene.join(waits(1)), scene.join(waits(3)));
        let (place, turn) = scene.is_granted(holder);
        // The hold before was a brief one.
        assert!(!scene.has_begun(next));
        scene.gone(next);
        scene.release(turn);
        let next = scene.join(call);
        assert!(!scene.has_begun(next));
        scene.leaves(place);
        let begun = scene.others.iter().rev().find_map(|action| match action {
            Action::Begin { caller, is_at_once, .. } => Some((*caller, *is_at_once)),
            _ => None,
        });
        assert_eq!(begun, Some((next, is_at_once)));
    }
}

#[test]
fn one_who_gives_up_leaves_its_place_to_the_next_who_waits() {
    let mut scene = Scene::new(Scheme::Mutex, NEVER);
    let one = scene.join(waits(1));
    assert!(!scene.callers.is_unused(), "an attempt is under way");
    let (two, three) = (scene.join(waits(2)), scene.join(waits(3)));
    let place = scene.place(one);
    scene.gone(one);
    assert_eq!(scene.begun, [(place, two)]);
    assert_eq!(scene.callers.served_at(place), Some(two));
    scene.gone(three);
    assert_eq!(scene.given_up, []);
    scene.gone(two);
    assert_eq!(scene.given_up, [place], "nobody is left");
    assert_eq!(scene.callers.served_at(place), None);
    let four = scene.join(waits(4));
    assert!(!scene.has_begun(four), "it would end up behind the node of the others");
    scene.enters(place);
    assert_eq!(scene.answers, [], "it was granted too late");
    scene.leaves(place);
    assert!(scene.has_begun(four));
}

#[test]
fn permits_are_asked_for_one_after_the_other_and_tries_do_not_wait_for_that() {
    let permits =
        Permits { directory: "/s/leases".into(), count: 1, limit: 2, limit_at: None, data: [].into() };
    let claim = Claim { permits: Some(permits), ..Claim::new("/s/locks", Scheme::Mutex) };
    let mut scene = Scene::of(&[claim], NEVER);
    let (one, two) = (scene.join(waits(1)), scene.join(waits(2)));
    assert!(scene.has_begun(one) && !scene.has_begun(two));
    let try_it = scene.join(tries(3));
    assert!(scene.has_begun(try_it));
    let place = scene.place(one);
    scene.enters(place);
    assert!(scene.has_begun(two), "another permit may be free");
    assert!(!scene.callers.is_unused());
    let three = scene.join(waits(3));
    let wanted = |action: &Action<Task>| matches!(action, Action::Wanted { is_wanted: true, .. });
    assert!(!scene.others.iter().any(wanted), "a third does not wait for the first");
    // However brief that hold was.
    let turn = scene.turn(one);
    scene.release(turn);
    scene.leaves(place);
    let place = scene.place(two);
    scene.enters(place);
    assert!(scene.has_begun(three));
}

#[test]
fn a_lock_of_one_node_has_one_attempt() {
    let mut scene = Scene::new(Scheme::Single, NEVER);
    let (place, turn) = scene.acquires(waits(1));
    let two = scene.join(waits(2));
    assert!(scene.others.contains(&Action::Wanted { place, is_wanted: true }));
    scene.release(turn);
    scene.leaves(place);
    assert!(!scene.has_begun(two), "it could not tell its node from the first one's");
    scene.ends(place);
    assert!(scene.has_begun(two));
}

#[test]
fn calls_of_one_reentrant_owner_share_its_turn() {
    let mut scene = Scene::new(Scheme::Mutex, NEVER);
    let one = scene.join(reentrant(1));
    let (other, plain) = (scene.join(waits(9)), scene.join(waits(1)));
    let two = scene.join(reentrant(1));
    let place = scene.place(one);
    scene.enters(place);
    let turn = scene.turn(one);
    assert_eq!(scene.turn(two), turn, "it would wait for itself");
    assert_eq!(scene.callers.again(Task(1)), Some(turn));
    assert_eq!(scene.callers.again(Task(9)), None);
    assert_eq!(scene.callers.holds_of(turn), 3);
    assert!(scene.callers.is_bound_to(Task(1)) && !scene.callers.is_bound_to(Task(9)));
    // They had asked for a hold at once before the turn was granted, and queue after it.
    for late in [reentrant(1), Call { patience: Patience::TriesOnce, ..reentrant(1) }] {
        let late = scene.join(late);
        assert_eq!(scene.turn(late), turn, "it would wait for itself");
    }
    assert_eq!([other, plain].map(|caller| scene.answer(caller)), [None; 2]);
    for outcome in [[ReleaseOutcome::Others; 4].as_slice(), &[ReleaseOutcome::Released]].concat() {
        assert_eq!(scene.release(turn), outcome);
    }
    assert_eq!(scene.callers.again(Task(1)), None, "it only waits for its deletion");
}

#[test]
fn anybody_may_release_the_turn_of_an_owner_that_never_comes_back() {
    let mut scene = Scene::new(Scheme::Mutex, NEVER);
    let _ = scene.acquires(reentrant(100));
    assert_eq!(scene.callers.again(Task(100)), None);
    let grant = scene.others.iter().find(|action| matches!(action, Action::Grant { .. }));
    assert!(matches!(grant, Some(Action::Grant { is_bound: false, .. })));
}

#[test]
fn a_lost_turn_stays_until_its_last_hold_is_released() {
    let mut scene = Scene::new(Scheme::Mutex, NEVER);
    let (place, turn) = scene.acquires(reentrant(1));
    assert_eq!(scene.callers.again(Task(1)), Some(turn));
    scene.callers.handle_lost(place);
    assert!(!scene.callers.is_held(|_| Trust::Known));
    scene.goes(place);
    assert_eq!(scene.release(turn), ReleaseOutcome::Lost);
    assert_eq!(scene.callers.again(Task(1)), Some(turn), "an inner section must learn of the loss");
    assert_eq!([(); 2].map(|()| scene.release(turn)), [ReleaseOutcome::Lost; 2]);
    assert!(scene.callers.is_unused());
    assert!(scene.others.contains(&Action::Over { turn }));
}

#[test]
fn those_who_wait_are_turned_away_when_the_client_is_closed_or_its_runtime_is_gone() {
    let mut scene = Scene::new(Scheme::Mutex, NEVER);
    let (one, two) = (scene.join(waits(1)), scene.join(waits(2)));
    let place = scene.place(one);
    scene.call(|callers, _, _| callers.handle_abandoned(place, at(1_000)));
    assert_eq!([one, two].map(|caller| scene.answer(caller)), [Some(Answer::Closed); 2]);
    assert!(scene.callers.is_unused());

    let (one, two) = (scene.join(waits(1)), scene.join(waits(2)));
    scene.call(|callers, _, _| callers.handle_closed());
    let late = scene.join(waits(3));
    assert_eq!([two, late].map(|caller| scene.answer(caller)), [Some(Answer::Closed); 2]);
    let place = scene.place(one);
    scene.call(|callers, _, _| callers.handle_failed(place));
    assert_eq!(scene.answer(one), Some(Answer::Failed), "it says why by itself");
}

#[test]
fn it_says_who_is_ahead() {
    let mut scene = Scene::new(Scheme::Mutex, NEVER);
    let callers: Vec<_> = (0..3).map(|owner| scene.join(waits(owner))).collect();
    assert_eq!([0, 1, 2].map(|at| scene.callers.ahead_of(callers[at])), [0, 1, 2]);
    assert_eq!(scene.callers.entering(), Some((scene.place(callers[0]), Some(callers[0]))));
}
