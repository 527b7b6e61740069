//! Builds the model with a machine that has bugs, and checks that each is found.
//!
//! The machine is compiled once more, with all bugs in it, of which `ZKLOCK_PLANTED` chooses one while the program runs. The model
//! is compiled with that machine in place of the shipped one.

use super::seeds::{Edit, Seed, all};
use super::switched::Source;
use super::{on_all_cores, suite};
use std::collections::BTreeMap;
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

/// Says which bug is chosen.
pub(crate) const CHOICE: &str = "ZKLOCK_PLANTED";

/// What the machine with the bugs has as well.
const CHOSEN: &str = r#"
pub(crate) fn planted() -> usize {
    static PLANTED: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *PLANTED.get_or_init(|| std::env::var("ZKLOCK_PLANTED").map_or(usize::MAX, |number| number.parse().unwrap()))
}
"#;

/// Builds and runs all of them.
pub(crate) fn hunt() -> io::Result<Vec<Catch>> {
    let folder = env::temp_dir().join(format!("zklock-model-{}", std::process::id()));
    let catches = hunt_in(&folder);
    fs::remove_dir_all(&folder)?;
    catches
}

fn hunt_in(folder: &Path) -> io::Result<Vec<Catch>> {
    let seeds: Vec<Seed> = all().collect();
    write_machine(folder, &seeds)?;
    let program = build(folder)?;
    // What is found must come from the seed.
    if let Some(found) = find(&program, usize::MAX, "a little", "")? {
        return Err(io::Error::other(format!("without a seed: {found:?}")));
    }
    let catch = |number, seed: &Seed| {
        Ok(Catch { seed: seed.name, found: find(&program, number, "deeper", seed.kind)? })
    };
    on_all_cores(&seeds, catch).into_iter().collect()
}

/// Writes a copy of the machine with these seeds. Their numbers are their places in the list.
fn write_machine(folder: &Path, seeds: &[Seed]) -> io::Result<()> {
    let mut sources: BTreeMap<&str, Source> = BTreeMap::new();
    for (number, seed) in seeds.iter().enumerate() {
        for edit in &seed.edits {
            let text = text_of(seed, edit)?;
            sources.entry(edit.file).or_insert_with(|| Source::new(text)).plant(number, edit);
        }
    }
    let copy = folder.join("machine");
    copy_all(&machine(), &copy)?;
    sources.iter().try_for_each(|(file, source)| fs::write(copy.join(file), source.written()))?;
    let root = copy.join("lib.rs");
    let text = fs::read_to_string(&root)?;
    fs::write(root, text + CHOSEN)
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (from, to) =
            (entry.as_ref().map_or(from.into(), fs::DirEntry::path), to.join(entry?.file_name()));
        if from.is_dir() {
            copy_all(&from, &to)?;
        } else {
            fs::copy(from, to)?;
        }
    }
    Ok(())
}

/// The file that this edit is for, in which its text must be once.
fn text_of(seed: &Seed, edit: &Edit) -> io::Result<String> {
    let source = fs::read_to_string(machine().join(edit.file))?;
    if source.matches(&edit.text).count() == 1 {
        return Ok(source);
    }
    Err(io::Error::other(format!("seed \"{}\": its text is not once in {}", seed.name, edit.file)))
}

fn machine() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../zklock-core/machine/src")
}

/// Builds the model with the machine that [`write_machine`] has written.
fn build(folder: &Path) -> io::Result<PathBuf> {
    let (library, program) = (folder.join("libzklock_machine.rlib"), folder.join("model"));
    let root = folder.join("machine/lib.rs");
    compile("zklock_machine", &root, &library, &["--crate-type", "rlib", "-C", "opt-level=1"])?;
    let with = format!("zklock_machine={}", library.display());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("main.rs");
    compile("zklock_model", &root, &program, &["-C", "opt-level=2", "--extern", &with])?;
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

fn compile(name: &str, source: &Path, to: &Path, options: &[&str]) -> io::Result<()> {
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let uuid = uuid()?;
    let compiled = format!("dependency={}", uuid.parent().unwrap_or(source).display());
    let output = Command::new(compiler)
        // Without the machine's own assertions: a bug must be found from outside.
        .args([
            "--edition",
            "2024",
            "--crate-name",
            name,
            "--cap-lints",
            "allow",
            "-C",
            "debug-assertions=off",
        ])
        .args(["--extern", &format!("uuid={}", uuid.display()), "-L", &compiled])
        .args(options)
        .arg("-o")
        .args([to, source])
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

/// Lets the program look for this seed.
fn find(program: &Path, number: usize, how: &str, kind: &str) -> io::Result<Option<Vec<String>>> {
    let output = Command::new(program).args([how, kind]).env(CHOICE, number.to_string()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("with seed {number}: {text}{errors}")));
    }
    Ok((!text.is_empty()).then(|| text.trim_end().split('\t').map(str::to_owned).collect()))
}

/// In such a program, looks for the seed that was chosen, and says what has found it.
pub(crate) fn look(how: &str, kind: &str) {
    let found = match how {
        "deeper" => suite::find(kind),
        "quickly" => suite::find_quickly(kind),
        _ => suite::find_in_a_little(),
    };
    if let Some((case, report)) = found {
        let Some(failure) = report.failure else { return };
        let (property, steps) = (failure.violation.property, failure.trace.len());
        let seconds = report.elapsed.as_secs_f64();
        println!("{case}\t{property}\t{steps}\t{}\t{seconds:.2}", report.states);
    }
}
