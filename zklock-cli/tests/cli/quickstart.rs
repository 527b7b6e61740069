//! `zklock quickstart`: what it promises happens in this order, and its status tells whether it did.

use std::process::Command;

use ground::until;
use rustix::process::{Pid, Signal};

use crate::support::pty::OnTerminal;
use crate::support::{
    Folder, LEFT, Process, SOON, is_alive, left_with, output, servers, signal, zklock, zklock_at,
};

/// After the time; the workers are called after their place in the queue. The tokens are A to D's.
const STORY: &str = "\
4 workers want the lock /zklock-quickstart
A holds the lock, token a; B, C, D wait
A writes with token a: accepted
A writes with token a: accepted
A releases the lock
B holds the lock, token b; C, D wait
B writes with token b: accepted
B is killed; the lock is free when its session is over
C holds the lock, token c; D waits
C writes with token c: accepted
C is stopped where it is, and knows nothing of it
D holds the lock, token d; nobody waits
D writes with token d: accepted
C wakes up
C writes with token c: REFUSED, d has written
C learns: the hold of /zklock-quickstart is lost: its session expired; stop the work that it guarded, others may hold the lock
D writes with token d: accepted
D releases the lock
done: one holder at a time, in the order of the queue, and the late write did no harm
";

fn check_story(lines: &[&str]) {
    let (mut times, mut story) = (Vec::new(), String::new());
    for line in lines {
        let (time, text) = line.split_once(" s  ").unwrap_or_else(|| panic!("{line:?}"));
        times.push(time.trim().parse::<f64>().unwrap_or_else(|_| panic!("{line:?}")));
        story += &format!("{text}\n");
    }
    assert!(times.is_sorted(), "{times:?}");
    let granted = |line: &str| {
        let (name, rest) = line.split_once(" holds the lock, token ")?;
        Some((name.to_owned(), rest.split_once(';')?.0.to_owned()))
    };
    let grants: Vec<_> = story.lines().filter_map(granted).collect();
    assert_eq!(grants.len(), 4, "{story}");
    let tokens: Vec<u64> = grants.iter().map(|(_, token)| token.parse().expect("a number")).collect();
    assert!(tokens.is_sorted_by(|before, after| before < after), "{tokens:?}");
    for ((name, token), place) in grants.iter().zip(["A", "B", "C", "D"]) {
        story = story.replace(name, place);
        story = story.replace(&format!("token {token}"), &format!("token {}", place.to_lowercase()));
        story = story.replace(&format!("REFUSED, {token} "), &format!("REFUSED, {} ", place.to_lowercase()));
    }
    assert_eq!(story, STORY);
}

#[test]
fn it_brings_a_server_along_whatever_the_environment_says() {
    let mut command = zklock_at("127.0.0.1:1");
    let folder = Folder::new();
    folder.file("zklock.conf", "tls = yes\nhosts = 127.0.0.1:1\n");
    command.env_remove("ZKLOCK_CONFIG").env("XDG_CONFIG_HOME", folder.path());
    let ended = output(command.arg("quickstart").env("ZKLOCK_TLS", "1").env("ZKLOCK_SASL", "no password"));
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""), "{}", ended.out);
    let lines: Vec<_> = ended.out.lines().collect();
    let start = "A ZooKeeper server in memory, for this run alone: 127.0.0.1:";
    assert!(lines[0].starts_with(start), "{}", lines[0]);
    check_story(&lines[1..]);
}

#[test]
fn whatever_a_parent_has_left_it_is_as_promised() {
    for left in LEFT {
        let ended = output(&mut left_with(left, zklock().arg("quickstart")));
        assert_eq!((ended.code, &*ended.errors), (Some(0), ""), "{left}: {}", ended.out);
    }
}

#[test]
fn on_an_ensemble() {
    let hosts = servers().connect_string();
    // The path is the same for all, and so only one of them runs at a time.
    for option in ["--connect", "--hosts"] {
        let ended = output(zklock().args(["quickstart", option, &hosts]));
        assert_eq!((ended.code, &*ended.errors), (Some(0), ""), "{}", ended.out);
        check_story(&ended.out.lines().collect::<Vec<_>>());
    }
}

#[test]
fn without_a_server_it_says_so() {
    let mut command = zklock();
    let ended =
        output(command.args(["quickstart", "--connect", "127.0.0.1:1", "--connect-timeout", "500ms"]));
    assert_eq!((ended.code, &*ended.out), (Some(123), ""));
    assert!(ended.errors.contains("127.0.0.1:1 Connection refused"), "{}", ended.errors);
}

/// The lines that stay, without the picture.
fn said(shown: &str) -> Vec<&str> {
    shown
        .lines()
        .map(|line| line.trim_start_matches("\x1b[5A\x1b[J"))
        .filter(|line| line.contains(" s  "))
        .collect()
}

fn on_terminal(prepare: impl FnOnce(&mut Command)) -> String {
    let mut command = zklock();
    command.arg("quickstart").env("TERM", "xterm").env_remove("NO_COLOR");
    prepare(&mut command);
    let mut terminal = OnTerminal::start(&command);
    let mut shown = terminal.shows("done: ");
    shown += "done: ";
    assert_eq!(terminal.code(), Some(0));
    shown + &terminal.rest()
}

#[test]
fn a_terminal_shows_the_queue_in_colours() {
    let shown = on_terminal(|_| {});
    for part in [
        "\x1b[1;36m  holds    worker-",
        "\r\n  waits    worker-",
        ", which was killed: its session is not over yet\x1b[0m\r\n",
        "\r\n\x1b[33m  stopped  worker-",
        "\r\n\x1b[32m  ledger   the greatest token is ",
        "\x1b[1;31mworker-",
    ] {
        assert!(shown.contains(part), "{part:?}: {shown}");
    }
    assert!(shown.ends_with("\x1b[5A\x1b[J"), "the picture is left: {shown:?}");
}

#[test]
fn colours_can_be_had_without() {
    let shown = on_terminal(|command| {
        command.env("NO_COLOR", "1");
    });
    assert!(!shown.contains("\x1b[0m") && shown.contains("\r\n  holds    worker-"), "{shown}");
    check_story(&said(&shown));
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let shown = on_terminal(|command| {
        command.env("TERM", "dumb");
    });
    assert!(!shown.contains('\x1b'), "{shown}");
    check_story(&said(&shown));
}

/// One that has come so far, the worker of whom this was said, and all its workers.
fn start_until(moment: &str) -> (Process, Pid, Vec<Pid>) {
    let process = Process::start(zklock().arg("quickstart"));
    let name = loop {
        let line = process.line();
        if line.contains(moment) {
            break line.split_whitespace().nth(2).expect("a name").to_owned();
        }
    };
    let pid = process.pid();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("it runs");
    let children: Vec<Pid> =
        children.split_whitespace().filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect();
    let is_called = |pid: &&Pid| {
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.contains(&format!("\0__worker\0{name}\0"))
    };
    let worker = *children.iter().find(is_called).expect("it is there");
    (process, worker, children)
}

#[test]
fn it_fails_if_it_is_not_as_promised() {
    let (process, stopped, _) = start_until("is stopped");
    signal(stopped, Signal::KILL);
    let ended = process.output();
    assert_eq!(ended.code, Some(125), "{}", ended.out);
    assert!(ended.errors.contains(" has ended with signal: 9"), "{}", ended.errors);
}

#[test]
fn no_worker_outlives_it() {
    for end in [Signal::TERM, Signal::KILL] {
        // One of them is stopped, and could not notice.
        let (mut process, _, workers) = start_until("is stopped");
        assert!(workers.len() >= 2, "{workers:?}");
        process.signal(end);
        process.status();
        assert!(until(SOON, || workers.iter().all(|worker| !is_alive(*worker))), "{workers:?}");
    }
}
