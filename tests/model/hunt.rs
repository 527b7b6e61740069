//! Builds the seeded machines, all in one program, and checks that each bug is found.
//!
//! It is a separate program because the machine is not generic over its mistakes. It has a machine in which a number chooses the
//! seed, and one more for each seed that cannot be chosen, with the same model that checks the shipped machine.

use super::seeds::{Seed, all};
use super::switched::Source;
use std::collections::BTreeMap;
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
const APART: [&str; 6] = ["adapter", "hunt", "main", "mutants", "seeds", "switched"];

/// The machine's modules that can have a seed, and the modules that must be compiled with each.
const MODULES: [(&str, &[&str]); 15] = [
    ("name", &["name", "layout", "claim", "queue", "drive", "flow", "contender", "single", "callers"]),
    ("layout", &["layout", "claim", "queue", "flow", "contender", "callers"]),
    ("claim", &["claim", "queue", "flow", "contender", "callers"]),
    ("queue", &["queue", "flow", "contender"]),
    ("drive", &["drive", "flow", "contender", "single"]),
    ("retry", &["retry", "readiness", "flow", "contender", "single"]),
    ("readiness", &["readiness", "flow", "contender", "single"]),
    ("flow", &["flow", "contender", "single"]),
    ("contender", &["flow", "contender"]),
    ("single", &["flow", "single"]),
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
        write_sources(folder, &seeds, true)?;
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

/// Writes the program with these seeds. Without an argument it looks for all; with a number for that one, less deeply. With
/// `together` all that can be chosen are in one machine; what does not compile there is no seed's alone.
pub(crate) fn write_sources(folder: &Path, seeds: &[&Seed], together: bool) -> io::Result<()> {
    let mut main = "#![allow(warnings)]\nuse model::{explorer, machine, subject, suite};\n".to_owned();
    let mut list = String::new();
    let switched = if together { plant_together(seeds, &folder.join("switched"))? } else { Vec::new() };
    let mut unchosen = "None";
    if together {
        main.push_str(&module("switched"));
        unchosen = "Some(&switched::adapter::MACHINE)";
    }
    let _ = writeln!(main, "const UNCHOSEN: Option<&subject::Machine> = {unchosen};");
    for (number, seed) in seeds.iter().enumerate() {
        let mut name = "switched".to_owned();
        if !switched.contains(&number) {
            name = format!("seed_{number}");
            plant(seed, &name, &folder.join(&name))?;
            main.push_str(&module(&name));
        }
        let _ = writeln!(list, "    (&{name}::adapter::MACHINE, {:?}),", seed.kind);
    }
    let _ = write!(main, "const SEEDS: &[(&subject::Machine, &str)] = &[\n{list}];\n{MAIN}");
    fs::write(folder.join("main.rs"), main)
}

/// Declares a machine of the program.
fn module(name: &str) -> String {
    format!(
        "mod {name} {{\n    use crate::{{explorer, subject}};\n    pub mod adapter;\n    mod machine;\n}}\n"
    )
}

/// Writes the model and the shipped machine, as a library in which everything is public.
fn write_model(folder: &Path) -> io::Result<()> {
    let mut library = format!("#![allow(warnings)]\n{CHOICE}pub mod machine;\n");
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
fn plant(seed: &Seed, name: &str, folder: &Path) -> io::Result<()> {
    let is_own =
        |module: &str| MODULES.iter().any(|(changed, with)| with.contains(&module) && seed.changes(changed));
    write_machine(name, folder, is_own, |file| edited(seed, file))
}

/// Writes the machine in which those of these seeds can be chosen whose numbers it returns.
fn plant_together(seeds: &[&Seed], folder: &Path) -> io::Result<Vec<usize>> {
    let mut sources: BTreeMap<PathBuf, Source> = BTreeMap::new();
    let mut planted = Vec::new();
    for (number, seed) in seeds.iter().enumerate() {
        for edit in &seed.edits {
            let file = file_of(edit.file);
            edited(seed, &file)?;
            let text = fs::read_to_string(&file)?;
            sources.entry(file).or_insert_with(|| Source::new(text));
        }
        if seed.edits.iter().all(|edit| sources[&file_of(edit.file)].has_room_for(edit)) {
            planted.push(number);
            for edit in &seed.edits {
                sources.entry(file_of(edit.file)).and_modify(|source| source.plant(number, edit));
            }
        }
    }
    let written = |file: &Path| match sources.get(file) {
        Some(source) => Ok(source.written("model::planted()")),
        None => fs::read_to_string(file),
    };
    write_machine("switched", folder, |_| true, written)?;
    Ok(planted)
}

/// Writes a machine with these modules of its own. The others are those of the shipped machine.
fn write_machine(
    name: &str,
    folder: &Path,
    is_own: impl Fn(&str) -> bool,
    source: impl Fn(&Path) -> io::Result<String>,
) -> io::Result<()> {
    fs::create_dir_all(folder.join("machine"))?;
    let own = format!("crate::{name}::machine::");
    let mut modules =
        "pub use crate::machine::{Moment, lasting, pattern, protocol, status, times};\n".to_owned();
    for (module, _) in MODULES {
        if !is_own(module) {
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
            let source = source(&machine().join(&file))?.replace("crate::", &own);
            let source = source.replace(&format!("{own}listed!"), "model::listed!");
            fs::write(folder.join("machine").join(&file), source)?;
        }
    }
    fs::write(folder.join("adapter.rs"), source(&model().join("adapter.rs"))?)?;
    fs::write(folder.join("machine/mod.rs"), modules)
}

/// The file that an edit is for.
fn file_of(name: &str) -> PathBuf {
    if name == "adapter.rs" { model().join(name) } else { machine().join(name) }
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

/// What chooses a seed in the machine that has many.
const CHOICE: &str = r#"
static PLANTED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(usize::MAX);

pub fn planted() -> usize {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed)
}

pub fn choose(number: usize) {
    PLANTED.store(number, std::sync::atomic::Ordering::Relaxed);
}
"#;

/// The main function of the seeded program, which prints one line for each seed.
const MAIN: &str = r#"
fn main() {
    if let Some(number) = std::env::args().nth(1).and_then(|number| number.parse().ok()) {
        let (machine, kind) = SEEDS[number];
        model::choose(number);
        return tell(number, suite::find_quickly(machine, kind));
    }
    // What is found must come from the seed.
    if let Some((case, report)) = UNCHOSEN.and_then(suite::find_in_a_little) {
        panic!("without a seed, in {case}: {:?}", report.failure);
    }
    for (number, (machine, kind)) in SEEDS.iter().enumerate() {
        model::choose(number);
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

/// Builds the program that [`write_sources`] has written. It is not optimised: that would take longer than it saves.
pub(crate) fn build(folder: &Path) -> io::Result<PathBuf> {
    let program = folder.join("seeds");
    let model = format!("model={}", folder.join("libmodel.rlib").display());
    // Without the machine's own assertions: a bug must be found from outside.
    let options = ["-C", "opt-level=0", "-C", "debug-assertions=off", "--extern", &model];
    compile(&folder.join("main.rs"), &program, &options)?;
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
