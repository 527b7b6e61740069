//! When `zklock` is killed, the next has the lock at once; and never because of a `zklock` that lives.
//!
//! The session timeouts are so long here that no machine is slow enough to reach them.

mod programs;

use std::fs;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ground::wire::{Admin, Stat};
use ground::{Ensemble, Proxy, until};
use rustix::net::Shutdown;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, pidfd_getfd, pidfd_open};

use crate::support::{
    LEFT, Process, SOON, is_alive, left_with, looks_at, of_job, only_child, open_files, path, run_at, signal,
};

/// The session timeout.
const LONG: Duration = Duration::from_secs(100);

/// A server that grants it.
fn servers() -> &'static Ensemble {
    static SHARED: OnceLock<Ensemble> = OnceLock::new();
    SHARED.get_or_init(|| {
        Ensemble::builder().tick(Duration::from_millis(500)).max_session_timeout(LONG).start()
    })
}

fn operator() -> Admin {
    Admin::connect(servers().server(0).address())
}

fn command_at(hosts: &str, path: &str, options: &[&str], script: &str) -> Command {
    let mut command = run_at(hosts, path, options, script);
    command.env("ZKLOCK_SESSION_TIMEOUT", "100s");
    command
}

fn started_at(hosts: &str, path: &str, options: &[&str], script: &str) -> Process {
    Process::start(&mut command_at(hosts, path, options, script))
}

/// The child of a parent that has left this to it.
fn started_with(left: &str, path: &str, script: &str) -> Process {
    Process::start(&mut left_with(left, &command_at(&servers().connect_string(), path, &[], script)))
}

fn started(path: &str, options: &[&str], script: &str) -> Process {
    started_at(&servers().connect_string(), path, options, script)
}

/// Another, whose command looks at once which of these live. It ends when it has said so.
fn next(path: &str, pids: &[Pid]) -> Process {
    started(path, &[], &looks_at(pids))
}

/// The node of the one that holds the lock.
fn node(path: &str) -> String {
    let [node] = &operator().wait_for_children(path, 1, SOON)[..] else { unreachable!("as asked") };
    format!("{path}/{node}")
}

fn stat(node: &str) -> Option<Stat> {
    operator().stat(node)
}

/// Signals the one that holds the lock, and sees that the next has it then.
fn next_is_granted_at(end: Signal, holder: &Process, next: Process) {
    let ended = Instant::now();
    holder.signal(end);
    is_granted_at_once(next, ended);
}

/// Sees that the next has the lock when all of these are dead, and before the session that held it could time out.
fn is_granted_at_once(next: Process, killed: Instant) {
    assert_eq!(next.line(), "looked\n", "the command of the one that was killed lives");
    // It was heard of last before it was killed, but no longer before than a quarter of the timeout.
    let taken = killed.elapsed();
    assert!(taken < LONG / 2, "the session has timed out: {taken:?}");
    assert_eq!(next.output().code, Some(0));
}

fn is_kept(node: &str) {
    assert!(stat(node).is_some(), "the session of a living process was ended");
}

/// If the session were ended, it would be in this time, or much later.
fn is_still_kept(node: &str) {
    std::thread::sleep(Duration::from_secs(1));
    is_kept(node);
}

/// Copies of the ends of sockets that a process has, as one of its children would inherit them.
fn inherited(pid: Pid) -> Vec<OwnedFd> {
    let process = pidfd_open(pid, PidfdFlags::empty()).expect("it is our child");
    let sockets = open_files(pid).into_iter().filter(|(_, target)| target.starts_with("socket:"));
    let copies = sockets.map(|(number, _)| {
        pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).expect("a parent may have a copy")
    });
    copies.collect()
}

/// Whether a process has a connection by TCP.
fn is_connected(pid: Pid) -> bool {
    let connections = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    let is_tcp =
        |number: &str| connections.lines().any(|line| line.split_whitespace().nth(9) == Some(number));
    open_files(pid).values().any(|target| {
        target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')).is_some_and(is_tcp)
    })
}

#[test]
fn the_next_has_the_lock_of_a_killed_zklock_and_its_command_is_dead() {
    for left in LEFT {
        let path = path();
        // Its script needs a file.
        let left = left.replace("fsize=0", "fsize=99");
        let mut process = started_with(&left, &path, &of_job("trap '' TERM HUP"));
        let (pids, node) = (process.numbers(), node(&path));
        let next = next(&path, &pids);
        operator().wait_for_children(&path, 2, SOON);
        next_is_granted_at(Signal::KILL, &process, next);
        assert!(stat(&node).is_none(), "{left}");
        process.status();
    }
}

#[test]
fn a_copy_of_its_end_of_the_socket_does_not_hide_that_zklock_is_dead() {
    let path = path();
    let process = started(&path, &[], &of_job("trap '' TERM HUP"));
    let pids = process.numbers();
    let next = next(&path, &pids);
    let copies = inherited(process.pid());
    assert!(copies.len() > 1, "that to the warden, and that to the server");
    next_is_granted_at(Signal::KILL, &process, next);
    drop(copies);
}

#[test]
fn a_closed_end_of_the_socket_is_no_death() {
    let path = path();
    let process = started(&path, &[], &of_job("trap '' TERM HUP"));
    let (pids, node) = (process.numbers(), node(&path));
    let warden = only_child(process.pid());
    // So that nobody but the warden does anything.
    process.signal(Signal::STOP);
    for copy in inherited(process.pid()) {
        // Those that are not to the warden are to the server: the session lives on without.
        rustix::net::shutdown(copy, Shutdown::Write).expect("it is connected");
    }
    assert!(until(SOON, || !is_alive(warden)), "it has nothing more to do");
    assert!(!pids.iter().any(|pid| is_alive(*pid)));
    is_kept(&node);
    process.signal(Signal::CONT);
    assert_eq!(process.output().code, Some(125));
}

#[test]
fn a_stopped_zklock_keeps_its_session_until_it_goes_on_or_is_killed() {
    for (end, code) in [(Signal::CONT, Some(124)), (Signal::KILL, None)] {
        let path = path();
        let process = started(&path, &["--at-most", "500ms"], "echo $$; exec sleep 1000");
        let (pids, node) = (process.numbers(), node(&path));
        let next = next(&path, &pids);
        process.signal(Signal::STOP);
        assert!(until(SOON, || !is_alive(pids[0])), "the warden has ended it in time");
        is_still_kept(&node);
        next_is_granted_at(end, &process, next);
        assert_eq!(process.output().code, code);
    }
}

#[test]
fn a_zklock_whose_lock_is_taken_away_keeps_its_session() {
    let path = path();
    let mut process = started(&path, &["--retry"], "echo $ZKLOCK_NODE; read line");
    let first = process.line();
    let owner = stat(first.trim()).expect("it is held").ephemeral_owner;
    operator().delete(first.trim());
    let second = process.line();
    assert_ne!(first, second);
    assert_eq!(stat(second.trim()).map(|stat| stat.ephemeral_owner), Some(owner));
    process.write("\n");
    process.output();
}

/// The warden keeps the session, which without it would be over.
#[test]
fn at_least_keeps_the_lock_of_a_killed_zklock_for_longer_than_its_session_lasts() {
    let path = path();
    let began = Instant::now();
    let options = ["--session-timeout", "8s", "--at-least", "18s"];
    let proxy = Proxy::before(servers().server(0));
    let process = started_at(&proxy.connect_string(), &path, &options, &of_job("trap '' TERM HUP"));
    let (pids, warden) = (process.numbers(), only_child(process.pid()));
    let next = next(&path, &pids);
    process.signal(Signal::KILL);
    assert!(until(SOON, || !pids.iter().any(|pid| is_alive(*pid))), "the command ends at once all the same");
    // It does not depend on one connection.
    assert!(until(SOON, || is_connected(warden)));
    proxy.reset();
    assert_eq!(next.line(), "looked\n");
    assert!(began.elapsed() >= Duration::from_secs(18), "it was kept for {:?}", began.elapsed());
    assert_eq!(next.output().code, Some(0));
    let said = process.output().told();
    assert_eq!(said, "", "the session was ended, and not over by itself");
}

/// Then nobody is left who could keep the session, or end it.
#[test]
fn the_lock_is_kept_for_the_session_timeout_if_both_are_killed() {
    let path = path();
    let mut process = started(&path, &["--at-least", "1h"], "echo $$; exec sleep 1000");
    let (pids, node) = (process.numbers(), node(&path));
    let warden = only_child(process.pid());
    // So that neither can do anything about the other's end. (A warden that is stopped is woken when its parent dies.)
    process.signal(Signal::STOP);
    let stat_of = |pid: Pid| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(until(SOON, || stat_of(process.pid()).contains(") T ")));
    signal(warden, Signal::KILL);
    process.signal(Signal::KILL);
    process.status();
    assert!(until(SOON, || !is_alive(pids[0]) && !is_alive(warden)));
    assert!(stat(&node).is_some(), "the session lives until its timeout");
}

#[test]
fn servers_that_cannot_be_reached_leave_it_to_the_session_timeout() {
    let path = path();
    let proxy = Proxy::before(servers().server(0));
    let script = of_job("trap '' TERM HUP");
    let mut process = started_at(&proxy.connect_string(), &path, &["--connect-timeout", "2s"], &script);
    let (pids, node) = (process.numbers(), node(&path));
    proxy.refuse(true);
    proxy.reset();
    process.signal(Signal::KILL);
    process.status();
    let said = process.error_line("a process died");
    assert!(said.contains("its locks are free when its session 0x"), "{said}");
    assert!(said.contains("times out, in 1m 40s or a little more: "), "{said}");
    assert!(said.contains("was not ended within 2s"), "{said}");
    assert!(!pids.iter().any(|pid| is_alive(*pid)));
    assert!(stat(&node).is_some(), "nobody could have ended it");
}

/// The one that holds the lock until it gets a line, and one that waits behind it, and has a guardian.
fn holder_and_waiter(path: &str, left: &str) -> (Process, Process) {
    let holder = started(path, &[], "echo $ZKLOCK_NODE; read _");
    holder.line();
    let waiter = started_with(left, path, "echo $$; exec sleep 1000");
    operator().wait_for_children(path, 2, SOON);
    let guardian = only_child(waiter.pid());
    assert!(until(SOON, || fs::read_to_string(format!("/proc/{guardian}/comm")).unwrap() == "guardian\n"));
    (holder, waiter)
}

#[test]
fn one_that_is_killed_while_it_waits_does_not_hold_up_those_behind_it() {
    for left in LEFT {
        let path = path();
        let (mut holder, waiter) = holder_and_waiter(&path, left);
        let next = next(&path, &[]);
        operator().wait_for_children(&path, 3, SOON);
        let killed = Instant::now();
        waiter.signal(Signal::KILL);
        operator().wait_for_children(&path, 2, SOON);
        holder.write("\n");
        is_granted_at_once(next, killed);
        assert_eq!(holder.output().code, Some(0), "{left}");
    }
}

#[test]
fn one_that_is_stopped_while_it_waits_keeps_its_place() {
    let path = path();
    let (mut holder, waiter) = holder_and_waiter(&path, "env");
    waiter.signal(Signal::STOP);
    let copies = inherited(waiter.pid());
    // If the session were ended, it would be in this time, or much later.
    std::thread::sleep(Duration::from_secs(1));
    drop(copies);
    assert_eq!(operator().children(&path).len(), 2);
    waiter.signal(Signal::CONT);
    holder.write("\n");
    // It is granted the lock, and its guardian has made way for the warden of its command.
    let job = waiter.numbers()[0];
    assert!(is_alive(job));
    let warden = only_child(waiter.pid());
    assert_eq!(fs::read_to_string(format!("/proc/{warden}/comm")).unwrap(), "warden-of-job\n");
    assert_eq!(holder.output().code, Some(0));
}
