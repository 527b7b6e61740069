//! Tries to make zklock lie: see README.md.

mod faults;
mod field;
mod judge;
mod record;
mod register;
mod report;
mod servers;
mod soak;
mod swarm;
mod workers;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use faults::{OF_SERVERS, millis};
use field::{Field, SESSION, TICK};
use report::{Report, Struck, now};
use swarm::{OF_CLIENTS, Swarm};
use workers::PROGRAMS;

const HELP: &str = "chaos [--seconds N] [--seed N] [--version RELEASE] [--clock RATE] [--workers NAME=COUNT,...] [--fault TEXT] [--pace MS] [--folder FOLDER] [--soak] [--until-found]

  --seconds   how long faults come, 60 by default
  --seed      which faults come, and what the workers do; by default another one each time
  --version   of the servers, such as 3.9.5; by default what is installed
  --clock     how much faster the servers' clocks run, such as 1.015
  --workers   rust, python, c, curator, curator-alone, curator-deaf, kazoo, kazoo-deaf, library
  --fault     only those with this in their names
  --pace      how long it is from one fault of clients to the next, 2000 by default; those of servers come one after the other
  --folder    where claims, and what workers say, are kept
  --soak      no faults; what workers and servers use is written down and compared
  --until-found   it is over as soon as zklock is found to lie";

struct Options {
    seconds: u64,
    seed: u64,
    version: Option<String>,
    clock: Option<String>,
    workers: Vec<(String, usize)>,
    fault: String,
    pace: Duration,
    folder: PathBuf,
    until_found: bool,
    soak: bool,
}

fn options() -> Result<Options, String> {
    let seed = u64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis());
    let mut options = Options {
        seconds: 60,
        seed: seed.unwrap_or_default(),
        version: None,
        clock: None,
        workers: parse_workers("rust=8,python=4,c=4,curator=2,curator-alone=2,kazoo=2")?,
        fault: String::new(),
        pace: Duration::from_secs(2),
        folder: std::env::temp_dir().join(format!("zklock-chaos-{}", std::process::id())),
        until_found: false,
        soak: false,
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
            "--workers" => options.workers = parse_workers(&next()?)?,
            "--fault" => {
                options.fault = next()?;
                let mut names = OF_SERVERS
                    .iter()
                    .map(|fault| fault.name)
                    .chain(OF_CLIENTS.iter().map(|fault| fault.name));
                if !names.any(|name| name.contains(&options.fault)) {
                    return Err(format!("no fault {}", options.fault));
                }
            }
            "--pace" => options.pace = Duration::from_millis(number(next()?)?),
            "--until-found" => options.until_found = true,
            "--soak" => options.soak = true,
            "--folder" => options.folder = next()?.into(),
            _ => return Err(HELP.to_owned()),
        }
    }
    Ok(options)
}

fn parse_workers(text: &str) -> Result<Vec<(String, usize)>, String> {
    text.split(',')
        .map(|word| {
            let (name, count) = word.split_once('=').unwrap_or((word, "1"));
            if !PROGRAMS.iter().any(|program| program.name == name) {
                return Err(format!("no worker {name}"));
            }
            Ok((name.to_owned(), count.parse().map_err(|_| format!("no number: {count}"))?))
        })
        .collect()
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("chaos: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Whether nothing was found.
fn run(options: &Options) -> io::Result<bool> {
    std::fs::create_dir_all(&options.folder)?;
    let Options { seconds, seed, version, clock, .. } = options;
    println!("chaos: seed {seed}, {seconds} s, what is said goes to {}", options.folder.display());
    let mut field = Field::open(&options.folder, *seed, version.as_deref(), clock.as_deref())?;
    let mut group = 0;
    for (name, count) in &options.workers {
        let program = PROGRAMS.iter().find(|program| program.name == *name);
        for program in program.into_iter().cycle().take(*count) {
            let seed = field.dice.throw();
            field.start(program, group % field.groups.len(), seed)?;
            group += 1;
        }
    }
    let mut report = Report::new(*seed);
    // Until each has had a lock, so that the first faults meet some.
    let all_begun = Instant::now() + Duration::from_secs(60);
    while field.register.book.latest.len() < group && Instant::now() < all_begun {
        field.pass(Duration::from_millis(200))?;
    }
    report.begun();
    if options.soak {
        soak::soak(&mut field, Duration::from_secs(*seconds), &options.folder.join("used.tsv"))?;
    }
    if !options.soak {
        // What cannot be mended is told with all that was seen before.
        let problem = strike(&mut field, options, &report).err();
        field.troubles.extend(problem.map(|problem| problem.to_string()));
    }
    let quiet = now();
    // Those that are left wait for a session of those before them at most, which ends a tick or two later.
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
    Ok(report.print(&field))
}

/// Lets faults come, until it is time.
fn strike(field: &mut Field, options: &Options, report: &Report) -> io::Result<()> {
    let of_servers: Vec<_> = OF_SERVERS.iter().filter(|fault| fault.name.contains(&options.fault)).collect();
    let of_clients = OF_CLIENTS.iter().filter(|fault| fault.name.contains(&options.fault)).collect();
    field.swarm = Some(Swarm::new(options.seed, of_clients, options.pace));
    let end = Instant::now() + Duration::from_secs(options.seconds);
    while Instant::now() < end {
        if options.until_found && field.register.book.is_against_zklock() {
            println!("found after {:.0} s", report.seconds());
            break;
        }
        if !of_servers.is_empty() {
            let fault = field.dice.pick(&of_servers);
            let begin = now();
            field.register.note(&format!("{begin} {}", fault.name))?;
            field.servers_are_struck = true;
            field.register.book.judge.cuts_off(None, begin, u64::MAX);
            (fault.strike)(field)?;
            field.register.book.judge.are_mended(now());
            field.servers_are_struck = false;
            field.struck.push(Struck { name: fault.name, begin, end: now(), workers: None });
        }
        let rest = millis(&mut field.dice, 500, 3500);
        field.pass(rest)?;
    }
    if let Some(swarm) = field.swarm.take() {
        swarm.end(field);
    }
    Ok(())
}
