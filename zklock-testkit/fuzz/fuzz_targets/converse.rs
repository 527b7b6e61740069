//! Sends arbitrary bytes to a server, which must not panic, nor allocate much more than it was sent.
#![no_main]

// The server in memory without its sockets.
#[allow(dead_code, reason = "the rest is for zklock-testkit")]
#[path = "../../src/state/mod.rs"]
mod state;
#[allow(dead_code, reason = "the rest is for zklock-testkit")]
#[path = "../../src/wire/mod.rs"]
mod wire;

use std::alloc::System;
use std::time::Duration;

use cap::Cap;
use libfuzzer_sys::fuzz_target;

use state::node::Lifetime;
use state::report;
use state::settings::Settings;
use state::world::{Moment, World};
use wire::frame::{self, Incoming};

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
    let mut now = moment(0);
    let mut server = World::new(Settings { extended_types: true, ..Settings::default() }, now);
    for connection in [1, 2] {
        server.connect(now, connection, ([127, 0, 0, 1], 0).into());
        if is_framed {
            server.receive(now, connection, &GREETING);
        }
    }
    for count in 1.. {
        now = moment(count);
        if is_framed {
            let Some((&[to, high, low], behind)) = rest.split_first_chunk() else { break };
            let length = usize::from(u16::from_be_bytes([high, low])).min(behind.len());
            let (message, behind) = behind.split_at(length);
            rest = behind;
            server.receive(now, u64::from(to % 2) + 1, message);
        } else {
            match frame::next(&mut rest, count == 1, server.settings.max_frame) {
                Ok(Incoming::Message(message)) => server.receive(now, 1, &message),
                Ok(Incoming::Word(word)) => {
                    report::answer(word, &server);
                    break;
                }
                Err(_) => break,
            }
        }
        server.tick(now);
        server.effects();
    }
    // The invariants hold, whatever was sent.
    verify(&server);
}

/// The time of this message.
fn moment(count: u32) -> Moment {
    let elapsed = Duration::from_millis(50) * count;
    Moment { elapsed, wall: 1_700_000_000_000 + i64::from(count) * 50 }
}

/// Checks that parents and children know each other, that every ephemeral node has its session, and every session its
/// connection.
fn verify(World { tree, sessions, connections, .. }: &World) {
    let mut children = 0;
    for (path, node) in &tree.nodes {
        let prefix = if path == "/" { "" } else { path };
        children += node.children.len();
        for name in &node.children {
            assert!(tree.nodes.contains_key(&format!("{prefix}/{name}")), "{path} has its child {name}");
        }
        if let Lifetime::Ephemeral(session) = node.lifetime {
            let is_listed = tree.ephemerals.get(&session).is_some_and(|paths| paths.contains(path));
            let is_open = sessions.contains_key(&session);
            assert!(is_open && is_listed && node.children.is_empty(), "{path} is owned");
        }
    }
    assert_eq!(children + 1, tree.nodes.len(), "every node but the root is a child");
    assert!(tree.undo.is_empty(), "no transaction is open");
    for (id, session) in sessions {
        let back = session.connection.map(|connection| connections[&connection].session);
        assert!(back.is_none_or(|back| back == Some(*id)), "session {id:#x} is on its connection");
    }
}
