//! The door of one machine: of the one that ships, and of each with a bug.

use super::explorer::fingerprint;
use super::machine::Moment;
use super::machine::claim::{Claim, Foreign, Permits, Watching};
use super::machine::contender::Contender;
use super::machine::drive;
use super::machine::exchange::{Now, Operation, Outcome, Patience, Verdict, WatchEvent};
use super::machine::lease::Lease;
use super::machine::member::{Answer, Member};
use super::machine::name::{Scheme, Uuid};
use super::machine::single::Single;
use super::subject::{self, Attempt, Machine, Sort, Term, Told, Want};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

/// This machine.
pub(crate) const MACHINE: Machine = Machine {
    contender: |wants: &[Want], within: Option<String>, patience: Patience| {
        match wants {
            [Want { queue, sort: Sort::Single, .. }] => return Box::new(Own(Single::new(queue, patience))),
            [Want { queue, sort: Sort::Member { members }, .. }] => {
                return Box::new(Own(Member::new(queue, *members as usize, patience)));
            }
            _ => {}
        }
        let claims = wants.iter().map(|want| Claim { within: within.clone(), ..claim(want) });
        Box::new(Own(Contender::new(claims.collect(), patience)))
    },
    lease: |timeout, sent| Box::new(OwnLease(Lease::new(timeout, sent))),
    renews: |answer| answer == subject::Answer::QuorumWrite,
};

fn claim(want: &Want) -> Claim {
    let scheme = match want.sort {
        Sort::Mutex | Sort::Semaphore { .. } => Scheme::Mutex,
        Sort::Read => Scheme::Read,
        Sort::Write => Scheme::Write,
        Sort::Latch => Scheme::Latch,
        Sort::Single | Sort::Member { .. } => Scheme::Single,
    };
    let mut claim = Claim::new(want.queue, scheme);
    if want.watches_children {
        claim.watching = Watching::Children;
    }
    if let Sort::Semaphore { permits, count, limit, limit_at } = want.sort {
        let limit_at = limit_at.map(Into::into);
        claim.permits = Some(Permits { directory: permits.into(), count, limit, limit_at });
        // There are no strangers here.
        claim.foreign = Foreign::GoAhead;
    }
    claim
}

/// The types are wrapped because several doors lead to the same lease or machine.
#[derive(Clone, Hash, Debug)]
struct Own<M>(M);

#[derive(Clone, Hash, Debug)]
struct OwnLease(Lease);

/// What the machines differ in.
trait Talks: drive::Machine {
    fn told(verdict: Self::Verdict) -> Told;

    fn leave(&mut self) {}
}

impl Talks for Contender {
    fn told(verdict: Verdict) -> Told {
        Told::Lock(verdict)
    }
}

impl Talks for Single {
    fn told(verdict: Verdict) -> Told {
        Told::Lock(verdict)
    }
}

impl Talks for Member {
    fn told(answer: Answer) -> Told {
        match answer {
            Answer::Entered { .. } => Told::Entered,
            Answer::NotOpen => Told::NotOpen,
            Answer::Left => Told::Left,
            Answer::OthersWithin => Told::OthersWithin,
            Answer::Lost => Told::Lost,
            Answer::Failed(_) => Told::Failed,
        }
    }

    fn leave(&mut self) {
        self.handle_leave(Patience::Waits);
    }
}

impl<M: Talks + Clone + Hash + Debug + 'static> Attempt for Own<M> {
    fn is_gone(&self) -> bool {
        self.0.is_gone()
    }

    fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    fn is_waiting(&self) -> bool {
        self.0.is_waiting()
    }

    fn poll_verdict(&mut self) -> Option<Told> {
        self.0.poll_verdict().map(M::told)
    }

    fn poll_flight(&mut self) -> Option<Vec<Operation>> {
        self.0.poll_flight()
    }

    fn keeps_watch(&self) -> bool {
        self.0.keeps_watch()
    }

    fn poll_timeout(&self) -> Option<Moment> {
        self.0.poll_timeout()
    }

    fn handle_session(&mut self, session: i64, heartbeat: Duration, uuid: u128) {
        self.0.handle_session(session, heartbeat, Uuid::from_random(uuid));
    }

    fn handle_session_over(&mut self) {
        self.0.handle_session_over();
    }

    fn handle_end(&mut self) {
        self.0.handle_end();
    }

    fn handle_leave(&mut self) {
        self.0.leave();
    }

    fn handle_timeout(&mut self, now: Moment) {
        self.0.handle_timeout(now);
    }

    fn handle_watch(&mut self, event: WatchEvent, now: Now) {
        self.0.handle_watch(event, now);
    }

    fn handle_replies(&mut self, outcomes: Vec<Outcome>, sent: Moment, now: Now) {
        self.0.handle_replies(outcomes, sent, now);
    }

    fn copy(&self) -> Box<dyn Attempt> {
        Box::new(self.clone())
    }

    fn fingerprint(&self) -> u64 {
        fingerprint(self)
    }
}

impl Term for OwnLease {
    fn heartbeat(&self) -> Duration {
        self.0.heartbeat()
    }

    fn until(&self) -> Moment {
        self.0.until()
    }

    fn acknowledge(&mut self, sent: Moment, now: Moment) {
        self.0.acknowledge(sent, now);
    }

    fn ask(&mut self, sent: Moment) {
        self.0.ask(sent);
    }

    fn attach(&mut self, sent: Moment, timeout: Duration, now: Moment) {
        self.0.attach(sent, timeout, now);
    }

    fn copy(&self) -> Box<dyn Term> {
        Box::new(self.clone())
    }

    fn fingerprint(&self) -> u64 {
        fingerprint(self)
    }
}
