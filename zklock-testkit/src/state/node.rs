//! One node.

use std::collections::BTreeSet;

use crate::wire::access;
use crate::wire::jute::length;
use crate::wire::stat::Stat;

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
    /// The owner of an ephemeral node, as clients see it.
    fn owner(self) -> i64 {
        match self {
            Self::Ephemeral(session) => session,
            Self::Persistent | Self::Container | Self::Ttl(_) => 0,
        }
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

    pub(crate) fn stat(&self) -> Stat {
        let children = length(self.children.len());
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            ctime: self.ctime,
            mtime: self.mtime,
            version: self.version,
            // Each child that was created and deleted has changed the list twice.
            cversion: self.created.wrapping_mul(2).wrapping_sub(children),
            aversion: self.aversion,
            ephemeral_owner: self.lifetime.owner(),
            data_length: self.data.as_ref().map_or(0, |data| length(data.len())),
            num_children: children,
            pzxid: self.pzxid,
        }
    }
}
