//! ZooKeeper's encoding ("jute"), as far as tests need it.
//!
//! It is written by hand, and does not use the client under test: shared code would also share its errors.

/// Reads fields off the front of a message; `None` if it ends early.
#[derive(Debug, Clone)]
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

    /// A buffer; ZooKeeper's null (length -1) reads as empty.
    pub(crate) fn buffer(&mut self) -> Option<&'a [u8]> {
        let length = self.int()?;
        self.take(usize::try_from(length).unwrap_or(0))
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.buffer()?).into_owned())
    }
}

/// Appends fields to a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

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

    pub(crate) fn buffer(self, value: &[u8]) -> Self {
        let length = i32::try_from(value.len()).expect("a test's buffer fits in an i32");
        let mut longer = self.int(length);
        longer.0.extend(value);
        longer
    }

    /// The whole message with its length in front, ready for the socket.
    pub(crate) fn framed(self) -> Vec<u8> {
        Writer::default().buffer(&self.0).0
    }
}

/// The numbers of the operations on the wire.
pub(crate) mod opcode {
    pub(crate) const CREATE: i32 = 1;
    pub(crate) const DELETE: i32 = 2;
    pub(crate) const EXISTS: i32 = 3;
    pub(crate) const GET_DATA: i32 = 4;
    pub(crate) const SET_DATA: i32 = 5;
    pub(crate) const GET_CHILDREN: i32 = 8;
    pub(crate) const SYNC: i32 = 9;
    pub(crate) const PING: i32 = 11;
    pub(crate) const GET_CHILDREN_2: i32 = 12;
    pub(crate) const CHECK: i32 = 13;
    pub(crate) const MULTI: i32 = 14;
    pub(crate) const CREATE_2: i32 = 15;
    pub(crate) const CREATE_CONTAINER: i32 = 19;
    pub(crate) const CREATE_TTL: i32 = 21;
    pub(crate) const AUTH: i32 = 100;
    pub(crate) const SET_WATCHES: i32 = 101;
    pub(crate) const SET_WATCHES_2: i32 = 105;
    pub(crate) const CLOSE_SESSION: i32 = -11;
}

/// Transaction ids with a special meaning.
pub(crate) mod xid {
    pub(crate) const WATCH_EVENT: i32 = -1;
    pub(crate) const PING: i32 = -2;
    pub(crate) const AUTH: i32 = -4;
    pub(crate) const SET_WATCHES: i32 = -8;
}

/// Server error numbers that the ground acts on.
pub(crate) mod code {
    pub(crate) const OK: i32 = 0;
    pub(crate) const NO_NODE: i32 = -101;
    pub(crate) const NODE_EXISTS: i32 = -110;
    pub(crate) const NOT_EMPTY: i32 = -111;
    pub(crate) const SESSION_EXPIRED: i32 = -112;
    pub(crate) const SESSION_MOVED: i32 = -118;
}
