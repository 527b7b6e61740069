//! Walks through every order of events of a small world, or through many random ones of a large one.
//!
//! It is a checker of our own because it checks Rust code and not a text about it: the states are
//! the shipped machine's own values. It goes breadth first, so that the first violation has a
//! shortest trace. It only keeps a fingerprint of a visited state; it finds a trace again through
//! the parents, and replays it.

use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

/// A property that does not hold, and the details.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Violation {
    pub(crate) property: &'static str,
    pub(crate) detail: String,
}

/// The actions that are possible next.
#[derive(Debug)]
pub(crate) struct Actions<A> {
    /// Actions that happen some time if nothing goes wrong. Without any, nobody does anything any
    /// more unless disturbed, so the properties of the end must hold.
    pub(crate) progress: Vec<A>,
    /// Actions that may happen or not.
    pub(crate) faults: Vec<A>,
}

/// Those of these actions that are possible.
pub(crate) fn possible<A, const N: usize>(may: [(A, bool); N]) -> impl Iterator<Item = A> {
    may.into_iter().filter(|(_, may)| *may).map(|(action, _)| action)
}

/// Something whose states are to be explored.
pub(crate) trait World: Clone + Hash {
    type Action: Copy + fmt::Debug;

    fn actions(&self) -> Actions<Self::Action>;
    fn apply(&mut self, action: Self::Action);
    /// Describes this action in this state, for a trace.
    fn describe(&self, action: Self::Action) -> String {
        format!("{action:?}")
    }
    /// Checks the properties that must always hold.
    fn check(&self) -> Result<(), Violation>;
    /// Checks the properties that must hold if no other progress than this is possible.
    fn check_at_rest(&self, _progress: &[Self::Action]) -> Result<(), Violation> {
        Ok(())
    }
}

/// The result of an exploration.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) states: usize,
    pub(crate) transitions: usize,
    pub(crate) depth: usize,
    pub(crate) elapsed: Duration,
    pub(crate) failure: Option<Failure>,
    /// Whether there were more states than the limit.
    pub(crate) cut: bool,
}

/// A violation and its trace.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) violation: Violation,
    pub(crate) trace: Vec<String>,
    /// The random walk that found it, if one did.
    pub(crate) seed: Option<u64>,
}

fn violation_of<W: World>(world: &W, actions: &Actions<W::Action>) -> Result<(), Violation> {
    world.check()?;
    world.check_at_rest(&actions.progress)
}

/// Visits every state that can be reached, or the first `limit` of them.
pub(crate) fn explore<W: World>(start: &W, limit: usize) -> Report {
    let begun = Instant::now();
    // For each state: the state before it, and the action that led from there.
    let mut origins: Vec<(u32, Option<W::Action>)> = vec![(0, None)];
    let mut seen: HashSet<u64, Thin> = HashSet::default();
    seen.insert(fingerprint(start));
    let mut level = vec![(0_u32, start.clone())];
    let mut report = Report::new();
    while !level.is_empty() {
        let mut next = Vec::new();
        for (index, world) in std::mem::take(&mut level) {
            let actions = world.actions();
            if let Err(violation) = violation_of(&world, &actions) {
                let trace = replay(start, &origins, index);
                report.failure = Some(Failure { violation, trace, seed: None });
                return report.closed(origins.len(), begun);
            }
            for action in actions.progress.into_iter().chain(actions.faults) {
                report.transitions += 1;
                let mut successor = world.clone();
                successor.apply(action);
                if seen.insert(fingerprint(&successor)) {
                    let number = u32::try_from(origins.len()).expect("the limit is below 2^32");
                    origins.push((index, Some(action)));
                    next.push((number, successor));
                }
            }
            if origins.len() >= limit {
                report.cut = true;
                return report.closed(origins.len(), begun);
            }
        }
        level = next;
        report.depth += 1;
    }
    report.closed(origins.len(), begun)
}

/// Takes `walks` random walks, each until nothing can happen any more.
///
/// A walk that does not end within `longest` steps is a violation, too: somebody retries for ever.
pub(crate) fn walk<W: World>(start: &W, walks: u64, first_seed: u64, longest: usize) -> Report {
    let begun = Instant::now();
    let mut report = Report::new();
    let mut states = 0;
    for seed in first_seed..first_seed + walks {
        let (steps, failure) = walk_once(start, seed, longest);
        report.transitions += steps;
        report.depth = report.depth.max(steps);
        states += steps + 1;
        report.failure = failure;
        if report.failure.is_some() {
            break;
        }
    }
    report.closed(states, begun)
}

fn walk_once<W: World>(start: &W, seed: u64, longest: usize) -> (usize, Option<Failure>) {
    let mut random = Random::new(seed);
    // Some walks are calm and some are wild; each keeps to its own share of faults.
    let wildness = [2, 5, 12, 25][random.below(4)];
    let mut world = start.clone();
    let mut taken = Vec::new();
    let result = loop {
        let actions = world.actions();
        if let Err(violation) = violation_of(&world, &actions) {
            break Some(violation);
        }
        let disturb = actions.progress.is_empty() || random.below(100) < wildness;
        let choices = if disturb && !actions.faults.is_empty() { actions.faults } else { actions.progress };
        if choices.is_empty() {
            break None;
        }
        if taken.len() >= longest {
            break Some(Violation { property: "end", detail: format!("no end after {longest} steps") });
        }
        let action = choices[random.below(choices.len())];
        world.apply(action);
        taken.push(action);
    };
    let failure =
        result.map(|violation| Failure { violation, trace: describe(start, &taken).1, seed: Some(seed) });
    (taken.len(), failure)
}

fn replay<W: World>(start: &W, origins: &[(u32, Option<W::Action>)], last: u32) -> Vec<String> {
    let mut actions = Vec::new();
    let mut index = last;
    while let (before, Some(action)) = origins[index as usize] {
        actions.push(action);
        index = before;
    }
    actions.reverse();
    let (world, trace) = describe(start, &actions);
    assert!(violation_of(&world, &world.actions()).is_err(), "a trace replays exactly");
    trace
}

/// The state to which these actions lead, and their descriptions.
fn describe<W: World>(start: &W, actions: &[W::Action]) -> (W, Vec<String>) {
    let mut world = start.clone();
    let mut trace = Vec::new();
    for action in actions {
        trace.push(world.describe(*action));
        world.apply(*action);
    }
    (world, trace)
}

impl Report {
    fn new() -> Self {
        let elapsed = Duration::ZERO;
        Self { states: 0, transitions: 0, depth: 0, elapsed, failure: None, cut: false }
    }

    fn closed(mut self, states: usize, begun: Instant) -> Self {
        self.states = states;
        self.elapsed = begun.elapsed();
        self
    }
}

/// Random numbers that are the same on every machine (xorshift64*).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        // Spreads small seeds, and is never zero.
        Self((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(high).map_or(0, |number| number % bound)
    }
}

/// Equal worlds have the same fingerprint; different worlds share one with a chance of 1 in 2^64.
pub(crate) fn fingerprint(world: &impl Hash) -> u64 {
    let mut hasher = Fold(0x51_7C_C1_B7_27_22_0A_95);
    world.hash(&mut hasher);
    hasher.finish()
}

/// Most of the time goes into fingerprints, and the standard hasher is several times slower.
#[derive(Clone)]
struct Fold(u64);

impl Fold {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(0xA076_1D64_78BD_642F_u64);
        self.0 = (product as u64) ^ ((product >> 64) as u64) ^ word.rotate_left(32);
    }
}

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }
}

/// Fingerprints need no second hashing.
#[derive(Clone, Default)]
struct Thin;

impl std::hash::BuildHasher for Thin {
    type Hasher = Fold;

    fn build_hasher(&self) -> Fold {
        Fold(0)
    }
}
