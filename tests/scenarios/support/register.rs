//! The resource that the lock guards. It knows who is inside, and panics if there are more than are allowed.

use crate::support::{options, soon};
use ground::{Direction, Proxy, shared};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use zklock::{Client, ErrorKind, Hold, HoldState, Lock};

/// Checks that the weights of all valid holds never exceed the limit. A writer weighs the whole limit, a reader 1, and a
/// hold of permits as much as it has permits.
pub(crate) struct Register {
    limit: u32,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// All holds that were not released, including lost ones: a lost hold must never be valid again. They are not kept alive:
    /// the hold of a contender that fails must be dropped, or the others would wait for ever.
    holds: Vec<(Weak<Hold>, u32)>,
    /// Token and weight of all grants, in their order.
    grants: Vec<(u64, u32)>,
    most: usize,
}

impl Register {
    pub(crate) fn of(limit: u32) -> Arc<Self> {
        Arc::new(Self { limit, entries: Mutex::default() })
    }

    /// Begins to use the resource. Returns `false` if the hold is not valid.
    #[track_caller]
    pub(crate) fn enter(&self, hold: &Arc<Hold>, weight: u32) -> bool {
        let mut entries = self.entries();
        let valid = is_valid(hold);
        if valid {
            entries.grants.push((hold.token().value(), weight));
        }
        entries.holds.push((Arc::downgrade(hold), weight));
        entries.check(self.limit);
        valid
    }

    /// Checks again, before the release.
    #[track_caller]
    pub(crate) fn leave(&self) {
        self.entries().check(self.limit);
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of grants.
    pub(crate) fn count(&self) -> usize {
        self.entries().grants.len()
    }

    /// The most holds that were valid at once.
    pub(crate) fn most(&self) -> usize {
        self.entries().most
    }

    /// Asserts that of any two holds that exclude each other, the tokens are like this: `u64::lt`, or `u64::le` if several holders
    /// of one process may share a token.
    #[track_caller]
    pub(crate) fn assert_ordered(&self, is_right: fn(&u64, &u64) -> bool) {
        let grants = &self.entries().grants;
        for (at, (token, weight)) in grants.iter().enumerate() {
            for (before, other) in &grants[..at] {
                let excluded = weight + other > self.limit;
                assert!(
                    !excluded || is_right(before, token),
                    "{token:#x} came after {before:#x}: {grants:x?}"
                );
            }
        }
    }

    /// One grant, checked at its beginning and its end. It lasts so long that others can hold at the same time.
    pub(crate) async fn turn(&self, lock: &Lock, weight: u32, lasts: Duration) {
        let hold = Arc::new(lock.acquire().await.expect("its turn comes"));
        self.enter(&hold, weight);
        tokio::time::sleep(lasts).await;
        self.leave();
        // A hold may be lost to a fault, and must then report it.
        match hold.release().await.map_err(|error| error.kind()) {
            Ok(()) | Err(ErrorKind::Lost(_) | ErrorKind::Timeout) => {}
            Err(kind) => panic!("the release failed: {kind:?}"),
        }
    }
}

impl Entries {
    #[track_caller]
    fn check(&mut self, limit: u32) {
        let is_had = |hold: Arc<Hold>| hold.state() != HoldState::Released;
        self.holds.retain(|(hold, _)| hold.upgrade().is_some_and(is_had));
        let mut valid: Vec<_> =
            self.holds.iter().filter_map(|(hold, weight)| Some((hold.upgrade()?, *weight))).collect();
        // Those that are valid in both checks were all valid between the two.
        valid.retain(|(hold, _)| is_valid(hold));
        valid.retain(|(hold, _)| is_valid(hold));
        self.most = self.most.max(valid.len());
        let sum: u32 = valid.iter().map(|(_, weight)| weight).sum();
        let tokens: Vec<_> = valid.iter().map(|(hold, weight)| (hold.token().value(), weight)).collect();
        assert!(sum <= limit, "{sum} of {limit} at once: {tokens:x?}");
    }
}

fn is_valid(hold: &Hold) -> bool {
    !hold.valid_for().is_zero()
}

/// Clients with a session each, opened at the same time.
pub(crate) async fn clients(hosts: &str, count: usize) -> Vec<Client> {
    let mut opening = JoinSet::new();
    for _ in 0..count {
        let options = options(hosts);
        opening.spawn(async move { Client::connect(options).await.unwrap() });
    }
    soon(opening.join_all()).await
}

/// Breaks connections all the time, and lets sessions expire by cutting their clients off, until this is ended. (A session
/// that an operator ends is another matter: its holder learns of that with the next heartbeat.)
pub(crate) struct Faults {
    proxies: Arc<Vec<Proxy>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Faults {
    /// As short as a busy machine allows, so that many of them end.
    const SESSION: Duration = Duration::from_secs(1);
    /// Longer than a session, so that it expires, but not so long that its successor does, too.
    const SILENCE: Duration = Duration::from_millis(1600);
    const PAUSE: Duration = Duration::from_millis(60);
    /// Every so many faults, a client is cut off.
    const CUT_OFF: usize = 7;

    /// Clients of the shared server, each behind its own proxy, and their faults.
    pub(crate) async fn beset(count: usize) -> (Vec<Client>, Self) {
        let proxies: Arc<Vec<_>> = Arc::new((0..count).map(|_| Proxy::before(shared().server(0))).collect());
        let mut clients = Vec::new();
        for proxy in proxies.iter() {
            let options = options(&proxy.connect_string()).session_timeout(Self::SESSION);
            clients.push(Client::connect(options).await.unwrap());
        }
        let ended = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (proxies, ended) = (proxies.clone(), ended.clone());
            move || strike(&proxies, &ended)
        });
        (clients, Self { proxies, ended, thread: Some(thread) })
    }

    /// Ends the faults.
    pub(crate) fn end(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join).transpose().expect("the faults go on to the end");
        let connections: u64 = self.proxies.iter().map(Proxy::accepted).sum();
        assert!(connections > 3 * self.proxies.len() as u64, "nothing broke");
    }
}

fn strike(proxies: &[Proxy], ended: &AtomicBool) {
    let mut silent: VecDeque<(Instant, usize)> = VecDeque::new();
    for number in 0_usize.. {
        thread::sleep(Faults::PAUSE);
        let is_over = ended.load(Ordering::Relaxed);
        while silent.front().is_some_and(|(since, _)| is_over || since.elapsed() > Faults::SILENCE) {
            silent.pop_front().into_iter().for_each(|(_, victim)| proxies[victim].thaw());
        }
        if is_over {
            break;
        }
        // Scattered, but the same in every run.
        let victim = (number.wrapping_mul(2_654_435_761) >> 7) % proxies.len();
        if silent.iter().any(|(_, other)| *other == victim) {
            continue;
        }
        match number % Faults::CUT_OFF {
            0 => {
                proxies[victim].freeze(Direction::Both);
                silent.push_back((Instant::now(), victim));
            }
            odd if odd % 2 == 1 => proxies[victim].cut(),
            _ => proxies[victim].reset(),
        }
    }
}
