//! ZooKeeper's encoding, for valid and for invalid requests.

/// Reads fields off the front of a message; `None` if it ends early.
#[derive(Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    pub(crate) fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(crate) fn long(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn boolean(&mut self) -> Option<bool> {
        Some(self.take(1)?[0] != 0)
    }

    /// A buffer, or ZooKeeper's null.
    pub(crate) fn buffer(&mut self) -> Option<Option<&'a [u8]>> {
        match self.int()? {
            -1 => Some(None),
            length => Some(Some(self.take(usize::try_from(length).ok()?)?)),
        }
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        Some(self.buffer()?.map_or("<null>".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned()))
    }

    /// How many elements follow; a null vector has none.
    pub(crate) fn count(&mut self) -> Option<i32> {
        Some(self.int()?.max(0))
    }
}

/// Appends fields to a message.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn int(&mut self, value: i32) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn long(&mut self, value: i64) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn boolean(&mut self, value: bool) -> &mut Self {
        self.0.push(u8::from(value));
        self
    }

    pub(crate) fn buffer(&mut self, value: Option<&[u8]>) -> &mut Self {
        let Some(value) = value else { return self.int(-1) };
        self.int(length(value.len()));
        self.0.extend(value);
        self
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.buffer(Some(value.as_bytes()))
    }
}

/// A message with its length in front.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = Writer::default();
    frame.buffer(Some(message));
    frame.0
}

pub(crate) fn length(count: usize) -> i32 {
    i32::try_from(count).expect("what tests send is short")
}
