//! What processes of ours say to each other: a message is a line, which begins with what it is about. Keys follow, each with its
//! value: `started group 4711`.
//!
//! Only processes of one user and of one version talk like this. A value may be any bytes, such as a path or a password.

use crate::base::error::{Error, ErrorKind};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, absolute};
use std::str::FromStr;
use std::time::Duration;

/// The end of the key of a file that has the value.
const FILE: &str = "-file";

/// A message to another process of the same user.
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Message {
    kind: String,
    values: Vec<(String, Vec<u8>)>,
}

/// A value, or the file or the environment variable that has it.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "they are said above")]
pub enum Given<'a> {
    Text(&'a str),
    File(&'a Path),
    Variable(&'a str),
}

impl Message {
    /// Makes a message without values. No kind and no key has a space in it.
    pub fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), values: Vec::new() }
    }

    /// Adds a value.
    pub fn and(self, key: &str, value: &(impl ToString + ?Sized)) -> Self {
        self.bytes(key, value.to_string().as_bytes())
    }

    /// Adds bytes.
    pub fn bytes(mut self, key: &str, value: &[u8]) -> Self {
        self.values.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Adds a time of 584 years at most.
    pub fn time(self, key: &str, time: Duration) -> Self {
        self.and(key, &u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Adds the path of a file. It becomes absolute, because the other process may have another working directory.
    pub(crate) fn file(self, key: &str, file: &Path) -> Self {
        let absolute = absolute(file).unwrap_or_else(|_| file.to_owned());
        self.bytes(&format!("{key}{FILE}"), absolute.as_os_str().as_bytes())
    }

    /// Returns what the message is about.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the first value with this key. Fails if it is no `T`.
    pub fn get<T: FromStr>(&self, key: &str) -> Result<Option<T>, Error> {
        let text = self.get_bytes(key).map(|value| std::str::from_utf8(value).map_err(|_| Self::strange()));
        text.map(|text| text?.parse().map_err(|_| Self::strange())).transpose()
    }

    /// Returns the first value with this key. Fails if there is none, or it is no `T`.
    pub fn need<T: FromStr>(&self, key: &str) -> Result<T, Error> {
        self.get(key)?.ok_or_else(Self::strange)
    }

    /// Returns the first value with this key.
    pub fn get_bytes(&self, key: &str) -> Option<&[u8]> {
        self.values.iter().find(|(other, _)| other == key).map(|(_, value)| &**value)
    }

    /// Returns the first time with this key. Fails if there is none.
    pub fn need_time(&self, key: &str) -> Result<Duration, Error> {
        Ok(Duration::from_nanos(self.need(key)?))
    }

    /// Returns the values after the one with this key.
    pub(crate) fn after(&self, key: &str) -> impl Iterator<Item = Result<(&str, Given<'_>), Error>> {
        self.values.iter().skip_while(move |(other, _)| other != key).skip(1).map(|(key, value)| {
            if let Some(key) = key.strip_suffix(FILE) {
                return Ok((key, Given::File(Path::new(OsStr::from_bytes(value)))));
            }
            Ok((key, Given::Text(std::str::from_utf8(value).map_err(|_| Self::strange())?)))
        })
    }

    /// Returns the message as it is sent.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = self.kind.clone();
        for (key, value) in &self.values {
            line.extend([" ", key, " "]);
            for &byte in value {
                match byte {
                    b'!'..=b'~' if byte != b'%' => line.push(byte.into()),
                    _ => line += &format!("%{byte:02x}"),
                }
            }
        }
        (line + "\n").into_bytes()
    }

    /// Takes the first message out of what was received, if all of it is there. Fails if it is something else.
    pub fn take(received: &mut Vec<u8>) -> Result<Option<Self>, Error> {
        let Some(end) = received.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line: Vec<u8> = received.drain(..=end).collect();
        let parsed = || {
            let mut words = std::str::from_utf8(&line[..end]).ok()?.split(' ');
            let mut message = Self::new(words.next()?);
            while let Some(key) = words.next() {
                message = message.bytes(key, &plain(words.next()?)?);
            }
            Some(message)
        };
        parsed().map(Some).ok_or_else(Self::strange)
    }

    /// Returns the error about a message that the receiver does not know.
    pub fn strange() -> Error {
        let message = "this message is of another version of zklock: install the same version of the library and the command";
        Error::new(ErrorKind::InvalidInput, message)
    }
}

/// Without what it says, which may be a password.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Message")
    }
}

/// Returns the bytes of a word.
fn plain(word: &str) -> Option<Vec<u8>> {
    let mut parts = word.split('%');
    let mut bytes = parts.next()?.as_bytes().to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_does_not_depend_on_the_working_directory() {
        let message = Message::new("a").file("ca", Path::new("ca.pem"));
        let file = message.get_bytes("ca-file").unwrap();
        assert!(file.starts_with(b"/") && file.ends_with(b"/ca.pem"), "{file:?}");
    }
}
