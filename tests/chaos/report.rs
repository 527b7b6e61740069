//! The results of a run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::field::Field;
use crate::handover::{Faults, OUTLIVED, Struck, Whom};
use crate::judge::{Violation, What};
use crate::workers::is_ours;

/// How many troubles are printed.
const SAID: usize = 20;

pub(crate) struct Report {
    seed: u64,
    started: Instant,
    troubles: Vec<String>,
}

/// The machine's monotonic clock, which all processes share, in nanoseconds.
pub(crate) fn now() -> u64 {
    read(ClockId::Monotonic)
}

/// What that clock is behind the time since 1970.
pub(crate) fn since_1970() -> u64 {
    // This thread may be stopped between the two clocks, and then they seem to be closer.
    let apart =
        (0..100).map(|_| (read(ClockId::Realtime), now())).map(|(date, now)| date.saturating_sub(now));
    apart.max().unwrap_or_default()
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let number = |part: i64| u64::try_from(part).unwrap_or_default();
    number(time.tv_sec) * 1_000_000_000 + number(time.tv_nsec)
}

impl Report {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, started: Instant::now(), troubles: Vec::new() }
    }

    /// Notes that faults begin now.
    pub(crate) fn begun(&mut self) {
        self.started = Instant::now();
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Reports clients of zklock that got no lock after the faults were over. Peers do not matter here.
    pub(crate) fn starved(&mut self, field: &Field, quiet: u64, patience: Duration) {
        for worker in field.workers.running.iter().filter(|worker| is_ours(&worker.name)) {
            if field.register.book.latest.get(&worker.name).is_none_or(|at| *at <= quiet) {
                self.troubles
                    .push(format!("{} had no lock within {patience:?} after the last fault", worker.name));
            }
        }
    }

    /// Reports nodes of workers that have ended.
    pub(crate) fn left_behind(&mut self, field: &Field, within: Duration) {
        let mut left = Ok(Vec::new());
        let is_clear = || {
            left = field.servers.contenders();
            left.as_ref().is_ok_and(Vec::is_empty)
        };
        if !ground::until(within, is_clear) {
            self.troubles.push(format!("nodes are left behind: {left:?}"));
        }
    }

    /// Prints the report. Returns whether it has nothing against zklock.
    pub(crate) fn print(&self, field: &Field, judges_waits: bool) -> bool {
        let book = &field.register.book;
        let mut grants = BTreeMap::<&str, u64>::new();
        for (worker, count) in &book.judge.confirmed {
            *grants.entry(program(worker)).or_default() += count;
        }
        let total: u64 = grants.values().sum();
        println!("seed {}: {total} grants in {:.0} s: {grants:?}", self.seed, self.seconds());
        let mut faults = BTreeMap::<&str, u64>::new();
        field.struck.iter().for_each(|struck| *faults.entry(struck.name).or_default() += 1);
        println!("{} faults: {faults:?}", field.struck.len());
        book.jobs.summary().for_each(|job| println!("{job}"));
        println!("lost: {:?}", sorted(&book.lost));
        println!("not got: {:?}", sorted(&book.gave));
        let faults = Faults::new(field.struck.iter().chain(&field.stalls).cloned());
        print_hand_overs(book.hand_overs.by_fault(&faults));
        let mut unexplained = book.hand_overs.unexplained(&faults);
        if !judges_waits {
            unexplained.drain(..).for_each(|text| println!("not judged without --waits: {text}"));
        }
        let (mut ours, mut with_peers, mut of_peers) = (Vec::new(), 0, 0);
        for violation in &book.judge.violations {
            match violation.workers.iter().filter(|worker| is_ours(worker)).count() {
                0 => of_peers += 1,
                count if count == violation.workers.len() => ours.push(&violation.text),
                _ => with_peers += 1,
            }
        }
        println!(
            "overlaps: {} of zklock alone, {with_peers} of zklock and a peer, {of_peers} of peers alone",
            ours.len()
        );
        print_violations(&field.struck, &book.judge.violations);
        println!(
            "one whose node was deleted claimed what another had for {} ms at most",
            millis(book.judge.told_after)
        );
        let unread = book.unread.iter().map(|line| format!("cannot be read: {line}"));
        let troubles: Vec<_> = self
            .troubles
            .iter()
            .chain(&field.troubles)
            .chain(&unexplained)
            .chain(ours)
            .cloned()
            .chain(book.jobs.violations(u64::MAX))
            .chain(unread)
            .collect();
        troubles.iter().take(SAID).for_each(|trouble| println!("TROUBLE: {trouble}"));
        if troubles.len() > SAID {
            println!("and {} more", troubles.len() - SAID);
        }
        troubles.is_empty()
    }
}

/// The name of a worker's program.
fn program(worker: &str) -> &str {
    worker.rsplit_once('-').map_or("?", |split| split.0)
}

/// Prints how long it took until a waiter had a free lock, without faults and with each.
fn print_hand_overs(times: BTreeMap<&str, Vec<u64>>) {
    println!("hand-overs to one that waited, ms:");
    for (fault, mut took) in times {
        took.sort_unstable();
        let at = |part: usize| millis(took[(took.len() - 1) * part / 100]);
        println!("  {fault}: {} of them, p50 {}, p99 {}, max {}", took.len(), at(50), at(99), at(100));
    }
}

/// Prints which workers claimed a lock that another had, or whose token was not larger, and during which fault.
fn print_violations(struck: &[Struck], violations: &[Violation]) {
    let mut kinds = BTreeMap::<(&str, &str, &str), (u64, u64)>::new();
    for violation in violations {
        let (what, longest) = match violation.what {
            What::Overlap => ("claimed on", violation.until.saturating_sub(violation.from)),
            What::Order => ("had no greater token", 0),
        };
        let is_near = |struck: &&Struck| {
            let is_its = match &struck.whom {
                Whom::Clients(workers) => workers.contains(&violation.stale),
                Whom::Servers | Whom::Machine => true,
            };
            struck.begin < violation.until && violation.from < struck.end + OUTLIVED && is_its
        };
        // A fault of the worker itself comes first, then the latest.
        let fault = struck
            .iter()
            .filter(is_near)
            .max_by_key(|struck| (matches!(struck.whom, Whom::Clients(_)), struck.begin));
        let fault =
            if violation.is_by_operator { "an operator" } else { fault.map_or("none", |struck| struck.name) };
        let (times, most) = kinds.entry((program(&violation.stale), what, fault)).or_default();
        *times += 1;
        *most = longest.max(*most);
    }
    for ((program, what, fault), (times, longest)) in kinds {
        println!("  {program} {what}: {times} times in {fault}, for {} ms at most", millis(longest));
    }
}

fn millis(nanoseconds: u64) -> String {
    let micros = nanoseconds / 1_000;
    format!("{}.{}", micros / 1_000, micros % 1_000 / 100)
}

fn sorted<T: Ord + Clone>(counts: &std::collections::HashMap<T, u64>) -> BTreeMap<T, u64> {
    counts.iter().map(|(key, count)| (key.clone(), *count)).collect()
}
