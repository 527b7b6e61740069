//! Builds the seeded machines, all in one program, and checks that each bug is found.
//!
//! It is a separate program because the machine is not generic over its mistakes: each seed is a
//! module tree with the changed machine, and with the same model that checks the shipped machine.

use super::seeds::{Seed, all};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The result for one seed.
#[derive(Debug)]
pub(crate) struct Catch {
    pub(crate) seed: &'static str,
    /// Configuration, property, steps, states, seconds, as printed; `None` if it was not found.
    pub(crate) found: Option<Vec<String>>,
}

/// The modules of the model that the seeds do not share.
const APART: [&str; 5] = ["adapter", "hunt", "main", "mutants", "seeds"];

/// The machine's modules that can have a seed, and the modules that must be compiled with each.
const MODULES: [(&str, &[&str]); 15] = [
    ("name", &["name", "claim", "queue", "drive", "contender", "single", "member", "callers"]),
    ("claim", &["claim", "queue", "contender", "callers"]),
    ("queue", &["queue", "contender"]),
    ("drive", &["drive", "contender", "single", "member"]),
    ("retry", &["retry", "readiness", "contender", "single", "member"]),
    ("readiness", &["readiness", "contender", "single"]),
    ("contender", &["contender"]),
    ("single", &["single"]),
    ("barrier", &["barrier", "member"]),
    ("member", &["member"]),
    ("lease", &["lease", "keeper", "memory", "callers"]),
    ("keeper", &["keeper"]),
    ("memory", &["memory", "callers"]),
    ("turns", &["turns", "callers"]),
    ("callers", &["callers"]),
];

/// Builds and runs all of them.
pub(crate) fn hunt() -> io::Result<Vec<Catch>> {
    in_folder(|folder| {
        let seeds: Vec<Seed> = all().collect();
        let seeds: Vec<&Seed> = seeds.iter().collect();
        build_model(folder)?;
        write_sources(folder, &seeds)?;
        run(&build(folder)?, &seeds)
    })
}

/// Works in a new folder, which is removed afterwards.
pub(crate) fn in_folder<T>(work: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let folder = env::temp_dir().join(format!("zklock-model-{}", std::process::id()));
    let result = work(&folder);
    fs::remove_dir_all(&folder)?;
    result
}

/// Writes the program with these seeds. Without an argument it looks for all; with a number for that one, less deeply.
pub(crate) fn write_sources(folder: &Path, seeds: &[&Seed]) -> io::Result<()> {
    let mut main = "#![allow(warnings)]\nuse model::{explorer, machine, subject, suite};\n".to_owned();
    let mut list = String::new();
    for (number, seed) in seeds.iter().enumerate() {
        plant(seed, number, &folder.join(format!("seed_{number}")))?;
        let _ = writeln!(main, "mod seed_{number} {{\n    use crate::{{explorer, subject}};");
        main.push_str("    pub mod adapter;\n    mod machine;\n}\n");
        let _ = writeln!(list, "    (&seed_{number}::adapter::MACHINE, {:?}),", seed.kind);
    }
    let _ = write!(main, "const SEEDS: &[(&subject::Machine, &str)] = &[\n{list}];\n{MAIN}");
    fs::write(folder.join("main.rs"), main)
}

/// Writes the model and the shipped machine, as a library in which everything is public.
fn write_model(folder: &Path) -> io::Result<()> {
    let mut library = "#![allow(warnings)]\npub mod machine;\n".to_owned();
    fs::create_dir_all(folder)?;
    for module in modules_in(&model())?.iter().filter(|module| !APART.contains(&module.as_str())) {
        let file = format!("{module}.rs");
        publish(&model().join(&file), &folder.join(&file), "crate::")?;
        let _ = writeln!(library, "pub mod {module};");
    }
    publish_all(&machine(), &folder.join("machine"), "crate::machine::")?;
    fs::rename(folder.join("machine/lib.rs"), folder.join("machine/mod.rs"))?;
    fs::write(folder.join("lib.rs"), library)
}

/// The names of the modules that have a file in this folder.
fn modules_in(folder: &Path) -> io::Result<Vec<String>> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let sources = files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "rs"));
    Ok(sources.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect())
}

fn publish_all(from: &Path, to: &Path, root: &str) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let publish = if entry.file_type()?.is_dir() { publish_all } else { publish };
        publish(&entry.path(), &to.join(entry.file_name()), root)?;
    }
    Ok(())
}

/// Copies a file with everything public, into a crate in which its own crate's root is `root`.
fn publish(from: &Path, to: &Path, root: &str) -> io::Result<()> {
    let source = fs::read_to_string(from)?.replace("pub(crate)", "pub").replace("crate::", root);
    // An exported macro is always at the root of its crate.
    fs::write(to, source.replace(&format!("{root}listed!"), "crate::listed!"))
}

/// Writes one seed's own machine: the modules that it changes, and those that depend on them.
fn plant(seed: &Seed, number: usize, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("machine"))?;
    let own = format!("crate::seed_{number}::machine::");
    let mut modules = "pub use crate::machine::{Moment, lasting, protocol, status};\n".to_owned();
    for (module, _) in MODULES {
        if !MODULES.iter().any(|(changed, with)| with.contains(&module) && seed.changes(changed)) {
            let _ = writeln!(modules, "pub use crate::machine::{module};");
            continue;
        }
        let _ = writeln!(modules, "pub mod {module};");
        let mut files = vec![PathBuf::from(module)];
        if machine().join(module).is_dir() {
            fs::create_dir_all(folder.join("machine").join(module))?;
            files
                .extend(modules_in(&machine().join(module))?.iter().map(|room| Path::new(module).join(room)));
        }
        for file in files {
            let file = file.with_extension("rs");
            let source = edited(seed, &machine().join(&file))?.replace("crate::", &own);
            let source = source.replace(&format!("{own}listed!"), "model::listed!");
            fs::write(folder.join("machine").join(&file), source)?;
        }
    }
    fs::write(folder.join("adapter.rs"), edited(seed, &model().join("adapter.rs"))?)?;
    fs::write(folder.join("machine/mod.rs"), modules)
}

fn edited(seed: &Seed, from: &Path) -> io::Result<String> {
    let mut source = fs::read_to_string(from)?;
    for edit in seed.edits.iter().filter(|edit| from.ends_with(edit.file)) {
        if source.matches(&edit.text).count() != 1 {
            let message = format!("seed \"{}\": its text is not once in {}", seed.name, edit.file);
            return Err(io::Error::other(message));
        }
        source = source.replace(&edit.text, &edit.replacement);
    }
    Ok(source)
}

fn model() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn machine() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../zklock-core/machine/src")
}

/// The main function of the seeded program, which prints one line for each seed.
const MAIN: &str = r#"
fn main() {
    if let Some(number) = std::env::args().nth(1).and_then(|number| number.parse().ok()) {
        let (machine, kind) = SEEDS[number];
        return tell(number, suite::find_quickly(machine, kind));
    }
    for (number, (machine, kind)) in SEEDS.iter().enumerate() {
        tell(number, suite::find(machine, kind));
    }
}

fn tell(number: usize, found: Option<(String, explorer::Report)>) {
    let Some((case, report)) = found else { return println!("{number}") };
    let Some(failure) = report.failure else { return println!("{number}") };
    let (property, steps) = (failure.violation.property, failure.trace.len());
    let seconds = report.elapsed.as_secs_f64();
    println!("{number}\t{case}\t{property}\t{steps}\t{}\t{seconds:.2}", report.states);
}
"#;

/// Builds the part that all seeds share. It is optimised, because most of the time is spent there.
pub(crate) fn build_model(folder: &Path) -> io::Result<()> {
    write_model(&folder.join("model"))?;
    let options = ["--crate-type", "rlib", "-C", "opt-level=2"];
    compile(&folder.join("model/lib.rs"), &folder.join("libmodel.rlib"), &options)
}

/// Builds the program that [`write_sources`] has written, without optimising: for so many machines that would take longer
/// than it saves.
pub(crate) fn build(folder: &Path) -> io::Result<PathBuf> {
    let program = folder.join("seeds");
    let model = format!("model={}", folder.join("libmodel.rlib").display());
    compile(&folder.join("main.rs"), &program, &["-C", "opt-level=0", "--extern", &model])?;
    Ok(program)
}

/// The only crate that the machine depends on, as Cargo has compiled it for this program.
fn uuid() -> io::Result<PathBuf> {
    let this = env::current_exe()?;
    let folder = this.parent().ok_or(io::ErrorKind::NotFound)?.join("deps");
    let mut newest = None;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_uuid =
            name.to_str().is_some_and(|name| name.starts_with("libuuid-") && name.ends_with(".rlib"));
        if is_uuid {
            newest = newest.max(Some((entry.metadata()?.modified()?, entry.path())));
        }
    }
    newest
        .map(|(_, path)| path)
        .ok_or_else(|| io::Error::other("no uuid in the folder deps beside this program"))
}

fn compile(source: &Path, to: &Path, options: &[&str]) -> io::Result<()> {
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let name = if source.ends_with("lib.rs") { "model" } else { "seeds" };
    let uuid = uuid()?;
    let compiled = format!("dependency={}", uuid.parent().unwrap_or(source).display());
    let output = Command::new(compiler)
        .args(["--edition", "2024", "--crate-name", name, "-C", "debuginfo=0"])
        .args(["--extern", &format!("uuid={}", uuid.display()), "-L", &compiled])
        .args(options)
        .arg("-o")
        .args([to, source])
        .output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

fn run(program: &Path, seeds: &[&Seed]) -> io::Result<Vec<Catch>> {
    let output = Command::new(program).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("the seeded machines: {text}{errors}")));
    }
    let found_of = |number: usize| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{number}\t")))?;
        Some(line.split('\t').map(str::to_owned).collect())
    };
    Ok(seeds
        .iter()
        .enumerate()
        .map(|(number, seed)| Catch { seed: seed.name, found: found_of(number) })
        .collect())
}
