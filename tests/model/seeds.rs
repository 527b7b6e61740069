//! Bugs that are planted in the machine, to show that the model finds them.
//!
//! A check that never failed proves little. Each bug is a mistake that somebody could make, as
//! replacements in the sources, in the files of the folder `seeds`:
//!
//! ```text
//! bug: turns: given up while somebody has it
//! cases: lingers
//! in turns.rs
//! - self.end_if(self.holders == 0)
//! + self.end_if(true)
//! ```
//!
//! `cases` is a part of the names of the cases in which it is looked for first, if not what stands
//! before the colon of its name. Lines with `-` are text that occurs exactly once in the file, so that
//! a bug cannot be lost without notice when the machine changes. In a function that returns `impl`, it is an expression.

const FILES: [&str; 6] = [
    include_str!("seeds/of_mutex.txt"),
    include_str!("seeds/of_holds.txt"),
    include_str!("seeds/of_kinds.txt"),
    include_str!("seeds/of_turns.txt"),
    include_str!("seeds/of_tries.txt"),
    include_str!("seeds/of_callers.txt"),
];

/// Text that occurs exactly once in a file, and its replacement.
#[derive(Debug)]
pub(crate) struct Edit {
    /// A file of the machine.
    pub(crate) file: &'static str,
    pub(crate) text: String,
    pub(crate) replacement: String,
}

/// A mistake.
#[derive(Debug)]
pub(crate) struct Seed {
    pub(crate) name: &'static str,
    /// A part of the names of the cases in which it is looked for first; "" for those of the mutex.
    pub(crate) kind: &'static str,
    pub(crate) edits: Vec<Edit>,
}

impl Seed {
    fn read(text: &'static str) -> Self {
        let mut parts = text.split("\nin ");
        let head = parts.next().unwrap_or("").trim_end();
        let (name, kind) = head.split_once("\ncases: ").unwrap_or_else(|| {
            let kind = head.split_once(": ").map_or("", |(kind, _)| kind);
            (head, kind)
        });
        Self { name, kind, edits: parts.map(Edit::read).collect() }
    }
}

impl Edit {
    fn read(text: &'static str) -> Self {
        let (file, lines) = text.split_once('\n').unwrap_or((text, ""));
        let with = |sign: char| {
            let lines = lines.lines().filter_map(|line| line.strip_prefix(sign));
            let lines: Vec<_> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
            lines.join("\n")
        };
        Self { file, text: with('-'), replacement: with('+') }
    }
}

/// All seeds, or those whose names contain the text in `ZKLOCK_BUG`.
pub(crate) fn all() -> impl Iterator<Item = Seed> {
    let chosen = std::env::var("ZKLOCK_BUG").unwrap_or_default();
    let seeds = FILES.into_iter().flat_map(|file| file.split("\nbug: ").skip(1).map(Seed::read));
    share(seeds.filter(move |seed| seed.name.contains(&chosen)))
}

/// Those that `ZKLOCK_SHARE` chooses: with `2/5` every fifth, beginning after two.
pub(crate) fn share<T>(all: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let chosen = std::env::var("ZKLOCK_SHARE").unwrap_or_else(|_| "0/1".to_owned());
    let numbers =
        chosen.split_once('/').and_then(|(first, every)| Some((first.parse().ok()?, every.parse().ok()?)));
    let (first, every) = numbers.expect("ZKLOCK_SHARE is like 2/5");
    all.skip(first).step_by(every)
}
