//! The command ends with `zklock`, however that ends.

use rustix::process::Signal;

use crate::support::{
    delete_holder, is_alive, looks_at, of_job, only_child, output, path, run, signal, started,
};

#[test]
fn a_command_ends_when_its_warden_is_killed() {
    let process = started(&path(), &[], &of_job("trap '' TERM HUP"));
    let pids = process.numbers();
    signal(only_child(process.pid()), Signal::KILL);
    let ended = process.output();
    assert_eq!(ended.code, Some(125));
    assert_eq!(
        ended.told(),
        "zklock: the process that guards the command was killed, so the command was killed too\n"
    );
    // They were dead when it ended, and so before the lock was free.
    assert_eq!(pids.iter().map(|pid| is_alive(*pid)).collect::<Vec<_>>(), [false; 3]);
}

#[test]
fn a_warden_that_was_stopped_is_woken_when_it_is_needed() {
    let path = path();
    let process = started(&path, &[], "echo $$; exec sleep 1000");
    let pids = process.numbers();
    signal(only_child(process.pid()), Signal::STOP);
    delete_holder(&path);
    assert_eq!(process.output().code, Some(122));
    assert!(!is_alive(pids[0]));
}

#[test]
fn a_command_is_dead_before_the_lease_of_a_stopped_zklock_ends() {
    let path = path();
    let process = started(&path, &["--session-timeout", "4s"], &of_job("trap '' TERM"));
    let pids = process.numbers();
    process.signal(Signal::STOP);
    // The next is granted the lock when the session is over, and its command looks.
    output(&mut run(&path, &[], &looks_at(&pids))).is(0, "looked\n");
    process.signal(Signal::CONT);
    assert_eq!(process.output().code, Some(122));
}
