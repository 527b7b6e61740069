//! The cases of holds under their keeper.

use super::suite::{Case, kept, kept_in_walks, rare, rare_in_walks, watched, watched_in_walks};
use super::trouble::Trouble;

const NONE: Trouble = Trouble::NONE;

pub(crate) fn short() -> Vec<Case> {
    let two = Trouble { steps: 2, grants: 1, ..NONE };
    vec![
        kept("calm", 60, NONE),
        kept("late answers", 120, Trouble { late: 4, ..NONE }),
        kept("deletion", 40, Trouble { steps: 2, deletions: 1, writes: 1, refusals: 1, ..NONE }),
        kept("refusals", 20, Trouble { steps: 4, refusals: 4, ..NONE }),
        kept("deletion, two holds", 24, Trouble { deletions: 1, stalls: 1, ..two }),
        kept("sleep", 34, Trouble { steps: 3, nights: 1, writes: 1, expiries: 1, ..NONE }),
        kept("sleep, two holds", 34, Trouble { nights: 1, expiries: 1, ..two }),
        kept("sleep twice", 54, Trouble { steps: 2, nights: 2, ..NONE }),
        kept("stall", 28, Trouble { steps: 2, stalls: 1, expiries: 1, ..NONE }),
        kept("break", 28, Trouble { steps: 2, breaks: 1, writes: 1, expiries: 1, ..NONE }),
        kept_in_walks("trouble", 2_000),
        rare("calm", 120, NONE),
        rare("late answers", 120, Trouble { late: 3, ..NONE }),
        rare("deletion", 40, Trouble { steps: 2, deletions: 1, refusals: 1, ..NONE }),
        rare("deletion, two holds", 34, Trouble { deletions: 1, stalls: 1, ..two }),
        rare("sleep", 54, Trouble { steps: 3, nights: 1, writes: 1, expiries: 1, ..NONE }),
        rare("stall", 48, Trouble { steps: 2, stalls: 1, expiries: 1, ..NONE }),
        rare("break", 48, Trouble { steps: 2, breaks: 1, expiries: 1, ..NONE }),
        rare_in_walks("trouble", 2_000),
        watched("calm", 60, NONE),
        watched("deletion", 20, Trouble { steps: 2, deletions: 1, lags: 1, ..NONE }),
        watched("deletion, refusal", 16, Trouble { steps: 3, deletions: 1, refusals: 1, lags: 1, ..NONE }),
        watched("break", 20, Trouble { steps: 2, breaks: 1, deletions: 1, expiries: 1, ..NONE }),
        watched("sleep", 40, Trouble { steps: 2, nights: 1, deletions: 1, expiries: 1, ..NONE }),
        watched("stall, grant", 24, Trouble { stalls: 1, ..two }),
        watched_in_walks("trouble", 2_000),
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
        kept("trouble", 30, all),
        kept_in_walks("much trouble", 100_000),
        rare("trouble", 40, all),
        rare_in_walks("much trouble", 100_000),
        watched("trouble", 30, all),
        watched_in_walks("much trouble", 100_000),
    ]
}
