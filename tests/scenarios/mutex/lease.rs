//! The lease's worst case (promise 1): an ensemble whose parts are cut off from each other. A holder on a server without
//! contact to its leader gets answers to pings and reads, while the leader gives the lock to the next.
//!
//! Sessions are as short as the servers' ticks allow. Then a session is touched at the leader as seldom as it can
//! be, and the lease is at its tightest. Several holders, whose heartbeats are apart, are cut off at once, at several
//! phases of the tick; each must count its lease as over before the next is granted.

use crate::support::timing::{Noise, Observer};
use crate::support::{SOON, client_of, comes, options, soon};
use ground::{Direction, Ensemble, Proxy, Server, connect_string, or_once_more};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;
use zklock::{Client, ErrorKind, Hold, HoldState, LossReason};

const TICK: Duration = Duration::from_millis(500);
/// As short as possible, two ticks, so that every touch counts.
const SHORT: Duration = Duration::from_secs(1);
/// Long enough to outlive an election.
const LONG: Duration = Duration::from_secs(10);
const WHOLE: Duration = Duration::from_secs(40);
const HOLDERS: usize = 6;

/// The ensemble of this file, complete, for one test at a time.
async fn ensemble() -> MutexGuard<'static, Ensemble> {
    static ENSEMBLE: OnceLock<Mutex<Ensemble>> = OnceLock::new();
    let ensemble = ENSEMBLE
        .get_or_init(|| Mutex::new(Ensemble::builder().servers(3).tick(TICK).quorum_proxies(true).start()));
    let ensemble = ensemble.lock().await;
    for server in ensemble.servers() {
        server.start();
    }
    ensemble.wait_until_whole(WHOLE);
    ensemble
}

async fn client_with(hosts: &str, session: Duration) -> Client {
    let options = options(hosts).session_timeout(session);
    let client = soon(Client::connect(options)).await.unwrap();
    assert_eq!(client.session_timeout(), Some(session));
    client
}

/// A holder under observation, and a waiter elsewhere.
struct Pair {
    client: Client,
    hold: Arc<Hold>,
    observer: Observer,
    next: JoinHandle<(Hold, Instant)>,
}

impl Pair {
    async fn start(path: &str, hosts: &str, session: Duration, waiter: &Client) -> Self {
        let client = client_with(hosts, session).await;
        let hold = Arc::new(soon(client.mutex(path).unwrap().acquire()).await.unwrap());
        let observer = Observer::of(hold.clone());
        let lock = waiter.mutex(path).unwrap();
        let next = tokio::spawn(async move {
            let hold = lock.acquire().await.unwrap();
            (hold, Instant::now())
        });
        Self { client, hold, observer, next }
    }

    /// Waits until the holder has a full lease and the next contender is in its queue. Returns `false` if the hold is lost.
    async fn is_ready(&self) -> bool {
        let is_lost = |state| matches!(state, HoldState::Lost(_));
        self.observer
            .first(Instant::now(), SOON, |sample| sample.valid_for > SHORT * 3 / 8 || is_lost(sample.state));
        let lock = self.client.mutex(self.hold.path()).unwrap();
        comes(async || {
            let queued = lock.contenders().await;
            is_lost(self.hold.state()) || queued.unwrap().len() == 2
        })
        .await;
        !is_lost(self.hold.state())
    }

    /// Waits for the next grant, and returns the time between the end of the lease and that grant.
    async fn margin(self, cut: Instant) -> Duration {
        let (next, granted) = soon(self.next).await.unwrap();
        let left = self.hold.valid_for();
        let samples = self.observer.finish();
        let last_valid = samples.iter().rfind(|sample| !sample.valid_for.is_zero()).expect("it was valid");
        assert!(last_valid.at > cut, "it was lost before it was cut off: this tests nothing");
        let after = samples.iter().find(|sample| sample.at > last_valid.at);
        let lapsed = after.map_or_else(Instant::now, |sample| sample.at);
        assert!(
            left.is_zero() && lapsed < granted,
            "two hold at once: granted {:?} after the cut, lapsed {:?} after it",
            granted - cut,
            lapsed - cut
        );
        assert!(next.token() > self.hold.token() && !next.valid_for().is_zero());
        granted - lapsed
    }
}

/// Holders whose heartbeats are evenly spaced, all connected through `hosts`. Each has a full lease, and the next contender is in
/// its queue. A busy machine may take so short a session from a holder before that: then all begin again.
async fn pairs(path: &str, hosts: &str, waiter: &Client) -> Vec<Pair> {
    for attempt in 0..10 {
        let mut pairs: Vec<Pair> = Vec::new();
        for number in 0..HOLDERS {
            pairs.push(Pair::start(&format!("{path}/{attempt}-{number}"), hosts, SHORT, waiter).await);
            tokio::time::sleep(SHORT / 12 / HOLDERS as u32).await;
        }
        let mut are_held = true;
        for pair in &pairs {
            are_held = are_held && pair.is_ready().await;
        }
        if are_held {
            return pairs;
        }
        println!("{path}: a session of {SHORT:?} ended before anything was cut off");
    }
    panic!("holders lost their sessions of {SHORT:?} ten times before anything was cut off");
}

/// Cuts holders off again and again, and prints how close it was.
struct Cutter {
    hosts: String,
    waiter: Client,
    start: Instant,
    noise: Noise,
}

impl Cutter {
    fn new(hosts: String, waiter: Client) -> Self {
        Self { hosts, waiter, start: Instant::now(), noise: Noise::measured() }
    }

    /// Cuts them off once, at a phase of the servers' tick, and returns the least margin.
    async fn run(&self, name: &str, phase: Duration, cut: impl FnOnce()) -> Duration {
        let path = format!("/lease-{name}-{}", phase.as_micros());
        let pairs = pairs(&path, &self.hosts, &self.waiter).await;
        let (tick, into) = (TICK.as_micros(), self.start.elapsed().as_micros() % TICK.as_micros());
        let wait = (phase.as_micros() + tick - into) % tick;
        tokio::time::sleep(Duration::from_micros(u64::try_from(wait).unwrap())).await;
        let instant = Instant::now();
        cut();
        let mut margins = Vec::new();
        for pair in pairs {
            margins.push(pair.margin(instant).await);
        }
        println!("{path}: lapsed before the next grant by {margins:.0?}, noise {:?}", self.noise.worst());
        margins.into_iter().min().unwrap()
    }
}

/// The leader, the follower to cut off, and the other follower.
fn roles(ensemble: &Ensemble) -> (&Server, &Server, &Server) {
    let leader = ensemble.leader();
    let [near, far] = ensemble.followers()[..] else { panic!("two follow") };
    (leader, far, near)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lease_ends_before_the_next_grant_when_the_holders_server_is_cut_off_from_its_leader() {
    let ensemble = ensemble().await;
    let _talk = ensemble.keep_talking();
    let (leader, follower, _) = roles(&ensemble);
    let waiter = client_of(&leader.address().to_string()).await;
    let link = ensemble.quorum_link(follower, leader);
    let cutter = Cutter::new(follower.address().to_string(), waiter);
    // The margin shrinks with the phase, until the session is touched again: find the worst moment, just before that.
    let (mut worst, mut step, mut least) = (Duration::ZERO, TICK / 3, Duration::MAX);
    for round in 0..5 {
        let phase = if round < 3 { step * round } else { worst + step };
        let margin = cutter.run("frozen", phase, || link.freeze(Direction::Both)).await;
        if margin < least {
            (worst, least) = (phase, margin);
        }
        if round >= 2 {
            step /= 2;
        }
        link.thaw();
        ensemble.wait_until_whole(WHOLE);
    }
    let cut = || {
        link.refuse(true);
        link.cut();
    };
    cutter.run("cut", worst, cut).await;
    link.refuse(false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lease_ends_before_the_next_grant_when_the_leader_is_killed_too_and_others_survive_that() {
    let ensemble = ensemble().await;
    let _talk = ensemble.keep_talking();
    let (leader, follower, other) = roles(&ensemble);
    let waiter = client_with(&connect_string([other.address(), follower.address()]), LONG).await;
    let hosts = connect_string([follower.address(), other.address()]);
    let long = Pair::start("/lease-survivor", &hosts, LONG, &waiter).await;
    let (token, session) = (long.hold.token(), long.client.session_id());
    let proxy = Proxy::before(follower);
    let cutter = Cutter::new(proxy.connect_string(), waiter);
    let killed = Instant::now();
    let cut = || {
        proxy.freeze(Direction::Both);
        leader.kill();
    };
    cutter.run("killed", Duration::ZERO, cut).await;
    survived(long, killed, token.value(), session).await;
}

/// Asserts that the hold recovers, and that its lease never lapsed.
async fn survived(pair: Pair, since: Instant, token: u64, session: Option<i64>) {
    pair.observer.first(since + LONG / 50, SOON, |sample| {
        sample.state == HoldState::Held && sample.valid_for > LONG / 4
    });
    let proven = match soon(pair.hold.confirm()).await {
        Ok(proven) => proven,
        // A busy machine may need longer than the lease to elect a leader.
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Lost(LossReason::LeaseLapsed));
            return or_once_more(false, &error.to_string());
        }
    };
    assert!(!proven.is_zero());
    let samples = pair.observer.finish();
    let least = samples.iter().map(|sample| sample.valid_for).min().unwrap();
    println!("a long session survived: valid for {least:.0?} at least");
    assert_eq!((pair.hold.token().value(), pair.client.session_id()), (token, session));
    assert!(!pair.next.is_finished(), "two hold at once");
    soon(pair.hold.release()).await.unwrap();
    let (next, _) = soon(pair.next).await.unwrap();
    assert!(next.token().value() > token);
}
