//! The door of one machine: of the one that ships, and of each with a bug.

use super::explorer::fingerprint;
use super::machine::Moment;
use super::machine::claim::{Claim, Foreign, Permits, Watching};
use super::machine::contender::Contender;
use super::machine::drive;
use super::machine::exchange::{Now, Operation, Outcome, Patience, Verdict, WatchEvent};
use super::machine::lease::Lease;
use super::machine::name::{Scheme, Uuid};
use super::machine::single::Single;
use super::subject::{Answer, Attempt, Machine, Sort, Term, Want};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

/// This machine.
pub(crate) const MACHINE: Machine = Machine {
    contender: |wants: &[Want], within: Option<String>, patience: Patience| {
        if let [Want { queue, sort: Sort::Single, .. }] = wants {
            return Box::new(Own(Single::new(queue, patience)));
        }
        let claims = wants.iter().map(|want| Claim { within: within.clone(), ..claim(want) });
        Box::new(Own(Contender::new(claims.collect(), patience)))
    },
    lease: |timeout, sent| Box::new(OwnLease(Lease::new(timeout, sent))),
    renews: |answer| answer == Answer::QuorumWrite,
};

fn claim(want: &Want) -> Claim {
    let scheme = match want.sort {
        Sort::Mutex | Sort::Semaphore { .. } => Scheme::Mutex,
        Sort::Read => Scheme::Read,
        Sort::Write => Scheme::Write,
        Sort::Latch => Scheme::Latch,
        Sort::Single => Scheme::Single,
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

impl<M> Attempt for Own<M>
where
    M: drive::Machine<Verdict = Verdict> + Clone + Hash + Debug + 'static,
{
    fn is_gone(&self) -> bool {
        self.0.is_gone()
    }

    fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    fn poll_verdict(&mut self) -> Option<Verdict> {
        self.0.poll_verdict()
    }

    fn poll_flight(&mut self) -> Option<Vec<Operation>> {
        self.0.poll_flight()
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
