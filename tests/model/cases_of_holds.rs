//! The cases of holds under their keeper.

use super::suite::{Case, NAMED, RARE, WATCHED, kept, kept_in_walks};
use super::trouble::Trouble;

const NONE: Trouble = Trouble::NONE;

pub(crate) fn short() -> Vec<Case> {
    let two = Trouble { steps: 2, grants: 1, ..NONE };
    vec![
        kept(NAMED, "calm", 60, NONE),
        kept(NAMED, "late answers", 120, Trouble { late: 4, ..NONE }),
        kept(NAMED, "deletion", 40, Trouble { steps: 2, deletions: 1, writes: 1, refusals: 1, ..NONE }),
        kept(NAMED, "refusals", 20, Trouble { steps: 4, refusals: 4, ..NONE }),
        kept(NAMED, "deletion, two holds", 24, Trouble { deletions: 1, stalls: 1, ..two }),
        kept(NAMED, "sleep", 34, Trouble { steps: 3, nights: 1, writes: 1, expiries: 1, ..NONE }),
        kept(NAMED, "sleep, two holds", 34, Trouble { nights: 1, expiries: 1, ..two }),
        kept(NAMED, "sleep twice", 54, Trouble { steps: 2, nights: 2, ..NONE }),
        kept(NAMED, "stall", 28, Trouble { steps: 2, stalls: 1, expiries: 1, ..NONE }),
        kept(NAMED, "break", 28, Trouble { steps: 2, breaks: 1, writes: 1, expiries: 1, ..NONE }),
        kept_in_walks(NAMED, "trouble", 2_000),
        kept(RARE, "calm", 120, NONE),
        kept(RARE, "late answers", 120, Trouble { late: 3, ..NONE }),
        kept(RARE, "deletion", 40, Trouble { steps: 2, deletions: 1, refusals: 1, ..NONE }),
        kept(RARE, "deletion, two holds", 34, Trouble { deletions: 1, stalls: 1, ..two }),
        kept(RARE, "sleep", 54, Trouble { steps: 3, nights: 1, writes: 1, expiries: 1, ..NONE }),
        kept(RARE, "stall", 48, Trouble { steps: 2, stalls: 1, expiries: 1, ..NONE }),
        kept(RARE, "break", 48, Trouble { steps: 2, breaks: 1, expiries: 1, ..NONE }),
        kept_in_walks(RARE, "trouble", 2_000),
        kept(WATCHED, "calm", 60, NONE),
        kept(WATCHED, "deletion", 20, Trouble { steps: 2, deletions: 1, lags: 1, ..NONE }),
        kept(
            WATCHED,
            "deletion, refusal",
            16,
            Trouble { steps: 3, deletions: 1, refusals: 1, lags: 1, ..NONE },
        ),
        kept(WATCHED, "break", 20, Trouble { steps: 2, breaks: 1, deletions: 1, expiries: 1, ..NONE }),
        kept(WATCHED, "sleep", 40, Trouble { steps: 2, nights: 1, deletions: 1, expiries: 1, ..NONE }),
        kept(WATCHED, "stall, grant", 24, Trouble { stalls: 1, ..two }),
        kept_in_walks(WATCHED, "trouble", 2_000),
    ]
}

pub(crate) fn long() -> Vec<Case> {
    let all = Trouble {
        steps: 3,
        stalls: 2,
        breaks: 1,
        refusals: 2,
        nights: 1,
        writes: 2,
        deletions: 1,
        expiries: 1,
        grants: 1,
        lags: 1,
        ..Trouble::NONE
    };
    vec![
        kept(NAMED, "trouble", 30, all),
        kept_in_walks(NAMED, "much trouble", 100_000),
        kept(RARE, "trouble", 40, all),
        kept_in_walks(RARE, "much trouble", 100_000),
        kept(WATCHED, "trouble", 30, all),
        kept_in_walks(WATCHED, "much trouble", 100_000),
    ]
}
