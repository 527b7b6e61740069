//! Bugs in what holds rest on.

use super::{KEEPER, Seed, edit, seed};

pub(super) const SEEDS: &[Seed] = &[
    seed(
        "holds",
        "a holder is told of a lapse too late",
        &[edit(KEEPER, "now >= lapsed + heartbeat", "now >= lapsed + heartbeat * 2")],
    ),
    seed(
        "holds",
        "a holder is told of a lapse at once",
        &[edit(KEEPER, "now >= lapsed + heartbeat", "now >= lapsed")],
    ),
    seed(
        "holds",
        "a lapse is not forgotten",
        &[edit(
            KEEPER,
            "has_lapsed.then(|| record.lapsed.unwrap_or(now))",
            "record.lapsed.or(has_lapsed.then_some(now))",
        )],
    ),
    seed(
        "holds",
        "one lapse counts for all holds",
        &[
            edit(
                KEEPER,
                "let (lease, heartbeat) =",
                "let first = self.holds.values().filter_map(|record| record.lapsed).min();\n        let (lease, heartbeat) =",
            ),
            edit(KEEPER, "record.lapsed.unwrap_or(now)", "first.unwrap_or(now)"),
        ],
    ),
    seed(
        "holds",
        "beats too far apart",
        &[edit(KEEPER, "oldest + self.lease.beat(now)", "oldest + self.lease.timeout() / 6")],
    ),
    seed(
        "holds",
        "a beat while one is on its way",
        &[edit(
            KEEPER,
            "if self.is_beating || !is_connected || now < due {",
            "if !is_connected || now < due {",
        )],
    ),
    seed(
        "holds",
        "no pause after a beat in vain",
        &[edit(KEEPER, "self.earliest = now + self.lease.heartbeat() / 4;", "self.earliest = now;")],
    ),
    seed(
        "holds",
        "a missing node ends no hold",
        &[edit(KEEPER, "self.lose(hold, LossReason::NodeDeleted);", "let _ = hold;")],
    ),
    seed(
        "holds",
        "a check from before the lapse restores",
        &[edit(KEEPER, "was_valid: !self.valid_for(hold, now).is_zero(),", "was_valid: false,")],
    ),
    seed(
        "holds",
        "a check restores nothing",
        &[edit(KEEPER, "share.checked(&self.lease, *was_valid);", "share.checked(&self.lease, true);")],
    ),
    seed(
        "holds",
        "any write restores a hold",
        &[edit(
            KEEPER,
            "record.share.valid_for(&self.lease, now),",
            "Share::new(&self.lease).valid_for(&self.lease, now),",
        )],
    ),
];
