//! Sets of locks in contest: no deadlock, no partial hold, nothing held twice. (What may be held together is in `together`: which
//! sets meet in a contest is left to chance.)

use crate::support::queue::run_time;
use crate::support::register::{Faults, Register};
use crate::support::{SOON, operator, settled, soon};
use ground::Dice;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use zklock::{Client, ErrorKind, Hold, Lock, LockSpec};

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
        Arc::new(Self { root, registers, grants: AtomicU64::new(0), ended: AtomicBool::new(false) })
    }

    fn path(&self, path: usize) -> String {
        format!("{}/{path}", self.root)
    }

    /// The lock of a path, and its weight.
    fn lock(&self, client: &Client, path: usize, dice: &mut Dice) -> (Lock, u32) {
        let name = self.path(path);
        match path {
            4..7 if dice.below(2) == 0 => (client.write_lock(&name).unwrap(), ALL),
            4..7 => (client.read_lock(&name).unwrap(), 1),
            7 | 8 => {
                let permits = 1 + dice.below(2) as u32;
                let spec = LockSpec::semaphore(&name, PERMITS).unwrap().permits(permits);
                (client.lock(&spec).unwrap(), permits)
            }
            9 => (client.election(&name).unwrap(), 1),
            _ => (client.mutex(&name).unwrap(), 1),
        }
    }

    /// Acquires random sets, one after the other.
    async fn contend(self: Arc<Self>, client: Client, seed: u64) {
        let mut dice = Dice::new(seed);
        while !self.ended.load(Ordering::Relaxed) {
            let mut paths = BTreeSet::new();
            for _ in 0..=dice.below(4) {
                paths.insert(dice.below(PATHS));
            }
            // The order in which a set names its locks is random.
            let mut paths: Vec<_> = paths.into_iter().collect();
            let turn = dice.below(paths.len());
            paths.rotate_left(turn);
            let (locks, weights): (Vec<_>, Vec<_>) =
                paths.iter().map(|path| self.lock(&client, *path, &mut dice)).unzip();
            let set = client.all(&locks).unwrap();
            let call = tokio::time::timeout(SOON * 3, set.acquire());
            let hold = match call.await {
                Ok(hold) => Arc::new(hold.expect("its turn comes")),
                Err(_) => panic!("a deadlock: {} waits for ever", set.path()),
            };
            self.check(&hold, &paths, &weights);
            tokio::time::sleep(Duration::from_millis(dice.below(4) as u64)).await;
            paths.iter().for_each(|path| self.registers[*path].leave());
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
            self.registers[*path].enter(hold, *weight);
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
    // Permits are not fenced against each other.
    for path in (0..PATHS).filter(|path| !(7..9).contains(path)) {
        ground.registers[path].assert_growing();
    }
    for client in &clients {
        settled(client).await;
    }
    ground.is_empty();
}
