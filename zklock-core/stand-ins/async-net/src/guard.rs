//! What a server sends is looked at before zookeeper-client reads it.
//!
//! That library trusts its server. It makes room for as many entries as a list says it has, which may end the process. It
//! panics where a node's data is shorter than what belongs to it, and where the path of a new node is empty. It takes half
//! an answer about a node for the answer that there is none. It keeps a part of a request that watches after its reply, and
//! so reads memory that is no longer its own if replies come in another order than the requests went out, or one is left
//! out. It sends a request for each event that nobody waits for. And it waits for the end of a message of any length.
//!
//! So a message is passed on when all of it is there and is what was asked for. Else the connection has an error, and with
//! that it ends. What the fields say is not looked at.
//!
//! Of a connection with TLS nothing is understood here, and nothing is checked.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind};

/// The longest message that is taken: a list of a million children.
const LONGEST: usize = 64 << 20;
/// What is kept for the next messages.
const KEPT: usize = 1 << 20;
/// Of a request: its length, its number, the operation, and the length of the path.
const HEAD: usize = 16;

const EVENT: i32 = -1;
const NO_NODE: i32 = -101;

mod operation {
    pub(super) const ERROR: i32 = -1;
    pub(super) const CREATE: i32 = 1;
    pub(super) const EXISTS: i32 = 3;
    pub(super) const GET_DATA: i32 = 4;
    pub(super) const SET_DATA: i32 = 5;
    pub(super) const GET_ACL: i32 = 6;
    pub(super) const GET_CHILDREN: i32 = 8;
    pub(super) const GET_CHILDREN_2: i32 = 12;
    pub(super) const MULTI: i32 = 14;
    pub(super) const CREATE_2: i32 = 15;
    pub(super) const CREATE_CONTAINER: i32 = 19;
    pub(super) const CREATE_TTL: i32 = 21;
    pub(super) const SET_WATCHES: i32 = 101;
    pub(super) const SET_WATCHES_2: i32 = 105;
    pub(super) const ADD_WATCH: i32 = 106;
}

/// One connection, seen from its client.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    /// `None` until something is sent. What does not begin as a message does is none of ZooKeeper's.
    speaks: Option<bool>,
    outgoing: Outgoing,
    requests: Requests,
    incoming: Vec<u8>,
    /// How much of it is whole messages that may be passed on, and how much was.
    good: usize,
    passed: usize,
    /// What is wrong with what comes behind that.
    broken: Option<&'static str>,
}

impl Guard {
    /// Whether what is received goes through here.
    pub(crate) fn is_needed(&self) -> bool {
        self.speaks == Some(true)
    }

    /// This was sent.
    pub(crate) fn sent(&mut self, bytes: &[u8]) {
        let Some(first) = bytes.first() else { return };
        // No message is so long that its length begins with anything but zero.
        if *self.speaks.get_or_insert(*first == 0) {
            self.outgoing.sent(bytes, &mut self.requests);
        }
    }

    /// This was received.
    pub(crate) fn received(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            self.broken = self.look_at(bytes).err();
        }
    }

    fn look_at(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        self.incoming.extend(bytes);
        while let Some((length, rest)) = self.incoming[self.good..].split_first_chunk() {
            // A negative length is a very long one here.
            let length = u32::from_be_bytes(*length) as usize;
            if length > LONGEST {
                return Err("a message is too long");
            }
            let Some(message) = rest.get(..length) else { break };
            self.requests.received(message)?;
            self.good += 4 + length;
        }
        Ok(())
    }

    /// Passes on what it can; an error when nothing more is good.
    pub(crate) fn pass(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        let ready = &self.incoming[self.passed..self.good];
        if let (true, Some(problem)) = (ready.is_empty(), self.broken) {
            return Err(Error::new(
                ErrorKind::InvalidData,
                format!("what the server sends is not ZooKeeper's protocol: {problem}"),
            ));
        }
        let count = ready.len().min(into.len());
        into[..count].copy_from_slice(&ready[..count]);
        self.passed += count;
        if self.passed == self.good {
            self.incoming.drain(..self.good);
            (self.good, self.passed) = (0, 0);
            self.incoming.shrink_to(KEPT);
        }
        Ok(count)
    }
}

/// The request that is being sent.
#[derive(Debug, Default)]
struct Outgoing {
    head: [u8; HEAD],
    sent: usize,
}

impl Outgoing {
    fn sent(&mut self, mut bytes: &[u8], requests: &mut Requests) {
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
                // The last byte of a request that can watch says whether it does.
                requests.sent(self.int(4), self.int(8), part.last() == Some(&1), path);
                *self = Self::default();
            }
        }
    }

    fn int(&self, at: usize) -> i32 {
        self.head[at..].first_chunk().map_or(0, |bytes| i32::from_be_bytes(*bytes))
    }
}

/// What was asked for.
#[derive(Debug, Default)]
struct Requests {
    has_begun: bool,
    was_greeted: bool,
    asked: VecDeque<Asked>,
    /// How many events there may be, of paths of what length.
    watches: usize,
    longest_path: usize,
    /// There may be any number.
    watches_for_ever: bool,
}

#[derive(Debug)]
struct Asked {
    number: i32,
    operation: i32,
    watches: bool,
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
        // Pings, logins and the like have numbers of their own, and the library waits for one at a time.
        if number > 0 {
            self.asked.push_back(Asked { number, operation, watches });
        }
    }

    fn received(&mut self, message: &[u8]) -> Result<(), &'static str> {
        if !std::mem::replace(&mut self.was_greeted, true) {
            return Ok(());
        }
        let mut fields = Fields(message);
        let (number, _transaction, error) = (fields.int()?, fields.take(8)?, fields.int()?);
        if number == EVENT {
            return self.event(fields);
        }
        if number < 0 {
            return Ok(());
        }
        let asked = self.asked.pop_front().filter(|asked| asked.number == number);
        let asked = asked.ok_or("a reply comes out of turn")?;
        if error == 0 {
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

/// What is left of a message.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn are_reply_to(&mut self, asked: i32) -> Result<(), &'static str> {
        use operation::*;
        match asked {
            CREATE => self.path(),
            CREATE_2 | CREATE_CONTAINER | CREATE_TTL => self.path().and_then(|()| self.stat()),
            EXISTS | SET_DATA => self.stat(),
            GET_DATA => self.buffer().and_then(|_| self.stat()).and_then(|()| self.end()),
            GET_CHILDREN => self.list(|fields| fields.buffer().map(drop)).and_then(|()| self.end()),
            GET_CHILDREN_2 => self.list(|fields| fields.buffer().map(drop)).and_then(|()| self.stat()),
            GET_ACL => self.list(|fields| {
                fields.int()?;
                fields.buffer()?;
                fields.buffer().map(drop)
            }),
            MULTI => self.results(),
            _ => Ok(()),
        }
    }

    /// Those of a transaction.
    fn results(&mut self) -> Result<(), &'static str> {
        use operation::*;
        loop {
            let (kind, is_last, _error) = (self.int()?, self.take(1)? != [0], self.int()?);
            if is_last {
                return Ok(());
            }
            match kind {
                CREATE => self.path()?,
                CREATE_2 => self.path().and_then(|()| self.stat())?,
                SET_DATA => self.stat()?,
                ERROR => drop(self.int()?),
                _ => {}
            }
        }
    }

    fn list(&mut self, entry: impl Fn(&mut Self) -> Result<(), &'static str>) -> Result<(), &'static str> {
        (0..self.int()?).try_for_each(|_| entry(self))
    }

    fn path(&mut self) -> Result<(), &'static str> {
        if self.buffer()?.starts_with(b"/") { Ok(()) } else { Err("a new node has no path") }
    }

    fn stat(&mut self) -> Result<(), &'static str> {
        self.take(68).map(drop)
    }

    /// A negative length is that of no bytes.
    fn buffer(&mut self) -> Result<&'a [u8], &'static str> {
        let length = self.int()?;
        self.take(usize::try_from(length).unwrap_or(0))
    }

    fn int(&mut self) -> Result<i32, &'static str> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(i32::from_be_bytes(*bytes))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn end(&self) -> Result<(), &'static str> {
        if self.0.is_empty() { Ok(()) } else { Err("a reply is longer than what was asked for") }
    }
}

const TOO_SHORT: &str = "a message is shorter than it says";

#[cfg(test)]
mod tests;
