//! Mistakes that nobody has thought of: each operator of the machine inverted, each function without its body.
//! `tests/mutation/run` lists them; this reports which of them the model finds.

use super::seeds::{Edit, Seed};
use super::switched::seed_at;
use super::{hunt, on_all_cores};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// The number of mutants that are compiled into one program.
const AT_ONCE: usize = 100;
/// How much processor time to spend on one mutant, in seconds, unless `ZKLOCK_PATIENCE` says otherwise.
const PATIENCE: u64 = 120;
/// The signals that end a process that has used up its processor time: at the soft limit, and at the hard one.
const OUT_OF_TIME: [i32; 2] = [24, 9];

/// Reads a list in which bytes 30 separate mutants and bytes 31 their name, kind, file, text and replacement. Prints a line
/// for each: its fate, a tab, and its name.
pub(crate) fn hunt(list: &Path) -> io::Result<()> {
    let list: &'static str = Box::leak(fs::read_to_string(list)?.into_boxed_str());
    let mutants: Vec<Seed> = list.split_terminator('\x1e').map(read).collect::<io::Result<_>>()?;
    let (mut chosen, mut alone) = (Vec::new(), Vec::new());
    for mutant in &mutants {
        if hunt::can_be_chosen(mutant)? { chosen.push(mutant) } else { alone.push(mutant) }
    }
    hunt::in_folder(|folder| {
        chosen.chunks(AT_ONCE).try_for_each(|some| hunt_some(folder, some.to_vec()))?;
        alone.iter().try_for_each(|mutant| {
            hunt::write_machine(folder, &[])?;
            hunt::replace(folder, mutant)?;
            match hunt::build(folder) {
                Ok(program) => say(&fate(&program, 0, mutant.kind), mutant.name),
                Err(_) => say("no program", mutant.name),
            }
            Ok(())
        })
    })
}

fn read(line: &'static str) -> io::Result<Seed> {
    let [name, kind, file, text, replacement] = line.split('\x1f').collect::<Vec<_>>()[..] else {
        return Err(io::Error::other(format!("not five fields: {line:?}")));
    };
    let edit = Edit { file, text: text.to_owned(), replacement: replacement.to_owned() };
    Ok(Seed { name, kind, edits: vec![edit] })
}

fn hunt_some(folder: &Path, mut left: Vec<&Seed>) -> io::Result<()> {
    let program = loop {
        hunt::write_machine(folder, &left)?;
        let error = match hunt::build(folder) {
            Ok(program) => break program,
            Err(error) => error.to_string(),
        };
        let wrong = blamed(&error);
        if wrong.is_empty() {
            return Err(io::Error::other(error));
        }
        wrong.iter().for_each(|at| say("no program", left[*at].name));
        let mut numbers = 0..;
        left.retain(|_| numbers.next().is_some_and(|number| !wrong.contains(&number)));
    };
    on_all_cores(&left, |number, mutant| say(&fate(&program, number, mutant.kind), mutant.name));
    Ok(())
}

/// The mutants in whose sources the compiler reports errors.
fn blamed(errors: &str) -> BTreeSet<usize> {
    let mut blamed = BTreeSet::new();
    for place in errors.lines().filter_map(|line| line.trim_start().strip_prefix("--> ")) {
        let [_, line, file] = place.rsplitn(3, ':').collect::<Vec<_>>()[..] else { continue };
        // It may be a file of the standard library.
        let text = fs::read_to_string(file).unwrap_or_default();
        blamed.extend(seed_at(&text, line.parse().unwrap_or(0)));
    }
    blamed
}

/// The fate of one mutant, in a separate process. What else the machine does costs it no time of its own.
fn fate(program: &Path, number: usize, kind: &str) -> String {
    let patience =
        env::var("ZKLOCK_PATIENCE").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(PATIENCE);
    let limited = "ulimit -t \"$1\" && exec \"$2\" quickly \"$3\"";
    let hunter = Command::new("sh")
        .args(["-c", limited, "sh", &patience.to_string()])
        .arg(program)
        .arg(kind)
        .env(hunt::CHOICE, number.to_string())
        .stderr(Stdio::null())
        .output();
    let hunter = match hunter {
        Ok(hunter) => hunter,
        Err(error) => return format!("not run: {error}"),
    };
    if hunter.status.signal().is_some_and(|signal| OUT_OF_TIME.contains(&signal)) {
        return "not found in time".to_owned();
    }
    if !hunter.status.success() {
        return "panics".to_owned();
    }
    let said = String::from_utf8_lossy(&hunter.stdout);
    let found = said.trim_end().split('\t').take(2).filter(|word| !word.is_empty()).collect::<Vec<_>>();
    if found.is_empty() { "SURVIVES".to_owned() } else { found.join(": ") }
}

fn say(fate: &str, name: &str) {
    // Print it at once, because the whole list takes long.
    println!("{fate}\t{name}");
    let _ = io::stdout().flush();
}

/// The list of mutants to look for, if there is one.
pub(crate) fn chosen() -> Option<std::path::PathBuf> {
    env::var_os("ZKLOCK_MUTANTS").map(Into::into)
}
