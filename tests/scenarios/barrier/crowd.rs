//! Many members, many rounds: in each, nobody begins before all have come, and nobody ends before all are done.

use crate::support::members::{barrier, is_empty};
use crate::support::{operator, proxied_client, settled};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use zklock::Client;
use zklock::further::DoubleBarrier;

/// How many members have come to each round, and how many are done.
struct Rounds {
    members: u32,
    come: Vec<AtomicU32>,
    done: Vec<AtomicU32>,
}

impl Rounds {
    fn of(members: u32, rounds: usize) -> Arc<Self> {
        let counters = || (0..rounds).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Self { members, come: counters(), done: counters() })
    }

    /// Takes one member through all rounds, without a pause between them.
    async fn run(&self, barrier: &DoubleBarrier) {
        for (come, done) in self.come.iter().zip(&self.done) {
            come.fetch_add(1, Ordering::SeqCst);
            let member = barrier.enter().await.unwrap();
            assert_eq!(come.load(Ordering::SeqCst), self.members, "begun too early");
            done.fetch_add(1, Ordering::SeqCst);
            member.leave().await.unwrap();
            assert_eq!(done.load(Ordering::SeqCst), self.members, "ended too early");
        }
    }
}

async fn crowd(clients: &[Client], path: &str, members: u32, rounds: usize) {
    let (all, start) = (Rounds::of(members, rounds), Instant::now());
    let mut tasks = JoinSet::new();
    for number in 0..members as usize {
        let (all, barrier) = (all.clone(), barrier(&clients[number % clients.len()], path, members));
        tasks.spawn(async move { all.run(&barrier).await });
    }
    let joined = tokio::time::timeout(Duration::from_secs(60), tasks.join_all()).await;
    let reached = || all.done.iter().filter(|done| done.load(Ordering::SeqCst) == members).count();
    assert!(joined.is_ok(), "{path}: stuck in round {}", reached());
    println!("{members} members, {rounds} rounds: {:?} a round", start.elapsed() / rounds as u32);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_break_let_nobody_begin_or_end_too_early() {
    let (mut clients, mut proxies) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        let (client, proxy) = proxied_client().await;
        clients.push(client);
        proxies.push(proxy);
    }
    let ended = Arc::new(AtomicBool::new(false));
    let end = ended.clone();
    let faults = std::thread::spawn(move || {
        let mut count = 0;
        while !end.load(Ordering::Relaxed) {
            let proxy = &proxies[count * 7 % proxies.len()];
            if count % 2 == 0 {
                proxy.reset();
            } else {
                proxy.cut();
            }
            count += 1;
            std::thread::sleep(Duration::from_millis(40));
        }
        (count, proxies)
    });
    crowd(&clients, "/crowd/faults", 12, 30).await;
    ended.store(true, Ordering::Relaxed);
    let (count, _proxies) = faults.join().unwrap();
    println!("{count} faults");
    assert!(count > 5);
    for client in &clients {
        settled(client).await;
        assert_eq!(client.stats().sessions, 1, "a session that ended would be another matter");
    }
    is_empty(&operator(), "/crowd/faults");
}
