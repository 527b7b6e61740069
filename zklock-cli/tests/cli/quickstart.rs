//! `zklock quickstart`: what it promises happens in this order, and its status tells whether it did.

use ground::until;
use rustix::process::{Pid, Signal};

use crate::support::{
    Folder, LEFT, Process, SOON, children, is_alive, left_with, output, servers, signal, zklock, zklock_at,
};

/// After the time; the tokens are a to d.
const STORY: &str = "\
4 workers want the lock /zklock-quickstart
worker-1 holds the lock, token a; worker-2, worker-3, worker-4 wait
worker-1 writes with token a: accepted
worker-1 writes with token a: accepted
worker-1 releases the lock
worker-2 holds the lock, token b; worker-3, worker-4 wait
worker-2 writes with token b: accepted
worker-2 is killed; the lock is free when its session is over
worker-3 holds the lock, token c; worker-4 waits
worker-3 writes with token c: accepted
worker-3 is stopped where it is, and knows nothing of it
worker-4 holds the lock, token d; nobody waits
worker-4 writes with token d: accepted
worker-3 wakes up
worker-3 writes with token c: REFUSED, d has written
worker-3 learns: the hold of /zklock-quickstart is lost: its session expired; stop the work that it guarded, others may hold the lock
worker-4 writes with token d: accepted
worker-4 releases the lock
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
    let granted =
        |line: &str| Some(line.split_once(" holds the lock, token ")?.1.split_once(';')?.0.to_owned());
    let tokens: Vec<_> = story.lines().filter_map(granted).collect();
    let numbers: Vec<u64> = tokens.iter().map(|token| token.parse().expect("a number")).collect();
    assert!(numbers.is_sorted_by(|before, after| before < after), "{numbers:?}");
    for (token, letter) in tokens.iter().zip(["a", "b", "c", "d"]) {
        story = story.replace(&format!("token {token}"), &format!("token {letter}"));
        story = story.replace(&format!("REFUSED, {token} "), &format!("REFUSED, {letter} "));
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

/// One that has come so far, the worker of whom this was said, and all its workers.
fn start_until(moment: &str) -> (Process, Pid, Vec<Pid>) {
    let process = Process::start(zklock().arg("quickstart"));
    let name = loop {
        let line = process.line();
        if line.contains(moment) {
            break line.split_whitespace().nth(2).expect("a name").to_owned();
        }
    };
    let children = children(process.pid());
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
