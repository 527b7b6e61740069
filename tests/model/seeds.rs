//! Bugs that are put into the machine to see that they are found.
//!
//! A check that never failed proves little. Each seed is a mistake that somebody could make, as
//! replacements in the sources; the texts must occur exactly once, so that a seed cannot be lost
//! without notice when the machine changes.

mod of_barrier;
mod of_holds;
mod of_kinds;
mod of_mutex;
mod of_tries;
mod of_turns;

/// Text that stands exactly once in a file, and what it is replaced by.
#[derive(Debug)]
pub(crate) struct Edit {
    /// In the machine, or `adapter.rs` for the part that is the driver's.
    pub(crate) file: &'static str,
    pub(crate) text: &'static str,
    pub(crate) replacement: &'static str,
}

/// A mistake.
#[derive(Debug)]
pub(crate) struct Seed {
    pub(crate) name: &'static str,
    pub(crate) edits: &'static [Edit],
    /// What is in the names of the cases in which it is looked for first; "" for those of the mutex.
    pub(crate) kind: &'static str,
}

impl Seed {
    /// Whether it changes this module of the machine, or a room of it.
    pub(crate) fn changes(&self, module: &str) -> bool {
        let house = |file: &str| file.split(['/', '.']).next() == Some(module);
        self.edits.iter().any(|edit| house(edit.file))
    }
}

const fn seed(kind: &'static str, name: &'static str, edits: &'static [Edit]) -> Seed {
    Seed { name, edits, kind }
}

const fn edit(file: &'static str, text: &'static str, replacement: &'static str) -> Edit {
    Edit { file, text, replacement }
}

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
const COME: &str = "member/enter.rs";
const LEAVE: &str = "member/leave.rs";
const LEASE: &str = "lease.rs";
const MEMORY: &str = "memory.rs";

/// All of them, or those whose names contain what `ZKLOCK_BUG` says.
pub(crate) fn all() -> impl Iterator<Item = &'static Seed> {
    let of_locks = of_mutex::SEEDS.iter().chain(of_holds::SEEDS).chain(of_kinds::SEEDS);
    let chosen = std::env::var("ZKLOCK_BUG").unwrap_or_default();
    let all = of_locks.chain(of_turns::SEEDS).chain(of_tries::SEEDS).chain(of_barrier::SEEDS);
    all.filter(move |seed| seed.name.contains(&chosen))
}
