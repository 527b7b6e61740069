//! A program that calls `Client::guard`: when it is killed, the next has the lock at once; and never because of one that lives.
//!
//! The program is this one, told to run the ignored test at the end.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use ground::{Ensemble, until};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Signal;
use zklock::further::{Credentials, Tls};
use zklock::{Client, ClientOptions, ErrorKind};

use super::{LONG, command_at, inherited, is_kept, next, next_is_granted_at, node, servers, stat};
use crate::support::{
    Process, SOON, is_alive, left_with, looks_at, only_child, open_files, path, signal, zklock,
};

/// What the program gets from its test: which lock it holds, and where.
const LOCK: &str = "PROGRAM_LOCK";
const HOSTS: &str = "PROGRAM_HOSTS";
/// The folder of the certificates, for a closed ensemble.
const CERTIFICATES: &str = "PROGRAM_CERTIFICATES";
/// What it says, apart from what the test harness does.
const MARK: &str = "@program ";

/// The program, when it holds the lock.
fn holder(mut command: Command) -> Process {
    let process = Process::start(&mut command);
    assert_eq!(says(&process), "holds");
    process
}

/// What the program says next.
fn says(process: &Process) -> String {
    loop {
        if let Some(said) = process.line().strip_prefix(MARK) {
            return said.trim().to_owned();
        }
    }
}

fn command(path: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture", "guardian::programs::a_guarded_program"]);
    command.env(LOCK, path).env(HOSTS, servers().connect_string());
    command
}

#[test]
fn the_next_has_the_lock_of_a_killed_program() {
    for left in ["env", "env --ignore-signal=CHLD", "env --block-signal"] {
        let path = path();
        let holder = holder(left_with(left, &command(&path)));
        let (node, guardian) = (node(&path), only_child(holder.pid()));
        let next = next(&path, &[]);
        super::operator().wait_for_children(&path, 2, SOON);
        // As one of its children would have them.
        let copies = inherited(holder.pid());
        next_is_granted_at(Signal::KILL, &holder, next);
        assert!(stat(&node).is_none());
        assert!(until(SOON, || !is_alive(guardian)), "the guardian stays");
        drop(copies);
    }
}

#[test]
fn a_program_that_becomes_another_keeps_its_session_until_that_times_out() {
    let path = path();
    let mut holder = holder(command(&path));
    let guardian = only_child(holder.pid());
    holder.write("exec\n");
    // It has heard the end of its socket, and waited in vain for a death.
    assert!(until(SOON, || !is_alive(guardian)), "the guardian stays");
    assert!(is_alive(holder.pid()));
    is_kept(&node(&path));
}

#[test]
fn a_guardian_keeps_nothing_open_that_the_program_left_to_its_children() {
    let holder = holder(command(&path()));
    let sockets = |pid| -> BTreeSet<String> {
        open_files(pid).into_values().filter(|target| target.starts_with("socket:")).collect()
    };
    let (of_program, of_guardian) = (sockets(holder.pid()), sockets(only_child(holder.pid())));
    assert!(of_program.is_disjoint(&of_guardian), "the listening socket");
}

#[test]
fn a_guardian_that_is_killed_is_missed_and_may_be_replaced() {
    let path = path();
    let mut holder = holder(command(&path));
    let first = only_child(holder.pid());
    holder.write("guard\n");
    assert_eq!(says(&holder), "has one");
    signal(first, Signal::KILL);
    assert!(until(SOON, || {
        holder.write("guard\n");
        says(&holder) == "guarded"
    }));
    assert_ne!(only_child(holder.pid()), first);
    next_is_granted_at(Signal::KILL, &holder, next(&path, &[]));
}

#[test]
fn in_a_closed_ensemble_the_guardian_logs_in_as_the_program_does() {
    let builder =
        Ensemble::builder().servers(3).max_session_timeout(LONG).tls(true).sasl(&[("ann", "secret")]);
    let closed =
        builder.configure("enforce.auth.enabled=true").configure("enforce.auth.schemes=sasl").start();
    let folder = closed.certificates().authority().parent().unwrap().to_owned();
    let mut command = command("/closed");
    command.env(HOSTS, closed.tls_connect_string()).env(CERTIFICATES, &folder);
    let holder = holder(command);
    let mut next = command_at(&closed.tls_connect_string(), "/closed", &[], &looks_at(&[]));
    next.env("ZKLOCK_SASL", "ann:secret").env("ZKLOCK_CA", folder.join("ca.pem"));
    next.env("ZKLOCK_CERT", folder.join("client.pem")).env("ZKLOCK_KEY", folder.join("client.key"));
    next_is_granted_at(Signal::KILL, &holder, Process::start(&mut next));
}

/// With everything as text, none of which the guardian can find in a file.
fn closed_options(hosts: &str, folder: &Path) -> ClientOptions {
    let text = |file| fs::read_to_string(folder.join(file)).unwrap();
    let tls = Tls::new(&text("ca.pem")).unwrap().identity(&text("client.pem"), &text("client.key")).unwrap();
    ClientOptions::new(hosts).tls(tls).credentials(Credentials::sasl("ann", "secret").unwrap())
}

/// The program: it holds a lock, under a guardian, and does as it is told.
#[test]
#[ignore = "a program for the tests above"]
fn a_guarded_program() {
    let Ok(path) = std::env::var(LOCK) else { return };
    let hosts = std::env::var(HOSTS).unwrap();
    let options = match std::env::var_os(CERTIFICATES) {
        Some(folder) => closed_options(&hosts, Path::new(&folder)),
        None => ClientOptions::new(&hosts),
    };
    let options = options.session_timeout(LONG);
    // As a careless program leaves it to its children.
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    fcntl_setfd(&listener, FdFlags::empty()).unwrap();
    let client = Client::lazy(options);
    client.guard(guardian()).wait().unwrap().keep();
    let _hold = client.mutex(&path).unwrap().acquire().wait().unwrap();
    say("holds");
    for order in io::stdin().lock().lines().map_while(Result::ok) {
        match &*order {
            "guard" => match client.guard(guardian()).wait() {
                Ok(guardian) => {
                    guardian.keep();
                    say("guarded");
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::InvalidInput);
                    say("has one");
                }
            },
            _ => panic!("{}", Command::new("sleep").arg("1000").exec()),
        }
    }
}

fn guardian() -> Command {
    let mut command = zklock();
    command.arg("guardian");
    command
}

fn say(what: &str) {
    println!("\n{MARK}{what}");
}
