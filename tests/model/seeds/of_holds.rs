//! Bugs in the keeper of the holds.

use super::{Edit, KEEPER, LAPSES, Seed, WATCHING, edit, of};

const fn held(name: &'static str, edits: &'static [Edit]) -> Seed {
    of("holds", name, edits)
}

const fn watched(name: &'static str, edits: &'static [Edit]) -> Seed {
    of("watched holds", name, edits)
}

pub(super) const SEEDS: &[Seed] = &[
    held(
        "a holder is told of a lapse too late",
        &[edit(KEEPER, "now >= *lapsed + heartbeat", "now >= *lapsed + heartbeat * 2")],
    ),
    held(
        "a holder is told of a lapse at once",
        &[edit(KEEPER, "now >= *lapsed + heartbeat", "now >= *lapsed")],
    ),
    held(
        "a lapse is not forgotten",
        &[edit(
            LAPSES,
            "Some(since) if !has_lapsed => {",
            "Some(since) if !has_lapsed && since > Moment::default() + lease.timeout() * 9 => {",
        )],
    ),
    held(
        "one lapse counts for all holds",
        &[edit(
            LAPSES,
            "None if has_lapsed => {",
            "None if has_lapsed => {\n                let now = self.first().map_or(now, |(since, _)| since);",
        )],
    ),
    held(
        "beats too far apart",
        &[edit(KEEPER, "let beat = self.lease.beat(now);", "let beat = self.lease.timeout() / 6;")],
    ),
    held(
        "beats without a pause while one is on its way",
        &[edit(KEEPER, "due.max(self.earliest).max(self.next_to_others(beat))", "due.max(self.earliest)")],
    ),
    held(
        "a beat waits for the answer to the last one",
        &[edit(KEEPER, "self.under_way.len() < BEATS_AT_MOST", "self.under_way.is_empty()")],
    ),
    held(
        "no pause after a beat in vain",
        &[edit(KEEPER, "self.earliest = now + self.lease.heartbeat() / 4;", "self.earliest = now;")],
    ),
    held(
        "a missing node ends no hold",
        &[edit(KEEPER, "self.lose(hold, LossReason::NodeDeleted);", "let _ = hold;")],
    ),
    held(
        "a check from before the lapse restores",
        &[edit(KEEPER, "term: self.lease.term(now),", "term: None,")],
    ),
    held(
        "a check restores nothing",
        &[edit(KEEPER, "record.share.checked(&self.lease, proof.term, now);", "")],
    ),
    held(
        "any write restores a hold",
        &[edit(
            KEEPER,
            "|record| record.share.valid_for(&self.lease, now)",
            "|_| Share::new(&self.lease).valid_for(&self.lease, now)",
        )],
    ),
    watched("a check names all", &[edit(KEEPER, "self.watching.named_at_most.max(1)", "usize::MAX")]),
    watched(
        "what is watched needs no check",
        &[edit(KEEPER, "(self.named.len() < self.holds.len()).then(|| beaten + beat)", "None")],
    ),
    watched(
        "a watch counts for a check that was sent before it",
        &[edit(KEEPER, "number <= proof.watches", "number <= proof.watches + 1")],
    ),
    watched(
        "a silent watch proves nothing",
        &[edit(KEEPER, "number <= proof.watches", "number == u64::MAX && number <= proof.watches")],
    ),
    watched(
        "a watch that tells of a deletion is not heard",
        &[edit(WATCHING, "self.lose(hold, LossReason::NodeDeleted);", "")],
    ),
    watched(
        "a watch outlives its connection",
        &[edit(WATCHING, "} else if is_watched() {", "} else if is_watched() && false {")],
    ),
    watched(
        "a node that is gone before it is watched ends no hold",
        &[edit(
            WATCHING,
            "Seen::Gone => self.lose(*hold, LossReason::NodeDeleted),",
            "Seen::Gone => record.proving = Proving::Watched(self.watching.left),",
        )],
    ),
    watched(
        "a watch whose request has failed counts",
        &[edit(
            WATCHING,
            "                    self.name(*hold);\n",
            "                    record.proving = Proving::Watched(self.watching.left);\n",
        )],
    ),
    watched(
        "nothing is watched after the first flight",
        &[edit(WATCHING, "self.watching.is_asking = false;", "")],
    ),
];
