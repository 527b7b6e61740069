//! Waiting for a condition that cannot be subscribed to: short checks, and always a time limit.

use std::thread;
use std::time::{Duration, Instant};

/// Checks every 10 ms until `condition` holds; `false` if it does not by `bound`.
pub fn until(bound: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + bound;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
}
