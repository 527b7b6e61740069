//! Checks what a server sends before zookeeper-client reads it.
//!
//! That library trusts its server:
//!
//! * It allocates as many entries as a list claims to have, which may end the process.
//! * It panics if a node's figures are cut short, or if the path of a new node is empty.
//! * It takes half of an answer about a node for the answer that there is no node.
//! * It keeps a pointer into a request that sets a watch after the reply has come. So it reads memory that it has freed if
//!   replies come in another order than their requests, or if one is missing.
//! * It sends a request for each event that nobody waits for.
//! * It waits for the end of a message of any length.
//! * Its login by DIGEST-MD5 never ends if the server's part has two escapes.
//!
//! So a message is passed on only when it is complete and is the answer to what was asked. Otherwise the connection gets an
//! error, which ends it. The values of the fields are not checked.
//!
//! An [`Inspector`] sees one connection as its client does: the bytes that go out, and the bytes that come in. With TLS, these are
//! the bytes before encryption and after decryption. The inspector itself reads and writes nothing.
//!
//! ```
//! # use zklock_frames::Inspector;
//! let mut inspector = Inspector::default();
//! inspector.sent(&[0, 0, 0, 1, 9]);
//! inspector.received(&[0x7f, 0xff, 0xff, 0xff]);
//! let error = inspector.pass(&mut [0; 10]).unwrap_err();
//! assert_eq!(error.to_string(), "what the server sends is not ZooKeeper's protocol: a message is too long");
//! ```

mod breach;
mod fields;
mod requests;

pub use breach::watched;

use requests::{Outgoing, Requests};
use std::io::{Error, ErrorKind, IoSlice};

/// The longest message that is accepted: a list of 300,000 children, four times what ZooKeeper's own client accepts.
const LONGEST: usize = 16 << 20;
/// The room that is kept for the next messages.
const KEPT: usize = 1 << 20;

/// One connection, as its client sees it.
#[derive(Debug, Default)]
pub struct Inspector {
    /// The purpose of the connection. The first bytes that we send show it; our own side is trusted. `None` until then.
    speaks: Option<Speaks>,
    outgoing: Outgoing,
    requests: Requests,
    incoming: Vec<u8>,
    /// How much of it may be passed on, and how much has been.
    good: usize,
    passed: usize,
    /// The problem with the bytes after that, if there is one.
    broken: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Speaks {
    Messages,
    /// A four-letter word, such as `isro`. The answer is text.
    Words,
}

impl Inspector {
    /// Notes that these bytes were sent.
    pub fn sent(&mut self, bytes: &[u8]) {
        let Some(first) = bytes.first() else { return };
        // The length of a message begins with a zero byte: none is longer.
        let speaks = *self.speaks.get_or_insert(if *first == 0 { Speaks::Messages } else { Speaks::Words });
        if speaks == Speaks::Messages {
            self.outgoing.sent(bytes, &mut self.requests);
        }
    }

    /// Notes how many of these bytes were sent.
    pub fn sent_of(&mut self, slices: &[IoSlice<'_>], mut count: usize) {
        for slice in slices {
            let part = count.min(slice.len());
            self.sent(&slice[..part]);
            count -= part;
        }
    }

    /// Notes that these bytes were received.
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
            // A negative length is read as a very large one.
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

    /// Passes on what it can, and returns how many bytes that is. Zero means that more has to be received first.
    ///
    /// # Errors
    ///
    /// Fails if the rest is not valid. [`watched`] reports the reason too.
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
