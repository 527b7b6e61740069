//! Callers of a few clients that acquire in every way and give up at any moment. Most holds are brief, so that a client's
//! next attempt begins right after the last one ends.

use crate::support::random::Random;
use crate::support::register::{Faults, Register, clients};
use crate::support::{SOON, operator, settled};
use ground::shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use zklock_core::{Client, Error, ErrorKind, Hold, Lock, LockSpec};

const CLIENTS: usize = 3;
const CALLERS: usize = 10;
/// How often each lock is held at least.
const OFTEN: usize = 2 * CLIENTS * CALLERS;

/// The two locks of one client, and a choice of either.
fn locks(client: &Client, paths: &[String; 2], number: usize) -> [Lock; 3] {
    let spec = |path: &str| {
        let spec = LockSpec::mutex(path).unwrap();
        if number == 0 { spec.linger(Duration::from_millis(30)).local_turns(3) } else { spec }
    };
    let [one, other] = paths.each_ref().map(|path| client.lock(&spec(path)).unwrap());
    let any = client.any(&[one.clone(), other.clone()]).unwrap();
    [one, other, any]
}

/// Acquires in one of the possible ways. `None` if the lock was not granted in time.
async fn come_in(lock: &Lock, random: &mut Random) -> Option<Hold> {
    let while_patient = Duration::from_micros(random.below(8_000) as u64);
    let granted = match random.below(5) {
        0 => lock.try_acquire().await,
        1 => lock.acquire_timeout(while_patient).await.map(Some),
        // The call is dropped, at whichever step it is.
        2 => timeout(while_patient, lock.acquire()).await.map_or(Ok(None), |granted| granted.map(Some)),
        _ => lock.acquire().await.map(Some),
    };
    let is_expected = |error: &Error| matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Unreachable);
    granted.unwrap_or_else(|error| if is_expected(&error) { None } else { panic!("{error}") })
}

async fn turn(lock: &Lock, registers: &[Arc<Register>; 2], random: &mut Random) {
    let Some(hold) = come_in(lock, random).await else { return };
    let register = &registers[usize::from(hold.path().ends_with("b"))];
    let hold = Arc::new(hold);
    register.enter(&hold, 1);
    match random.below(8) {
        0 => sleep(Duration::from_millis(3)).await,
        1 => tokio::task::yield_now().await,
        _ => {}
    }
    register.leave();
    if random.below(8) == 0 {
        // Released by a drop, in the background.
        return drop(hold);
    }
    match hold.release().await.map_err(|error| error.kind()) {
        Ok(()) | Err(ErrorKind::Lost(_) | ErrorKind::Timeout) => {}
        Err(kind) => panic!("the release failed: {kind:?}"),
    }
}

/// Contends until `work` is done and each lock has been held often.
async fn contend(clients: &[Client], path: &str, work: impl Future<Output = ()>) {
    let (registers, paths) =
        ([Register::of(1), Register::of(1)], ["a", "b"].map(|name| format!("{path}/{name}")));
    let (mut callers, ended) = (JoinSet::new(), Arc::new(AtomicBool::new(false)));
    for (number, client) in clients.iter().enumerate() {
        let locks = locks(client, &paths, number);
        for caller in 0..CALLERS {
            let (locks, registers, ended) = (locks.clone(), registers.clone(), ended.clone());
            let mut random = Random::of((number * CALLERS + caller + 1) as u64);
            callers.spawn(async move {
                while !ended.load(Ordering::Relaxed) {
                    turn(&locks[random.below(3)], &registers, &mut random).await;
                }
                // No client that went away has left a queue stuck.
                for lock in locks {
                    let _ = lock.acquire().await.unwrap().release().await;
                }
            });
        }
    }
    work.await;
    let often = async {
        while registers.iter().any(|register| register.count() < OFTEN) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON * 2, often).await.expect("both locks are held again and again");
    ended.store(true, Ordering::Relaxed);
    timeout(SOON * 2, callers.join_all()).await.expect("everybody has a turn");
    println!("{} and {} grants", registers[0].count(), registers[1].count());
    registers.iter().for_each(|register| register.assert_never_smaller());
    for client in clients {
        settled(client).await;
    }
    for path in &paths {
        operator().wait_for_children(path, 0, SOON);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_becomes_of_a_caller_the_next_has_its_turn_and_nobody_beside_it() {
    let clients = clients(&shared().connect_string(), CLIENTS).await;
    contend(&clients, "/ways-in/peace", sleep(Duration::from_secs(2))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_while_connections_break_and_sessions_end() {
    let (clients, mut faults) = Faults::beset(CLIENTS).await;
    let work = async {
        sleep(Duration::from_secs(4)).await;
        faults.end();
    };
    contend(&clients, "/ways-in/faults", work).await;
}
