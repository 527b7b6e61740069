//! Bugs that show among the callers of one process.

use super::{CALLERS, HELD, KEPT, PLACES, Seed, TRIES, edit, of, seed};

pub(super) const SEEDS: &[Seed] = &[
    seed(
        "callers: one is answered twice",
        &[edit(
            PLACES,
            "if let Some(caller) = place.caller {\n                self.answer(caller.id, Answer::Failed);\n            }\n            self.begin_next(false);",
            "self.answer(super::CallerId(self.last_caller), Answer::Failed);\n            self.begin_next(false);",
        )],
    ),
    of(
        "reentrant, two calls",
        "callers: one that waited for a grant of its own, too",
        &[edit(
            CALLERS,
            "            if !shares(&other.call) {\n                self.waiting.push_back(other);\n                continue;\n            }",
            "            let shares = shares(&other.call);\n            self.waiting.push_back(other.clone());\n            if !shares {\n                continue;\n            }",
        )],
    ),
    seed(
        "callers: one that has gone keeps its node",
        &[edit(CALLERS, "            _ => self.give_up(id),", "            _ => {}")],
    ),
    seed(
        "callers: a place for one that has gone",
        &[edit(CALLERS, "            self.waiting.remove(at);\n", "")],
    ),
    seed(
        "callers: the second is the heir",
        &[edit(CALLERS, "let heir = self.waiting.pop_front();", "let heir = self.waiting.pop_back();")],
    ),
    seed(
        "callers: those of other processes are not told of",
        &[edit(
            KEPT,
            "if turns.is_some_and(Turns::handle_wanted) {\n            return self.give_up(place);\n        }",
            "let _ = turns;",
        )],
    ),
    of(
        "callers: lingers, 2 2",
        "callers: the holder is not told of those who wait",
        &[edit(KEPT, "self.set_wanted(kept, is_wanted);", "let _ = is_wanted;")],
    ),
    seed(
        "callers: a holder is not told of one who comes",
        &[edit(CALLERS, "self.set_wanted(place, true);", "let _ = place;")],
    ),
    of(
        "deserted",
        "callers: taken though it was given up",
        &[
            edit(KEPT, "if turns.is_idle() {\n            turns.handle_end();", "if turns.is_idle() {"),
            edit(
                KEPT,
                "trust(kept) == Trust::Known && self.kept_turns_mut()",
                "(trust(kept) == Trust::Known || self.is_deserted) && self.kept_turns_mut()",
            ),
        ],
    ),
    of(
        "callers: lingers, 2 1, lapse",
        "callers: taken though it is lost",
        &[edit(
            KEPT,
            "trust(kept) == Trust::Known && self.kept_turns_mut()",
            "trust(kept) != Trust::Unproven && self.kept_turns_mut()",
        )],
    ),
    of(
        "2 1, doubts",
        "callers: taken unconfirmed",
        &[edit(
            KEPT,
            "trust(kept) == Trust::Known && self.kept_turns_mut()",
            "trust(kept) != Trust::Over && self.kept_turns_mut()",
        )],
    ),
    seed(
        "callers: writers take a node together",
        &[edit(PLACES, "Turns::new(passing, is_shared)", "Turns::new(passing, true)")],
    ),
    of(
        "within its writer",
        "callers: the next writer has the node beside a reader",
        &[edit(
            KEPT,
            "            place.end_turns();\n        }\n        // Those",
            "            let _ = place;\n        }\n        // Those",
        )],
    ),
    seed(
        "callers: a turn too many",
        &[
            edit(
                PLACES,
                "Turns::new(passing, is_shared)",
                "Turns::new(Passing { turns: passing.turns + 1, ..passing }, is_shared)",
            ),
            edit(PLACES, "use crate::turns::Turns;", "use crate::turns::{Passing, Turns};"),
        ],
    ),
    seed(
        "callers: nobody begins when a node is left",
        &[
            edit(PLACES, "self.begin_next(was_granted);", "let _ = was_granted;"),
            edit(
                PLACES,
                "                self.answer(caller.id, Answer::Failed);\n            }\n            self.begin_next(false);",
                "                self.answer(caller.id, Answer::Failed);\n            }",
            ),
        ],
    ),
    seed(
        "callers: held back for ever",
        &[edit(
            CALLERS,
            "[self.holds_back, self.checking.pauses_until(), lingers]",
            "[self.checking.pauses_until(), lingers]",
        )],
    ),
    seed(
        "callers: nobody begins after a refusal",
        &[edit(PLACES, "self.entering.filter(|entering| *entering != id)", "self.entering")],
    ),
    of(
        "2 1, doubts",
        "callers: a check leads to nothing",
        &[edit(
            KEPT,
            "self.checking.handle_answer(now);\n        }\n        self.pass_on(trust);",
            "self.checking.handle_answer(now);\n        }\n        let _ = trust;",
        )],
    ),
    of(
        "expiry, doubts",
        "callers: waits for the check of a node before",
        &[edit(
            PLACES,
            "self.kept = Some(id);\n            // A check of the place before may never matter again.\n            self.checking = Checking::default();",
            "self.kept = Some(id);",
        )],
    ),
    of(
        "turns, 2, doubts",
        "callers: a node stays for one that has gone",
        &[
            edit(CALLERS, "            self.leave_untaken();\n            return;", "            return;"),
            edit(KEPT, "        self.leave_untaken();\n        let is_wanted", "        let is_wanted"),
        ],
    ),
    of(
        "deserted",
        "callers: a node lingers for a client that nobody has",
        &[edit(KEPT, "(is_over || is_deserted)", "is_over")],
    ),
    of(
        "lingers, writes",
        "callers: a write lands under the next hold",
        &[edit(KEPT, "!is_held || !is_latest || is_unsettled", "!is_held || !is_latest")],
    ),
    of(
        "tries again, expiry",
        "callers: a try is told of a session before",
        &[edit(TRIES, "open.session == self.session && ", "")],
    ),
    of(
        "tries again, 1 1",
        "callers: a try hears no watch",
        &[edit(TRIES, "self.remembered.take().is_some()", "false && self.remembered.take().is_some()")],
    ),
    of(
        "tries again, 1 1",
        "callers: a try believes what is old",
        &[edit(
            TRIES,
            "if open.is_some_and(|open| remembered.is_good(open, now)) {",
            "if open.is_some() && now >= Moment::default() {",
        )],
    ),
    of(
        "waits for itself",
        "callers: an owner waits for itself unseen",
        &[edit(HELD, "(true, true) => Own::Deadlock { held },", "(true, true) => Own::InTheWay,")],
    ),
    of(
        "reentrant, two calls apart",
        "callers: a call that queues late waits for its owner's turn",
        &[edit(
            CALLERS,
            "call.is_reentrant.then(|| self.again(call.owner)).flatten()",
            "(call.is_within && !call.is_within).then(|| self.again(call.owner)).flatten()",
        )],
    ),
    of(
        "reentrant, two calls",
        "callers: two calls of an owner wait for each other",
        &[edit(
            CALLERS,
            "let shares = |other: &Call<O>| call.is_reentrant && other",
            "let shares = |other: &Call<O>| !call.is_reentrant && other",
        )],
    ),
    of(
        "within its writer",
        "callers: one owner shares the turn of another",
        &[edit(
            CALLERS,
            "other.is_reentrant && other.owner == owner;",
            "other.is_reentrant && call.is_reentrant;",
        )],
    ),
    of(
        "callers: 2 1, lapse",
        "callers: a turn is over while its owner has it",
        &[edit(PLACES, "turn.place == id && turn.holds == 0;", "turn.place == id;")],
    ),
    of(
        "reentrant, two calls, lingers",
        "callers: the first release is the last",
        &[edit(KEPT, "if self.turns[at].holds > 0 {", "if self.turns[at].holds > usize::MAX - 1 {")],
    ),
    seed(
        "callers: more nodes than a lock can have",
        &[edit(CALLERS, "let is_full = self.attempts >= self.width.attempts();", "let is_full = false;")],
    ),
    seed(
        "callers: waits behind what it could take",
        &[edit(
            CALLERS,
            "self.kept_turns().is_some_and(|turns| !turns.is_spent())",
            "self.kept_turns().is_some()",
        )],
    ),
];
