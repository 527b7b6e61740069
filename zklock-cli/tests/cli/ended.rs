//! How long the lock is held, and how long the command may run.

use ground::{Direction, Proxy, until};

use rustix::process::Signal;

use crate::support::{
    Process, SOON, is_alive, only_child, operator, output, path, run, run_at, servers, signal, started,
};

#[test]
fn at_least_keeps_the_lock_after_a_quick_command() {
    // The second is longer than any clock counts.
    for long in ["1h", "18000000000000000000"] {
        let (path, operator) = (path(), operator());
        let mut process = started(&path, &["--at-least", long], "echo $$; exit 5");
        let first = process.numbers()[0];
        assert!(until(SOON, || !is_alive(first)));
        let next = output(&mut run(&path, &["--try"], "true"));
        assert_eq!(next.code, Some(120), "the lock is still held");
        // A signal ends the wait. The command has ended with this code.
        process.signal_to_the_end(Signal::TERM);
        assert_eq!(process.output().code, Some(5));
        assert_eq!(operator.children_or_empty(&path), [""; 0]);
    }
}

#[test]
fn at_least_keeps_the_lock_when_the_warden_is_killed() {
    let (path, operator) = (path(), operator());
    let process = started(&path, &["--at-least", "1h"], "echo $$; exec sleep 1000");
    let first = process.numbers()[0];
    signal(only_child(process.pid()), Signal::KILL);
    process.error_line("the process that guards the command was killed, so the command was killed too");
    process.error_line("is kept for 59m");
    assert!(!is_alive(first));
    let next = output(&mut run(&path, &["--try"], "true"));
    assert_eq!(next.code, Some(120), "the lock is still held");
    process.signal(Signal::TERM);
    assert_eq!(process.output().code, Some(125));
    assert_eq!(operator.children_or_empty(&path), [""; 0]);
}

#[test]
fn at_least_does_not_hold_a_lock_against_the_network() {
    let (path, proxy) = (path(), Proxy::before(servers().server(0)));
    let options = ["--session-timeout", "4s", "--at-least", "1h"];
    let process = Process::start(&mut run_at(&proxy.connect_string(), &path, &options, "echo $$; exit 5"));
    let first = process.numbers()[0];
    assert!(until(SOON, || !is_alive(first)));
    proxy.freeze(Direction::Both);
    let ended = process.output();
    assert_eq!(ended.code, Some(5), "the command was done by then: {ended:?}");
    let expected = format!("zklock: the lock {path} was lost before --at-least was over: ");
    assert!(ended.told().contains(&expected), "{ended:?}");
}

#[test]
fn at_most_ends_a_command_that_hangs() {
    let ended = output(&mut run(
        &path(),
        &["--at-most", "300ms"],
        "trap 'echo term; exit 7' TERM; while :; do sleep 0.1; done",
    ));
    assert_eq!((ended.code, &*ended.out), (Some(124), "term\n"));
    assert_eq!(ended.told(), "zklock: the command has run for 300ms, its limit (--at-most); ending it\n");
}

#[test]
fn what_the_command_leaves_in_its_group_ends_with_it() {
    let ended = output(&mut run(&path(), &[], "sleep 1000 >/dev/null 2>&1 & echo $!; exit 4"));
    let left = ended.out.trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    assert!(!is_alive(left));
    assert_eq!((ended.code, &*ended.told()), (Some(4), ""));
}

#[test]
fn what_has_a_session_of_its_own_may_go_on() {
    let script = "echo $(setsid sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1' &); exit 4";
    let ended = output(&mut run(&path(), &[], script));
    let daemon = ended.out.trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    assert!(is_alive(daemon));
    assert_eq!(ended.code, Some(4));
    signal(daemon, Signal::KILL);
}
