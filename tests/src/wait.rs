//! Waiting for a condition that nobody announces: short looks, and always a bound.

use std::thread;
use std::time::{Duration, Instant};

/// Looks every 10 ms until `condition` holds; `false` if it does not by `bound`.
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
