//! ZooKeeper's encoding ("jute"), as far as tests need it.
//!
//! It is written by hand, and does not use the client under test: shared code would also share its errors.

/// Reads fields off the front of a message; `None` if it ends early.
#[derive(Debug, Clone)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    pub fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub fn long(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    pub fn boolean(&mut self) -> Option<bool> {
        Some(self.take(1)?[0] != 0)
    }

    /// A buffer, or ZooKeeper's null.
    pub fn nullable(&mut self) -> Option<Option<&'a [u8]>> {
        match self.int()? {
            -1 => Some(None),
            length => self.take(usize::try_from(length).ok()?).map(Some),
        }
    }

    /// A buffer; null reads as empty.
    pub fn buffer(&mut self) -> Option<&'a [u8]> {
        Some(self.nullable()?.unwrap_or_default())
    }

    pub fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.buffer()?).into_owned())
    }
}

/// Appends fields to a message.
#[derive(Debug, Clone, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn int(mut self, value: i32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub fn long(mut self, value: i64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub fn boolean(mut self, value: bool) -> Self {
        self.0.push(u8::from(value));
        self
    }

    /// How many bytes or entries follow.
    pub fn count(self, count: usize) -> Self {
        self.int(i32::try_from(count).expect("what tests send is short"))
    }

    pub fn buffer(self, value: &[u8]) -> Self {
        let mut longer = self.count(value.len());
        longer.0.extend(value);
        longer
    }

    pub fn nullable(self, value: Option<&[u8]>) -> Self {
        match value {
            Some(value) => self.buffer(value),
            None => self.int(-1),
        }
    }

    /// The whole message with its length in front, ready for the socket.
    pub fn framed(self) -> Vec<u8> {
        Writer::default().buffer(&self.0).0
    }
}

/// The numbers of the operations on the wire.
pub mod opcode {
    pub const CREATE: i32 = 1;
    pub const DELETE: i32 = 2;
    pub const EXISTS: i32 = 3;
    pub const GET_DATA: i32 = 4;
    pub const SET_DATA: i32 = 5;
    pub const GET_CHILDREN: i32 = 8;
    pub const SYNC: i32 = 9;
    pub const PING: i32 = 11;
    pub const GET_CHILDREN_2: i32 = 12;
    pub const CHECK: i32 = 13;
    pub const MULTI: i32 = 14;
    pub const CREATE_2: i32 = 15;
    pub const CREATE_CONTAINER: i32 = 19;
    pub const AUTH: i32 = 100;
    pub const SET_WATCHES: i32 = 101;
    pub const GET_ALL_CHILDREN_NUMBER: i32 = 104;
    pub const SET_WATCHES_2: i32 = 105;
    pub const CLOSE_SESSION: i32 = -11;
}

/// Transaction ids with a special meaning.
pub mod xid {
    pub const WATCH_EVENT: i32 = -1;
    pub const PING: i32 = -2;
    pub const AUTH: i32 = -4;
    pub const SET_WATCHES: i32 = -8;
}

/// Server error numbers that the ground acts on.
pub mod code {
    pub const OK: i32 = 0;
    pub const NO_NODE: i32 = -101;
    pub const NODE_EXISTS: i32 = -110;
    pub const NOT_EMPTY: i32 = -111;
    pub const SESSION_EXPIRED: i32 = -112;
    pub const SESSION_MOVED: i32 = -118;
}
