//! One node.

use std::collections::BTreeSet;

use crate::wire::access;
use crate::wire::jute::{Writer, length};

/// The longest time to live, in ms.
pub(crate) const TTL_MAX: i64 = (1 << 40) - 1;

/// The event, other than a delete, that can end a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    Persistent,
    /// Ends with this session.
    Ephemeral(i64),
    /// Reaped when it has had children and is empty again.
    Container,
    /// Reaped when it is empty and has not been written to for this many ms.
    Ttl(i64),
}

impl Lifetime {
    /// The session that owns an ephemeral node.
    pub(crate) fn owner(self) -> Option<i64> {
        if let Self::Ephemeral(session) = self { Some(session) } else { None }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) access: access::List,
    pub(crate) lifetime: Lifetime,
    pub(crate) children: BTreeSet<String>,
    pub(crate) czxid: i64,
    pub(crate) mzxid: i64,
    /// The last change of the children.
    pub(crate) pzxid: i64,
    pub(crate) ctime: i64,
    pub(crate) mtime: i64,
    pub(crate) version: i32,
    /// How many children were ever created, which is the number of the next sequential one. It sticks at the largest
    /// number.
    pub(crate) created: i32,
    pub(crate) aversion: i32,
}

impl Node {
    pub(crate) fn new(
        data: Option<Vec<u8>>,
        access: access::List,
        lifetime: Lifetime,
        zxid: i64,
        time: i64,
    ) -> Self {
        Self {
            data,
            access,
            lifetime,
            children: BTreeSet::new(),
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: time,
            mtime: time,
            version: 0,
            created: 0,
            aversion: 0,
        }
    }

    /// The metadata, as it is sent.
    pub(crate) fn stat(&self) -> Writer {
        let children = length(self.children.len());
        Writer::default()
            .long(self.czxid)
            .long(self.mzxid)
            .long(self.ctime)
            .long(self.mtime)
            .int(self.version)
            // Each child that was created and deleted has changed the list twice.
            .int(self.created.wrapping_mul(2).wrapping_sub(children))
            .int(self.aversion)
            .long(self.lifetime.owner().unwrap_or(0))
            .int(self.data.as_ref().map_or(0, |data| length(data.len())))
            .int(children)
            .long(self.pzxid)
    }
}
