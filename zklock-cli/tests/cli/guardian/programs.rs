//! A program that calls `Client::guard`: when it is killed, the next has the lock at once; and never because of one that lives.
//!
//! The program is this one, told to run the ignored test at the end.

use std::fs;
use std::io::{self, BufRead};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use ground::{Ensemble, until};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal};
use zklock::further::{Credentials, Tls};
use zklock::{Client, ClientOptions, ErrorKind};

use super::{LONG, inherited, node, servers, stat};
use crate::support::{Process, SOON, is_alive, left_with, path, zklock};

/// What the program gets from its test: which lock it holds, and where.
const LOCK: &str = "PROGRAM_LOCK";
const HOSTS: &str = "PROGRAM_HOSTS";
/// The folder of the certificates, for a closed ensemble.
const CERTIFICATES: &str = "PROGRAM_CERTIFICATES";
/// What it says, apart from what the test harness does.
const MARK: &str = "@program ";

/// The program, when it holds the lock.
struct Holder {
    process: Process,
}

impl Holder {
    fn start(path: &str) -> Self {
        Self::started(command(path))
    }

    fn started(mut command: Command) -> Self {
        let process = Process::start(&mut command);
        wait_for(&process, "holds");
        Self { process }
    }

    fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Its only child.
    fn guardian(&self) -> Pid {
        let guardian = children(self.pid());
        assert_eq!(guardian.len(), 1);
        guardian[0]
    }

    /// What it is told to do.
    fn told(&mut self, what: &str) {
        self.process.write(&format!("{what}\n"));
    }

    fn kill(&self) -> Instant {
        let killed = Instant::now();
        self.process.signal(Signal::KILL);
        killed
    }
}

fn wait_for(process: &Process, what: &str) {
    let wanted = format!("{MARK}{what}\n");
    while process.line() != wanted {}
}

fn command(path: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture", "guardian::programs::a_guarded_program"]);
    command.env(LOCK, path).env(HOSTS, servers().connect_string());
    command
}

/// The children of all its threads.
fn children(pid: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let children =
        threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let all = children.collect::<Vec<_>>().join(" ");
    all.split_whitespace().map(|number| Pid::from_raw(number.parse().unwrap()).unwrap()).collect()
}

/// One that waits for the lock, in this process. It is queued when this returns.
fn next(path: &str, options: ClientOptions) -> std::thread::JoinHandle<()> {
    let client = Client::connect(options.session_timeout(LONG)).wait().unwrap();
    let lock = client.mutex(path).unwrap();
    std::thread::spawn(move || {
        lock.acquire_timeout(SOON).wait().expect("the lock is free").release().wait().unwrap();
        client.close().wait().unwrap();
    })
}

/// Sees that the next has the lock before the session of the one that was killed could time out.
fn is_granted_at_once(next: std::thread::JoinHandle<()>, killed: Instant) {
    next.join().unwrap();
    let taken = killed.elapsed();
    assert!(taken < LONG / 2, "the session has timed out: {taken:?}");
}

#[test]
fn the_next_has_the_lock_of_a_killed_program() {
    for left in ["env", "env --ignore-signal=CHLD", "env --block-signal"] {
        let path = path();
        let holder = Holder::started(left_with(left, &command(&path)));
        let (node, guardian) = (node(&path), holder.guardian());
        let next = next(&path, ClientOptions::new(&servers().connect_string()));
        super::operator().wait_for_children(&path, 2, SOON);
        // As one of its children would have them.
        let copies = inherited(holder.pid());
        let killed = holder.kill();
        is_granted_at_once(next, killed);
        assert!(stat(&node).is_none());
        assert!(until(SOON, || !is_alive(guardian)), "the guardian stays");
        drop(copies);
    }
}

#[test]
fn a_stopped_program_keeps_its_session() {
    let path = path();
    let mut holder = Holder::start(&path);
    holder.process.signal(Signal::STOP);
    // If the session were ended, it would be in this time, or much later.
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(stat(&node(&path)).is_some(), "the session of a living process was ended");
    assert!(is_alive(holder.guardian()));
    holder.process.signal(Signal::CONT);
    holder.told("release");
    wait_for(&holder.process, "released");
}

#[test]
fn a_program_that_becomes_another_keeps_its_session_until_that_times_out() {
    let path = path();
    let mut holder = Holder::start(&path);
    let guardian = holder.guardian();
    holder.told("exec");
    // It has heard the end of its socket, and waited in vain for a death.
    assert!(until(SOON, || !is_alive(guardian)), "the guardian stays");
    assert!(is_alive(holder.pid()));
    assert!(stat(&node(&path)).is_some(), "the session of a living process was ended");
}

#[test]
fn a_guardian_keeps_nothing_open_that_the_program_left_to_its_children() {
    let path = path();
    let holder = Holder::start(&path);
    let open = |pid: Pid| -> Vec<String> {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        open.filter_map(|entry| Some(fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned()))
            .collect()
    };
    let sockets =
        |pid| open(pid).into_iter().filter(|target| target.starts_with("socket:")).collect::<Vec<_>>();
    let of_program = sockets(holder.pid());
    let of_guardian = sockets(holder.guardian());
    let shared: Vec<_> = of_guardian.iter().filter(|socket| of_program.contains(socket)).collect();
    assert_eq!(shared, [""; 0], "the listening socket");
}

#[test]
fn a_guardian_that_is_killed_is_missed_and_may_be_replaced() {
    let path = path();
    let mut holder = Holder::start(&path);
    let first = holder.guardian();
    holder.told("guard");
    wait_for(&holder.process, "has one");
    crate::support::signal(first, Signal::KILL);
    assert!(until(SOON, || {
        holder.told("guard");
        let mut line = holder.process.line();
        while !line.starts_with(MARK) {
            line = holder.process.line();
        }
        line == format!("{MARK}guarded\n")
    }));
    assert_ne!(holder.guardian(), first);
    let killed = holder.kill();
    is_granted_at_once(next(&path, ClientOptions::new(&servers().connect_string())), killed);
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
    let holder = Holder::started(command);
    let killed = holder.kill();
    is_granted_at_once(next("/closed", closed_options(&closed.tls_connect_string(), &folder)), killed);
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
    let hold = client.mutex(&path).unwrap().acquire().wait().unwrap();
    say("holds");
    for order in io::stdin().lock().lines().map_while(Result::ok) {
        match &*order {
            "release" => {
                hold.release().wait().unwrap();
                say("released");
            }
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
