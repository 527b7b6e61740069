//! What a server sends is looked at before zookeeper-client reads it.
//!
//! That library trusts its server. It makes room for as many entries as a list says it has, which may end the process. It
//! panics where a node's data is shorter than what belongs to it, and where the path of a new node is empty. It takes half
//! an answer about a node for the answer that there is none. It keeps a part of a request that watches after its reply, and
//! so reads memory that is no longer its own if replies come in another order than the requests went out, or one is left
//! out. It sends a request for each event that nobody waits for. It waits for the end of a message of any length. And a
//! login by DIGEST-MD5 never ends where the server's part of it has two escapes.
//!
//! So a message is passed on when all of it is there and is what was asked for. Else the connection has an error, and with
//! that it ends. What the fields say is not looked at.
//!
//! A [`Guard`] sees one connection as its client does: bytes that go out, and bytes that come in. With TLS those are the ones
//! before encryption and after decryption. It reads and writes nothing itself.
//!
//! ```
//! # use zklock_frames::Guard;
//! let mut guard = Guard::default();
//! guard.sent(&[0, 0, 0, 1, 9]);
//! guard.received(&[0x7f, 0xff, 0xff, 0xff]);
//! let error = guard.pass(&mut [0; 10]).unwrap_err();
//! assert_eq!(error.to_string(), "what the server sends is not ZooKeeper's protocol: a message is too long");
//! ```

mod breach;
mod fields;
mod requests;

pub use breach::watched;

use requests::{Outgoing, Requests};
use std::io::{Error, ErrorKind, IoSlice};

/// The longest message that is taken: a list of 300,000 children, four times what ZooKeeper's own client takes.
const LONGEST: usize = 16 << 20;
/// What is kept for the next messages.
const KEPT: usize = 1 << 20;

/// One connection, seen from its client.
#[derive(Debug, Default)]
pub struct Guard {
    /// What the connection is for: the first that is sent says it, and our own side is trusted. `None` until then.
    speaks: Option<Speaks>,
    outgoing: Outgoing,
    requests: Requests,
    incoming: Vec<u8>,
    /// How much of it may be passed on, and how much was.
    good: usize,
    passed: usize,
    /// What is wrong with what comes behind that.
    broken: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Speaks {
    Messages,
    /// A word of four letters, such as `isro`. The answer is a text.
    Words,
}

impl Guard {
    /// This was sent.
    pub fn sent(&mut self, bytes: &[u8]) {
        let Some(first) = bytes.first() else { return };
        // No message is so long that its length begins with anything but zero.
        let speaks = *self.speaks.get_or_insert(if *first == 0 { Speaks::Messages } else { Speaks::Words });
        if speaks == Speaks::Messages {
            self.outgoing.sent(bytes, &mut self.requests);
        }
    }

    /// So many bytes of these were sent.
    pub fn sent_of(&mut self, slices: &[IoSlice<'_>], mut count: usize) {
        for slice in slices {
            let part = count.min(slice.len());
            self.sent(&slice[..part]);
            count -= part;
        }
    }

    /// This was received.
    pub fn received(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            self.broken = self.look_at(bytes).err();
        }
    }

    fn look_at(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        self.incoming.extend(bytes);
        match self.speaks {
            None => return Err("a server speaks before it is spoken to"),
            Some(Speaks::Words) => self.good = self.incoming.len(),
            Some(Speaks::Messages) => {}
        }
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

    /// Passes on what it can. Nothing is for: more must be received.
    ///
    /// # Errors
    ///
    /// When nothing more is good. [`watched`] tells it, too.
    pub fn pass(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        let ready = &self.incoming[self.passed..self.good];
        if let (true, Some(problem)) = (ready.is_empty(), self.broken) {
            breach::found(problem);
            let message = format!("what the server sends is not ZooKeeper's protocol: {problem}");
            return Err(Error::new(ErrorKind::InvalidData, message));
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

#[cfg(test)]
mod tests;
