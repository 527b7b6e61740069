//! Promise 3: a caller that gives up leaves its place in the queue to the next caller of its client, so that nobody is
//! overtaken because another has left. (`fair` has the plain case.)

use crate::support::queue::held;
use crate::support::register::clients;
use crate::support::{SOON, client, operator, settled, soon};
use ground::wire::Admin;
use ground::{Dice, shared, until};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use zklock::{Hold, Lock};

const CLIENTS: usize = 3;
const TURNS: usize = 300;

/// Clients that take turns: each has at least one caller that waits without giving up, and others that give up.
struct Round {
    operator: Mutex<Admin>,
    /// For each delivered grant, the number of its node and its client.
    grants: Mutex<Vec<(u64, usize)>>,
    given_up: AtomicU64,
    delivered: AtomicU64,
    ended: AtomicBool,
}

const ROUND: &str = "/handed-on/round";

impl Round {
    /// Holds until every client's next node is in the queue, so that the next turn is certain.
    async fn turn(&self, client: usize, hold: Hold) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        let number = hold.node()[hold.node().len() - 10..].parse().unwrap();
        let queued = || self.operator.lock().unwrap().children(ROUND).len() == 1 + CLIENTS;
        let is_complete = || self.ended.load(Ordering::Relaxed) || queued();
        assert!(tokio::task::block_in_place(|| until(SOON, is_complete)), "not everybody queues");
        if !self.ended.load(Ordering::Relaxed) {
            let mut grants = self.grants.lock().unwrap();
            grants.push((number, client));
            self.ended.store(grants.len() == TURNS, Ordering::Relaxed);
        }
        hold.release().await.unwrap();
    }

    async fn stay(&self, client: usize, lock: Lock) {
        while !self.ended.load(Ordering::Relaxed) {
            self.turn(client, lock.acquire().await.unwrap()).await;
        }
    }

    /// Gives up after a different time in each round.
    async fn give_up(&self, client: usize, lock: Lock, seed: u64) {
        let mut dice = Dice::new(seed);
        while !self.ended.load(Ordering::Relaxed) {
            let (sleep, turns) = (Duration::from_millis(dice.throw() % 16), dice.below(50));
            let moment = async {
                tokio::time::sleep(sleep).await;
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            };
            let hold = tokio::select! {
                hold = lock.acquire() => hold.unwrap(),
                () = moment => {
                    self.given_up.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
            };
            self.turn(client, hold).await;
        }
    }
}

/// If every client is in the queue while another holds the lock, their turns go round in a fixed order. A client that queued
/// again because a caller left would break that order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_overtaken_because_another_gives_up_whenever_that_is() {
    let clients = clients(&shared().connect_string(), CLIENTS).await;
    let blocker = client().await;
    let blocking = held(&blocker.mutex(ROUND).unwrap()).await;
    let round = Arc::new(Round {
        operator: Mutex::new(operator()),
        grants: Mutex::default(),
        given_up: AtomicU64::new(0),
        delivered: AtomicU64::new(0),
        ended: AtomicBool::new(false),
    });
    let mut tasks = JoinSet::new();
    for (number, client) in clients.iter().enumerate() {
        for task in 0..6 {
            let (round, lock) = (round.clone(), client.mutex(ROUND).unwrap());
            tasks.spawn(async move {
                match task {
                    0 | 1 => round.stay(number, lock).await,
                    _ => round.give_up(number, lock, 1 + task + 10 * number as u64).await,
                }
            });
        }
    }
    operator().wait_for_children(ROUND, 1 + CLIENTS, SOON);
    soon(blocking.release()).await.unwrap();
    tokio::time::timeout(SOON * 6, tasks.join_all()).await.expect("everybody has a turn");
    for client in &clients {
        settled(client).await;
    }
    assert_eq!(operator().children(ROUND), [""; 0]);

    let grants: BTreeMap<u64, usize> = round.grants.lock().unwrap().iter().copied().collect();
    let out_of_turn = grants.iter().filter(|(number, client)| {
        let before = number.checked_sub(CLIENTS as u64).and_then(|number| grants.get(&number));
        before.is_some_and(|before| before != *client)
    });
    let out_of_turn = out_of_turn.count() as u64;
    let granted: u64 = clients.iter().map(|client| client.stats().grants).sum();
    // A grant that came just when its caller left is released at once, without waiting until every client's next node is
    // in the queue.
    let unseen = granted - round.delivered.load(Ordering::Relaxed);
    let given_up = round.given_up.load(Ordering::Relaxed);
    println!(
        "{given_up} gave up, {unseen} of them when they were granted; {out_of_turn} of {TURNS} out of turn"
    );
    assert!(given_up > TURNS as u64 / 2 && unseen < given_up / 4, "it shows nothing");
    assert!(out_of_turn <= unseen * CLIENTS as u64, "{grants:?}");
}
