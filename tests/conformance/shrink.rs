//! Shortens a conversation that shows a difference.

use std::time::{Duration, Instant};

use crate::compare::{Outcome, Pair};
use crate::request::Request;
use crate::step::Step;

const AT_MOST: Duration = Duration::from_secs(30);

/// Leaves out as much as possible while the servers still differ.
pub(crate) fn shrink(pair: &Pair, slots: usize, steps: &[Step], outcome: Outcome) -> (Vec<Step>, Outcome) {
    let end = Instant::now() + AT_MOST;
    let mut short = steps[..=outcome.difference.expect("a difference to keep")].to_vec();
    let mut last = outcome;
    let mut attempt = |short: &mut Vec<Step>, candidate: Vec<Step>| {
        if candidate.is_empty() || Instant::now() > end {
            return false;
        }
        let outcome = pair.converse(slots, &candidate);
        let Some(difference) = outcome.difference else { return false };
        *short = candidate[..=difference].to_vec();
        last = outcome;
        true
    };
    let mut index = 0;
    while index < short.len() {
        let without = [&short[..index], &short[index + 1..]].concat();
        let with = |step| [&short[..index], &[step], &short[index + 1..]].concat();
        let less: Vec<_> =
            std::iter::once(without).chain(parts(&short[index]).into_iter().map(with)).collect();
        if !less.into_iter().any(|candidate| attempt(&mut short, candidate)) {
            index += 1;
        }
    }
    (short, last)
}

/// The step without one of its parts, in all ways.
fn parts(step: &Step) -> Vec<Step> {
    let Step::Send { slot, requests } = step else { return Vec::new() };
    let mut all = Vec::new();
    for index in 0..requests.len() {
        if requests.len() > 1 {
            let mut fewer = requests.clone();
            fewer.remove(index);
            all.push(Step::Send { slot: *slot, requests: fewer });
        }
        let (inner, around): (_, fn(Vec<Request>) -> Request) = match &requests[index] {
            Request::Multi(inner) => (inner, Request::Multi),
            Request::MultiRead(inner) => (inner, Request::MultiRead),
            _ => continue,
        };
        for part in 0..inner.len() {
            let mut fewer = inner.clone();
            fewer.remove(part);
            let mut requests = requests.clone();
            requests[index] = around(fewer);
            all.push(Step::Send { slot: *slot, requests });
        }
    }
    all
}
