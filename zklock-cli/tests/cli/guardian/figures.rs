//! Figures, for which a machine with little else to do is wanted. They are run only if they are asked for:
//!
//! ```text
//! cargo test --release -p zklock-cli --test cli guardian::figures -- --ignored --nocapture --test-threads 1
//! ```

use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Signal;
use zklock::{Client, ClientOptions};

use super::{LONG, inherited, node, operator, servers, started, stat};
use crate::support::{is_alive, only_child, path, signal};

const KILLS: usize = 200;
const STOPS: usize = 1_000;

#[test]
#[ignore = "a measurement"]
fn from_kill_to_the_next_grant() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options = ClientOptions::new(&servers().connect_string()).session_timeout(LONG);
    let client = runtime.block_on(Client::connect(options)).unwrap();
    let mut times: Vec<Duration> = (0..KILLS).map(|_| runtime.block_on(from_kill(&client))).collect();
    times.sort();
    let at = |percent: usize| times[(KILLS * percent).div_ceil(100) - 1];
    println!("SIGKILL to the next grant, {KILLS} trials, {:?} session timeout", LONG);
    println!("p50 {:?}, p90 {:?}, p99 {:?}, longest {:?}", at(50), at(90), at(99), at(100));
}

/// The next waits in this process, so that nothing but the grant is measured.
async fn from_kill(client: &Client) -> Duration {
    let path = path();
    let mut process = started(&path, &[], "echo $$; exec sleep 1000");
    let job = process.numbers()[0];
    let lock = client.mutex(&path).unwrap();
    let mut waiting = std::pin::pin!(lock.acquire());
    // Until it is queued, and its watch is set.
    let granted = tokio::time::timeout(Duration::from_millis(100), &mut waiting).await;
    assert!(granted.is_err(), "the lock is held");
    assert_eq!(operator().children(&path).len(), 2);
    let killed = Instant::now();
    process.signal(Signal::KILL);
    let hold = waiting.await.unwrap();
    let taken = killed.elapsed();
    assert!(!is_alive(job), "the command lives beside the next");
    hold.release().await.unwrap();
    process.status();
    taken
}

#[test]
#[ignore = "a measurement"]
fn no_living_session_is_ended() {
    let path = path();
    // It forks all the time.
    let process = started(&path, &[], "echo $$; while :; do (:); done");
    let job = process.numbers()[0];
    let (node, warden) = (node(&path), only_child(process.pid()));
    let owner = stat(&node).unwrap().ephemeral_owner;
    let operator = operator();
    for trial in 0..STOPS {
        match trial % 4 {
            0 => stopped_for_a_moment(|which| process.signal(which)),
            1 => stopped_for_a_moment(|which| signal(warden, which)),
            2 => inherited_for_a_moment(&inherited(process.pid())),
            // A neighbour in the queue, that is killed.
            _ => drop(super::next(&path, &[])),
        }
        assert_eq!(operator.stat(&node).map(|stat| stat.ephemeral_owner), Some(owner), "trial {trial}");
    }
    assert!(is_alive(job) && is_alive(warden));
    process.signal(Signal::TERM);
    assert_eq!(process.output().code, Some(143), "all went its ordinary way");
    println!("{STOPS} forks and stops, and no living session was ended");
}

fn stopped_for_a_moment(tell: impl Fn(Signal)) {
    tell(Signal::STOP);
    std::thread::sleep(Duration::from_millis(5));
    tell(Signal::CONT);
}

/// A child inherits these, and ends.
fn inherited_for_a_moment(copies: &[OwnedFd]) {
    for copy in copies {
        fcntl_setfd(copy, FdFlags::empty()).unwrap();
    }
    assert!(Command::new("true").status().unwrap().success());
}
