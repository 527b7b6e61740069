//! Several texts and files in one row of bytes, for another process of the same user.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, absolute};

/// The length of a part's length.
const LENGTH: usize = 4;

/// Parts, each with a letter that says what it is. A file has the capital letter of what would be its text.
#[derive(Default)]
pub(crate) struct Parts(Vec<u8>);

impl Parts {
    pub(crate) fn text(&mut self, letter: u8, text: &[u8]) {
        self.0.push(letter);
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.0.extend_from_slice(&length.to_be_bytes());
        self.0.extend_from_slice(text);
    }

    /// Makes the path absolute, because the other process may have another working directory.
    pub(crate) fn file(&mut self, letter: u8, file: &Path) {
        let absolute = absolute(file).unwrap_or_else(|_| file.to_owned());
        self.text(letter.to_ascii_uppercase(), absolute.as_os_str().as_bytes());
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Returns the parts in their order; `None` if these bytes are something else.
    pub(crate) fn read(mut bytes: &[u8]) -> Option<Vec<(u8, &[u8])>> {
        let mut parts = Vec::new();
        while let Some((letter, rest)) = bytes.split_first() {
            let (length, rest) = rest.split_first_chunk::<LENGTH>()?;
            let (text, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
            parts.push((*letter, text));
            bytes = rest;
        }
        Some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_they_were_written_and_nothing_else_is() {
        let mut parts = Parts::default();
        parts.text(b'a', b"");
        parts.file(b'b', Path::new("/etc/zookeeper"));
        let bytes = parts.into_bytes();
        assert_eq!(Parts::read(&bytes), Some(vec![(b'a', &b""[..]), (b'B', b"/etc/zookeeper")]));
        for length in (1..bytes.len()).filter(|length| *length != 1 + LENGTH) {
            assert_eq!(Parts::read(&bytes[..length]), None, "{length}");
        }
    }

    #[test]
    fn a_file_does_not_depend_on_the_working_directory() {
        let mut parts = Parts::default();
        parts.file(b'b', Path::new("ca.pem"));
        let bytes = parts.into_bytes();
        let (_, file) = Parts::read(&bytes).unwrap()[0];
        assert!(file.starts_with(b"/") && file.ends_with(b"/ca.pem"), "{file:?}");
    }
}
