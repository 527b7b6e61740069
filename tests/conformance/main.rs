//! Random conversations with two servers, which must agree in everything: `cargo test --test conformance`.
//!
//! Two real servers agree, which shows that the comparison is sound. Errors that are planted in the answers of one of
//! them must be found, which shows that it is sharp.
//!
//! * [`generate`], [`scripts`]: conversations, each from a seed, and some that are written by hand
//! * [`old`]: the same conversations for a server of 3.4
//! * [`step`], [`request`]: their parts, down to the wire
//! * [`side`], [`client`]: a conversation with one server
//! * [`answer`], [`normalise`], [`words`]: its answers, as text without the parts in which servers may differ
//! * [`compare`], [`shrink`], [`plant`]: the differences of two servers, in few words
//! * [`coverage`], [`servers`]: the cases that were tried, and the servers
//!
//! Options, after `--`: `--against real|embedded`, `--seed N` (that one alone), `--show` (prints the conversation), `--extended` (nodes
//! with a time to live), `--old` (servers of 3.4). With `ZKLOCK_LONG` there are more conversations, with other seeds each time.

mod answer;
mod client;
mod compare;
mod coverage;
mod generate;
mod normalise;
mod old;
mod plant;
mod request;
mod scripts;
mod servers;
mod shrink;
mod side;
mod step;
mod words;

use std::env;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use compare::{Outcome, Pair};
use coverage::Coverage;
use plant::Plant;
use step::Step;

const STEPS: usize = 60;
const COUNT: u64 = 400;
const LONG: u64 = 5000;

#[derive(Default)]
struct Options {
    against: Option<String>,
    seed: Option<u64>,
    shows: bool,
    is_extended: bool,
    is_old: bool,
}

impl Options {
    /// `None` if a word is no option, or one without its value.
    fn read() -> Option<Self> {
        let (mut options, mut words) = (Self::default(), env::args().skip(1));
        while let Some(word) = words.next() {
            match word.as_str() {
                "--against" => options.against = Some(words.next()?),
                "--seed" => options.seed = Some(words.next()?.parse().ok()?),
                "--show" => options.shows = true,
                "--extended" => options.is_extended = true,
                "--old" => options.is_old = true,
                _ => return None,
            }
        }
        Some(options)
    }
}

fn main() -> ExitCode {
    let begun = Instant::now();
    let Some(options) = Options::read() else {
        eprintln!("no option, or one without its value: {:?}", env::args().skip(1).collect::<Vec<_>>());
        return ExitCode::from(2);
    };
    let against = options.against.as_deref().unwrap_or("embedded");
    let (real, other) = servers::pair(against, options.is_extended, options.is_old);
    let pair =
        Pair { real: real.address(), other: other.address(), plant: Plant::Nothing, is_old: options.is_old };
    println!("real: {}, other: {against}, {}", pair.real, pair.other);
    let is_sound = agree(&pair, &options) && (options.seed.is_some() || pair.is_old || catches_all(&pair));
    println!("{:.1} s", begun.elapsed().as_secs_f64());
    if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether the two servers agree in all conversations, and the conversations covered everything.
fn agree(pair: &Pair, options: &Options) -> bool {
    let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs() << 20);
    let is_long = env::var_os("ZKLOCK_LONG").is_some();
    let (first, count) = match options.seed {
        Some(seed) => (seed, 1),
        None if is_long => (fresh(), LONG),
        None => (1, COUNT),
    };
    println!("{count} conversations of {STEPS} steps, seeds from {first}");
    let mut coverage = Coverage::default();
    let scripts = scripts::all().into_iter().filter(|_| options.seed.is_none());
    let scripts = scripts.map(|(name, slots, steps)| (name.to_owned(), None, slots, steps));
    let generated = (first..first + count).map(|seed| {
        let (slots, steps) = generate::conversation(seed, STEPS);
        (format!("--seed {seed}"), Some(seed), slots, steps)
    });
    for (name, seed, slots, steps) in scripts.chain(generated) {
        let steps = pair.in_its_words(seed, steps);
        let outcome = pair.converse_surely(slots, &steps);
        if seed.is_some() {
            coverage.note(&outcome.real);
        }
        if outcome.difference.is_some() {
            report(pair, &name, slots, &steps, &outcome);
            return false;
        }
        if options.shows {
            outcome.print(&steps);
        }
    }
    // Usual conversations must cover everything.
    let is_whole = options.seed.is_none() && !options.is_extended && !pair.is_old;
    let missing = if is_whole { coverage.missing() } else { Vec::new() };
    for gap in &missing {
        println!("never seen: {gap}");
    }
    missing.is_empty()
}

/// Prints the difference of the servers, in full and in short.
fn report(pair: &Pair, name: &str, slots: usize, conversation: &[Step], outcome: &Outcome) {
    println!("the servers differ, {name}:");
    outcome.print(conversation);
    let again = pair.converse(slots, conversation);
    if again.difference.is_none() {
        println!("(not so when held again)");
        return;
    }
    let (short, outcome) = shrink::shrink(pair, slots, conversation, again);
    println!("in short ({name}):");
    outcome.print(&short);
}

fn catches_all(pair: &Pair) -> bool {
    Plant::ALL.iter().all(|(name, plant)| planted(&Pair { plant: *plant, ..*pair }, name))
}

/// Whether a planted error is found, and in few steps.
fn planted(pair: &Pair, name: &str) -> bool {
    for seed in 1..COUNT {
        let (slots, conversation) = generate::conversation(seed, STEPS);
        let conversation = pair.in_its_words(Some(seed), conversation);
        let outcome = pair.converse(slots, &conversation);
        if outcome.difference.is_none() {
            continue;
        }
        let (short, outcome) = shrink::shrink(pair, slots, &conversation, outcome);
        println!(
            "planted {name}, found with seed {seed}, {} steps made {}:",
            conversation.len(),
            short.len()
        );
        outcome.print(&short);
        return short.len() <= 10;
    }
    println!("planted {name}: not found");
    false
}
