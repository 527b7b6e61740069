//! A conversation as a server of 3.4 can have it: there most of what is newer would end the connection, and with that the
//! conversation.

use crate::compare::Pair;
use crate::dice::Dice;
use crate::request::{Maker, Request};
use crate::step::{Connect, Password, Seen, Step, Wanted};

/// Of so many in a hundred newer requests one is sent, and one in so many parts of a transaction.
const NEWER: usize = 4;
/// The other words have another form there.
const WORDS: [&str; 4] = ["ruok", "srvr", "isro", "nope"];

impl Pair {
    /// The same conversation, for servers of this version.
    pub(crate) fn in_its_words(&self, seed: u64, steps: Vec<Step>) -> Vec<Step> {
        if !self.is_old {
            return steps;
        }
        let mut dice = Dice::new(seed);
        steps.into_iter().flat_map(|step| old(&mut dice, step)).collect()
    }
}

fn old(dice: &mut Dice, step: Step) -> Vec<Step> {
    match step {
        Step::Word(word) if !WORDS.contains(&word) => Vec::new(),
        Step::Send { slot, requests } => {
            if let [request] = &requests[..] {
                if is_newer(request) && dice.chance(NEWER) {
                    let newer = Request::Other { opcode: request.opcode() };
                    return vec![Step::Send { slot, requests: vec![newer] }, again(slot)];
                }
            }
            vec![Step::Send { slot, requests: requests.into_iter().map(|one| known(dice, one)).collect() }]
        }
        step => vec![step],
    }
}

fn again(slot: usize) -> Step {
    Step::Connect(Connect {
        slot,
        wanted: Wanted::Of(slot),
        password: Password::Right,
        seen: Seen::Last,
        timeout: 30_000,
        read_only: Some(false),
        cut: None,
    })
}

fn is_newer(request: &Request) -> bool {
    matches!(request.opcode(), 15..=22 | 103..=107)
}

/// The same, or what is nearest to it.
fn known(dice: &mut Dice, request: Request) -> Request {
    match request {
        Request::Create { path, data, acl, flags, .. } => {
            Request::Create { maker: Maker::Create, path, data, acl, flags }
        }
        Request::Multi(parts) => Request::Multi(
            parts.into_iter().map(|part| if dice.chance(NEWER) { part } else { known(dice, part) }).collect(),
        ),
        Request::Truncated { request, keep } => {
            Request::Truncated { request: Box::new(known(dice, *request)), keep }
        }
        Request::Count { path } | Request::Ephemerals { prefix: path } => {
            Request::GetChildren2 { path, watch: true }
        }
        Request::AddWatch { path, .. } => Request::Exists { path, watch: true },
        Request::RemoveWatches { path, .. } | Request::CheckWatches { path, .. } => {
            Request::GetData { path, watch: true }
        }
        Request::MultiRead(parts) => Request::Multi(parts),
        Request::SetWatches { ago, mut lists, .. } => {
            lists.truncate(3);
            Request::SetWatches { second: false, ago, lists }
        }
        Request::WhoAmI => Request::Ping,
        Request::Other { opcode: 16..=22 } => Request::Other { opcode: 23 },
        request => request,
    }
}
