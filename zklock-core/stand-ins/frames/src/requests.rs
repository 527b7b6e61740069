//! The requests that were sent, and whether a message is the reply to one of them.

use super::fields::Fields;
use std::collections::VecDeque;

/// The head of a request: its length, its number, the operation, and the length of the path.
const HEAD: usize = 16;

/// The longest reply to a transaction, because the library's results take ten times as much memory. A request has at most a
/// megabyte, unless the servers allow more.
const LONGEST_TRANSACTION: usize = 4 << 20;

const EVENT: i32 = -1;
const NO_NODE: i32 = -101;

pub(crate) mod operation {
    pub(crate) const ERROR: i32 = -1;
    pub(crate) const CREATE: i32 = 1;
    pub(crate) const EXISTS: i32 = 3;
    pub(crate) const GET_DATA: i32 = 4;
    pub(crate) const SET_DATA: i32 = 5;
    pub(crate) const GET_ACL: i32 = 6;
    pub(crate) const GET_CHILDREN: i32 = 8;
    pub(crate) const GET_CHILDREN_2: i32 = 12;
    pub(crate) const MULTI: i32 = 14;
    pub(crate) const CREATE_2: i32 = 15;
    pub(crate) const CREATE_CONTAINER: i32 = 19;
    pub(crate) const CREATE_TTL: i32 = 21;
    pub(crate) const MULTI_READ: i32 = 22;
    pub(crate) const SET_WATCHES: i32 = 101;
    pub(crate) const SASL: i32 = 102;
    pub(crate) const GET_EPHEMERALS: i32 = 103;
    pub(crate) const SET_WATCHES_2: i32 = 105;
    pub(crate) const ADD_WATCH: i32 = 106;
    pub(crate) const WHO_AM_I: i32 = 107;
}

/// The request that is being sent.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    head: [u8; HEAD],
    sent: usize,
}

impl Outgoing {
    pub(crate) fn sent(&mut self, mut bytes: &[u8], requests: &mut Requests) {
        while !bytes.is_empty() {
            let whole = 4 + if self.sent < 4 { 0 } else { self.int(0) as u32 as usize };
            let end = if self.sent < HEAD.min(whole) { HEAD.min(whole) } else { whole };
            let (part, rest) = bytes.split_at((end - self.sent).min(bytes.len()));
            if let Some(head) = self.head.get_mut(self.sent..self.sent + part.len()) {
                head.copy_from_slice(part);
            }
            self.sent += part.len();
            bytes = rest;
            if self.sent >= 4 && self.sent == 4 + self.int(0) as u32 as usize {
                let path = usize::try_from(self.int(12)).unwrap_or(0);
                // The last byte of a request that can set a watch says whether it does.
                requests.sent(self.int(4), self.int(8), part.last() == Some(&1), path);
                *self = Self::default();
            }
        }
    }

    fn int(&self, at: usize) -> i32 {
        self.head[at..].first_chunk().map_or(0, |bytes| i32::from_be_bytes(*bytes))
    }
}

/// The requests of one connection that wait for their replies.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    has_begun: bool,
    was_greeted: bool,
    asked: VecDeque<Asked>,
    /// How many events may come, and the length of the longest path that they may name.
    watches: usize,
    longest_path: usize,
    /// Any number of events may come.
    watches_for_ever: bool,
    login: Option<Login>,
}

#[derive(Debug)]
struct Asked {
    number: i32,
    operation: i32,
    watches: bool,
}

/// The client's login by SASL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Login {
    /// DIGEST-MD5, in which the server speaks first. Its message is text.
    Digest,
    /// Any other, in which the server's message may be any bytes.
    Other,
}

impl Requests {
    fn sent(&mut self, number: i32, operation: i32, last_is_one: bool, path: usize) {
        use operation::*;
        if !std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let can_watch = matches!(operation, EXISTS | GET_DATA | GET_CHILDREN | GET_CHILDREN_2);
        let watches = can_watch && last_is_one;
        if watches {
            self.watches += 1;
            self.longest_path = self.longest_path.max(path);
        }
        self.watches_for_ever |= matches!(operation, SET_WATCHES | SET_WATCHES_2 | ADD_WATCH);
        if operation == SASL {
            // The length of the client's message is where other requests have the length of the path.
            self.login.get_or_insert(if path == 0 { Login::Digest } else { Login::Other });
        }
        // Pings and the like have fixed numbers, and the library waits for one of them at a time.
        if number > 0 {
            self.asked.push_back(Asked { number, operation, watches });
        }
    }

    pub(crate) fn received(&mut self, message: &[u8]) -> Result<(), &'static str> {
        let mut fields = Fields::of(message);
        if !std::mem::replace(&mut self.was_greeted, true) {
            // The session's timeout, number and password.
            fields.take(16)?;
            return fields.buffer().map(drop);
        }
        let (number, _transaction, error) = (fields.int()?, fields.take(8)?, fields.int()?);
        if number == EVENT {
            return self.event(fields);
        }
        if number < 0 {
            return Ok(());
        }
        let asked = self.asked.pop_front().filter(|asked| asked.number == number);
        let asked = asked.ok_or("a reply comes out of turn")?;
        if asked.operation == operation::MULTI && message.len() > LONGEST_TRANSACTION {
            return Err("a transaction has more results than writes");
        }
        if error == 0 {
            if asked.operation == operation::SASL && self.login == Some(Login::Digest) {
                return fields.are_challenge();
            }
            return fields.are_reply_to(asked.operation);
        }
        if asked.watches && !(asked.operation == operation::EXISTS && error == NO_NODE) {
            self.watches = self.watches.saturating_sub(1);
        }
        Ok(())
    }

    fn event(&mut self, mut fields: Fields<'_>) -> Result<(), &'static str> {
        fields.take(8)?;
        let path = fields.buffer()?;
        if !path.starts_with(b"/") {
            return Err("an event has no path");
        }
        if !self.watches_for_ever {
            self.watches = self.watches.checked_sub(1).ok_or("an event comes that nobody waits for")?;
            if path.len() > self.longest_path {
                return Err("an event has a path that nobody watches");
            }
        }
        Ok(())
    }
}
