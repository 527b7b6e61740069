//! The model check of the machine as it ships: `cargo run --profile model -p zklock-model`, `-- --long` for more.
//!
//! Scenario tests against real servers only meet the orders of events that happen to come up. This
//! goes through all orders in small worlds, with lost replies, lagging followers, expired sessions,
//! operators and callers that give up, and through many in larger ones. To show that it would find
//! a bug, it also checks machines with a planted bug, each of which it has to find.
//!
//! * [`explorer`]: goes through all states of a world, or takes random walks
//! * [`world`]: the directories, the clients around the contender, and the events
//! * [`action`], [`events`], [`ensemble`], [`server`], [`watch`], [`line`], [`client`], [`setup`]: its parts
//! * [`properties`]: its properties
//! * [`lingering`]: nodes that are passed on within a process, and their properties
//! * [`tries`]: tries that are answered from memory
//! * [`crowd`], [`process`]: processes with several callers each, and their properties
//! * [`pulse`]: one session's lease, compared with the leader's state
//! * [`keep`]: the holds of a session under their keeper, compared with the servers' state
//! * [`suite`], [`cases_of_mutex`], [`cases_of_kinds`], [`cases_of_turns`], [`cases_of_tries`],
//!   [`cases_of_holds`], [`cases_of_callers`]: the cases that are explored
//! * [`subject`], [`keeper`]: the shipped machines, in the words of the model
//! * [`seeds`], [`switched`], [`hunt`]: the bugs, a machine in which each can be chosen, and the program with it

mod action;
mod cases_of_callers;
mod cases_of_holds;
mod cases_of_kinds;
mod cases_of_mutex;
mod cases_of_tries;
mod cases_of_turns;
mod client;
mod crowd;
mod ensemble;
mod events;
mod explorer;
mod follower;
mod hunt;
mod keep;
mod keeper;
mod line;
mod lingering;
mod process;
mod properties;
mod pulse;
mod seeds;
mod server;
mod setup;
mod subject;
mod suite;
mod switched;
mod tries;
mod trouble;
mod watch;
mod world;

use explorer::{Failure, Report};
use hunt::Catch;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{env, thread};
use suite::Case;
use zklock_machine as machine;

fn main() -> ExitCode {
    let begun = Instant::now();
    // A program that lists tests expects one line for each test, and there is one test.
    if env::args().any(|argument| argument == "--list") {
        println!("model: test");
        return ExitCode::SUCCESS;
    }
    if env::var_os(hunt::CHOICE).is_some() {
        let [how, kind] = [1, 2].map(|at| env::args().nth(at).unwrap_or_default());
        hunt::look(&how, &kind);
        return ExitCode::SUCCESS;
    }
    let hunter = thread::spawn(|| if chosen_case().is_some() { Ok(Vec::new()) } else { hunt::hunt() });
    let mut failed = 0;
    let mut passed = 0;
    let mut count = |holds: bool| if holds { passed += 1 } else { failed += 1 };
    println!(
        "{:<42} {:>9} {:>11} {:>6} {:>8}",
        "the machine that ships", "states", "transitions", "depth", "seconds"
    );
    let explored =
        on_all_cores(&cases(), |_, (case, seed)| show(case, &case.run(suite::STATES_AT_MOST, *seed)));
    explored.into_iter().for_each(&mut count);
    println!(
        "\n{:<42} {:<38} {:<20} {:>5} {:>7} {:>8}",
        "planted bug", "found in", "property", "steps", "states", "seconds"
    );
    match hunter.join() {
        Ok(Ok(catches)) => catches.iter().for_each(|catch| count(show_catch(catch))),
        Ok(Err(error)) => {
            println!("the planted bugs cannot be hunted: {error}");
            count(false);
        }
        Err(_) => count(false),
    }
    println!("\n{passed} passed, {failed} failed, {:.1} s", begun.elapsed().as_secs_f64());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Does this for all on all cores. The results are in their order.
fn on_all_cores<T: Sync, R: Send>(all: &[T], work: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(at) else { return };
                    let result = work(at, one);
                    done.lock().expect("no work panics").insert(at, result);
                }
            });
        }
    });
    done.into_inner().expect("no work panics").into_values().collect()
}

/// The cases, with the first seed of their random walks. `ZKLOCK_SEED` sets it, to repeat a walk. There are no cases if
/// `ZKLOCK_BUG` chooses planted bugs.
fn cases() -> Vec<(Case, u64)> {
    let is_long = env::args().any(|argument| argument == "--long") || env::var_os("ZKLOCK_LONG").is_some();
    let chosen = env::var("ZKLOCK_SEED").ok().and_then(|seed| seed.parse().ok());
    // Each long run takes other walks; short runs always take the same ones.
    let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs() << 20);
    let seed = chosen.unwrap_or_else(|| if is_long { fresh() } else { 1 });
    let mut cases = suite::short();
    if is_long {
        cases.extend(suite::long());
    }
    let chosen = chosen_case();
    let is_chosen = |case: &Case| chosen.as_ref().is_none_or(|text| case.name.contains(text.as_str()));
    if env::var_os("ZKLOCK_BUG").is_some() {
        return Vec::new();
    }
    let (kept, others): (Vec<_>, Vec<_>) = cases.into_iter().partition(is_chosen);
    if kept.is_empty() {
        let names: Vec<_> = others.iter().map(|case| case.name.as_str()).collect();
        eprintln!("no case has {} in its name; there are\n{}", chosen.unwrap_or_default(), names.join("\n"));
        std::process::exit(2);
    }
    seeds::share(kept.into_iter()).map(|case| (case, seed)).collect()
}

/// `ZKLOCK_CASE` chooses the cases whose name contains it, and leaves the planted bugs out.
fn chosen_case() -> Option<String> {
    env::var("ZKLOCK_CASE").ok()
}

fn show(case: &Case, report: &Report) -> bool {
    let seconds = report.elapsed.as_secs_f64();
    let Report { states, transitions, depth, .. } = report;
    let mut said = format!("{:<42} {states:>9} {transitions:>11} {depth:>6} {seconds:>8.2}", case.name);
    match &report.failure {
        Some(failure) => said += &text(failure),
        None if report.cut => said += &format!("\n    FAILED: more states than {}", suite::STATES_AT_MOST),
        None => {}
    }
    println!("{said}");
    report.failure.is_none() && !report.cut
}

fn text(failure: &Failure) -> String {
    let Failure { violation, trace, seed } = failure;
    let mut text = format!("\n    FAILED: {}: {}", violation.property, violation.detail);
    if let Some(seed) = seed {
        text += &format!("\n    in the walk with ZKLOCK_SEED={seed}");
    }
    for (number, action) in trace.iter().enumerate() {
        text += &format!("\n    {:>4}  {action}", number + 1);
    }
    text
}

fn show_catch(catch: &Catch) -> bool {
    match catch.found.as_deref() {
        Some([case, property, steps, states, seconds]) => {
            println!("{:<42} {case:<38} {property:<20} {steps:>5} {states:>7} {seconds:>8}", catch.seed);
            true
        }
        _ => {
            println!("{:<42} FAILED: not found", catch.seed);
            false
        }
    }
}
