//! Runs the library as it ships against simulated servers, in simulated time: see README.md.

mod actors;
mod claims;
mod faults;
mod network;
mod plan;
mod player;
mod replica;
mod replicas;
mod rounds;
mod run;
#[allow(dead_code, unreachable_pub, reason = "the rest is for zklock-testkit")]
#[path = "../../zklock-testkit/src/state/mod.rs"]
mod state;
#[allow(dead_code, unreachable_pub, reason = "the rest is for zklock-testkit")]
#[path = "../../zklock-testkit/src/wire/mod.rs"]
mod wire;
mod writes;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plan::Plan;

const HELP: &str = "simulation [--seconds N | --seeds N] [--from SEED] [--bad N]     tries one seed after the other, until so many are bad
simulation --one SEED [--without N,N...]               plays one, perhaps without some of what goes wrong
simulation --plan SEED                                 says what goes wrong";

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().ok();
    match words[..] {
        ["--one", seed, ref rest @ ..] => {
            let without = match rest {
                ["--without", numbers] => {
                    numbers.split(',').filter_map(|number| number.parse().ok()).collect()
                }
                _ => Vec::new(),
            };
            number(seed).map_or_else(help, |seed| play(seed, &without))
        }
        ["--plan", seed] => number(seed).map_or_else(help, |seed| {
            println!("{:#?}", Plan::new(seed, &[]));
            ExitCode::SUCCESS
        }),
        ref words => Search::new(words).map_or_else(help, |search| search.run()),
    }
}

fn help() -> ExitCode {
    eprintln!("{HELP}");
    ExitCode::from(2)
}

/// How many troubles of a seed are printed.
const SAID: usize = 10;

/// Plays one seed in this process, which must have the kernel of a simulation.
fn play(seed: u64, without: &[usize]) -> ExitCode {
    let run::Outcome { grants, lost, requests, simulated, trace, troubles } = run::run(seed, without);
    troubles.iter().take(SAID).for_each(|trouble| println!("VIOLATION: {trouble}"));
    // With random addresses, anything that is hashed by address comes in another order in each run.
    let trace = if std::env::var_os("SIMULATION_ADDRESSES").is_some() { 0 } else { trace };
    println!(
        "seed {seed}: grants {grants} lost {lost} requests {requests} ms {} trace {trace:016x}",
        simulated.as_millis()
    );
    if troubles.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A search for a seed with which something goes wrong.
struct Search {
    next: AtomicU64,
    last: u64,
    enough: u64,
    end: Option<Instant>,
    is_over: AtomicBool,
    sums: Mutex<BTreeMap<&'static str, u64>>,
    bad: Mutex<Vec<Bad>>,
}

struct Bad {
    seed: u64,
    is_late: bool,
    said: String,
}

/// The figures that are added up.
const SUMS: [&str; 4] = ["grants", "lost", "requests", "ms"];
/// Every how many seeds one is played a second time: the result must be the same.
const TWICE: u64 = 50;
/// The search ends after this number of bad seeds, unless another number is given.
const ENOUGH: u64 = 5;

impl Search {
    fn new(words: &[&str]) -> Option<Self> {
        let (mut from, mut count, mut seconds, mut enough) = (1, None, None, ENOUGH);
        for pair in words.chunks(2) {
            let [word, value] = pair else { return None };
            let value = value.parse::<u64>().ok()?;
            match *word {
                "--from" => from = value,
                "--seeds" => count = Some(value),
                "--bad" => enough = value,
                "--seconds" => seconds = Some(value),
                _ => return None,
            }
        }
        let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let count = count.unwrap_or(if end.is_some() { u64::MAX / 2 } else { 100 });
        Some(Self {
            next: AtomicU64::new(from),
            last: from + count,
            enough,
            end,
            is_over: AtomicBool::new(false),
            sums: Mutex::default(),
            bad: Mutex::default(),
        })
    }

    fn run(&self) -> ExitCode {
        let (begun, from) = (Instant::now(), self.next.load(Ordering::Relaxed));
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(|| self.work()))));
        let (sums, bad) =
            (self.sums.lock().expect("no worker panics"), self.bad.lock().expect("no worker panics"));
        let sum = |word| sums.get(word).copied().unwrap_or(0);
        let (seeds, seconds) = (sum("seeds"), begun.elapsed().as_secs_f64());
        println!(
            "{seeds} seeds from {from} on in {seconds:.0} s: {} grants, {} holds lost, {} requests, {} h simulated",
            sum("grants"),
            sum("lost"),
            sum("requests"),
            sum("ms") / 3_600_000
        );
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let (rate, speed) = (seeds as f64 / seconds * 3600.0, sum("ms") as f64 / 1000.0 / seconds);
        println!(
            "{rate:.0} seeds an hour; {speed:.0} s simulated in a second; {} played twice and the same",
            sum("twice")
        );
        for Bad { seed, is_late, said } in bad.iter() {
            println!("BAD seed {seed}: {said}");
            // A seed that does not end would take as long again in every replay.
            if !is_late {
                println!("  {}", smallest(*seed));
            }
        }
        if bad.is_empty() && seeds > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn work(&self) {
        while !self.is_over.load(Ordering::Relaxed) && self.end.is_none_or(|end| Instant::now() < end) {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.last {
                return;
            }
            let played = player::play(seed, &[]);
            let again = (seed % TWICE == 0).then(|| player::play(seed, &[]));
            let is_same = again.as_ref().is_none_or(|again| again.trace() == played.trace());
            let mut sums = self.sums.lock().expect("no worker panics");
            for word in SUMS {
                *sums.entry(word).or_default() += played.number(word);
            }
            *sums.entry("seeds").or_default() += 1;
            *sums.entry("twice").or_default() += u64::from(again.is_some());
            drop(sums);
            if !played.is_good || !is_same {
                let what = if is_same {
                    played.said
                } else {
                    "VIOLATION: it is not the same when it is played again".to_owned()
                };
                let mut bad = self.bad.lock().expect("no worker panics");
                let said = what.lines().take(4).collect::<Vec<_>>().join("\n  ");
                bad.push(Bad { seed, is_late: played.is_late, said });
                self.is_over.store(bad.len() as u64 >= self.enough, Ordering::Relaxed);
            }
        }
    }
}

/// Leaves out of a plan the faults that the failure does not need.
fn smallest(seed: u64) -> String {
    let count = Plan::new(seed, &[]).strokes.len();
    let mut without = Vec::new();
    for stroke in (0..count).rev() {
        let tried: Vec<_> = without.iter().copied().chain([stroke]).collect();
        if !player::play(seed, &tried).is_good {
            without = tried;
        }
    }
    let kept = Plan::new(seed, &without).strokes;
    let kinds: Vec<_> =
        kept.iter().map(|stroke| format!("{} at {:?}", stroke.fault.name, stroke.at)).collect();
    let numbers: Vec<_> = without.iter().map(ToString::to_string).collect();
    format!("tests/simulation/run --one {seed} --without {}: {}", numbers.join(","), kinds.join(", "))
}
