//! Sends arbitrary bytes to a server, which must not panic, nor allocate much more than it was sent.
#![no_main]

use std::alloc::System;
use std::time::Duration;

use cap::Cap;
use libfuzzer_sys::fuzz_target;
use zklock_testkit::Server;
use zklock_testkit::replica::Replica;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The memory of a server before any message, and the most memory that one byte may take: in the worst case a list of empty
/// entries, four bytes each, or a path that is stored, watched and sent.
const BASE: usize = 2 << 20;
const PER_BYTE: usize = 256;

/// The first message of a client: a new session, with a timeout of 10 s.
const GREETING: [u8; 45] = {
    let mut greeting = [0; 45];
    (greeting[14], greeting[15], greeting[27]) = (0x27, 0x10, 16);
    greeting
};

fuzz_target!(|bytes: &[u8]| {
    let before = ALLOCATOR.allocated();
    // An allocation beyond the limit fails, which ends the process: a finding.
    ALLOCATOR.set_limit(before + BASE + PER_BYTE * bytes.len()).expect("what there is, is below the limit");
    converse(bytes);
    ALLOCATOR.set_limit(usize::MAX).expect("there is no limit");
});

/// Feeds bytes to a server as anybody could: as one stream, including lengths, or as the messages of two connections after a
/// valid greeting.
fn converse(bytes: &[u8]) {
    let Some((&mode, mut rest)) = bytes.split_first() else { return };
    // Half of the messages are well framed: a fuzzer that only guesses at lengths does not get far.
    let is_framed = mode % 2 == 1;
    let mut server = Replica::new(Server::builder().extended_types(true));
    let mut now = Duration::ZERO;
    for connection in [1, 2] {
        server.connect(now, connection);
        if is_framed {
            server.receive(now, connection, &GREETING);
        }
    }
    loop {
        let is_first = now.is_zero();
        now += Duration::from_millis(50);
        if is_framed {
            let Some((&[to, high, low], behind)) = rest.split_first_chunk() else { break };
            let length = usize::from(u16::from_be_bytes([high, low])).min(behind.len());
            let (message, behind) = behind.split_at(length);
            rest = behind;
            server.receive(now, u64::from(to % 2) + 1, message);
        } else if !server.read(now, 1, &mut rest, is_first) {
            break;
        }
        server.tick(now);
        server.effects();
    }
    // The invariants hold, whatever was sent.
    server.verify();
}
