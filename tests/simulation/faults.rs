//! Begins and mends the faults when they are due. The timekeeper does this, so that it goes on while clients are stopped.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use crate::actors::{Stage, is_contender, is_member};
use crate::network::{Shared, open_all};
use crate::plan::{SERVERS, SESSION, Stroke, TICK};
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
        let strokes = strokes.iter().filter(|stroke| stroke.fault.name != CLIENT_KILLED).cloned().collect();
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
                let client = stage.numbers.borrow().get(stroke.client).copied();
                if let Some(mend) = client.and_then(|client| (stroke.fault.begin)(stage, &stroke, client)) {
                    let mut faults = stage.faults.borrow_mut();
                    faults.last += 1;
                    let key = (stroke.at + stroke.lasts, faults.last);
                    faults.mends.insert(key, mend);
                }
            }
        }
    }
}

/// One kind of fault.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    /// How often it strikes, compared with others.
    pub(crate) weight: usize,
    begin: Begin,
}

/// Begins the fault, at that client or at the server of the stroke. Returns what ends it.
type Begin = fn(&Stage, &Stroke, usize) -> Option<Mend>;

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const fn fault(name: &'static str, weight: usize, begin: Begin) -> Fault {
    Fault { name, weight, begin }
}

pub(crate) const CLIENT_KILLED: &str = "client killed";
pub(crate) const DELETIONS_LOST: &str = "deletions lost";

pub(crate) const FAULTS: &[Fault] = &[
    fault("connections ended at both ends", 8, |stage, _, client| end_connections(stage, client, true)),
    fault("connections ended at the client", 5, |stage, _, client| end_connections(stage, client, false)),
    fault("requests frozen", 6, |stage, _, client| freeze(stage, client, true, false)),
    fault("replies frozen", 6, |stage, _, client| freeze(stage, client, false, true)),
    fault("both ways frozen", 5, |stage, _, client| freeze(stage, client, true, true)),
    fault("ways delayed", 5, |stage, stroke, client| {
        let longest = 5 + usize::try_from(stroke.choice % 400).unwrap_or(0);
        stage.network.borrow_mut().delay(client, longest);
        mend(move |stage| stage.network.borrow_mut().delay(client, 0))
    }),
    fault("servers out of reach", 3, |stage, _, client| {
        open_all(&stage.network, client, false);
        stage.network.borrow_mut().cut(client, true);
        mend(move |stage| {
            // A client that was killed meanwhile stays dead.
            let is_alive = stage.numbers.borrow().contains(&client);
            open_all(&stage.network, client, is_alive);
        })
    }),
    fault(CLIENT_KILLED, 2, |_, _, _| unreachable!("the cast does that")),
    // As on a paused machine: the servers go on.
    fault("all clients stopped", 3, |stage, stroke, _| {
        let mut faults = stage.faults.borrow_mut();
        // While clients are stopped, another stop is left out, so that they run between two stops.
        if faults.stopped <= stroke.at {
            faults.stopped = stroke.at + stroke.lasts;
        }
        None
    }),
    fault("server paused", 4, |stage, stroke, _| pause(stage, stroke.server)),
    fault("leader paused", 4, |stage, stroke, _| pause(stage, leader(stage, stroke))),
    fault("server killed", 2, |stage, stroke, _| kill(stage, &[stroke.server])),
    fault("leader killed", 3, |stage, stroke, _| kill(stage, &[leader(stage, stroke)])),
    fault("two servers cut off from each other", 4, |stage, stroke, _| {
        cut(stage, stroke.server, &[(stroke.server + 1) % SERVERS])
    }),
    // Only clients hear it.
    fault("leader cut off from all servers", 4, |stage, stroke, _| {
        let leader = leader(stage, stroke);
        let others: Vec<_> = (0..SERVERS).filter(|other| *other != leader).collect();
        cut(stage, leader, &others)
    }),
    fault("quorum lost", 2, |stage, stroke, _| kill(stage, &[stroke.server, (stroke.server + 1) % SERVERS])),
    fault("shorter sessions granted", 2, |stage, stroke, _| {
        let server = stroke.server;
        act_on(&stage.network, |replicas| replicas.limit(server, TICK * 2, SESSION / 2));
        mend_servers(move |replicas| replicas.limit(server, TICK * 2, TICK * 20))
    }),
    fault("session ended", 3, |stage, stroke, _| {
        let sessions = stage.network.borrow().replicas.sessions();
        let session = pick(&sessions, stroke.choice)?;
        stage.claims.borrow_mut().forgive_session(session);
        act_on(&stage.network, |replicas| replicas.expire(session));
        None
    }),
    fault("node deleted", 3, |stage, stroke, _| {
        let mut nodes = stage.network.borrow().replicas.nodes();
        nodes.retain(|path| is_contender(path) || is_member(path));
        let node = pick(&nodes, stroke.choice)?;
        stage.claims.borrow_mut().forgive_node(&node);
        act_on(&stage.network, |replicas| replicas.delete(&node));
        None
    }),
    // A server still shows deleted nodes.
    fault(DELETIONS_LOST, 2, |stage, stroke, _| {
        let count = 1 + usize::try_from(stroke.choice % 3).unwrap_or(0);
        act_on(&stage.network, |replicas| replicas.lose_deletions(stroke.server, count));
        None
    }),
];

fn end_connections(stage: &Stage, client: usize, servers_know: bool) -> Option<Mend> {
    stage.network.borrow_mut().cut(client, servers_know);
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

/// The leader, or another server if there is none.
fn leader(stage: &Stage, stroke: &Stroke) -> usize {
    stage.network.borrow().replicas.leader().unwrap_or(stroke.server)
}

#[expect(clippy::unnecessary_wraps, reason = "what `begin` returns")]
fn mend(act: impl FnOnce(&Stage) + 'static) -> Option<Mend> {
    Some(Box::new(act))
}

fn mend_servers(act: impl FnOnce(&mut Replicas) + 'static) -> Option<Mend> {
    mend(|stage| act_on(&stage.network, act))
}

fn act_on<Done>(network: &Shared, act: impl FnOnce(&mut Replicas) -> Done) {
    let mut network = network.borrow_mut();
    act(&mut network.replicas);
    network.stir.notify_one();
}

fn pick<T: Clone>(from: &[T], choice: u64) -> Option<T> {
    let at = usize::try_from(choice).unwrap_or(0).checked_rem(from.len())?;
    from.get(at).cloned()
}
