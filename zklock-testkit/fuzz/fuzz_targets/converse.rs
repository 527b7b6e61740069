//! Anything is said to a server; it does not panic, and does not allocate beyond what was said.
#![no_main]

use std::alloc::System;

use cap::Cap;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// What a server has before anything is said, and what one byte may become: in the worst case a list of empty
/// entries, four bytes each, or a path that is stored, watched and told.
const BASE: usize = 2 << 20;
const PER_BYTE: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    let before = ALLOCATOR.allocated();
    // What is beyond the limit is refused, which ends the process: a finding.
    ALLOCATOR.set_limit(before + BASE + PER_BYTE * bytes.len()).expect("what there is, is below the limit");
    zklock_testkit::fuzzing::converse(bytes);
    ALLOCATOR.set_limit(usize::MAX).expect("there is no limit");
});
