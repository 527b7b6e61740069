//! Holders and waiters that are killed or paused, as processes: see `support/child.rs`.

use crate::support::child::{self, Process, say};
use crate::support::timing::Noise;
use crate::support::{SOON, client, operator, soon};
use ground::{Direction, Proxy, not_later, shared, until};
use rustix::process::Signal;
use std::thread;
use std::time::{Duration, Instant};
use zklock::{Client, HoldState};

/// A child that has not run for this long was paused.
const A_PAUSE: Duration = Duration::from_millis(300);

/// The child: acquires, prints its hold, then prints it again whenever its state changes or the process was paused.
#[test]
#[ignore = "the child of the tests in this file"]
fn holder() {
    let Some((options, path)) = child::orders() else { return };
    say("begins");
    let client = Client::connect(options).wait().unwrap();
    let hold = client.mutex(&path).unwrap().acquire().wait().unwrap();
    let (mut last, mut known) = (Instant::now(), HoldState::Held);
    say(format_args!("held {} {} {}", hold.token(), hold.node(), hold.valid_for().as_micros()));
    loop {
        // Mostly asleep, so that a pause does not hit it between two looks.
        thread::sleep(Duration::from_millis(5));
        // The first look after a pause comes before anything else that this thread does.
        let (valid_for, state) = (hold.valid_for().as_micros(), hold.state());
        let gap = last.elapsed();
        if gap > A_PAUSE {
            say(format_args!("woke {valid_for} {state:?}"));
        } else if state != known {
            say(format_args!("turned {valid_for} {state:?}"));
        }
        (last, known) = (Instant::now(), state);
    }
}

/// A process that acquires.
struct Holder(Process);

impl Holder {
    fn start(hosts: &str, path: &str, session: Duration) -> Self {
        let process = Process::start_with(concat!(module_path!(), "::holder"), hosts, path, session, &[]);
        assert_eq!(process.line(), "begins");
        Self(process)
    }

    /// The next line, which must be about the hold: its first word, how long the hold is valid, and its state.
    #[track_caller]
    fn look(&self) -> (String, Duration, String) {
        let line = self.0.line();
        let mut parts = line.splitn(3, ' ').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_else(|| panic!("{line}"));
        let (word, valid_for, state) = (part(), part(), part());
        (word, Duration::from_micros(valid_for.parse().unwrap()), state)
    }

    /// Waits until it holds. Returns token and node.
    #[track_caller]
    fn held(&self) -> (u64, String) {
        let line = self.0.line();
        let words: Vec<_> = line.split(' ').collect();
        let ["held", token, node, valid_for] = words[..] else { panic!("{line}") };
        assert_ne!(valid_for, "0", "a dead hold was delivered");
        (token.parse().unwrap(), node.to_owned())
    }

    /// Stops it, and returns when none of its threads runs.
    fn pause(&self) {
        self.0.signal(Signal::STOP);
        let stat = format!("/proc/{}/stat", self.0.id());
        let stopped = || {
            let stat = std::fs::read_to_string(&stat).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        };
        assert!(until(SOON, stopped), "SIGSTOP has no effect");
    }
}

fn tick() -> Duration {
    shared().tick()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lock_of_a_killed_process_is_free_within_its_session_timeout_and_two_ticks() {
    let (path, session) = ("/crash-killed", Duration::from_secs(1));
    let process = Holder::start(&shared().connect_string(), path, session);
    let (token, node) = process.held();
    let lock = client().await.mutex(path).unwrap();
    let waiter = tokio::spawn(async move { (lock.acquire().await, Instant::now()) });
    operator().wait_for_children(path, 2, SOON);
    let noise = Noise::measured();
    let killed = Instant::now();
    process.0.signal(Signal::KILL);
    let (hold, granted) = soon(waiter).await.unwrap();
    let (hold, took) = (hold.unwrap(), granted - killed);
    println!("granted {took:?} after the kill, noise {:?}", noise.worst());
    not_later(took, session + tick() * 2 + noise.allowance());
    assert!(hold.token().value() > token && hold.node() != node);
    assert!(!hold.valid_for().is_zero());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_paused_past_its_session_wakes_with_a_hold_that_is_valid_for_nothing() {
    let (path, session) = ("/crash-paused", Duration::from_secs(1));
    let proxy = Proxy::before(shared().server(0));
    let process = Holder::start(&proxy.connect_string(), path, session);
    let (token, node) = process.held();
    let lock = client().await.mutex(path).unwrap();
    process.pause();
    // Nothing that is on its way may reach it when it wakes.
    proxy.freeze(Direction::Both);
    let hold = soon(lock.acquire()).await.unwrap();
    assert!(hold.token().value() > token);
    assert!(operator().stat(&node).is_none());

    process.0.signal(Signal::CONT);
    let (word, valid_for, state) = process.look();
    assert_eq!((&*word, valid_for), ("woke", Duration::ZERO), "{state}");
    assert!(state == "AtRisk" || state.starts_with("Lost"), "{state}");
    if state == "AtRisk" {
        let noise = Noise::measured();
        let woken = Instant::now();
        let mut seen = process.look();
        // A busy machine may put it to sleep once more.
        while seen.0 == "woke" {
            assert!(seen.1.is_zero(), "{seen:?}");
            seen = process.look();
        }
        assert_eq!((&*seen.0, seen.1, &*seen.2), ("turned", Duration::ZERO, "Lost(LeaseLapsed)"));
        not_later(woken.elapsed(), session / 10 + noise.allowance());
    }
    // The loss is final, even when the network is back.
    proxy.thaw();
    assert!(process.0.is_silent(session / 2), "a loss is final");
    assert_eq!(hold.state(), HoldState::Held);
}
