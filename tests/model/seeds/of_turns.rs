//! Bugs that show when a node is passed on within a process.

use super::{CONTENDER, Edit, NOTICE, QUEUE, SINGLE, Seed, TURN, TURNS, edit, of, seed};

const fn lingers(name: &'static str, edits: &'static [Edit]) -> Seed {
    of("lingers", name, edits)
}

pub(super) const SEEDS: &[Seed] = &[
    seed(
        "lingers: no watch is left",
        &[edit(NOTICE, "Operation::ListAndWatch { directory }", "Operation::List { directory }")],
    ),
    seed(
        "lingers: not asked again",
        &[edit(CONTENDER, "State::Noticing | State::Paused(Step::Notice, _) => self.on_notice(event),", "")],
    ),
    seed(
        "lingers: only the first of several is listed",
        &[edit(
            NOTICE,
            "lists.map(|claim| list(claim.directory.clone()))",
            "lists.map(|_| list(self.claims[0].directory.clone()))",
        )],
    ),
    seed(
        "lingers: nobody is ever seen to wait",
        &[edit(QUEUE, ".any(waits)", ".any(|other| waits(other) && own.is_empty())")],
    ),
    seed(
        "lingers: a writer is blind to readers",
        &[edit(
            QUEUE,
            "claim.scheme.role().excludes(other.scheme.role()) &&",
            "(claim.scheme.role() != Role::Write || other.scheme.role() != Role::Read) && claim.scheme.role().excludes(other.scheme.role()) &&",
        )],
    ),
    seed(
        "lingers: a reader is blind to writers",
        &[edit(
            QUEUE,
            "claim.scheme.role().excludes(other.scheme.role()) &&",
            "claim.scheme.role() == other.scheme.role() &&",
        )],
    ),
    seed(
        "lingers: readers give way to readers",
        &[edit(QUEUE, "claim.scheme.role().excludes(other.scheme.role()) &&", "")],
    ),
    seed("lingers: wanted by itself", &[edit(QUEUE, "&& me.sequence.is_before(other.sequence)", "")]),
    seed(
        "lingers: refusal taken for silence",
        &[edit(NOTICE, "Outcome::Refused(_) => is_awaited = true,", "Outcome::Refused(_) => {}")],
    ),
    seed(
        "lingers: unknown taken for silence",
        &[
            edit(NOTICE, "_ => is_known = false,", "_ => {}"),
            edit(NOTICE, "is_known &= !matches!(outcome, Outcome::Unknown);", "let _ = outcome;"),
        ],
    ),
    seed(
        "lingers: unknown, and never asked again",
        &[edit(NOTICE, "self.retry(Step::Notice, now);", "self.state = State::Held;")],
    ),
    seed(
        "lingers: released while it looks",
        &[edit(
            NOTICE,
            "if !self.wanted {\n            return self.clean_up();\n        }\n        let mut is_known",
            "let mut is_known",
        )],
    ),
    seed(
        "lingers: told again and again",
        &[edit(NOTICE, "is_awaited && self.notice != Notice::Given", "is_awaited")],
    ),
    lingers(
        "turns: idle, wanted and not given up",
        &[edit(TURNS, "self.end_if(self.holders == 0)", "self.end_if(false)")],
    ),
    lingers(
        "turns: given up whoever has it",
        &[edit(TURNS, "self.end_if(self.holders == 0)", "self.end_if(true)")],
    ),
    lingers(
        "turns: a wanted node lingers",
        &[edit(TURNS, "awaits || self.may_linger()", "awaits || !self.passing.linger.is_zero()")],
    ),
    lingers(
        "turns: taken after its end",
        &[edit(TURNS, "!self.is_spent() && (self.is_shared", "self.left != Some(0) && (self.is_shared")],
    ),
    lingers("turns: its end is missed", &[edit(TURNS, "self.is_over = true;", "let _ = &self.is_over;")]),
    lingers(
        "turns: taken without a turn left",
        &[
            edit(TURNS, "self.is_over || self.left == Some(0)", "self.is_over"),
            edit(TURNS, "|left| left - 1", "|left| left.saturating_sub(1)"),
        ],
    ),
    lingers("turns: not counted", &[edit(TURNS, "self.left = self.left.map(|left| left - 1);", "")]),
    lingers(
        "turns: one too many",
        &[edit(TURNS, "self.passing.turns.saturating_sub(1)", "self.passing.turns")],
    ),
    lingers(
        "turns: two writers have it",
        &[edit(TURNS, "(self.is_shared || self.holders == 0)", "self.holders < 2")],
    ),
    lingers(
        "turns: the first reader gives it up for all",
        &[edit(TURNS, "if self.holders == 0 && !self.is_over {", "if !self.is_over {")],
    ),
    lingers("turns: idle for ever", &[edit(TURNS, "self.end_if(is_due)", "self.end_if(is_due && false)")]),
    lingers(
        "turns: left to one who does not come",
        &[edit(TURNS, "self.end_if(self.holders == 0 && !self.may_linger())", "self.end_if(false)")],
    ),
    seed(
        "told: not of the end of its node",
        &[edit(NOTICE, "if read.contains(&Outcome::NoNode) {", "if false {")],
    ),
    seed(
        "told: nothing more once others wait",
        &[edit(
            NOTICE,
            "self.failures.clear();\n            self.state = State::Noticing;",
            "self.failures.clear();\n            self.state = if self.notice == Notice::Given { State::Held } else { State::Noticing };",
        )],
    ),
    seed("told: never while it has permits", &[edit(QUEUE, "None => true,", "None => false,")]),
    seed(
        "told: deaf to who asks in the node",
        &[edit(NOTICE, "is_awaited |= *outcome == Outcome::Revoked;", "")],
    ),
    seed(
        "told: a single node is read once",
        &[edit(
            SINGLE,
            "State::Noticing => self.state = State::Ready(Step::Notice),",
            "State::Noticing => {}",
        )],
    ),
    seed(
        "told: asked in its place, not in its permit",
        &[edit(NOTICE, "self.hold().filter_map(", "self.queue.slots.iter().filter_map(")],
    ),
    seed(
        "told: of the reader within",
        &[edit(
            QUEUE,
            "&& me.sequence.is_before(other.sequence)",
            "&& !other.sequence.is_before(me.sequence) && other.text != own",
        )],
    ),
    seed(
        "told: not while it makes way",
        &[edit(
            TURN,
            "self.queue.lose(claim);\n        }\n        self.stay();",
            "self.queue.lose(claim);\n        }\n        self.state = if self.wanted { State::Held } else { State::Ready(Step::Leave) };",
        )],
    ),
    seed(
        "told: nobody but who has permits",
        &[edit(
            NOTICE,
            "self.verdict = Some(Verdict::Wanted);",
            "self.verdict = (self.claims[0].permits.is_some()).then_some(Verdict::Wanted);",
        )],
    ),
    lingers("turns: holders are not counted", &[edit(TURNS, "self.holders += 1;", "")]),
];
