//! Sets of locks in contest: no deadlock, no partial hold, every lock as it is alone.

use crate::support::queue::run_time;
use crate::support::random::Random;
use crate::support::register::{Faults, Register, clients};
use crate::support::{SOON, client_of, operator, settled, soon};
use ground::{shared, until};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use zklock_core::{Client, ErrorKind, Hold, Lock, LockSpec};

const PATHS: usize = 10;
/// The weight of a writer: more than there ever are readers.
const ALL: u32 = 1000;
/// The limit of the semaphores.
const PERMITS: u32 = 3;

/// The guarded resource, and its locks: a register for each path.
struct Ground {
    root: &'static str,
    registers: Vec<Arc<Register>>,
    grants: AtomicU64,
    ended: AtomicBool,
}

impl Ground {
    fn new(root: &'static str) -> Arc<Self> {
        let limit = |path| match path {
            4..7 => ALL,
            7 | 8 => PERMITS,
            _ => 1,
        };
        let registers = (0..PATHS).map(|path| Register::of(limit(path))).collect();
        Arc::new(Self::with(root, registers))
    }

    /// Without registers, for a contest in which operators delete nodes: a holder believes in its hold until it learns of that.
    fn unguarded(root: &'static str) -> Arc<Self> {
        Arc::new(Self::with(root, Vec::new()))
    }

    fn with(root: &'static str, registers: Vec<Arc<Register>>) -> Self {
        Self { root, registers, grants: AtomicU64::new(0), ended: AtomicBool::new(false) }
    }

    fn path(&self, path: usize) -> String {
        format!("{}/{path}", self.root)
    }

    /// The lock of a path, and its weight.
    fn lock(&self, client: &Client, path: usize, random: &mut Random) -> (Lock, u32) {
        let name = self.path(path);
        match path {
            4..7 if random.below(2) == 0 => (client.write(&name).unwrap(), ALL),
            4..7 => (client.read(&name).unwrap(), 1),
            7 | 8 => {
                let permits = 1 + random.below(2) as u32;
                let spec = LockSpec::semaphore(&name, PERMITS).unwrap().permits(permits);
                (client.lock(&spec).unwrap(), permits)
            }
            9 => (client.election(&name).unwrap(), 1),
            _ => (client.mutex(&name).unwrap(), 1),
        }
    }

    /// Acquires random sets, one after the other.
    async fn contend(self: Arc<Self>, client: Client, seed: u64) {
        let mut random = Random::of(seed);
        while !self.ended.load(Ordering::Relaxed) {
            let mut paths = BTreeSet::new();
            for _ in 0..=random.below(4) {
                paths.insert(random.below(PATHS));
            }
            // The order in which a set names its locks is random.
            let mut paths: Vec<_> = paths.into_iter().collect();
            let turn = random.below(paths.len());
            paths.rotate_left(turn);
            let (locks, weights): (Vec<_>, Vec<_>) =
                paths.iter().map(|path| self.lock(&client, *path, &mut random)).unzip();
            let set = client.all(&locks).unwrap();
            let call = tokio::time::timeout(SOON * 3, set.acquire());
            let hold = match call.await {
                Ok(hold) => Arc::new(hold.expect("its turn comes")),
                Err(_) => panic!("a deadlock: {} waits for ever", set.path()),
            };
            self.check(&hold, &paths, &weights);
            tokio::time::sleep(Duration::from_millis(random.below(4) as u64)).await;
            for path in &paths {
                if let Some(register) = self.registers.get(*path) {
                    register.leave();
                }
            }
            self.grants.fetch_add(1, Ordering::Relaxed);
            match hold.release().await.map_err(|error| error.kind()) {
                Ok(()) | Err(ErrorKind::Lost(_) | ErrorKind::Timeout) => {}
                Err(kind) => panic!("the release failed: {kind:?}"),
            }
        }
    }

    /// Checks that this client holds all of it, and no other client does.
    fn check(&self, hold: &Arc<Hold>, paths: &[usize], weights: &[u32]) {
        for (path, weight) in paths.iter().zip(weights) {
            if let Some(register) = self.registers.get(*path) {
                register.enter(hold, *weight);
            }
            let below = format!("{}/", self.path(*path));
            let count = hold.nodes().filter(|node| node.starts_with(&below)).count();
            let expected = if self.path(*path).ends_with(['7', '8']) { *weight as usize } else { 1 };
            assert_eq!(count, expected, "a partial hold: {:?}", hold.nodes().collect::<Vec<_>>());
        }
    }

    /// Waits for this number of further grants.
    async fn goes_on(&self, more: u64) {
        let until = self.grants.load(Ordering::Relaxed) + more;
        soon(async {
            while self.grants.load(Ordering::Relaxed) < until {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }

    async fn end(&self, contenders: JoinSet<()>) {
        self.ended.store(true, Ordering::Relaxed);
        soon(contenders.join_all()).await;
    }

    fn is_empty(&self) {
        let operator = operator();
        for path in 0..PATHS {
            let path = self.path(path);
            if path.ends_with(['7', '8']) {
                operator.wait_for_children(&format!("{path}/locks"), 0, SOON);
                operator.wait_for_children(&format!("{path}/leases"), 0, SOON);
            } else {
                operator.wait_for_children(&path, 0, SOON);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_clients_with_random_sets_of_ten_locks_neither_deadlock_nor_hold_a_part() {
    let ground = Ground::new("/all-contest");
    let clients = clients(&shared().connect_string(), 50).await;
    let mut contenders = JoinSet::new();
    for (seed, client) in (1..).zip(&clients) {
        contenders.spawn(ground.clone().contend(client.clone(), seed));
    }
    let begun = std::time::Instant::now();
    let (time, mut before) = (run_time(Duration::from_secs(8)), 0);
    // The outcomes that are judged below come by chance: on a slow machine it takes longer until all of them have been
    // seen.
    let is_all_seen = || {
        let most = |path: usize| ground.registers[path].most();
        let is_used = |path: usize| ground.registers[path].count() > 20;
        ground.grants.load(Ordering::Relaxed) > 100 && most(4) > 1 && most(7) > 1 && (0..PATHS).all(is_used)
    };
    while begun.elapsed() < time || !is_all_seen() && begun.elapsed() < time + Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let grants = ground.grants.load(Ordering::Relaxed);
        assert!(grants > before, "nobody gets in any more after {grants} grants");
        before = grants;
    }
    ground.end(contenders).await;
    let most: Vec<_> = ground.registers.iter().map(|register| register.most()).collect();
    println!("{before} sets in {time:?}; at once, for each path: {most:?}");
    assert!(before > 100, "only {before} grants");
    assert!(most[4] > 1 && most[7] > 1, "readers and permits are never together: {most:?}");
    for path in 0..PATHS {
        assert!(ground.registers[path].count() > 20);
        // Permits are not fenced against each other.
        if !(7..9).contains(&path) {
            ground.registers[path].assert_growing();
        }
    }
    ground.is_empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_end_and_connections_that_break_do_not_break_a_set() {
    let ground = Ground::new("/all-faults");
    let (clients, mut faults) = Faults::beset(8).await;
    let mut contenders = JoinSet::new();
    for (seed, client) in (1..).zip(clients.iter().cycle().take(24)) {
        contenders.spawn(ground.clone().contend(client.clone(), seed));
    }
    tokio::time::sleep(run_time(Duration::from_secs(6))).await;
    faults.end();
    // Grants must go on after the last fault.
    ground.goes_on(48).await;
    ground.end(contenders).await;
    println!("{} sets", ground.grants.load(Ordering::Relaxed));
    for client in &clients {
        settled(client).await;
    }
    ground.is_empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_who_delete_nodes_make_sets_queue_again_but_never_wait_for_each_other() {
    let ground = Ground::unguarded("/all-operator");
    let hosts = shared().connect_string();
    let mut contenders = JoinSet::new();
    for seed in 1..=16 {
        let client = client_of(&hosts).await;
        contenders.spawn(ground.clone().contend(client, seed));
    }
    let deleted = Arc::new(AtomicUsize::new(0));
    let vandal = {
        let ground = ground.clone();
        let deleted = Arc::clone(&deleted);
        std::thread::spawn(move || {
            let (operator, mut random) = (operator(), Random::of(7));
            while !ground.ended.load(Ordering::Relaxed) {
                let path = random.below(PATHS);
                let place = if path == 7 || path == 8 { "/locks" } else { "" };
                let directory = format!("{}{place}", ground.path(path));
                // The last of them, which mostly wait.
                let waiting = operator.children_or_empty(&directory);
                let last = waiting.iter().max_by_key(|name| &name[name.len() - 10..]);
                if let (Some(last), 2..) = (last, waiting.len()) {
                    let is_gone = operator.try_delete(&format!("{directory}/{last}")).is_ok();
                    deleted.fetch_add(usize::from(is_gone), Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        })
    };
    tokio::time::sleep(run_time(Duration::from_secs(5))).await;
    let enough = || deleted.load(Ordering::Relaxed) > 20;
    assert!(until(SOON, enough), "only {} nodes deleted", deleted.load(Ordering::Relaxed));
    ground.goes_on(20).await;
    ground.end(contenders).await;
    vandal.join().unwrap();
    let deleted = deleted.load(Ordering::Relaxed);
    println!("{} sets, {deleted} nodes deleted", ground.grants.load(Ordering::Relaxed));
    ground.is_empty();
}
