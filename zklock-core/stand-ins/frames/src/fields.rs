//! The fields of a message.

use super::requests::operation::*;

/// The rest of a message, which has not been checked yet.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    pub(crate) fn are_reply_to(&mut self, asked: i32) -> Result<(), &'static str> {
        match asked {
            CREATE => self.path(),
            CREATE_2 | CREATE_CONTAINER | CREATE_TTL => self.path().and_then(|()| self.stat()),
            EXISTS | SET_DATA => self.stat(),
            GET_DATA => self.data().and_then(|()| self.end()),
            GET_CHILDREN => self.names().and_then(|()| self.end()),
            GET_CHILDREN_2 => self.names().and_then(|()| self.stat()),
            GET_EPHEMERALS => self.names(),
            GET_ACL => self.list(|fields| {
                fields.int()?;
                fields.pair()
            }),
            WHO_AM_I => self.list(Self::pair),
            MULTI | MULTI_READ => self.results(asked),
            _ => Ok(()),
        }
    }

    /// The server's message in a login by DIGEST-MD5. Only a realm could have escapes, and ZooKeeper's has none.
    pub(crate) fn are_challenge(&mut self) -> Result<(), &'static str> {
        if self.buffer()?.contains(&b'\\') { Err("a login has an escape") } else { Ok(()) }
    }

    /// The results of a transaction, or of several requests that read.
    fn results(&mut self, asked: i32) -> Result<(), &'static str> {
        loop {
            let (kind, is_last, _error) = (self.int()?, self.take(1)? != [0], self.int()?);
            if is_last {
                return Ok(());
            }
            match (asked, kind) {
                (_, ERROR) => drop(self.int()?),
                (MULTI_READ, GET_DATA) => self.data()?,
                (MULTI_READ, GET_CHILDREN) => self.names()?,
                (MULTI, CREATE) => self.path()?,
                (MULTI, CREATE_2) => self.path().and_then(|()| self.stat())?,
                (MULTI, SET_DATA) => self.stat()?,
                _ => {}
            }
        }
    }

    fn list(&mut self, entry: impl Fn(&mut Self) -> Result<(), &'static str>) -> Result<(), &'static str> {
        (0..self.int()?).try_for_each(|_| entry(self))
    }

    /// A list of children. An empty name takes four bytes, so there cannot be more than a fourth of the bytes.
    fn names(&mut self) -> Result<(), &'static str> {
        self.list(|fields| if fields.buffer()?.is_empty() { Err("a child has no name") } else { Ok(()) })
    }

    /// A scheme of authentication, and an identity in it.
    fn pair(&mut self) -> Result<(), &'static str> {
        self.buffer()?;
        self.buffer().map(drop)
    }

    fn data(&mut self) -> Result<(), &'static str> {
        self.buffer()?;
        self.stat()
    }

    fn path(&mut self) -> Result<(), &'static str> {
        if self.buffer()?.starts_with(b"/") { Ok(()) } else { Err("a new node has no path") }
    }

    fn stat(&mut self) -> Result<(), &'static str> {
        self.take(68).map(drop)
    }

    /// A negative length means that there are no bytes.
    pub(crate) fn buffer(&mut self) -> Result<&'a [u8], &'static str> {
        let length = self.int()?;
        self.take(usize::try_from(length).unwrap_or(0))
    }

    pub(crate) fn int(&mut self) -> Result<i32, &'static str> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(i32::from_be_bytes(*bytes))
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn end(&self) -> Result<(), &'static str> {
        if self.0.is_empty() { Ok(()) } else { Err("a reply is longer than what was asked for") }
    }
}

const TOO_SHORT: &str = "a message is shorter than it says";
