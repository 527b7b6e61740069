//! The faults of a run, and their times: all of it comes from the seed.

use std::time::Duration;

use ground::Dice;

use crate::actors::LOCKS;
use crate::faults::{FAULTS, Fault};

/// The timeout of sessions, and the servers' tick.
pub(crate) const SESSION: Duration = Duration::from_secs(2);
pub(crate) const TICK: Duration = Duration::from_millis(400);
pub(crate) const SERVERS: usize = 3;
/// For how long faults strike.
const TROUBLED: Duration = Duration::from_secs(20);

/// One fault, which is mended after a time.
#[derive(Clone, Debug)]
pub(crate) struct Stroke {
    pub(crate) at: Duration,
    pub(crate) fault: &'static Fault,
    pub(crate) lasts: Duration,
    /// The client and the server that it strikes, and any other choice.
    pub(crate) client: usize,
    pub(crate) server: usize,
    pub(crate) choice: u64,
}

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) clients: usize,
    /// How long a session with a timeout of 1 s lives at the servers, in ms: their clocks are slow or fast.
    pub(crate) second: u32,
    /// The number of silent ticks after which servers give each other up.
    pub(crate) limit: u32,
    /// The locks that actors take, by index.
    pub(crate) locks: Vec<usize>,
    pub(crate) strokes: Vec<Stroke>,
    /// When the faults are over.
    pub(crate) end: Duration,
}

impl Plan {
    /// The plan of a seed, perhaps without some strokes.
    pub(crate) fn new(seed: u64, without: &[usize]) -> Self {
        let mut dice = Dice::new(seed);
        let clients = 2 + dice.below(4);
        let second = 985 + u32::try_from(dice.below(31)).unwrap_or(0);
        let limit = 2 + u32::try_from(dice.below(10)).unwrap_or(0);
        // Only some kinds of lock and of fault in a run, so that in some runs any two meet often.
        let locks = some(&mut dice, LOCKS);
        let faults: Vec<_> = some(&mut dice, FAULTS.len()).into_iter().map(|fault| &FAULTS[fault]).collect();
        let weights: Vec<_> = faults.iter().map(|fault| fault.weight).collect();
        let pause = 200 + dice.below(2_500);
        let (mut strokes, mut at) = (Vec::new(), Duration::from_millis(500));
        while at < TROUBLED {
            strokes.push(Stroke {
                at,
                fault: faults[dice.weighted(&weights)],
                lasts: millis(&mut dice, 50, 5_000),
                client: dice.below(clients),
                server: dice.below(SERVERS),
                choice: dice.throw(),
            });
            at += millis(&mut dice, 20, pause);
        }
        let end = strokes.iter().map(|stroke| stroke.at + stroke.lasts).max().unwrap_or_default();
        let mut number = 0..;
        strokes.retain(|_| number.next().is_some_and(|number| !without.contains(&number)));
        Self { clients, second, limit, locks, strokes, end }
    }
}

/// Some or all of the numbers below this count.
fn some(dice: &mut Dice, count: usize) -> Vec<usize> {
    let percent = dice.pick(&[15, 40, 100]);
    let chosen: Vec<_> = (0..count).filter(|_| dice.chance(percent)).collect();
    if chosen.is_empty() { vec![dice.below(count)] } else { chosen }
}

pub(crate) fn millis(dice: &mut Dice, least: usize, most: usize) -> Duration {
    Duration::from_millis(u64::try_from(least + dice.below(most - least + 1)).unwrap_or(0))
}
