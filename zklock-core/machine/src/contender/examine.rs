//! How an attempt finds out whether a child with an unknown name is a contender.
//!
//! Programs have long had locks of their own making, with names such as `lock-0000000001`. Neither side would see the other
//! in its queue. So a child whose name ends with a number and is none of ours is looked at before anything is granted. If it
//! is ephemeral, the attempt fails, unless it was told to ignore it. A queue without such children, and one whose children were
//! looked at before, costs nothing more.

use super::{Contender, Step, Turn};
use crate::claim::Foreign;
use crate::lasting::are_too_many;
use crate::protocol::{Node, Now, Outcome, Refusal};
use crate::queue::stranger_without_a_queue;
use std::sync::Arc;

impl Contender {
    /// Goes to look at children of this directory if they may be contenders of an unknown kind, or notes which one it ignores.
    /// Returns whether something else must happen before a grant.
    pub(super) fn must_examine(&mut self, claim: usize, directory: &Arc<str>, children: &[String]) -> bool {
        if self.claims[claim].foreign == Foreign::IgnoreUnknown {
            self.ignored.remove(directory);
            let ignored = children.iter().find(|child| self.claims[claim].cannot_read(child));
            self.ignored.extend(ignored.map(|child| (directory.clone(), child.clone())));
            return false;
        }
        if let Some(name) = stranger_without_a_queue(children) {
            self.fail(Refusal::ForeignContender(name.to_owned()));
            return true;
        }
        let unclear = self.lasting.unclear(directory, children);
        if unclear.is_empty() {
            return false;
        }
        if are_too_many(&unclear) {
            self.fail(Refusal::ForeignContender(unclear[0].clone()));
        } else {
            self.go(Step::Examine { claim, directory: directory.clone(), unclear });
        }
        true
    }

    pub(super) fn examined(
        &mut self,
        claim: usize,
        directory: Arc<str>,
        mut unclear: Vec<String>,
        seen: &[Outcome],
        now: Now,
    ) {
        for (name, outcome) in unclear.iter().zip(seen) {
            match outcome {
                Outcome::Found(Node { origin: Some(_), .. }) => {
                    return self.fail(Refusal::ForeignContender(name.clone()));
                }
                Outcome::Found(_) => Arc::make_mut(&mut self.lasting).note(&format!("{directory}/{name}")),
                Outcome::NoNode => {}
                Outcome::Refused(refusal) => return self.fail(refusal.clone()),
                _ => return self.retry(Step::Examine { claim, directory, unclear }, now),
            }
        }
        unclear.drain(..seen.len().min(unclear.len()));
        if unclear.is_empty() {
            // The queue may have changed meanwhile.
            self.flow.failures.clear();
            self.turns[claim] = Turn::Unknown;
            self.proceed(now);
        } else if seen.is_empty() {
            self.retry(Step::Examine { claim, directory, unclear }, now);
        } else {
            self.go(Step::Examine { claim, directory, unclear });
        }
    }
}
