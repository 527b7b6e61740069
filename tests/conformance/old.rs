//! Conversations for servers of 3.4, where most newer requests would end the connection, and with that the conversation.

use crate::compare::Pair;
use crate::request::{EMPTY, Maker, Op, Request, Then};
use crate::step::{Connect, Password, Seen, Step, Wanted};
use ground::Dice;

/// This percentage of the newer requests is sent, and one newer request in this number of parts of a transaction.
const NEWER: usize = 4;
/// Other words have another form there, and count closed connections for a while.
const WORDS: [&str; 3] = ["ruok", "isro", "nope"];

impl Pair {
    /// The same conversation, for servers of this version.
    pub(crate) fn in_its_words(&self, seed: Option<u64>, steps: Vec<Step>) -> Vec<Step> {
        if !self.is_old {
            return steps;
        }
        // The recorded conversations contain nothing that ends a connection.
        let newer = if seed.is_some() { NEWER } else { 0 };
        let mut author = Author { dice: Dice::new(seed.unwrap_or(1)), newer };
        steps.into_iter().flat_map(|step| author.old(step)).collect()
    }
}

struct Author {
    dice: Dice,
    newer: usize,
}

impl Author {
    fn old(&mut self, step: Step) -> Vec<Step> {
        match step {
            Step::Word(word) if !WORDS.contains(&word) => Vec::new(),
            Step::Send { slot, requests } => {
                if let [request] = &requests[..] {
                    if is_newer(request) && self.dice.chance(self.newer) {
                        let newer = Request::Other(request.opcode());
                        return vec![Step::Send { slot, requests: vec![newer] }, again(slot)];
                    }
                }
                vec![Step::Send { slot, requests: requests.into_iter().map(|one| self.known(one)).collect() }]
            }
            // A null password breaks the server.
            Step::Connect(connect) if connect.password == Password::Null => {
                vec![Step::Connect(Connect { password: Password::Wrong, ..connect })]
            }
            step => vec![step],
        }
    }

    /// The same request, or the nearest one that these servers know.
    fn known(&mut self, request: Request) -> Request {
        match request {
            Request::Create { path, data, acl, flags, .. } => {
                // A null list breaks the server.
                Request::Create { maker: Maker::Create, path, data, acl: acl.or(EMPTY), flags }
            }
            Request::SetAcl(path, acl, version) => Request::SetAcl(path, acl.or(EMPTY), version),
            Request::Multi(parts) => Request::Multi(
                parts
                    .into_iter()
                    .map(|part| if self.dice.chance(self.newer) { part } else { self.known(part) })
                    .collect(),
            ),
            Request::Truncated(request, keep) => Request::Truncated(Box::new(self.known(*request)), keep),
            Request::At(op, path, then) => {
                let known = match op {
                    Op::Count | Op::Ephemerals => Op::GetChildren2,
                    Op::AddWatch => Op::Exists,
                    Op::RemoveWatches | Op::CheckWatches => Op::GetData,
                    _ => return Request::At(op, path, then),
                };
                Request::At(known, path, Then::Watch(true))
            }
            Request::MultiRead(parts) => Request::Multi(parts),
            Request::SetWatches { ago, mut lists, .. } => {
                lists.truncate(3);
                Request::SetWatches { second: false, ago, lists }
            }
            Request::WhoAmI => Request::Ping,
            Request::Other(16..=22) => Request::Other(23),
            request => request,
        }
    }
}

fn again(slot: usize) -> Step {
    Step::Connect(Connect { seen: Seen::Last, ..Connect::usual(slot, Wanted::Of(slot)) })
}

fn is_newer(request: &Request) -> bool {
    matches!(request.opcode(), 15..=22 | 103..=107)
}
