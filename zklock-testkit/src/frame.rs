//! Messages on a stream of bytes: four bytes of length, then the message.

use std::io::{self, Read};

use crate::words;

/// What stands next on a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    Message(Vec<u8>),
    /// A word of four letters in place of a length. Only the first thing on a connection can be one.
    Word(&'static str),
}

/// Reads what stands next. For a message that is longer than `longest` nothing is allocated; for others what they say
/// they need.
///
/// # Errors
///
/// When the stream ends, or what stands there is not a message, or one that is too long.
pub(crate) fn next(mut stream: impl Read, is_first: bool, longest: usize) -> io::Result<Incoming> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    if let Some(word) = words::recognise(head).filter(|_| is_first) {
        return Ok(Incoming::Word(word));
    }
    // A negative length is a very long one here.
    let length = u32::from_be_bytes(head) as usize;
    if length > longest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
    }
    let mut message = vec![0; length];
    stream.read_exact(&mut message)?;
    Ok(Incoming::Message(message))
}
