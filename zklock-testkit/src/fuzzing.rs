//! A conversation without sockets, for fuzzing. Not part of the API.

use std::time::Duration;

use crate::server::Server;
use crate::state::report;
use crate::state::world::{Effect, Moment, World};
use crate::wire::frame::{self, Incoming};

/// Feeds bytes to a server as anybody could: as one stream, including lengths, or as the messages of two connections
/// after a valid greeting. Returns how many bytes the server would have sent.
pub fn converse(bytes: &[u8]) -> usize {
    let moment = |millis: u64| Moment { elapsed: Duration::from_millis(millis), wall: 1_700_000_000_000 };
    let settings = Server::builder().extended_types(true).into_settings();
    let longest = settings.max_frame;
    let mut world = World::new(settings, moment(0));
    let (mut sent, mut time) = (0, 0);
    let Some((&mode, mut rest)) = bytes.split_first() else { return 0 };
    for connection in [1, 2] {
        world.connect(moment(0), connection, ([127, 0, 0, 1], 40_000).into());
        if mode % 2 == 1 {
            world.receive(moment(0), connection, &GREETING);
        }
    }
    let mut is_first = true;
    loop {
        let (connection, message) = if mode % 2 == 1 {
            // Half of the messages are well framed: a fuzzer that only guesses at lengths does not get far.
            let Some((&[to, high, low], behind)) = rest.split_first_chunk() else { break };
            let length = (usize::from(high) << 8 | usize::from(low)).min(behind.len());
            let (message, behind) = behind.split_at(length);
            rest = behind;
            (u64::from(to % 2) + 1, message.to_vec())
        } else {
            match frame::next(&mut rest, is_first, longest) {
                Ok(Incoming::Message(message)) => (1, message),
                Ok(Incoming::Word(word)) => return report::answer(word, &world).len(),
                Err(_) => break,
            }
        };
        is_first = false;
        time += 50;
        world.receive(moment(time), connection, &message);
        world.tick(moment(time));
        sent += world.effects().iter().map(Effect::length).sum::<usize>();
    }
    // The invariants hold, whatever was sent.
    world.verify();
    sent
}

/// A new session, with a timeout of 10 s.
const GREETING: [u8; 45] = {
    let mut greeting = [0; 45];
    (greeting[14], greeting[15], greeting[27]) = (0x27, 0x10, 16);
    greeting
};
