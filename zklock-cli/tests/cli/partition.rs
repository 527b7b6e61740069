//! Under a partition, the command is dead before the next holder's begins: trial after trial.

use std::time::Duration;

use ground::{Direction, Ensemble, Proxy};

use crate::support::{Process, SOON, is_alive, looks_at, of_job, output, run_at};

/// In the ordinary run, and in the long one.
const TRIALS: (u32, u32) = (5, 100);

/// On a machine that stalls for half a second, a lock may be given up before anything was cut off. Such a trial does not count.
const MISSES: u32 = 20;

#[test]
fn under_a_partition_the_command_is_dead_before_the_next_one_starts() {
    let long = std::env::var_os("ZKLOCK_LONG").is_some();
    let trials = if long { TRIALS.1 } else { TRIALS.0 };
    let ensemble = Ensemble::builder().tick(Duration::from_millis(500)).start();
    let proxy = Proxy::before(ensemble.server(0));
    let (mut done, mut missed) = (0, 0);
    while done < trials {
        assert!(missed < MISSES, "the machine is too slow: {missed} locks were given up without need");
        let path = format!("/partition/{done}-{missed}");
        if is_dead_before_the_next(&proxy, &ensemble.connect_string(), &path) {
            done += 1;
        } else {
            missed += 1;
        }
        proxy.thaw();
    }
    println!("{done} of {trials} trials: dead before the next one started ({missed} were none)");
}

/// `false` if a lock was given up for another reason.
fn is_dead_before_the_next(proxy: &Proxy, hosts: &str, path: &str) -> bool {
    let script = of_job("trap '' TERM HUP INT");
    let options = ["--session-timeout", "2s"];
    let cut_off = Process::start(&mut run_at(&proxy.connect_string(), path, &options, &script));
    let Some(pids) = cut_off.numbers_if_it_runs() else { return false };
    proxy.freeze(Direction::Both);
    // The next command looks before it does anything else.
    let next = output(&mut run_at(hosts, path, &["--session-timeout", "10s"], &looks_at(&pids)));
    if next.code == Some(122) && next.out.is_empty() {
        return false;
    }
    assert_eq!((next.code, &*next.out), (Some(0), "looked\n"), "{path}: alive beside the next");
    assert!(ground::until(SOON, || !pids.iter().any(|pid| is_alive(*pid))));
    proxy.thaw();
    assert_eq!(cut_off.output().code, Some(122), "{path}");
    true
}
