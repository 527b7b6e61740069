//! Sends arbitrary bytes to a server, which must not panic, nor allocate much more than it was sent.
#![no_main]

use std::alloc::System;

use cap::Cap;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The memory of a server before any message, and the most memory that one byte may take: in the worst case a list of empty
/// entries, four bytes each, or a path that is stored, watched and sent.
const BASE: usize = 2 << 20;
const PER_BYTE: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    let before = ALLOCATOR.allocated();
    // An allocation beyond the limit fails, which ends the process: a finding.
    ALLOCATOR.set_limit(before + BASE + PER_BYTE * bytes.len()).expect("what there is, is below the limit");
    zklock_testkit::fuzzing::converse(bytes);
    ALLOCATOR.set_limit(usize::MAX).expect("there is no limit");
});
