//! ZooKeeper's encoding ("jute"): big-endian numbers, and lengths before everything else.
//!
//! The input may come from anyone, so no length in a message is trusted before that much has arrived.

use std::borrow::Cow;

/// The input is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Reads fields off the front of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    pub(crate) fn int(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn long(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    pub(crate) fn boolean(&mut self) -> Result<bool, Malformed> {
        Ok(self.take(1)?[0] != 0)
    }

    /// A buffer, or ZooKeeper's null.
    pub(crate) fn buffer(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.int()? {
            -1 => Ok(None),
            length => self.take(usize::try_from(length).map_err(|_| Malformed)?).map(Some),
        }
    }

    /// A string, or ZooKeeper's null. Invalid UTF-8 is replaced, as in Java.
    pub(crate) fn text(&mut self) -> Result<Option<String>, Malformed> {
        Ok(self.buffer()?.map(decode))
    }

    /// A string that must not be null.
    pub(crate) fn some_text(&mut self) -> Result<String, Malformed> {
        self.text()?.ok_or(Malformed)
    }

    /// A list. Null and negative lengths count as an empty list.
    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let mut items = Vec::new();
        for _ in 0..self.int()? {
            items.push(item(self)?);
        }
        Ok(items)
    }
}

/// Appends fields to a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn int(mut self, value: i32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn long(mut self, value: i64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn boolean(mut self, value: bool) -> Self {
        self.0.push(u8::from(value));
        self
    }

    pub(crate) fn buffer(self, value: Option<&[u8]>) -> Self {
        let Some(value) = value else { return self.int(-1) };
        let mut longer = self.int(length(value.len()));
        longer.0.extend(value);
        longer
    }

    pub(crate) fn text(self, value: &str) -> Self {
        self.buffer(Some(&encode(value)))
    }

    pub(crate) fn list<T>(
        self,
        items: impl ExactSizeIterator<Item = T>,
        write: impl Fn(Self, T) -> Self,
    ) -> Self {
        let begun = self.int(length(items.len()));
        items.fold(begun, write)
    }

    pub(crate) fn length(&self) -> usize {
        self.0.len()
    }

    /// Appends another message to this one.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The whole message with its length in front, ready for the socket.
    pub(crate) fn framed(self) -> Vec<u8> {
        Self::default().buffer(Some(&self.0)).0
    }
}

/// Java sends characters beyond 16 bits as two halves, each encoded separately.
fn encode(text: &str) -> Cow<'_, [u8]> {
    if text.chars().all(|letter| letter.len_utf16() == 1) {
        return Cow::Borrowed(text.as_bytes());
    }
    let bits = |unit: u16, shift: u16, mark: u8| mark | (unit >> shift & 0x3f) as u8;
    let halves = |unit: u16| [0xe0 | (unit >> 12) as u8, bits(unit, 6, 0x80), bits(unit, 0, 0x80)];
    let letter = |letter: char| match letter.len_utf16() {
        1 => letter.to_string().into_bytes(),
        _ => letter.encode_utf16(&mut [0; 2]).iter().flat_map(|unit| halves(*unit)).collect(),
    };
    Cow::Owned(text.chars().flat_map(letter).collect())
}

/// Java takes a lone surrogate for one broken character, where Rust sees three.
fn decode(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut surrogate = 0;
    for chunk in bytes.utf8_chunks() {
        surrogate = match (surrogate, chunk.valid(), chunk.invalid()) {
            (1, "", [0xa0..=0xbf]) => 2,
            (2, "", [0x80..=0xbf]) => 3,
            (_, _, [0xed]) => 1,
            _ => 0,
        };
        text.push_str(chunk.valid());
        if surrogate < 2 && !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

/// Nothing that is kept or sent comes near this limit.
pub(crate) fn length(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}
