//! Bugs that show with the other kinds of lock.

use super::{BUSY, CONTENDER, DOUBT, ENTER, NAME, NODES, QUEUE, SINGLE, Seed, TURN, edit, of, seed};

pub(super) const SEEDS: &[Seed] = &[
    seed(
        "read/write: reader watches a reader",
        &[edit(
            QUEUE,
            "let leaves_one =",
            "let nearest = if role == Role::Read { contenders().filter(|it| it.text != own && !me.sequence.is_before(it.sequence)).max_by(Name::compare).unwrap_or(nearest) } else { nearest };\n    let leaves_one =",
        )],
    ),
    seed(
        "read/write: reader ignores writers",
        &[edit(NAME, "(Self::Read, Self::Read))", "(Self::Read, _))")],
    ),
    seed(
        "read/write: writer ignores readers",
        &[edit(NAME, "(Self::Read, Self::Read))", "(_, Self::Read))")],
    ),
    seed(
        "read/write: readers exclude each other",
        &[edit(NAME, "!matches!((self, other), (Self::Read, Self::Read))", "true")],
    ),
    seed(
        "read/write: reader watches the first writer",
        &[edit(
            QUEUE,
            "ahead().max_by(Name::compare)",
            "ahead().reduce(|one, other| if (one.compare(&other) == std::cmp::Ordering::Less) == (role == Role::Read) { one } else { other })",
        )],
    ),
    seed(
        "downgrade: a writer leaves no reader",
        &[edit(QUEUE, "others().next().is_none() && !leaves_one", "others().next().is_none()")],
    ),
    seed(
        "downgrade: a writer leaves no reader to the second after it",
        &[edit(TURN, "self.watched(claim, *alone, watch, now);", "self.watched(claim, true, watch, now);")],
    ),
    seed(
        "downgrade: own writer in the way",
        &[edit(QUEUE, "claim.within.as_deref() != Some(other.text)", "!other.text.is_empty()")],
    ),
    seed(
        "downgrade: reader has a number of its own",
        &[
            edit(ENTER, "directory, .. }] => {", "directory, .. }] if writer.is_empty() => {"),
            edit(NODES, "prefix.push_str(&writer.sequence.to_string());", "let _ = writer;"),
        ],
    ),
    seed(
        "semaphore: a try does not wait for its turn",
        &[edit(
            TURN,
            "matches!(turn, Turn::Waits { .. }) && claim.permits.is_none()",
            "matches!(turn, Turn::Waits { .. }) && claim.within.is_none()",
        )],
    ),
    seed("semaphore: one permit less", &[edit(TURN, "|taken| taken <= limit", "|taken| taken < limit")]),
    seed(
        "semaphore: one permit more",
        &[edit(TURN, "u32::try_from(taken)", "u32::try_from(taken.max(1) - 1)")],
    ),
    seed(
        "semaphore: permits taken in the queue",
        &[edit(
            TURN,
            "position(|turn| *turn != Turn::Holds);",
            "position(|turn| *turn != Turn::Holds).filter(|claim| self.claims[*claim].permits.is_none());",
        )],
    ),
    seed(
        "semaphore: woken head does not count",
        &[edit(
            CONTENDER,
            "_ => self.state = State::Ready(look.clone()),",
            "_ if matches!(look, Step::Count(_)) => { self.counted.extend(0..self.claims.len()); self.proceed(now); }\n                _ => self.state = State::Ready(look.clone()),",
        )],
    ),
    seed(
        "semaphore: limit of the node ignored",
        &[edit(TURN, "Outcome::Limit(Some(count)) => limit = count,", "Outcome::Limit(Some(_)) => {}")],
    ),
    seed(
        "semaphore: waits without its place",
        &[edit(
            TURN,
            ".chain([Operation::Inspect { path: place }])",
            ".chain(std::iter::empty::<String>().map(|path| Operation::Inspect { path: path + &place }))",
        )],
    ),
    seed(
        "semaphore: takes without its place",
        &[edit(TURN, "flight.extend(self.count(slot.claim));", "flight.extend(self.count_of(slot.claim));")],
    ),
    seed(
        "semaphore: permits left behind",
        &[edit(BUSY, "self.permits.paths().chain(self.queue.paths())", "self.queue.paths()")],
    ),
    seed(
        "semaphore: holder stays in the queue",
        &[edit(TURN, "self.state = State::Ready(Step::Unqueue);", "self.state = State::Held;")],
    ),
    seed(
        "semaphore: no recovery of permits",
        &[edit(
            TURN,
            "_ => self.retry(Step::Recover(Phase::Permits), now),",
            "_ => self.retry(Step::Take, now),",
        )],
    ),
    seed(
        "semaphore: place forgotten with permits",
        &[edit(
            CONTENDER,
            "if self.queue.is_gone() && self.permits.is_gone() {\n            self.forget();",
            "if self.queue.slots.len() == 1 && self.permits.is_gone() {\n            self.forget();",
        )],
    ),
    seed(
        "all: enters again beside what is left",
        &[edit(CONTENDER, "self.go(Step::Clear);", "self.go(Step::Enter);")],
    ),
    seed(
        "all: an unknown queue taken for free",
        &[edit(
            TURN,
            "position(|turn| *turn != Turn::Holds);",
            "position(|turn| matches!(turn, Turn::Waits { .. }));",
        )],
    ),
    seed(
        "all: names come back",
        &[edit(CONTENDER, "self.mark_with(self.uuid.next());", "self.mark_with(self.uuid);")],
    ),
    seed(
        "single: adopted whoever owns it",
        &[
            edit(SINGLE, "told.filter(|origin| origin.session == self.session)", "told"),
            edit(
                DOUBT,
                "filter(|origin| origin.session == self.session)",
                "filter(|origin| origin.czxid > 0)",
            ),
        ],
    ),
    of(
        "single: 2, twice",
        "single: what an earlier hold has left taken for its own",
        &[
            edit(
                DOUBT,
                "Some(_) if is_ours(node) => self.delete(Victim::Node),",
                "Some(_) if own(node).is_some() => { let origin = origin_of(node).unwrap(); self.own(origin, now) }",
            ),
            edit(
                SINGLE,
                "Operation::Check { paths: self.paths() }",
                "Operation::Check { paths: vec![path.clone()] }",
            ),
        ],
    ),
    of(
        "single: 2, ghost",
        "single: deleted without its companion",
        &[edit(
            SINGLE,
            "if self.has_companion { Victim::Both } else",
            "if self.has_companion { Victim::Node } else",
        )],
    ),
    of(
        "single: 1, deletion",
        "single: companion left behind",
        &[edit(DOUBT, "_ => self.delete(Victim::Companion),", "_ => self.nothing_left(),")],
    ),
    of(
        "single: 2, twice",
        "single: what a server shows in its place taken for another's",
        &[edit(DOUBT, "seen.czxid <= origin.czxid", "seen.czxid == origin.czxid")],
    ),
    seed(
        "single: created again without a look",
        &[edit(
            SINGLE,
            "_ => self.retry(Step::Recover, now),\n        }\n    }\n\n    fn nothing_created",
            "_ => self.retry(Step::Create, now),\n        }\n    }\n\n    fn nothing_created",
        )],
    ),
    of(
        "single: 2, parent deletion",
        "single: looked at before its companion",
        &[
            edit(
                SINGLE,
                "companion.into_iter().chain([path]).map(inspect)",
                "std::iter::once(path).chain(companion).map(inspect)",
            ),
            edit(
                SINGLE,
                "let companion = self.has_companion.then(&mut next);\n                self.recovered(&barrier, companion.as_ref(), &next(), now);",
                "let node = next();\n                let companion = self.has_companion.then(&mut next);\n                self.recovered(&barrier, companion.as_ref(), &node, now);",
            ),
        ],
    ),
    of(
        "single, alone",
        "single: alone, deletion repeated blindly",
        &[edit(DOUBT, "self.in_doubt = true;\n                if let", "if let")],
    ),
    of(
        "single, alone: 2, hidden",
        "single: what may not be read taken for its own",
        &[edit(
            DOUBT,
            "(None | Some(Outcome::Done), Outcome::Done) => self.state",
            "(None, _) | (Some(Outcome::Done), Outcome::Done) => self.state",
        )],
    ),
    seed(
        "single: what may not be read is left behind",
        &[edit(DOUBT, "self.state = State::Ready(Step::Claim);", "self.nothing_left();")],
    ),
    seed(
        "children: no watch is left",
        &[edit(CONTENDER, "vec![Operation::ListAndWatch {", "vec![Operation::List {")],
    ),
];
