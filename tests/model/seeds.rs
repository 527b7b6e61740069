//! Bugs that are planted in the machine, to show that the model finds them.
//!
//! A check that never failed proves little. Each seed is a mistake that somebody could make, as
//! replacements in the sources; the texts must occur exactly once, so that a seed cannot be lost
//! without notice when the machine changes.

mod of_barrier;
mod of_callers;
mod of_holds;
mod of_kinds;
mod of_mutex;
mod of_tries;
mod of_turns;

/// Text that occurs exactly once in a file, and its replacement.
#[derive(Debug)]
pub(crate) struct Edit {
    /// A file of the machine, or `adapter.rs` for the driver's part.
    pub(crate) file: &'static str,
    pub(crate) text: &'static str,
    pub(crate) replacement: &'static str,
}

/// A mistake.
#[derive(Debug)]
pub(crate) struct Seed {
    pub(crate) name: &'static str,
    pub(crate) edits: &'static [Edit],
    /// A part of the names of the cases in which it is looked for first, if not what stands before the colon of its name.
    pub(crate) kind: Option<&'static str>,
}

impl Seed {
    /// A part of the names of the cases in which it is looked for first; "" for those of the mutex.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind.unwrap_or_else(|| self.name.split_once(": ").map_or("", |(kind, _)| kind))
    }

    /// Whether it changes this module of the machine, or a submodule of it.
    pub(crate) fn changes(&self, module: &str) -> bool {
        let house = |file: &str| file.split(['/', '.']).next() == Some(module);
        self.edits.iter().any(|edit| house(edit.file))
    }
}

const fn seed(name: &'static str, edits: &'static [Edit]) -> Seed {
    Seed { name, edits, kind: None }
}

/// It is looked for first in other cases than those with which its name begins.
const fn of(kind: &'static str, name: &'static str, edits: &'static [Edit]) -> Seed {
    Seed { name, edits, kind: Some(kind) }
}

const fn edit(file: &'static str, text: &'static str, replacement: &'static str) -> Edit {
    Edit { file, text, replacement }
}

const CALLERS: &str = "callers.rs";
const HELD: &str = "callers/held.rs";
const KEPT: &str = "callers/kept.rs";
const PLACES: &str = "callers/places.rs";
const TRIES: &str = "callers/tries.rs";
const BUSY: &str = "contender/busy.rs";
const CONTENDER: &str = "contender.rs";
const DOUBT: &str = "single/doubt.rs";
const ENTER: &str = "contender/enter.rs";
const NODES: &str = "contender/nodes.rs";
const NOTICE: &str = "contender/notice.rs";
const RENEW: &str = "contender/renew.rs";
const TURN: &str = "contender/turn.rs";
const TURNS: &str = "turns.rs";
const QUEUE: &str = "queue.rs";
const NAME: &str = "name.rs";
const KEEPER: &str = "keeper.rs";
const LAPSES: &str = "keeper/lapses.rs";
const WATCHING: &str = "keeper/watching.rs";
const READINESS: &str = "readiness.rs";
const SINGLE: &str = "single.rs";
const BARRIER: &str = "barrier.rs";
const MEMBER: &str = "member.rs";
const LEASE: &str = "lease.rs";
const MEMORY: &str = "memory.rs";

/// All seeds, or those whose names contain the text in `ZKLOCK_BUG`.
pub(crate) fn all() -> impl Iterator<Item = &'static Seed> {
    let of_locks = of_mutex::SEEDS.iter().chain(of_holds::SEEDS).chain(of_kinds::SEEDS);
    let chosen = std::env::var("ZKLOCK_BUG").unwrap_or_default();
    let all = of_locks
        .chain(of_turns::SEEDS)
        .chain(of_tries::SEEDS)
        .chain(of_callers::SEEDS)
        .chain(of_barrier::SEEDS);
    all.filter(move |seed| seed.name.contains(&chosen))
}
