//! How a member waits for the others to leave, and how its node goes.

use super::{Aim, Answer, Member, Purpose, State, Step, names, seen};
use crate::barrier::{self, Seen};
use crate::protocol::{Now, Outcome, Patience};
use std::time::Duration;

/// How long to wait before a refused deletion is tried again. Meanwhile the driver closes the session.
const UNTIL_ALLOWED: Duration = Duration::from_secs(1);

impl Member {
    pub(super) fn on_departure(&mut self, listing: Outcome, now: Now) {
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

    pub(super) fn on_listing(&mut self, ready: &Outcome, listing: Outcome, now: Now) {
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

    pub(super) fn surveyed_to_wait(&mut self, children: &[String], survey: Outcome, now: Now) {
        match survey {
            Outcome::Surveyed(nodes) if nodes.is_empty() => self.await_others(&by_name(children)),
            Outcome::Surveyed(nodes) => self.await_others(&seen(&nodes)),
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Look, now),
        }
    }

    /// Waits for one of the members that have not left yet, if there are any.
    fn await_others(&mut self, seen: &[Seen<'_>]) {
        let Aim::Leave { stays } = self.aim else { return self.clean_up() };
        let awaited = self.others.awaited(seen);
        match barrier::whom_to_watch(&awaited, stays) {
            None if stays => self.go(Step::Survey(Purpose::Removing)),
            None => self.end_with(Answer::Left),
            Some(_) if self.patience == Patience::TriesOnce => self.end_with(Answer::OthersWithin),
            Some(watched) => self.go(Step::Watch { name: watched.to_owned() }),
        }
    }

    pub(super) fn watched(&mut self, outcome: Outcome, now: Now) {
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

    pub(super) fn surveyed_to_remove(&mut self, survey: Outcome, now: Now) {
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

    pub(super) fn removed_both(&mut self, outcome: &Outcome, now: Now) {
        match outcome {
            Outcome::Done => self.on_deleted(true),
            Outcome::Unknown => self.deletion_lost(now),
            // One of the two is gone, or `ready` must not be deleted.
            _ => self.go(Step::Remove),
        }
    }

    pub(super) fn removed(&mut self, outcome: &Outcome, now: Now) {
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

/// Returns the children with no known creation order: as if none of them had entered.
fn by_name(children: &[String]) -> Vec<Seen<'_>> {
    children.iter().map(|name| Seen { name, czxid: i64::MAX }).collect()
}
