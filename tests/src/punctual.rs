//! Promises about time, on a machine that may be busy with other work.
//!
//! On such a machine anything may be late by chance. So a test in which something was late is run once more, alone in a
//! process, and again if it was late there too. If everything was in time in one of these runs, nothing in zklock takes
//! longer.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const TRIES: u32 = 10;
/// The variable with the number of earlier runs of this test.
const VARIABLE: &str = "ZKLOCK_LATE";

/// Asserts that this took no longer than that.
#[track_caller]
pub fn not_later(took: Duration, bound: Duration) {
    or_once_more(took <= bound, &format!("{took:?}, not {bound:?}"));
}

/// Asserts something that may fail on a busy machine. Call it on the thread of the test.
#[track_caller]
pub fn or_once_more(holds: bool, what: &str) {
    if holds {
        return;
    }
    let before = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    assert!(before + 1 < TRIES, "late {TRIES} times: {what}");
    let thread = std::thread::current();
    let test =
        thread.name().filter(|name| *name != "main").expect("the thread of a test is called as the test is");
    println!("{test} was late, so it is run once more: {what}");
    wait_for_quiet();
    // Before all others, where this user may: only what the test does by itself is to count.
    let again = Command::new("nice")
        .args(["-n", "-19"])
        .arg(std::env::current_exe().expect("a test is a program"))
        // If there is only one thread, the thread of the test has another name.
        .args([test, "--exact", "--include-ignored", "--nocapture", "--test-threads=2"])
        .env(VARIABLE, (before + 1).to_string())
        .stdin(Stdio::null())
        .output()
        .expect("the test runs once more");
    let said = [again.stdout, again.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(again.status.success() && said.contains("1 passed"), "late ({what}), and then: {said}");
}

/// Waits until this machine wakes who sleeps in time for a while, but for ten seconds at most.
fn wait_for_quiet() {
    let end = Instant::now() + Duration::from_secs(10);
    let is_late = |_| {
        let start = Instant::now();
        sleep(Duration::from_millis(1));
        start.elapsed() > Duration::from_millis(20)
    };
    while (0..250).any(is_late) && Instant::now() < end {}
}

#[cfg(test)]
mod tests {
    use super::{VARIABLE, or_once_more};
    use std::process::Command;

    #[test]
    fn who_is_late_twice_and_then_in_time_is_in_time() {
        let before: u32 = std::env::var(VARIABLE).map_or(0, |text| text.parse().unwrap());
        or_once_more(before == 2, "this is meant");
    }

    #[test]
    #[ignore = "it is late each time, for the test that follows"]
    fn late_each_time() {
        or_once_more(false, "this is meant");
    }

    #[test]
    fn who_is_late_each_time_fails() {
        let run = Command::new(std::env::current_exe().unwrap())
            .args(["punctual::tests::late_each_time", "--exact", "--ignored", "--test-threads=2"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(!run.status.success() && said.contains("late 10 times: this is meant"), "{said}");
    }
}
