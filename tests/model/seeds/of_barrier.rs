//! Bugs that show with a double barrier.

use super::{BARRIER, MEMBER, Seed, edit, seed};

pub(super) const SEEDS: &[Seed] = &[
    seed("barrier: any ready lets in", &[edit(MEMBER, "if czxid > self.czxid {", "if czxid.is_some() {")]),
    seed(
        "barrier: opens without the others",
        &[edit(
            MEMBER,
            "guards.iter().map(|guard| self.path_of(guard)).collect();",
            "guards.iter().take(1).map(|guard| self.path_of(guard)).collect();",
        )],
    ),
    seed(
        "barrier: one too few opens",
        &[edit(BARRIER, "others().count() + 1 >= members", "others().count() + 2 >= members")],
    ),
    seed(
        "barrier: a watch that fires meanwhile is missed",
        &[edit(MEMBER, "if self.aim == Aim::Nothing || self.woken {", "if self.aim == Aim::Nothing {")],
    ),
    seed(
        "barrier: waits for a caller that is gone",
        &[edit(MEMBER, "if self.aim == Aim::Nothing || self.woken {", "if self.woken {")],
    ),
    seed(
        "barrier: one that came again taken for one within",
        &[edit(MEMBER, "self.others.correct(&seen(nodes));", "let _ = nodes;")],
    ),
    seed("barrier: a name used again", &[edit(MEMBER, "self.name_after(self.mark.next());", "")]),
    seed(
        "barrier: waits for the next round",
        &[edit(
            BARRIER,
            "filter(|name| self.stayed.contains(*name)).filter(entered)",
            "filter(|name| !name.is_empty() || entered(name))",
        )],
    ),
    seed(
        "barrier: leaves before the others",
        &[edit(BARRIER, "members.filter(|name| self.stayed", "members.skip(1).filter(|name| self.stayed")],
    ),
    seed(
        "barrier: ready left behind",
        &[edit(MEMBER, "if barrier::is_last(&seen(&nodes), &self.name) =>", "if nodes.is_empty() =>")],
    ),
    seed(
        "barrier: no cleaning of a creation in doubt",
        &[edit(MEMBER, "if self.may_be_there {", "if self.created {")],
    ),
    seed(
        "barrier: a lost deletion taken for an operator's",
        &[edit(MEMBER, "self.on_deleted(self.delete_in_doubt)", "self.on_deleted(false)")],
    ),
    seed(
        "barrier: waits for ever in a new session",
        &[edit(
            MEMBER,
            "Aim::Leave { .. } => State::Ready(Step::Look),",
            "Aim::Leave { .. } => State::Ready(Step::Depart),",
        )],
    ),
];
