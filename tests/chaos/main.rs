//! Tries to make zklock lie: see README.md.

mod faults;
mod field;
mod handover;
mod jobs;
mod judge;
mod record;
mod register;
mod report;
mod servers;
mod swarm;
mod workers;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use faults::{Fault, OF_SERVERS, around};
use field::Field;
use handover::{Struck, Whom};
use judge::{SESSION, TICK};
use report::{Report, now};
use servers::Servers;
use swarm::{OF_CLIENTS, Swarm};
use workers::{PROGRAMS, Program};

const HELP: &str = "chaos [--seconds N] [--seed N] [--version RELEASE] [--clock RATE] [--workers NAME=COUNT,...] [--fault TEXT] [--pace MS] [--rest MS] [--folder FOLDER] [--waits] [--until-found]

  --seconds   how long faults come, 60 by default
  --seed      which faults come, and what the workers do; by default another one each time
  --version   of the servers, such as 3.9.5; by default what is installed
  --clock     how much faster the servers' clocks run, such as 1.015; jobs are left out, because this machine's clock judges them
  --workers   rust, rust-once, python, c, curator, curator-alone, curator-deaf, kazoo, kazoo-deaf
  --fault     only those with this in their names
  --pace      how long it is from one fault of clients to the next, 2000 by default
  --rest      how long it is from the end of one fault of servers to the next, 2000 by default
  --folder    where claims, and what workers say, are kept
  --waits     it also fails if a lock is free for longer than faults explain while somebody waits; without this that is only told
  --until-found   it is over as soon as zklock is found to lie";

struct Options {
    seconds: u64,
    seed: u64,
    version: Option<String>,
    clock: Option<String>,
    workers: String,
    fault: String,
    pace: Duration,
    rest: Duration,
    folder: PathBuf,
    until_found: bool,
    waits: bool,
}

fn options() -> Result<Options, String> {
    let seed = u64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis());
    let mut options = Options {
        seconds: 60,
        seed: seed.unwrap_or_default(),
        version: None,
        clock: None,
        workers: String::new(),
        fault: String::new(),
        pace: Duration::from_secs(2),
        rest: Duration::from_secs(2),
        folder: std::env::temp_dir().join(format!("zklock-chaos-{}", std::process::id())),
        until_found: false,
        waits: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut next = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("no number: {text}"));
        match word.as_str() {
            "--seconds" => options.seconds = number(next()?)?,
            "--seed" => options.seed = number(next()?)?,
            "--version" => options.version = Some(next()?),
            "--clock" => options.clock = Some(next()?),
            "--workers" => options.workers = next()?,
            "--fault" => options.fault = next()?,
            "--pace" => options.pace = Duration::from_millis(number(next()?)?),
            "--rest" => options.rest = Duration::from_millis(number(next()?)?),
            "--until-found" => options.until_found = true,
            "--waits" => options.waits = true,
            "--folder" => options.folder = next()?.into(),
            _ => return Err(HELP.to_owned()),
        }
    }
    if chosen(OF_SERVERS, &options).is_empty() && chosen(OF_CLIENTS, &options).is_empty() {
        return Err(format!("no fault {}", options.fault));
    }
    Ok(options)
}

/// The programs, each as often as it must run.
fn programs(options: &Options) -> Result<Vec<&'static Program>, String> {
    let usual = "rust=8,python=4,c=4,curator=2,curator-alone=2,kazoo=2,rust-once=4";
    let text = if options.workers.is_empty() { usual } else { &options.workers };
    let mut programs = Vec::new();
    for word in text.split(',') {
        let (name, count) = word.split_once('=').unwrap_or((word, "1"));
        let is_it = |program: &&Program| program.name == name;
        let program = PROGRAMS.iter().find(is_it).ok_or(format!("no worker {name}"))?;
        let count = count.parse().map_err(|_| format!("no number: {count}"))?;
        programs.extend(std::iter::repeat_n(program, count));
    }
    if options.clock.is_some() {
        programs.retain(|program| !program.runs_jobs());
    }
    if programs.is_empty() { Err("there is no worker left".to_owned()) } else { Ok(programs) }
}

/// The faults among these that the options ask for.
fn chosen<Strike>(all: &'static [Fault<Strike>], options: &Options) -> Vec<&'static Fault<Strike>> {
    all.iter().filter(|fault| fault.name.contains(&options.fault)).collect()
}

fn main() -> ExitCode {
    let (options, programs) = match options().and_then(|options| Ok((programs(&options)?, options))) {
        Ok((programs, options)) => (options, programs),
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    match run(&options, &programs) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("chaos: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Runs chaos. Returns whether nothing was found.
fn run(options: &Options, programs: &[&'static Program]) -> io::Result<bool> {
    std::fs::create_dir_all(&options.folder)?;
    let Options { seconds, seed, version, clock, .. } = options;
    println!("chaos: seed {seed}, {seconds} s, what is said goes to {}", options.folder.display());
    let servers = Servers::start_all(version.as_deref(), clock.as_deref());
    let mut field = Field::open(&options.folder, *seed, servers.map_err(io::Error::other)?)?;
    for (at, program) in programs.iter().enumerate() {
        let seed = field.dice.throw();
        field.start(program, at % field.groups.len(), seed)?;
    }
    let mut report = Report::new(*seed);
    // Wait until each worker has had a lock, so that the first faults meet holders.
    let all_begun = Instant::now() + Duration::from_secs(60);
    while field.register.book.latest.len() < programs.len() && Instant::now() < all_begun {
        field.pass(Duration::from_millis(200))?;
    }
    report.begun();
    // If something cannot be repaired, the error includes everything that was seen before.
    let problem = strike(&mut field, options, &report).err();
    field.troubles.extend(problem.map(|problem| problem.to_string()));
    let quiet = now();
    // The remaining waiters wait at most for the session of a client ahead, which ends a tick or two later.
    let patience = SESSION + 2 * TICK + Duration::from_secs(20);
    let all_served = |field: &Field| {
        let latest = &field.register.book.latest;
        field.workers.running.iter().all(|worker| latest.get(&worker.name).is_some_and(|at| *at > quiet))
    };
    let give_up = Instant::now() + patience;
    while !all_served(&field) && Instant::now() < give_up {
        field.pass(Duration::from_millis(200))?;
    }
    report.starved(&field, quiet, patience);
    field.register.end()?;
    let bad = field.workers.finish(Duration::from_secs(30));
    field.troubles.extend(bad);
    field.register.judge()?;
    report.left_behind(&field, SESSION + 2 * TICK + Duration::from_secs(5));
    Ok(report.print(&field, options.waits))
}

/// Lets faults strike until the time is over.
fn strike(field: &mut Field, options: &Options, report: &Report) -> io::Result<()> {
    let of_servers = chosen(OF_SERVERS, options);
    field.swarm = Some(Swarm::new(options.seed, chosen(OF_CLIENTS, options), options.pace));
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut left = Vec::new();
    while Instant::now() < end {
        // What was said a second ago has been heard.
        let heard = now().saturating_sub(1_000_000_000);
        if options.until_found && field.register.book.is_against_zklock(heard) {
            println!("found after {:.0} s", report.seconds());
            break;
        }
        if !of_servers.is_empty() {
            // None strikes again before all others have, so that a short run has each of them.
            if left.is_empty() {
                left.clone_from(&of_servers);
            }
            let fault = left.swap_remove(field.dice.below(left.len()));
            let begin = now();
            field.register.note(&format!("{begin} {}", fault.name))?;
            field.servers_are_struck = true;
            field.register.book.judge.cuts_off(None, begin, u64::MAX);
            let (whom, act) = fault.strike;
            let at = whom(field);
            act(field, at).map_err(|error| io::Error::other(format!("{}: {error}", fault.name)))?;
            field.register.book.judge.are_mended(now());
            field.servers_are_struck = false;
            field.struck.push(Struck { name: fault.name, whom: Whom::Servers, begin, end: now() });
        }
        let rest = around(&mut field.dice, options.rest);
        field.pass(rest)?;
    }
    if let Some(swarm) = field.swarm.take() {
        swarm.end(field);
    }
    Ok(())
}
