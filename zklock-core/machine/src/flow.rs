//! The frame of an attempt: where it is, how it goes on, and what is left to do when nobody wants it any more.
//!
//! Attempts with a queue and without differ in their nodes, and in what each step sends. What follows from a lost reply, a
//! refusal, or a caller that goes away is the same. A trait would need every method of [`Machine`](crate::drive::Machine) once
//! more, to hand it on. So the methods are written by two macros.

use crate::Moment;
use crate::name::Uuid;
use crate::protocol::{Patience, Verdict};
use crate::readiness::Readiness;
use crate::retry::{Failures, Parents};

/// Where an attempt is. A step is a flight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum State<Step> {
    /// There is no session to work in, and so no node.
    Idle,
    Ready(Step),
    InFlight(Step),
    /// Waits until this time, after repeated unknown outcomes.
    Paused(Step, Moment),
    /// Waits for the watch to fire, and then takes the step `look`. If it fires because the watched node is gone, it is our
    /// turn in the queue of the claim `our_turn_in`.
    Waiting {
        our_turn_in: Option<usize>,
        look: Step,
    },
    Held,
    /// Held, with a watch that fires when others come or ask for the lock, or a node of ours is deleted.
    Noticing,
    Gone,
}

/// What every attempt keeps, whatever its nodes are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Flow<Step> {
    pub(crate) state: State<Step>,
    pub(crate) patience: Patience,
    /// Whether the caller still wants to get the lock, or to keep it.
    pub(crate) wanted: bool,
    pub(crate) session: i64,
    /// The mark of the nodes that may exist.
    pub(crate) mark: Uuid,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) answered: bool,
    pub(crate) failures: Failures,
    pub(crate) readiness: Readiness,
    pub(crate) parents: Parents,
}

impl<Step> Flow<Step> {
    /// An attempt that waits for its first session.
    pub(crate) fn new(patience: Patience) -> Self {
        Self {
            state: State::Idle,
            patience,
            wanted: true,
            session: 0,
            mark: Uuid::from_random(0),
            verdict: None,
            answered: false,
            failures: Failures::default(),
            readiness: Readiness::default(),
            parents: Parents::default(),
        }
    }

    pub(crate) fn grant(&mut self, verdict: Verdict) {
        debug_assert!(!self.answered, "a caller has one answer");
        (self.verdict, self.answered) = (Some(verdict), true);
        self.failures.clear();
        self.readiness.clear();
    }
}

/// Writes how an attempt goes from one step to the next. It has a `flow`, its `Step`s, and `clean_up`, which chooses what is left
/// to do after the caller has gone.
macro_rules! steps {
    () => {
        fn go(&mut self, step: Step) {
            if self.flow.wanted {
                self.flow.state = State::Ready(step);
            } else {
                self.clean_up();
            }
        }

        /// Goes on with this step, or with cleaning up, but not before this time.
        fn go_at(&mut self, step: Step, at: Option<Moment>) {
            self.go(step);
            if let (State::Ready(step), Some(at)) = (&self.flow.state, at) {
                self.flow.state = State::Paused(step.clone(), at);
            }
        }

        /// Tries again after an unknown outcome.
        fn retry(&mut self, step: Step, now: Now) {
            let at = self.flow.failures.next_try(now.moment);
            self.go_at(step, at);
        }

        /// Waits until the watch fires.
        fn wait(&mut self, our_turn_in: Option<usize>, look: Step) {
            if self.flow.wanted {
                self.flow.state = State::Waiting { our_turn_in, look };
            } else {
                self.clean_up();
            }
        }

        fn fail(&mut self, refusal: Refusal) {
            // After a grant there is nobody to tell: the holder learns of a loss from its session.
            if self.flow.wanted && !self.flow.answered {
                self.flow.verdict = Some(Verdict::Failed(refusal));
                self.flow.answered = true;
            }
            self.flow.wanted = false;
            self.clean_up();
        }

        /// Creates what needs the parents, or goes on with creating them.
        fn parents_answered(&mut self, outcomes: Vec<Outcome>, creation: Step, step: Step, now: Now) {
            match self.flow.parents.answered(outcomes) {
                Parented::Created => self.go(creation),
                Parented::Failed(refusal) => self.fail(refusal),
                Parented::Unknown => self.retry(step, now),
            }
        }

        fn deleted(&mut self) {
            self.flow.verdict = Some(Verdict::Deleted);
            self.flow.state = State::Held;
        }

        /// Forgets the session, whose nodes are gone.
        fn leave_session(&mut self) {
            // What failed in it says nothing of the next one.
            self.flow.failures.clear();
            let is_unanswered = self.flow.wanted && !self.flow.answered;
            self.flow.state = if is_unanswered { State::Idle } else { State::Gone };
        }
    };
}

/// Writes what every attempt does as a [`Machine`](crate::drive::Machine). These steps are a part of cleaning up.
macro_rules! frame {
    ($cleaning:pat) => {
        fn is_gone(&self) -> bool {
            self.flow.state == State::Gone
        }

        fn is_idle(&self) -> bool {
            self.flow.state == State::Idle
        }

        fn is_waiting(&self) -> bool {
            matches!(self.flow.state, State::Waiting { .. })
        }

        fn mark(&self) -> Uuid {
            self.flow.mark
        }

        fn poll_verdict(&mut self) -> Option<Verdict> {
            self.flow.verdict.take()
        }

        fn poll_timeout(&self) -> Option<Moment> {
            match self.flow.state {
                State::Paused(_, until) => Some(until),
                _ => None,
            }
        }

        fn handle_timeout(&mut self, now: Moment) {
            if let State::Paused(step, until) = &self.flow.state {
                if now >= *until {
                    self.flow.state = State::Ready(step.clone());
                }
            }
        }

        fn handle_end(&mut self) {
            self.flow.wanted = false;
            match self.flow.state {
                // The outcome of the flight under way decides what is left to do.
                State::InFlight(_) | State::Gone => {}
                // The pause is kept, so that a sick server is not asked in a tight loop.
                State::Paused($cleaning, _) => {}
                _ => self.clean_up(),
            }
        }
    };
}

pub(super) use {frame, steps};
