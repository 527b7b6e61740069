//! Bugs that show with a mutex, and those of the lease.

use super::{
    CONTENDER, ENTER, Edit, LEASE, NAME, NODES, QUEUE, READINESS, RENEW, Seed, TURN, edit, of, seed,
};

const fn lease(name: &'static str, edits: &'static [Edit]) -> Seed {
    of("lease", name, edits)
}

pub(super) const SEEDS: &[Seed] = &[
    seed(
        "a sync taken for a barrier",
        &[
            edit(
                ENTER,
                "map(|directory| Operation::Barrier { directory:",
                "map(|directory| Operation::List { directory:",
            ),
            edit(ENTER, "if *barrier != Outcome::Done {", "if *barrier == Outcome::Unknown {"),
        ],
    ),
    seed(
        "no recovery of a creation",
        &[edit(
            ENTER,
            "_ => self.retry(Step::Recover(Phase::Queue), now),",
            "_ => self.retry(Step::Enter, now),",
        )],
    ),
    seed(
        "no cleaning after a cancel",
        &[edit(
            CONTENDER,
            "_ => self.clean_up(),\n        }\n    }\n\n    fn handle_notice",
            "State::Held => self.clean_up(),\n            _ => self.state = State::Gone,\n        }\n    }\n\n    fn handle_notice",
        )],
    ),
    seed(
        "cancel forgets a creation under way",
        &[edit(
            CONTENDER,
            "State::InFlight(_) | State::Gone =>",
            "State::InFlight(Step::Enter) => self.state = State::Gone, State::InFlight(_) | State::Gone =>",
        )],
    ),
    seed(
        "deletion given up when unknown",
        &[edit(CONTENDER, "self.delete_again(step, outcomes, now);", "self.state = State::Gone;")],
    ),
    seed(
        "surplus node not deleted",
        &[
            edit(ENTER, "nodes.surplus().iter().map(|path|", "nodes.surplus().iter().take(0).map(|path|"),
            edit(ENTER, "nodes.surplus().len().min(pruned.len())", "0"),
        ],
    ),
    seed(
        "grant without own node",
        &[edit(READINESS, "now.moment.since(sent) <= self.heartbeat", "sent <= now.moment")],
    ),
    seed(
        "missing node taken for a passed check",
        &[
            edit(
                TURN,
                "self.enter_again();\n            }\n            Outcome::Refused(refusal) => self.fail(refusal),\n            _ => self.retry(Step::Check",
                "self.granted();\n            }\n            Outcome::Refused(refusal) => self.fail(refusal),\n            _ => self.retry(Step::Check",
            ),
            edit(TURN, "self.queue.lose(0);\n", "\n"),
        ],
    ),
    seed("grant without a live lease", &[edit(READINESS, "is_fresh && self.is_ample(now)", "is_fresh")]),
    seed(
        "own node proven by a read",
        &[edit(
            ENTER,
            "nodes.adopt(slot, origin);\n",
            "nodes.adopt(slot, origin);\n                    nodes.prove(now.moment);\n",
        )],
    ),
    seed(
        "deletion trusted while others are ahead",
        &[edit(TURN, "let our_turn_in = alone.then_some(claim);", "let our_turn_in = Some(claim);")],
    ),
    of(
        "4 clients, two cancels",
        "the end of the nearest of an earlier look trusted",
        &[edit(
            TURN,
            "second: None, alone } if nearest == watched => {",
            "second: None, alone } => { let _ = (nearest, watched);",
        )],
    ),
    seed(
        "any event taken for a deletion",
        &[edit(CONTENDER, "(WatchEvent::Deleted, Some(claim)) =>", "(_, Some(claim)) =>")],
    ),
    seed(
        "watch on a node that is gone",
        &[edit(
            TURN,
            "Outcome::Done if self.wanted => {",
            "Outcome::Done | Outcome::NoNode if self.wanted => {",
        )],
    ),
    seed(
        "deleted waiter waits on",
        &[edit(
            TURN,
            "self.queue.lose(claim);\n                        self.enter_again();",
            "self.state = State::Waiting { our_turn_in: None, look: Step::Look(claim) };",
        )],
    ),
    seed(
        "next session keeps the old nodes",
        &[
            edit(CONTENDER, "self.forget();\n        self.failures.clear();", "self.failures.clear();"),
            edit(
                CONTENDER,
                "            self.mark_with(uuid);\n",
                "            if self.queue.is_gone() { self.mark_with(uuid); }\n",
            ),
        ],
    ),
    seed(
        "string order",
        &[edit(
            QUEUE,
            "filter(|other| !me.sequence.is_before(other.sequence))",
            "filter(|other| other.text < me.text)",
        )],
    ),
    of(
        "numbers",
        "numbers that are used up",
        &[edit(NODES, "is_some_and(|name| name.sequence.is_used_up())", "is_some_and(|_| false)")],
    ),
    of(
        "numbers",
        "numbers used up at the very end",
        &[edit(NAME, "self.0 < 0 || self.0 > i32::MAX - (1 << 20)", "self.0 < 0")],
    ),
    of(
        "numbers",
        "no watch on a directory that is left",
        &[edit(
            RENEW,
            "NotEmpty => self.go(Step::Drain(claim)),",
            "NotEmpty => self.wait(Step::Drain(claim)),",
        )],
    ),
    of(
        "4 clients, two cancels",
        "the lowest is watched",
        &[edit(QUEUE, "others().max_by(Name::compare)", "others().min_by(Name::compare)")],
    ),
    lease(
        "lease from the reply",
        &[edit(LEASE, "proven.max(known + self.timeout)", "proven.max(now + self.timeout)")],
    ),
    lease(
        "a lone write counts",
        &[edit(LEASE, "proven.max(before + self.timeout / 4)", "proven.max(sent + self.timeout / 4)")],
    ),
    lease(
        "a write counts before its reply",
        &[edit(LEASE, "write.acknowledged + earlier <= moment", "write.sent + earlier <= moment")],
    ),
    lease(
        "pings of the leader forgotten",
        &[edit(LEASE, "let ping = self.timeout / 4;", "let ping = Duration::ZERO;")],
    ),
    lease(
        "timeout of the first connection kept",
        &[edit(LEASE, "if timeout < self.timeout {", "if timeout.is_zero() {")],
    ),
    lease(
        "a greater timeout taken over",
        &[edit(LEASE, "if timeout < self.timeout {", "if timeout != self.timeout {")],
    ),
    lease(
        "more than half of T is claimed",
        &[edit(LEASE, "proven.min(sent + self.timeout / 2)", "proven.min(sent + self.timeout / 4 * 3)")],
    ),
    lease(
        "a request for the session takes back what was named",
        &[edit(
            LEASE,
            "self.is_asked = true;",
            "self.is_asked = true;\n        self.claimed = self.claimed.before(self.timeout / 10 * 3);",
        )],
    ),
    lease(
        "an answer counts without a write",
        &[edit(
            LEASE,
            "        self.writes.clear();\n",
            "        self.writes.clear();\n        self.claim(sent, sent + self.timeout);\n",
        )],
    ),
    lease(
        "writes through the server before count",
        &[edit(LEASE, "if sent < self.opened {", "if sent > now {")],
    ),
    lease(
        "a young connection counts for a quarter",
        &[edit(LEASE, "if before >= self.answered + self.timeout / 4 * 3 {", "if before >= self.opened {")],
    ),
    lease(
        "lease from a read",
        &[edit("adapter.rs", "renews: |answer| answer == subject::Answer::QuorumWrite", "renews: |_| true")],
    ),
];
