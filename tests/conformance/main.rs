//! Random conversations with two servers, which must agree in everything: `cargo test --test conformance`.
//!
//! Two real servers agree, which shows that the comparison is sound. Errors that are planted in the answers of one of
//! them must be found, which shows that it is sharp.
//!
//! * [`generate`], [`scripts`]: conversations, each from a seed, and some that are written by hand
//! * [`old`]: the same conversations for a server of 3.4
//! * [`step`], [`request`], [`codec`]: their parts, down to the wire
//! * [`side`], [`client`]: a conversation with one server
//! * [`answer`], [`normalise`], [`words`]: its answers, as text without the parts in which servers may differ
//! * [`compare`], [`shrink`], [`plant`]: the differences of two servers, in few words
//! * [`coverage`], [`servers`]: the cases that were tried, and the servers
//!
//! Options, after `--`: `--against real|embedded`, `--seed N` (that one alone), `--from N`, `--count N`, `--steps N`,
//! `--plant NAME`, `--show` (prints the conversation), `--extended` (nodes with a time to live), `--old` (servers of 3.4).
//! With `ZKLOCK_LONG` there are more conversations, with other seeds each time.

mod answer;
mod client;
mod codec;
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

/// The options, and whether a value follows.
const OPTIONS: [(&str, bool); 9] = [
    ("--against", true),
    ("--seed", true),
    ("--from", true),
    ("--count", true),
    ("--steps", true),
    ("--plant", true),
    ("--show", false),
    ("--extended", false),
    ("--old", false),
];

fn main() -> ExitCode {
    let begun = Instant::now();
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let known = OPTIONS.iter().find(|(option, _)| *option == word);
        if known.is_none_or(|(_, has_value)| *has_value && words.next().is_none()) {
            eprintln!("{word}: no option, or one without its value");
            return ExitCode::from(2);
        }
    }
    let against = option("--against").unwrap_or_else(|| "embedded".to_owned());
    let terms = servers::Terms { is_extended: flag("--extended"), is_old: flag("--old") };
    let (real, other) = servers::pair(&against, terms);
    let (real_address, other_address) = (real.address(), other.address());
    let pair = Pair { real: real_address, other: other_address, plant: Plant::Nothing, is_old: terms.is_old };
    println!("real: {}, other: {against}, {}", pair.real, pair.other);
    let steps = number("--steps").map_or(STEPS, |count| usize::try_from(count).expect("a small number"));
    let is_sound = match option("--plant") {
        Some(name) => planted(&pair, &name, steps),
        None => {
            agree(&pair, steps) && (number("--seed").is_some() || pair.is_old || catches_all(&pair, steps))
        }
    };
    println!("{:.1} s", begun.elapsed().as_secs_f64());
    if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether the two servers agree in all conversations, and the conversations covered everything.
fn agree(pair: &Pair, steps: usize) -> bool {
    let is_long = env::var_os("ZKLOCK_LONG").is_some();
    let chosen = number("--seed");
    let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs() << 20);
    let first = chosen.or_else(|| number("--from")).unwrap_or_else(|| if is_long { fresh() } else { 1 });
    let count = match chosen {
        Some(_) => 1,
        None => number("--count").unwrap_or(if is_long { LONG } else { COUNT }),
    };
    println!("{count} conversations of {steps} steps, seeds from {first}");
    let mut coverage = Coverage::default();
    for (name, slots, script) in scripts::all().into_iter().filter(|_| chosen.is_none()) {
        let script = pair.in_its_words(None, script);
        let outcome = pair.converse_surely(slots, &script);
        if outcome.difference.is_some() {
            println!("the servers differ in a script, {name}:");
            outcome.print(&script);
            return false;
        }
        if flag("--show") {
            outcome.print(&script);
        }
    }
    for seed in first..first + count {
        let (slots, conversation) = generate::conversation(seed, steps);
        let conversation = pair.in_its_words(Some(seed), conversation);
        let outcome = pair.converse_surely(slots, &conversation);
        coverage.note(&outcome.real);
        if outcome.difference.is_some() {
            report(pair, seed, slots, &conversation, &outcome);
            return false;
        }
        if flag("--show") {
            outcome.print(&conversation);
        }
    }
    // If there are enough usual conversations, they must cover everything.
    let is_whole =
        chosen.is_none() && count >= COUNT && steps >= STEPS && !flag("--extended") && !flag("--old");
    let missing = if is_whole { coverage.missing() } else { Vec::new() };
    for gap in &missing {
        println!("never seen: {gap}");
    }
    missing.is_empty()
}

/// Prints the difference of the servers, in full and in short.
fn report(pair: &Pair, seed: u64, slots: usize, conversation: &[Step], outcome: &Outcome) {
    println!("the servers differ, seed {seed}:");
    outcome.print(conversation);
    let again = pair.converse(slots, conversation);
    if again.difference.is_none() {
        println!("(not so when held again)");
        return;
    }
    let (short, outcome) = shrink::shrink(pair, slots, conversation, again);
    println!("in short (--seed {seed}):");
    outcome.print(&short);
}

fn catches_all(pair: &Pair, steps: usize) -> bool {
    Plant::ALL.iter().all(|(name, _)| planted(pair, name, steps))
}

/// Whether a planted error is found, and in few steps.
fn planted(pair: &Pair, name: &str, steps: usize) -> bool {
    let known = Plant::ALL.iter().find(|(known, _)| *known == name);
    let (_, plant) = known.unwrap_or_else(|| panic!("no such plant: {name}"));
    let pair = Pair { plant: *plant, ..*pair };
    for seed in 1..COUNT {
        let (slots, conversation) = generate::conversation(seed, steps);
        let conversation = pair.in_its_words(Some(seed), conversation);
        let outcome = pair.converse(slots, &conversation);
        if outcome.difference.is_none() {
            continue;
        }
        let (short, outcome) = shrink::shrink(&pair, slots, &conversation, outcome);
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

fn flag(name: &str) -> bool {
    env::args().any(|argument| argument == name)
}

fn option(name: &str) -> Option<String> {
    let mut arguments = env::args().skip_while(|argument| argument != name);
    arguments.next().and_then(|_| arguments.next())
}

fn number(name: &str) -> Option<u64> {
    option(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name} takes a number, not {text}")))
}
