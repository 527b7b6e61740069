//! At each step of an attempt: what if the answer is lost, the ensemble refuses, or an operator has deleted everything?

use super::{NOW, SESSION};
use crate::Moment;
use crate::claim::{Claim, Permits};
use crate::contender::Contender;
use crate::drive::Machine;
use crate::name::{Scheme, Uuid};
use crate::protocol::{
    NewNode, Node, Now, Operation, Origin, Outcome, Patience, Refusal, Verdict, WatchEvent,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const ANOTHERS: i64 = 8;
/// More steps than any attempt takes, unless it goes round in circles.
const STEPS: usize = 60;

/// So late that no node is granted before it has been proven again.
const LATE: Now =
    Now { moment: Moment::at(Duration::from_secs(5)), lease_until: Moment::at(Duration::from_secs(10)) };

/// A server that does what it is asked.
struct Server {
    /// When the answer to a flight sent at the origin of time arrives.
    now: Now,
    zxid: i64,
    directories: BTreeSet<String>,
    /// The next number in each directory.
    numbers: BTreeMap<String, i32>,
    nodes: BTreeMap<String, Origin>,
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').unwrap().0
}

fn own_name(path: &str) -> String {
    path.rsplit('/').next().unwrap().to_owned()
}

impl Server {
    fn new(now: Now) -> Self {
        let (directories, numbers, nodes) = Default::default();
        Self { now, zxid: 0, directories, numbers, nodes }
    }

    fn create(&mut self, new: &NewNode, session: i64) -> Node {
        let number = self.numbers.entry(new.directory.to_string()).or_default();
        let name = format!("{}{number:010}", new.prefix);
        *number += 1;
        self.put(&format!("{}/{name}", new.directory), session)
    }

    fn put(&mut self, path: &str, session: i64) -> Node {
        let origin = Origin { czxid: self.zxid, session };
        self.nodes.insert(path.to_owned(), origin);
        Node { name: own_name(path), origin: Some(origin) }
    }

    fn creates(&mut self, all: &[NewNode]) -> Outcome {
        self.zxid += 1;
        if !all.iter().all(|new| self.directories.contains(&*new.directory)) {
            return Outcome::NoNode;
        }
        Outcome::Created(all.iter().map(|new| self.create(new, SESSION)).collect())
    }

    fn list(&self, directory: &str) -> Outcome {
        if !self.directories.contains(directory) {
            return Outcome::NoNode;
        }
        let children = self.nodes.keys().chain(&self.directories).filter(|path| parent(path) == directory);
        Outcome::Children(children.map(|path| own_name(path)).collect())
    }

    fn done(is_done: bool) -> Outcome {
        if is_done { Outcome::Done } else { Outcome::NoNode }
    }

    fn execute(&mut self, operation: &Operation) -> Outcome {
        match operation {
            Operation::Create(new) => self.creates(std::slice::from_ref(new)),
            Operation::CreateAll(all) => self.creates(all),
            Operation::CreateWithin { path, guard, .. } if self.nodes.contains_key(guard) => {
                self.zxid += 1;
                Outcome::Created(vec![self.put(path, SESSION)])
            }
            Operation::CreateParents { directory } => {
                let ends = directory.match_indices('/').map(|(at, _)| at).skip(1).chain([directory.len()]);
                self.directories.extend(ends.map(|end| directory[..end].to_owned()));
                Outcome::Done
            }
            Operation::List { directory } | Operation::ListAndWatch { directory } => self.list(directory),
            Operation::Inspect { path } => self.nodes.get(path).map_or(Outcome::NoNode, |origin| {
                Outcome::Found(Node { name: own_name(path), origin: Some(*origin) })
            }),
            Operation::Watch { path } => Self::done(self.nodes.contains_key(path)),
            Operation::ReadLimit { .. } => Outcome::Limit(None),
            Operation::Check { paths } => Self::done(paths.iter().all(|path| self.nodes.contains_key(path))),
            Operation::Delete { path } => Self::done(self.nodes.remove(path).is_some()),
            Operation::Barrier { .. } => Outcome::Done,
            _ => Outcome::NoNode,
        }
    }

    /// An operator deletes everything.
    fn clear(&mut self) {
        self.directories.clear();
        self.nodes.clear();
        self.numbers.clear();
    }

    fn ours(&self) -> usize {
        self.nodes.values().filter(|origin| origin.session == SESSION).count()
    }

    /// Goes on until the attempt waits, holds, or is gone. Returns what it was told.
    fn serve(&mut self, contender: &mut Contender) -> Option<Verdict> {
        let mut told = contender.poll_verdict();
        for _ in 0..STEPS {
            if let Some(until) = contender.poll_timeout() {
                contender.handle_timeout(until);
            }
            let Some(flight) = contender.poll_flight() else { return told };
            let outcomes = flight.iter().map(|operation| self.execute(operation)).collect();
            contender.handle_replies(outcomes, Moment::default(), self.now);
            told = told.or(contender.poll_verdict());
        }
        panic!("it goes round in circles: {contender:?}");
    }
}

/// An attempt, its server, and how many nodes represent its hold.
struct Scene {
    name: &'static str,
    claims: Vec<Claim>,
    patience: Patience,
    others: &'static [&'static str],
    holds_by: usize,
}

fn permits(count: u32, limit: u32) -> Claim {
    let directory = "/s/leases".into();
    let permits =
        Permits { directory, count, limit, limit_at: Some("/s/limit".into()), data: Default::default() };
    Claim { permits: Some(permits), ..Claim::new("/s/locks", Scheme::Mutex) }
}

const AHEAD: &[&str] = &["/a/_c_other-lock-0000000000"];
const TWO_AHEAD: &[&str] = &["/a/_c_other-lock-0000000000", "/a/_c_another-lock-0000000001"];

fn scenes() -> Vec<Scene> {
    let mutex = || vec![Claim::new("/a", Scheme::Mutex)];
    let set = || vec![Claim::new("/a", Scheme::Mutex), Claim::new("/b", Scheme::Mutex)];
    let scene =
        |name, claims, others, holds_by| Scene { name, claims, patience: Patience::Waits, others, holds_by };
    vec![
        scene("a free mutex", mutex(), &[], 1),
        scene("a mutex that another has", mutex(), AHEAD, 1),
        scene("a mutex that two are ahead for", mutex(), TWO_AHEAD, 1),
        scene("a free set", set(), &[], 2),
        scene("a set of which one is taken", set(), AHEAD, 2),
        scene("permits", vec![permits(2, 3)], &[], 2),
        scene(
            "permits of which too many are taken",
            vec![permits(2, 2)],
            &["/s/leases/_c_x-lease-0000000000"],
            2,
        ),
        scene("permits behind another", vec![permits(1, 2)], &["/s/locks/_c_other-lock-0000000000"], 1),
        Scene { patience: Patience::TriesOnce, ..scene("a try", mutex(), &[], 1) },
        Scene { patience: Patience::TriesOnce, ..scene("a try of a semaphore", vec![permits(2, 3)], &[], 2) },
        Scene {
            patience: Patience::TriesOnce,
            ..scene("a try behind another", vec![permits(1, 2)], &["/s/locks/_c_other-lock-0000000000"], 1)
        },
    ]
}

impl Scene {
    fn begin(&self, now: Now) -> (Server, Contender) {
        let mut server = Server::new(now);
        for path in self.others {
            server.execute(&Operation::CreateParents { directory: parent(path).into() });
            server.put(path, ANOTHERS);
            *server.numbers.entry(parent(path).to_owned()).or_default() += 1;
        }
        let mut contender = Contender::new(self.claims.clone(), self.patience);
        contender.handle_session(SESSION, Duration::from_secs(1), Uuid::from_random(7));
        (server, contender)
    }

    /// Runs it for this many steps; `None` if it has been granted before. A watch fires while it waits, because the
    /// contenders ahead are gone.
    fn after(&self, steps: usize, now: Now) -> Option<(Server, Contender)> {
        let (mut server, mut contender) = self.begin(now);
        for _ in 0..steps {
            if contender.is_waiting() {
                go_away(&mut server, &mut contender);
            }
            let flight = contender.poll_flight()?;
            let outcomes = flight.iter().map(|operation| server.execute(operation)).collect();
            contender.handle_replies(outcomes, Moment::default(), now);
            if contender.poll_verdict().is_some() {
                return None;
            }
        }
        Some((server, contender))
    }

    fn holds(&self, server: &Server, told: &Option<Verdict>, what: &str) {
        let Some(Verdict::Granted { nodes, .. }) = told else { panic!("{}, {what}: {told:?}", self.name) };
        assert_eq!(nodes.len(), self.holds_by, "{}, {what}", self.name);
        assert!(nodes.iter().all(|node| server.nodes.contains_key(node)), "{}, {what}", self.name);
        assert_eq!(server.ours(), self.holds_by, "{}, {what}", self.name);
    }

    /// Runs it to its grant, and then to its end.
    fn ends_well(&self, mut server: Server, mut contender: Contender, what: &str) {
        let mut told = server.serve(&mut contender);
        for _ in 0..4 {
            if told.is_none() && contender.is_waiting() {
                go_away(&mut server, &mut contender);
                told = server.serve(&mut contender);
            }
        }
        self.holds(&server, &told, what);
        contender.handle_end();
        assert_eq!((server.serve(&mut contender), server.ours()), (None, 0), "{}, {what}", self.name);
        assert!(contender.is_gone());
    }
}

/// One of the contenders in the way goes.
fn go_away(server: &mut Server, contender: &mut Contender) {
    let mut latest =
        server.nodes.iter().filter(|(_, origin)| origin.session == ANOTHERS).map(|(path, _)| path.clone());
    if let Some(path) = latest.next_back() {
        server.nodes.remove(&path);
    }
    contender.handle_watch(WatchEvent::Deleted, server.now);
}

#[test]
fn one_waits_for_those_that_have_the_lock_and_for_nobody_else() {
    for scene in scenes() {
        let (mut server, mut contender) = scene.begin(NOW);
        assert_eq!(server.serve(&mut contender).is_none(), !scene.others.is_empty(), "{}", scene.name);
        let (server, contender) = scene.begin(NOW);
        scene.ends_well(server, contender, "nothing");
    }
}

#[test]
fn an_answer_that_is_lost_costs_nothing_but_time() {
    for (scene, now) in scenes().iter().flat_map(|scene| [(scene, NOW), (scene, LATE)]) {
        for (steps, is_executed) in (0..STEPS).flat_map(|steps| [(steps, true), (steps, false)]) {
            let Some((mut server, mut contender)) = scene.after(steps, now) else { break };
            if contender.is_waiting() {
                go_away(&mut server, &mut contender);
            }
            let Some(flight) = contender.poll_flight() else { break };
            let unknown = flight.iter().map(|operation| {
                if is_executed {
                    server.execute(operation);
                }
                Outcome::Unknown
            });
            let unknown = unknown.collect();
            contender.handle_replies(unknown, Moment::default(), NOW);
            scene.ends_well(server, contender, &format!("lost after {steps}, executed: {is_executed}"));
        }
    }
}

#[test]
fn one_that_is_refused_something_fails_and_leaves_nothing() {
    for (scene, now) in scenes().iter().flat_map(|scene| [(scene, NOW), (scene, LATE)]) {
        for steps in 0..STEPS {
            let Some((mut server, mut contender)) = scene.after(steps, now) else { break };
            if contender.is_waiting() {
                go_away(&mut server, &mut contender);
            }
            let Some(flight) = contender.poll_flight() else { break };
            contender.handle_replies(
                vec![Outcome::Refused(Refusal::Denied); flight.len()],
                Moment::default(),
                NOW,
            );
            let told = contender.poll_verdict();
            if matches!(flight[..], [Operation::Watch { .. }]) {
                // Its directory shows what happens to that node.
                assert_eq!(told, None, "{}, refused after {steps}", scene.name);
                scene.ends_well(server, contender, &format!("refused after {steps}"));
            } else {
                assert_eq!(told, Some(Verdict::Failed(Refusal::Denied)), "{}: {flight:?}", scene.name);
                assert_eq!(
                    (server.serve(&mut contender), server.ours()),
                    (None, 0),
                    "{}: {flight:?}",
                    scene.name
                );
                assert!(contender.is_gone());
            }
        }
    }
}

#[test]
fn one_whose_directory_was_deleted_comes_again() {
    for scene in scenes() {
        for steps in 0..STEPS {
            let Some((mut server, mut contender)) = scene.after(steps, LATE) else { break };
            server.clear();
            if contender.is_waiting() {
                contender.handle_watch(WatchEvent::Deleted, server.now);
            }
            scene.ends_well(server, contender, &format!("deleted after {steps}"));
        }
    }
}
