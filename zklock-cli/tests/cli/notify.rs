//! `zklock run --notify` in an active/standby service: what systemd learns, and when. The tests play systemd.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Folder, Process, SOON, delete_holder, operator, output, path, run, zklock_there};

/// The unit that packages bring.
const UNIT: &str = include_str!("../../../packaging/zklock@.service");

/// The socket to which a service reports.
struct Systemd {
    socket: UnixDatagram,
    /// As the service finds it in NOTIFY_SOCKET.
    name: String,
    _folder: Folder,
}

impl Systemd {
    fn new() -> Self {
        let folder = Folder::new();
        let name = folder.path().join("notify").display().to_string();
        Self::with(UnixDatagram::bind(&name).expect("a socket"), name, folder)
    }

    fn abstract_one() -> Self {
        let folder = Folder::new();
        let name = folder.path().display().to_string();
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        Self::with(UnixDatagram::bind_addr(&address).expect("a socket"), format!("@{name}"), folder)
    }

    fn with(socket: UnixDatagram, name: String, folder: Folder) -> Self {
        socket.set_read_timeout(Some(SOON)).expect("a time");
        Self { socket, name, _folder: folder }
    }

    /// The next message.
    fn hears(&self) -> String {
        self.hears_in_time().expect("a message")
    }

    fn hears_in_time(&self) -> Option<String> {
        let mut bytes = [0; 4096];
        match self.socket.recv(&mut bytes) {
            Ok(count) => Some(String::from_utf8_lossy(&bytes[..count]).into_owned()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The next message that is no sign of life.
    fn hears_news(&self) -> String {
        loop {
            let message = self.hears();
            if message != "WATCHDOG=1" {
                return message;
            }
        }
    }

    /// All messages that came since, until none comes for this time. More than a hundred are too many for any test.
    fn hears_within(&self, time: Duration) -> Vec<String> {
        self.socket.set_read_timeout(Some(time)).expect("a time");
        let heard = std::iter::from_fn(|| self.hears_in_time()).take(100).collect();
        self.socket.set_read_timeout(Some(SOON)).expect("a time");
        heard
    }
}

fn setting(name: &str) -> &'static str {
    UNIT.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).expect("a setting")
}

/// Starts the service as systemd would.
fn service(systemd: &Systemd, identity: &str, path: &str) -> Process {
    assert_eq!(setting("Type"), "notify");
    let seconds: u64 = setting("WatchdogSec").parse().expect("seconds");
    let mut words = setting("ExecStart").split_whitespace();
    assert_eq!(words.next(), Some("/usr/bin/zklock"));
    let mut command = zklock_there();
    command.env("NOTIFY_SOCKET", &systemd.name).env("WATCHDOG_USEC", (seconds * 1_000_000).to_string());
    for word in words {
        match word {
            "$OPTIONS" => command.args(["--identity", identity]),
            "${LOCK}" => command.arg(path),
            "$COMMAND" => command.args(["sleep", "1000"]),
            word => command.arg(word),
        };
    }
    Process::start(&mut command)
}

#[test]
fn the_unit_that_stands_by_is_ready_when_the_active_one_is_killed() {
    let path = path();
    let (first, second) = (Systemd::new(), Systemd::new());
    let active = service(&first, "db7/1", &path);
    let ready = format!("READY=1\nSTATUS=holding the lock {path}");
    assert_eq!(first.hears_news(), format!("STATUS=waiting for the lock {path}"));
    assert_eq!(first.hears_news(), ready);
    let standby = service(&second, "db8/2", &path);
    assert_eq!(second.hears(), format!("STATUS=waiting for the lock {path}"));
    assert_eq!(second.hears(), format!("STATUS=waiting for the lock {path}, held by db7/1; we are next"));
    active.signal(Signal::KILL);
    assert_eq!(second.hears_news(), ready);
    standby.signal(Signal::TERM);
    assert_eq!(second.hears_news(), "STOPPING=1");
    assert_eq!(standby.output().code, Some(143));
    assert_eq!(operator().children_or_empty(&path), [""; 0]);
}

#[test]
fn signs_of_life_end_with_the_lease() {
    let (path, systemd) = (path(), Systemd::abstract_one());
    let script = "trap '' TERM; echo on; while :; do sleep 0.1; done";
    let mut command = run(&path, &["--notify", "--kill-after", "1h"], script);
    let process = Process::start(command.env("NOTIFY_SOCKET", &systemd.name).env("WATCHDOG_USEC", "100000"));
    process.line();
    while systemd.hears() != "WATCHDOG=1" {}
    assert_eq!(systemd.hears(), "WATCHDOG=1");
    delete_holder(&path);
    process.error_line("is lost");
    systemd.hears_within(Duration::from_millis(1));
    // The command still runs. This is for nothing to happen in.
    assert_eq!(systemd.hears_within(Duration::from_secs(1)), [""; 0]);
}

#[test]
fn signs_of_life_that_another_process_owes_are_not_given() {
    let systemd = Systemd::new();
    let mut command = run(&path(), &["--notify"], "sleep 0.2");
    command.env("NOTIFY_SOCKET", &systemd.name).env("WATCHDOG_USEC", "2000").env("WATCHDOG_PID", "1");
    assert_eq!(output(&mut command).code, Some(0));
    let heard = systemd.hears_within(Duration::from_millis(1));
    assert_eq!(heard.last().map(|message| &**message), Some("STOPPING=1"));
    assert!(!heard.iter().any(|message| message == "WATCHDOG=1"), "{heard:?}");
}

#[test]
fn the_socket_is_for_zklock_or_for_the_command() {
    let systemd = Systemd::new();
    let shown = |options: &[&str]| {
        let script = "echo ${NOTIFY_SOCKET-none} ${WATCHDOG_USEC-none} ${WATCHDOG_PID-none}";
        let mut command = run(&path(), options, script);
        command.env("NOTIFY_SOCKET", &systemd.name).env("WATCHDOG_USEC", "9").env("WATCHDOG_PID", "8");
        output(&mut command).out
    };
    assert_eq!(shown(&[]), format!("{} 9 8\n", systemd.name));
    assert_eq!(systemd.hears_within(Duration::from_millis(1)), [""; 0]);
    assert_eq!(shown(&["--notify"]), "none none none\n");
}

#[test]
fn a_socket_that_is_missing_or_wrong_is_dealt_with() {
    let notify = |socket: Option<&str>| {
        let mut command: Command = run(&path(), &["--notify"], "echo ran");
        socket.map(|socket| command.env("NOTIFY_SOCKET", socket));
        output(&mut command)
    };
    // Started by hand.
    notify(None).is(0, "ran\n").is_quiet();
    notify(Some("here")).is(64, "").says("zklock: NOTIFY_SOCKET is \"here\", but has to be a path");
    notify(Some("/nowhere/notify")).is(125, "").says("NOTIFY_SOCKET=/nowhere/notify: No such file");
}
