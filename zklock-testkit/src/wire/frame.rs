//! Messages in a byte stream: four bytes of length, then the message.

use std::io::{self, Read};

use crate::wire::words;

/// The next item in a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    Message(Vec<u8>),
    /// A four-letter word in place of a length. Only the first item of a connection can be one.
    Word(&'static str),
}

/// Reads the next item. A message that is longer than `longest` is refused before anything is allocated for it.
///
/// # Errors
///
/// If the stream ends, or the next item is not a message or is too long.
pub(crate) fn next(mut stream: impl Read, is_first: bool, longest: usize) -> io::Result<Incoming> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    if let Some(word) = words::recognise(head).filter(|_| is_first) {
        return Ok(Incoming::Word(word));
    }
    // A negative length is a very large one here.
    let length = u32::from_be_bytes(head) as usize;
    if length > longest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
    }
    let mut message = vec![0; length];
    stream.read_exact(&mut message)?;
    Ok(Incoming::Message(message))
}
