//! What goes wrong in a run, and when: all of it comes from the seed.

use std::time::Duration;

use ground::Dice;

use crate::actors::LOCKS;

/// The timeout of sessions, and the servers' tick.
pub(crate) const SESSION: Duration = Duration::from_secs(2);
pub(crate) const TICK: Duration = Duration::from_millis(400);
pub(crate) const SERVERS: usize = 3;
/// For how long things go wrong.
const TROUBLED: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Connections of a client end at both ends.
    Cut,
    /// They end at the client alone.
    HalfOpen,
    /// Nothing passes to the servers, or from them.
    FreezeRequests,
    FreezeReplies,
    Freeze,
    Delay,
    /// No server can be connected to.
    Refuse,
    KillClient,
    /// As on a machine that is paused: the servers go on.
    StopClients,
    PauseServer,
    PauseLeader,
    KillServer,
    KillLeader,
    /// Two servers do not hear each other.
    CutServers,
    /// The leader hears nobody, and is heard by clients alone.
    IsolateLeader,
    LoseQuorum,
    /// A server grants sessions half the time.
    ShorterSessions,
    EndSession,
    DeleteNode,
    /// A server goes on to show nodes that are gone.
    LoseDeletions,
}

const KINDS: &[(Kind, usize)] = &[
    (Kind::Cut, 8),
    (Kind::HalfOpen, 5),
    (Kind::FreezeRequests, 6),
    (Kind::FreezeReplies, 6),
    (Kind::Freeze, 5),
    (Kind::Delay, 5),
    (Kind::Refuse, 3),
    (Kind::KillClient, 2),
    (Kind::StopClients, 3),
    (Kind::PauseServer, 4),
    (Kind::PauseLeader, 4),
    (Kind::KillServer, 2),
    (Kind::KillLeader, 3),
    (Kind::CutServers, 4),
    (Kind::IsolateLeader, 4),
    (Kind::LoseQuorum, 2),
    (Kind::ShorterSessions, 2),
    (Kind::EndSession, 3),
    (Kind::DeleteNode, 3),
    (Kind::LoseDeletions, 2),
];

/// One thing that goes wrong, and is mended after a time.
#[derive(Clone, Debug)]
pub(crate) struct Stroke {
    pub(crate) at: Duration,
    pub(crate) kind: Kind,
    pub(crate) lasts: Duration,
    /// Which client and which server, and whatever else is to be chosen.
    pub(crate) client: usize,
    pub(crate) server: usize,
    pub(crate) choice: u64,
}

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) clients: usize,
    /// How long a session that is granted a second lives on at the servers, in ms.
    pub(crate) second: u32,
    /// After how many ticks of silence servers give each other up.
    pub(crate) limit: u32,
    /// Which of the locks that actors know are taken.
    pub(crate) locks: Vec<usize>,
    pub(crate) strokes: Vec<Stroke>,
    /// When all is well again.
    pub(crate) end: Duration,
}

impl Plan {
    /// That of a seed, of which some strokes may be left out.
    pub(crate) fn new(seed: u64, without: &[usize]) -> Self {
        let mut dice = Dice::new(seed);
        let clients = 2 + dice.below(4);
        let second = 985 + u32::try_from(dice.below(31)).unwrap_or(0);
        let limit = 2 + u32::try_from(dice.below(10)).unwrap_or(0);
        // Few kinds of lock and of fault in a run: so each meets each other often in some runs.
        let locks = some(&mut dice, LOCKS);
        let kinds: Vec<_> = some(&mut dice, KINDS.len()).into_iter().map(|kind| KINDS[kind]).collect();
        let weights: Vec<_> = kinds.iter().map(|(_, weight)| *weight).collect();
        let pause = 200 + dice.below(2_500);
        let (mut strokes, mut at) = (Vec::new(), Duration::from_millis(500));
        while at < TROUBLED {
            strokes.push(Stroke {
                at,
                kind: kinds[dice.weighted(&weights)].0,
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

/// Some of so many, or all.
fn some(dice: &mut Dice, count: usize) -> Vec<usize> {
    let percent = dice.pick(&[15, 40, 100]);
    let chosen: Vec<_> = (0..count).filter(|_| dice.chance(percent)).collect();
    if chosen.is_empty() { vec![dice.below(count)] } else { chosen }
}

pub(crate) fn millis(dice: &mut Dice, least: usize, most: usize) -> Duration {
    Duration::from_millis(u64::try_from(least + dice.below(most - least + 1)).unwrap_or(0))
}
