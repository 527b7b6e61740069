//! One difference of each kind, for work on a server that still differs a lot from the other.

use std::collections::BTreeMap;

use crate::compare::{Outcome, Pair};
use crate::shrink::shrink;
use crate::step::Step;

/// The kinds of differences so far, with the length of the shortest conversation that shows each.
#[derive(Debug, Default)]
pub(crate) struct Gallery {
    kinds: BTreeMap<String, usize>,
}

impl Gallery {
    /// Shows a conversation in which the servers differ, in short, if it is of a new kind.
    pub(crate) fn note(&mut self, pair: &Pair, seed: u64, slots: usize, conversation: &[Step]) {
        let outcome = pair.converse(slots, conversation);
        if outcome.difference.is_none() {
            println!("seed {seed}: the servers differed, and did not when it was held again");
            return;
        }
        // Most are of a known kind, which shows without the work of shrinking them.
        if self.is_known(&outcome) {
            return;
        }
        let (short, outcome) = shrink(pair, slots, conversation, outcome);
        if !self.is_known(&outcome) {
            println!("difference {}, seed {seed}:", self.kinds.len() + 1);
            outcome.print(&short);
            self.kinds.insert(kind(&outcome), short.len());
        }
    }

    fn is_known(&self, outcome: &Outcome) -> bool {
        self.kinds.contains_key(&kind(outcome))
    }
}

/// The first two lines that differ, without any numbers except the operation's and the error's.
fn kind(outcome: &Outcome) -> String {
    let Some(index) = outcome.difference else { return String::new() };
    let (real, other) = (&outcome.real[index], &outcome.other[index]);
    let at = (0..).find(|&at| real.get(at) != other.get(at)).unwrap_or(0);
    format!("{} / {}", essence(real.get(at)), essence(other.get(at)))
}

fn essence(line: Option<&String>) -> String {
    let line = line.map_or("nothing", |line| line.split_once("] ").map_or(line.as_str(), |(_, rest)| rest));
    let words = line.split(' ').filter(|word| !word.starts_with(['@', '+', '{', '/']));
    words.take(4).collect::<Vec<_>>().join(" ")
}
