//! Begins and mends the faults when they are due. The timekeeper does this, so that it goes on while clients are stopped.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::actors::{Stage, is_contender, is_member};
use crate::network::{Shared, open_all};
use crate::plan::{Kind, SERVERS, SESSION, Stroke, TICK};
use crate::replicas::Replicas;

type Mend = Box<dyn FnOnce(&Stage)>;

#[derive(Default)]
pub(crate) struct Faults {
    /// The faults to come, the next first.
    strokes: VecDeque<Stroke>,
    /// By the time when each is due, then in their order.
    mends: BTreeMap<(Duration, usize), Mend>,
    last: usize,
    /// Until when all clients are stopped.
    stopped: Duration,
}

enum Due {
    Stroke(Stroke),
    Mend(Mend),
}

impl Faults {
    /// All faults except the deaths of clients, which the cast sees to.
    pub(crate) fn new(strokes: &[Stroke]) -> Self {
        let strokes = strokes.iter().filter(|stroke| stroke.kind != Kind::KillClient).cloned().collect();
        Self { strokes, ..Self::default() }
    }

    /// When there is something to do next.
    pub(crate) fn next(&self) -> Duration {
        let stroke = self.strokes.front().map_or(Duration::MAX, |stroke| stroke.at);
        self.mends.keys().next().map_or(stroke, |(time, _)| stroke.min(*time))
    }

    pub(crate) fn stopped(&self) -> Duration {
        self.stopped
    }

    fn due(&mut self, now: Duration) -> Option<Due> {
        if self.next() > now {
            return None;
        }
        match self.mends.first_entry().filter(|mend| mend.key().0 <= now) {
            Some(mend) => Some(Due::Mend(mend.remove())),
            None => self.strokes.pop_front().map(Due::Stroke),
        }
    }
}

/// Begins and mends what is due.
pub(crate) fn step(stage: &Stage, now: Duration) {
    loop {
        let due = stage.faults.borrow_mut().due(now);
        match due {
            None => return,
            Some(Due::Mend(mend)) => mend(stage),
            Some(Due::Stroke(stroke)) => {
                if let Some(mend) = begin(stage, &stroke) {
                    let mut faults = stage.faults.borrow_mut();
                    faults.last += 1;
                    let key = (stroke.at + stroke.lasts, faults.last);
                    faults.mends.insert(key, mend);
                }
            }
        }
    }
}

/// Begins a fault. Returns how to mend it.
fn begin(stage: &Stage, stroke: &Stroke) -> Option<Mend> {
    let Stroke { kind, server, choice, .. } = *stroke;
    let client = stage.numbers.borrow().get(stroke.client).copied()?;
    let network = &stage.network;
    match kind {
        Kind::Cut => network.borrow_mut().cut(client, true),
        Kind::HalfOpen => network.borrow_mut().cut(client, false),
        Kind::FreezeRequests => return freeze(stage, client, true, false),
        Kind::FreezeReplies => return freeze(stage, client, false, true),
        Kind::Freeze => return freeze(stage, client, true, true),
        Kind::Delay => {
            let longest = 5 + usize::try_from(choice % 400).unwrap_or(0);
            network.borrow_mut().delay(client, longest);
            return mend(move |stage| stage.network.borrow_mut().delay(client, 0));
        }
        Kind::Refuse => {
            open_all(network, client, false);
            network.borrow_mut().cut(client, true);
            return mend(move |stage| {
                // A client that was killed meanwhile stays dead.
                let is_alive = stage.numbers.borrow().contains(&client);
                open_all(&stage.network, client, is_alive);
            });
        }
        Kind::StopClients => {
            let mut faults = stage.faults.borrow_mut();
            // While clients are stopped, another stop is left out, so that they run between two stops.
            if faults.stopped <= stroke.at {
                faults.stopped = stroke.at + stroke.lasts;
            }
        }
        Kind::PauseServer => return pause(stage, server),
        Kind::PauseLeader => return pause(stage, leader(stage).unwrap_or(server)),
        Kind::KillServer => return kill(stage, &[server]),
        Kind::KillLeader => return kill(stage, &[leader(stage).unwrap_or(server)]),
        Kind::LoseQuorum => return kill(stage, &[server, (server + 1) % SERVERS]),
        Kind::CutServers => return cut(stage, server, &[(server + 1) % SERVERS]),
        Kind::IsolateLeader => {
            let leader = leader(stage).unwrap_or(server);
            let others: Vec<_> = (0..SERVERS).filter(|other| *other != leader).collect();
            return cut(stage, leader, &others);
        }
        Kind::ShorterSessions => {
            act_on(network, |replicas| replicas.limit(server, TICK * 2, SESSION / 2));
            return mend_servers(move |replicas| replicas.limit(server, TICK * 2, TICK * 20));
        }
        Kind::EndSession => {
            let sessions = network.borrow().replicas.sessions();
            let session = pick(&sessions, choice)?;
            stage.claims.borrow_mut().forgive_session(session);
            act_on(network, |replicas| {
                replicas.expire(session);
            });
        }
        Kind::DeleteNode => {
            let nodes = network.borrow().replicas.nodes();
            let nodes: Vec<_> =
                nodes.into_iter().filter(|path| is_contender(path) || is_member(path)).collect();
            let node = pick(&nodes, choice)?;
            stage.claims.borrow_mut().forgive_node(&node);
            act_on(network, |replicas| {
                replicas.delete(&node);
            });
        }
        Kind::LoseDeletions => {
            let count = 1 + usize::try_from(choice % 3).unwrap_or(0);
            act_on(network, |replicas| {
                replicas.lose_deletions(server, count);
            });
        }
        Kind::KillClient => unreachable!("the cast does that"),
    }
    None
}

fn freeze(stage: &Stage, client: usize, requests: bool, replies: bool) -> Option<Mend> {
    stage.network.borrow_mut().freeze(client, requests, replies);
    mend(move |stage| stage.network.borrow_mut().freeze(client, false, false))
}

fn pause(stage: &Stage, server: usize) -> Option<Mend> {
    act_on(&stage.network, |replicas| replicas.pause(server));
    mend_servers(move |replicas| replicas.resume(server))
}

fn kill(stage: &Stage, servers: &[usize]) -> Option<Mend> {
    act_on(&stage.network, |replicas| servers.iter().for_each(|server| replicas.kill(*server)));
    let servers = servers.to_vec();
    mend_servers(move |replicas| servers.iter().for_each(|server| replicas.start(*server)))
}

fn cut(stage: &Stage, server: usize, others: &[usize]) -> Option<Mend> {
    act_on(&stage.network, |replicas| others.iter().for_each(|other| replicas.cut(server, *other)));
    mend_servers(Replicas::heal)
}

fn leader(stage: &Stage) -> Option<usize> {
    stage.network.borrow().replicas.leader()
}

#[expect(clippy::unnecessary_wraps, reason = "what `begin` returns")]
fn mend(act: impl FnOnce(&Stage) + 'static) -> Option<Mend> {
    Some(Box::new(act))
}

fn mend_servers(act: impl FnOnce(&mut Replicas) + 'static) -> Option<Mend> {
    mend(|stage| act_on(&stage.network, act))
}

fn act_on(network: &Shared, act: impl FnOnce(&mut Replicas)) {
    let mut network = network.borrow_mut();
    act(&mut network.replicas);
    network.stir.notify_one();
}

fn pick<T: Clone>(from: &[T], choice: u64) -> Option<T> {
    let at = usize::try_from(choice).unwrap_or(0).checked_rem(from.len())?;
    from.get(at).cloned()
}
