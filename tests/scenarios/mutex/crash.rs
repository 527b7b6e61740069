//! Holders and waiters that are killed or stand still: real processes, because nothing else stops all threads at once.
//!
//! A child is this very program, told to run one ignored test. It talks to the test on its standard output, through
//! a proxy of the test's to the ensemble, and ends when its standard input does.

use crate::support::timing::Noise;
use crate::support::{SOON, client, operator, soon};
use ground::{Direction, Proxy, not_later, shared, until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use zklock_core::{ClientOptions, HoldState, blocking};

/// What stands before each line that a child means for us: the test harness prints too.
const MARK: &str = "@child ";
/// A child that was not looked after for so long was paused.
const A_PAUSE: Duration = Duration::from_millis(300);

/// The child: acquires, says what it got, then says so whenever the state of its hold changes or it was paused.
#[test]
#[ignore = "the child of the tests in this file"]
fn holder() {
    let Ok(path) = std::env::var("ZKLOCK_CHILD_PATH") else { return };
    let variable = |name: &str| std::env::var(name).expect("set by the parent");
    let millis = variable("ZKLOCK_CHILD_SESSION").parse().expect("milliseconds");
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    println!("\n{MARK}begins");
    let options = ClientOptions::new(&variable("ZKLOCK_CHILD_HOSTS")).unwrap();
    let options = options.session_timeout(Duration::from_millis(millis)).unwrap();
    let client = blocking::Client::connect(options).unwrap();
    let hold = client.mutex(&path).unwrap().acquire().unwrap();
    let (mut last, mut known) = (Instant::now(), HoldState::Held);
    println!("{MARK}held {} {} {}", hold.token(), hold.node(), hold.valid_for().as_micros());
    loop {
        // Mostly asleep, so that a pause does not hit it between two looks.
        thread::sleep(Duration::from_millis(5));
        // The first look after a pause comes before anything else that this thread does.
        let (valid_for, state) = (hold.valid_for().as_micros(), hold.state());
        let gap = last.elapsed();
        if gap > A_PAUSE {
            println!("{MARK}woke {valid_for} {state:?}");
        } else if state != known {
            println!("{MARK}turned {valid_for} {state:?}");
        }
        (last, known) = (Instant::now(), state);
    }
}

/// A running child. Dropping it kills it.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start(hosts: &str, path: &str, session: Duration) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new(program)
            .args(["--exact", "--ignored", "--nocapture", "mutex::crash::holder"])
            .env("ZKLOCK_CHILD_HOSTS", hosts)
            .env("ZKLOCK_CHILD_PATH", path)
            .env("ZKLOCK_CHILD_SESSION", session.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let ours = |line: String| line.strip_prefix(MARK).map(str::to_owned);
            output.lines().map_while(Result::ok).filter_map(ours).try_for_each(|line| sender.send(line))
        });
        let process = Self { child, lines };
        assert_eq!(process.line(), "begins");
        process
    }

    #[track_caller]
    fn line(&self) -> String {
        self.lines.recv_timeout(SOON).expect("the child says something")
    }

    /// The next line, which is to be about the hold: its word, how long the hold is valid, its state.
    #[track_caller]
    fn look(&self) -> (String, Duration, String) {
        let line = self.line();
        let mut parts = line.splitn(3, ' ').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_else(|| panic!("{line}"));
        let (word, valid_for, state) = (part(), part(), part());
        (word, Duration::from_micros(valid_for.parse().unwrap()), state)
    }

    /// Waits until it holds; gives token and node.
    #[track_caller]
    fn held(&self) -> (u64, String) {
        let line = self.line();
        let words: Vec<_> = line.split(' ').collect();
        let ["held", token, node, valid_for] = words[..] else { panic!("{line}") };
        assert_ne!(valid_for, "0", "a dead hold was delivered");
        (token.parse().unwrap(), node.to_owned())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Returns when it stands still.
    fn pause(&self) {
        self.signal(Signal::STOP);
        let stat = format!("/proc/{}/stat", self.child.id());
        let stopped = || {
            let stat = std::fs::read_to_string(&stat).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        };
        assert!(until(SOON, stopped), "SIGSTOP has no effect");
    }

    fn resume(&self) {
        self.signal(Signal::CONT);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tick() -> Duration {
    shared().tick()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lock_of_a_killed_process_is_free_within_its_session_timeout_and_two_ticks() {
    let (path, session) = ("/crash-killed", Duration::from_secs(1));
    let process = Process::start(&shared().connect_string(), path, session);
    let (token, node) = process.held();
    let lock = client().await.mutex(path).unwrap();
    let waiter = tokio::spawn(async move { (lock.acquire().await, Instant::now()) });
    operator().wait_for_children(path, 2, SOON);
    let noise = Noise::measured();
    let killed = Instant::now();
    process.signal(Signal::KILL);
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
    let process = Process::start(&proxy.connect_string(), path, session);
    let (token, node) = process.held();
    let lock = client().await.mutex(path).unwrap();
    process.pause();
    // Nothing that is on its way may help it when it wakes.
    proxy.freeze(Direction::Both);
    let hold = soon(lock.acquire()).await.unwrap();
    assert!(hold.token().value() > token);
    assert!(operator().stat(&node).is_none());

    process.resume();
    let (word, valid_for, state) = process.look();
    assert_eq!((&*word, valid_for), ("woke", Duration::ZERO), "{state}");
    assert!(state == "AtRisk" || state.starts_with("Lost"), "{state}");
    if state == "AtRisk" {
        let noise = Noise::measured();
        let woken = Instant::now();
        let (word, valid_for, state) = process.look();
        assert_eq!((&*word, valid_for, &*state), ("turned", Duration::ZERO, "Lost(LeaseLapsed)"));
        not_later(woken.elapsed(), session / 10 + noise.allowance());
    }
    // Final, when the network is back, too.
    proxy.thaw();
    assert!(process.lines.recv_timeout(session / 2).is_err(), "a loss is final");
    assert_eq!(hold.state(), HoldState::Held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_paused_past_its_session_is_told_when_the_network_is_fine() {
    let (path, session) = ("/crash-told", Duration::from_secs(1));
    let process = Process::start(&shared().connect_string(), path, session);
    let (token, _) = process.held();
    process.pause();
    let hold = soon(client().await.mutex(path).unwrap().acquire()).await.unwrap();
    assert!(hold.token().value() > token);
    process.resume();
    let (mut word, mut valid_for, mut state) = process.look();
    assert_eq!((&*word, valid_for), ("woke", Duration::ZERO), "{state}");
    while !state.starts_with("Lost") {
        (word, valid_for, state) = process.look();
        assert_eq!((&*word, valid_for), ("turned", Duration::ZERO), "a false claim: {state}");
    }
    assert_eq!(hold.state(), HoldState::Held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_paused_past_its_session_gets_no_dead_grant() {
    let (path, session) = ("/crash-waiter", Duration::from_secs(1));
    let (client, operator) = (client().await, operator());
    let first = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
    let process = Process::start(&shared().connect_string(), path, session);
    operator.wait_for_children(path, 2, SOON);
    process.pause();
    // The news that it is next waits in its socket, and then its session ends.
    soon(first.release()).await.unwrap();
    let second = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
    assert_eq!(operator.children(path).len(), 1);
    process.resume();
    assert_eq!(operator.wait_for_children(path, 2, SOON).len(), 2, "it queues again");
    assert!(process.lines.recv_timeout(session / 2).is_err(), "two hold at once");
    assert_eq!(second.state(), HoldState::Held);
    soon(second.release()).await.unwrap();
    let (token, node) = process.held();
    assert!(token > second.token().value());
    assert!(operator.stat(&node).is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_paused_for_less_than_its_lease_still_holds() {
    let (path, session) = ("/crash-short", Duration::from_secs(4));
    let process = Process::start(&shared().connect_string(), path, session);
    let (token, node) = process.held();
    // Two heartbeats, so that the lease is a full one.
    tokio::time::sleep(session / 5).await;
    process.pause();
    tokio::time::sleep(session / 5).await;
    process.resume();
    let (word, valid_for, state) = process.look();
    assert_eq!(word, "woke");
    assert!(valid_for > session / 10, "{valid_for:?} {state}");
    if state == "AtRisk" {
        // Until the next heartbeat, which is late.
        let (word, valid_for, state) = process.look();
        assert_eq!((&*word, &*state), ("turned", "Held"));
        assert!(!valid_for.is_zero());
    } else {
        assert_eq!(state, "Held");
    }
    assert!(process.lines.recv_timeout(session / 4).is_err(), "nothing has changed");
    let stat = operator().stat(&node).expect("the same node");
    assert_eq!(stat.czxid.unsigned_abs(), token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_paused_past_its_lease_but_not_its_session_claims_nothing_until_it_is_proven() {
    let (path, session) = ("/crash-lapsed", Duration::from_secs(4));
    let proxy = Proxy::before(shared().server(0));
    let process = Process::start(&proxy.connect_string(), path, session);
    let (token, node) = process.held();
    process.pause();
    tokio::time::sleep(session * 9 / 16).await;
    // Or the hold could be restored before the process looks.
    proxy.freeze(Direction::Both);
    process.resume();
    let (word, valid_for, state) = process.look();
    proxy.thaw();
    assert_eq!((&*word, valid_for), ("woke", Duration::ZERO), "{state}");
    assert_eq!(state, "AtRisk", "the session is alive, so two checks can restore the hold");
    let (word, valid_for, state) = process.look();
    assert_eq!((&*word, &*state), ("turned", "Held"));
    assert!(!valid_for.is_zero());
    let stat = operator().stat(&node).expect("the same node");
    assert_eq!(stat.czxid.unsigned_abs(), token);
    assert!(process.lines.recv_timeout(session / 4).is_err(), "it stays held");
}
