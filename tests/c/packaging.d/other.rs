//! Somebody else's Rust library, with a standard library of its own in it.

use std::collections::HashMap;
use std::panic::catch_unwind;
use std::thread;

/// Uses parts of the standard library, of which both libraries have a copy. Returns 1 if it works.
#[unsafe(no_mangle)]
pub extern "C" fn other_works() -> i32 {
    let caught = catch_unwind(|| panic!("the other, on purpose")).is_err();
    let joined = thread::spawn(|| panic!("a thread of the other, on purpose")).join().is_err();
    let counted = (0..100).map(|number| (number.to_string(), number)).collect::<HashMap<_, _>>().len() == 100;
    i32::from(caught && joined && counted)
}
