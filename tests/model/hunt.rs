//! Builds the seeded machines, all in one program, and looks whether each bug is found.
//!
//! A program of its own, because the machine is not generic over its mistakes: each seed is a module
//! tree with the changed machine in it, and with the very model that checks the machine that ships.

use super::seeds::{SEEDS, Seed};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// What became of one seed.
#[derive(Debug)]
pub(crate) struct Catch {
    pub(crate) seed: &'static str,
    /// Configuration, property, steps, states, seconds, as printed; `None` if it was not found.
    pub(crate) found: Option<Vec<String>>,
}

/// What all seeds share.
const MODEL: [&str; 10] =
    ["action", "client", "ensemble", "explorer", "properties", "pulse", "setup", "subject", "suite", "world"];

/// The machine's modules that can have a seed, and those that are to be compiled with them.
const MODULES: [(&str, &[&str]); 4] = [
    ("name", &["name", "queue", "contender"]),
    ("queue", &["queue", "contender"]),
    ("contender", &["contender"]),
    ("lease", &["lease"]),
];

/// Builds and runs them all.
pub(crate) fn hunt() -> io::Result<Vec<Catch>> {
    let parent = option_env!("CARGO_TARGET_TMPDIR").map_or_else(env::temp_dir, PathBuf::from);
    let folder = parent.join(format!("zklock-model-{}", std::process::id()));
    let result = write_sources(&folder).and_then(|()| build(&folder)).and_then(|program| run(&program));
    fs::remove_dir_all(&folder)?;
    result
}

fn write_sources(folder: &Path) -> io::Result<()> {
    let mut main = "#![allow(warnings)]\n".to_owned();
    let mut calls = String::new();
    for file in MODEL {
        let path = model().join(file).with_extension("rs");
        let _ = write!(main, "#[path = {path:?}]\nmod {file};\n");
    }
    let _ = write!(main, "#[path = {:?}]\nmod machine;\n", machine().join("mod.rs"));
    for (number, seed) in SEEDS.iter().enumerate() {
        plant(seed, &folder.join(format!("seed_{number}")))?;
        let _ = writeln!(main, "mod seed_{number} {{\n    use crate::{{explorer, subject}};");
        main.push_str("    pub mod adapter;\n    mod machine;\n}\n");
        let _ = writeln!(calls, "    catch({number}, suite::find(&seed_{number}::adapter::MACHINE));");
    }
    let _ = write!(main, "{CATCH}fn main() {{\n{calls}}}\n");
    fs::write(folder.join("main.rs"), main)
}

/// Writes one seed's own machine: what it changes, and what depends on that.
fn plant(seed: &Seed, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("machine"))?;
    let mut modules = "pub use crate::machine::{Moment, exchange};\n".to_owned();
    for (module, _) in MODULES {
        let is_own = MODULES.iter().any(|(changed, own)| {
            own.contains(&module)
                && seed.edits.iter().any(|edit| edit.file.strip_suffix(".rs") == Some(changed))
        });
        if is_own {
            let file = Path::new(module).with_extension("rs");
            write_edited(seed, &machine().join(&file), &folder.join("machine").join(&file))?;
            let _ = writeln!(modules, "pub mod {module};");
        } else {
            let _ = writeln!(modules, "pub use crate::machine::{module};");
        }
    }
    write_edited(seed, &model().join("adapter.rs"), &folder.join("adapter.rs"))?;
    fs::write(folder.join("machine/mod.rs"), modules)
}

fn write_edited(seed: &Seed, from: &Path, to: &Path) -> io::Result<()> {
    let mut source = fs::read_to_string(from)?;
    for edit in seed.edits.iter().filter(|edit| from.ends_with(edit.file)) {
        if source.matches(edit.text).count() != 1 {
            let message = format!("seed \"{}\": its text is not once in {}", seed.name, edit.file);
            return Err(io::Error::other(message));
        }
        source = source.replace(edit.text, edit.replacement);
    }
    fs::write(to, source)
}

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("model")
}

fn machine() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../zklock-core/src/machine")
}

/// The seeded program's part of the talk: one line a seed.
const CATCH: &str = r#"
fn catch(number: usize, found: Option<(String, explorer::Report)>) {
    let Some((case, report)) = found else { return println!("{number}") };
    let Some(failure) = report.failure else { return println!("{number}") };
    let (property, steps) = (failure.violation.property, failure.trace.len());
    let seconds = report.elapsed.as_secs_f64();
    println!("{number}\t{case}\t{property}\t{steps}\t{}\t{seconds:.2}", report.states);
}
"#;

fn build(folder: &Path) -> io::Result<PathBuf> {
    let program = folder.join("seeds");
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .args(["--edition", "2024", "--crate-name", "seeds", "-C", "opt-level=1", "-C", "debuginfo=0", "-o"])
        .arg(&program)
        .arg(folder.join("main.rs"))
        .output()?;
    if output.status.success() {
        Ok(program)
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

fn run(program: &Path) -> io::Result<Vec<Catch>> {
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
    Ok(SEEDS
        .iter()
        .enumerate()
        .map(|(number, seed)| Catch { seed: seed.name, found: found_of(number) })
        .collect())
}
