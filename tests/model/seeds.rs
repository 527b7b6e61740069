//! Bugs that are put into the machine to see that they are found.
//!
//! A check that never failed proves little. Each seed is a mistake that somebody could make, as
//! replacements in the sources; the texts must occur exactly once, so that a seed cannot be lost
//! without notice when the machine changes.

/// Text that stands exactly once in a file, and what it is replaced by.
#[derive(Debug)]
pub(crate) struct Edit {
    /// In the machine, or `adapter.rs` for the part that is the driver's.
    pub(crate) file: &'static str,
    pub(crate) text: &'static str,
    pub(crate) replacement: &'static str,
}

/// A mistake.
#[derive(Debug)]
pub(crate) struct Seed {
    pub(crate) name: &'static str,
    pub(crate) edits: &'static [Edit],
}

const fn edit(file: &'static str, text: &'static str, replacement: &'static str) -> Edit {
    Edit { file, text, replacement }
}

const CONTENDER: &str = "contender.rs";
const LEASE: &str = "lease.rs";

/// All of them.
pub(crate) const SEEDS: &[Seed] = &[
    Seed {
        name: "recovery without sync",
        edits: &[
            edit(
                CONTENDER,
                "Step::Recover => vec![Operation::Sync, Operation::List]",
                "Step::Recover => vec![Operation::List, Operation::List]",
            ),
            edit(CONTENDER, "if *synced != Outcome::Done {", "if *synced == Outcome::Unknown {"),
        ],
    },
    Seed {
        name: "no recovery of a creation",
        edits: &[edit(
            CONTENDER,
            "_ => self.retry(Step::Recover, now),\n        }\n    }\n\n    fn parents",
            "_ => self.retry(Step::Enter, now),\n        }\n    }\n\n    fn parents",
        )],
    },
    Seed {
        name: "no cleaning after a cancel",
        edits: &[edit(
            CONTENDER,
            "_ => self.clean_up(),\n        }\n    }\n\n    /// The time that",
            concat!(
                "State::Held => self.clean_up(),\n",
                "_ => self.state = State::Gone,\n        }\n    }\n\n    /// The time that",
            ),
        )],
    },
    Seed {
        name: "cancel forgets a creation under way",
        edits: &[edit(
            CONTENDER,
            "State::InFlight(_) | State::Gone =>",
            "State::InFlight(Step::Enter) => self.state = State::Gone, State::InFlight(_) | State::Gone =>",
        )],
    },
    Seed {
        name: "deletion given up when unknown",
        edits: &[edit(CONTENDER, "self.retry(Step::Leave, now);", "self.state = State::Gone;")],
    },
    Seed {
        name: "surplus node not deleted",
        edits: &[edit(
            CONTENDER,
            "self.surplus.iter().map(|name| Operation::Delete",
            "self.surplus.iter().take(0).map(|name| Operation::Delete",
        )],
    },
    Seed {
        name: "grant without own node",
        edits: &[edit(CONTENDER, "now.moment.since(*sent) <= self.heartbeat", "*sent <= now.moment")],
    },
    Seed {
        name: "missing node taken for a passed check",
        edits: &[edit(
            CONTENDER,
            concat!(
                "Outcome::NoNode => self.enter_again(),\n",
                "            Outcome::Refused(refusal) => self.fail(refusal),\n",
                "            _ => self.retry(Step::Check",
            ),
            concat!(
                "Outcome::NoNode => self.granted(),\n",
                "            Outcome::Refused(refusal) => self.fail(refusal),\n",
                "            _ => self.retry(Step::Check",
            ),
        )],
    },
    Seed {
        name: "grant without a live lease",
        edits: &[edit(CONTENDER, "if fresh && now.moment < now.lease_until {", "if fresh {")],
    },
    Seed {
        name: "own node proven by a read",
        edits: &[edit(
            CONTENDER,
            "if let Trace::Node { node, .. } = &mut self.trace {\n                    node.origin",
            concat!(
                "if let Trace::Node { node, proven } = &mut self.trace {\n",
                "                    *proven = Some(now.moment);\n",
                "                    node.origin",
            ),
        )],
    },
    Seed {
        name: "deletion trusted while others are ahead",
        edits: &[edit(CONTENDER, "WatchEvent::Deleted if alone => self", "WatchEvent::Deleted => self")],
    },
    Seed {
        name: "any event taken for a deletion",
        edits: &[edit(CONTENDER, "WatchEvent::Deleted if alone => self", "_ if alone => self")],
    },
    Seed {
        name: "watch on a node that is gone",
        edits: &[edit(
            CONTENDER,
            "Outcome::Done if self.wanted => self",
            "Outcome::Done | Outcome::NoNode if self.wanted => self",
        )],
    },
    Seed {
        name: "deleted waiter waits on",
        edits: &[edit(
            CONTENDER,
            "Standing::Absent => self.enter_again(),",
            "Standing::Absent => self.state = State::Waiting { alone: false },",
        )],
    },
    Seed {
        name: "next session keeps the old node",
        edits: &[edit(
            CONTENDER,
            "self.trace = Trace::None;\n        self.surplus.clear();\n        self.failures = 0;",
            "self.failures = 0;",
        )],
    },
    Seed {
        name: "string order",
        edits: &[edit("queue.rs", "if me.sequence.is_before(other.sequence) {", "if me.text < other.text {")],
    },
    Seed {
        name: "order does not wrap",
        edits: &[edit("name.rs", "other.0.wrapping_sub(self.0) > 0", "other.0 > self.0")],
    },
    Seed {
        name: "the lowest is watched",
        edits: &[edit(
            "queue.rs",
            "nearest.is_none_or(|best| best.sequence.is_before(other.sequence))",
            "nearest.is_none_or(|best| other.sequence.is_before(best.sequence))",
        )],
    },
    Seed {
        name: "lease from the reply",
        edits: &[edit(LEASE, "proven.max(known + self.timeout)", "proven.max(now + self.timeout)")],
    },
    Seed {
        name: "a lone write counts",
        edits: &[edit(LEASE, "proven.max(before + self.timeout / 4)", "proven.max(sent + self.timeout / 4)")],
    },
    Seed {
        name: "a write counts before its reply",
        edits: &[edit(LEASE, "write.acknowledged + earlier <= moment", "write.sent + earlier <= moment")],
    },
    Seed {
        name: "pings of the leader forgotten",
        edits: &[edit(LEASE, "let ping = self.timeout / 4;", "let ping = Duration::ZERO;")],
    },
    Seed {
        name: "lease from a read",
        edits: &[edit("adapter.rs", "renews: |answer| answer == Answer::QuorumWrite", "renews: |_| true")],
    },
];
