//! Requests of clients, parsed from the wire.

use crate::wire::access::Wanted;
use crate::wire::code::{Operation, opcode};
use crate::wire::jute::{Malformed, Reader};
use crate::wire::kind::Kind;
use crate::wire::profile::Profile;

/// A create request, in one of its forms.
#[derive(Debug, Clone)]
pub(crate) struct Create {
    /// The form decides what the node becomes, and what the answer contains.
    pub(crate) opcode: i32,
    /// Missing if the flags are invalid: that error comes first.
    pub(crate) path: Option<String>,
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) access: Vec<Wanted>,
    pub(crate) flags: i32,
    pub(crate) ttl: i64,
}

/// An operation that changes the tree, alone or in a multi.
#[derive(Debug, Clone)]
pub(crate) enum Write {
    Create(Create),
    Delete {
        path: String,
        version: i32,
    },
    SetData {
        path: String,
        data: Option<Vec<u8>>,
        version: i32,
    },
    Check {
        path: String,
        version: i32,
    },
    SetAcl {
        path: String,
        access: Vec<Wanted>,
        version: i32,
    },
    DeleteContainer,
    /// In a multi: an operation that makes the whole multi fail when its turn comes.
    Unfit,
}

/// An operation that reads the tree, alone or in a multi.
#[derive(Debug, Clone)]
pub(crate) enum Look {
    Data { path: String, watch: bool },
    Children { path: String, watch: bool, with_stat: bool },
}

/// Watches that a client had on another connection.
#[derive(Debug, Clone)]
pub(crate) struct OldWatches {
    /// The last transaction that the client has seen.
    pub(crate) zxid: i64,
    pub(crate) data: Vec<String>,
    pub(crate) exist: Vec<String>,
    pub(crate) child: Vec<String>,
    pub(crate) persistent: Vec<String>,
    pub(crate) recursive: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum Request {
    Write(Write),
    Look(Look),
    Exists {
        path: String,
        watch: bool,
    },
    GetAcl {
        path: String,
    },
    Multi(Vec<Write>),
    /// A multi in which a path is missing.
    Nameless,
    MultiRead(Vec<Look>),
    Sync {
        path: Option<String>,
    },
    Ping,
    OldWatches(OldWatches),
    AddWatch {
        path: String,
        mode: i32,
    },
    RemoveWatches {
        path: String,
        kind: i32,
    },
    CheckWatches {
        path: String,
        kind: i32,
    },
    Ephemerals {
        prefix: Option<String>,
    },
    CountBelow {
        path: String,
    },
    WhoAmI,
    Reconfig,
    CloseSession,
}

/// The kind and the path of a request, from its number and what follows its header. For a multi, the first path.
pub(crate) fn aim(operation: i32, mut body: Reader<'_>) -> (Kind, Option<String>) {
    let kind = Operation::of(operation).kind;
    let path = match kind {
        Kind::Multi => {
            body.int().and_then(|_| body.boolean()).and_then(|_| body.int()).and_then(|_| body.text())
        }
        Kind::Ping | Kind::Auth | Kind::Watches | Kind::Close | Kind::Other => Ok(None),
        _ => body.text(),
    };
    (kind, path.ok().flatten())
}

impl Request {
    pub(crate) fn read(profile: Profile, operation: i32, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match operation {
            opcode::MULTI => {
                let parts =
                    multi(profile, reader, |operation, reader| part_of_multi(profile, operation, reader))?;
                if parts.windows(2).any(|pair| pair[0].0 != pair[1].0) {
                    return Err(Malformed); // it both reads and writes
                }
                let writes = parts.into_iter().map(|(_, write)| write);
                writes.collect::<Option<_>>().map_or(Self::Nameless, Self::Multi)
            }
            opcode::MULTI_READ => Self::MultiRead(multi(profile, reader, look)?),
            opcode::EXISTS => Self::Exists { path: reader.some_text()?, watch: reader.boolean()? },
            opcode::GET_ACL => Self::GetAcl { path: reader.some_text()? },
            opcode::SYNC => Self::Sync { path: reader.text()? },
            opcode::PING => Self::Ping,
            opcode::SET_WATCHES => Self::OldWatches(old_watches(reader, false)?),
            opcode::SET_WATCHES_2 => Self::OldWatches(old_watches(reader, true)?),
            opcode::ADD_WATCH => Self::AddWatch { path: reader.some_text()?, mode: reader.int()? },
            opcode::REMOVE_WATCHES => Self::RemoveWatches { path: reader.some_text()?, kind: reader.int()? },
            opcode::CHECK_WATCHES => Self::CheckWatches { path: reader.some_text()?, kind: reader.int()? },
            opcode::GET_EPHEMERALS => Self::Ephemerals { prefix: reader.text()? },
            opcode::GET_ALL_CHILDREN_NUMBER => Self::CountBelow { path: reader.some_text()? },
            opcode::WHO_AM_I => Self::WhoAmI,
            opcode::RECONFIG => {
                let _servers = (reader.text()?, reader.text()?, reader.text()?, reader.long()?);
                Self::Reconfig
            }
            opcode::CLOSE_SESSION => Self::CloseSession,
            opcode::GET_DATA | opcode::GET_CHILDREN | opcode::GET_CHILDREN_2 => {
                Self::Look(look_at(operation, reader)?)
            }
            opcode::SET_ACL => Self::Write(Write::SetAcl {
                path: reader.text()?.unwrap_or_default(),
                access: reader.list(Wanted::read)?,
                version: reader.int()?,
            }),
            opcode::DELETE_CONTAINER => Self::Write(Write::DeleteContainer),
            _ => Self::Write(write(operation, reader.text()?, reader)?),
        })
    }
}

/// An operation that may be in a multi of writes. For those that check the path before everything else, a missing path
/// counts as an invalid one.
fn write(operation: i32, path: Option<String>, reader: &mut Reader<'_>) -> Result<Write, Malformed> {
    Ok(match operation {
        opcode::CREATE | opcode::CREATE_2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => {
            Write::Create(Create {
                opcode: operation,
                path,
                data: reader.buffer()?.map(<[u8]>::to_vec),
                access: reader.list(Wanted::read)?,
                flags: reader.int()?,
                ttl: if operation == opcode::CREATE_TTL { reader.long()? } else { -1 },
            })
        }
        opcode::DELETE => Write::Delete { path: path.ok_or(Malformed)?, version: reader.int()? },
        opcode::SET_DATA => Write::SetData {
            path: path.unwrap_or_default(),
            data: reader.buffer()?.map(<[u8]>::to_vec),
            version: reader.int()?,
        },
        opcode::CHECK => Write::Check { path: path.unwrap_or_default(), version: reader.int()? },
        _ => return Err(Malformed),
    })
}

/// In a multi, only the flags decide what is created, and how that is answered. ZooKeeper before 3.8.2 does it like that,
/// and the answer has no metadata of the created node (ZOOKEEPER-4026, 4667). Returns whether it writes, and the
/// operation; `None` if it has no path.
fn part_of_multi(
    profile: Profile,
    operation: i32,
    reader: &mut Reader<'_>,
) -> Result<(bool, Option<Write>), Malformed> {
    let path = reader.text()?;
    let is_nameless = path.is_none();
    if matches!(operation, opcode::GET_DATA | opcode::GET_CHILDREN) {
        let _watch = reader.boolean()?;
        return Ok((false, path.map(|_| Write::Unfit)));
    }
    let write = match write(operation, Some(path.unwrap_or_default()), reader)? {
        Write::Create(create) => match create.flags {
            flags if flags > profile.highest_flags() => Write::Create(create),
            4 => Write::Create(Create { opcode: opcode::CREATE_CONTAINER, ttl: -1, ..create }),
            5 | 6 if create.opcode == opcode::CREATE_TTL => Write::Create(create),
            5 | 6 => Write::Unfit,
            _ => Write::Create(Create { opcode: opcode::CREATE, ttl: -1, ..create }),
        },
        other => other,
    };
    Ok((true, (!is_nameless).then_some(write)))
}

/// An operation that may be in a multi of reads. There it sets no watch.
fn look(operation: i32, reader: &mut Reader<'_>) -> Result<Look, Malformed> {
    Ok(match look_at(operation, reader)? {
        Look::Data { path, .. } => Look::Data { path, watch: false },
        Look::Children { path, .. } => Look::Children { path, watch: false, with_stat: false },
    })
}

fn look_at(operation: i32, reader: &mut Reader<'_>) -> Result<Look, Malformed> {
    let (path, watch) = (reader.some_text()?, reader.boolean()?);
    match operation {
        opcode::GET_DATA => Ok(Look::Data { path, watch }),
        opcode::GET_CHILDREN => Ok(Look::Children { path, watch, with_stat: false }),
        opcode::GET_CHILDREN_2 => Ok(Look::Children { path, watch, with_stat: true }),
        _ => Err(Malformed),
    }
}

/// Operations, each after a header, with a last header that says that there are no more.
fn multi<T>(
    profile: Profile,
    reader: &mut Reader<'_>,
    item: impl Fn(i32, &mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut items = Vec::new();
    loop {
        let (operation, is_done, _error) = (reader.int()?, reader.boolean()?, reader.int()?);
        if is_done {
            return Ok(items);
        }
        if !profile.knows_in_multi(operation) {
            return Err(Malformed);
        }
        items.push(item(operation, reader)?);
    }
}

fn old_watches(reader: &mut Reader<'_>, with_persistent: bool) -> Result<OldWatches, Malformed> {
    let zxid = reader.long()?;
    let mut paths = || reader.list(Reader::some_text);
    let (data, exist, child) = (paths()?, paths()?, paths()?);
    let (persistent, recursive) =
        if with_persistent { (paths()?, paths()?) } else { (Vec::new(), Vec::new()) };
    Ok(OldWatches { zxid, data, exist, child, persistent, recursive })
}
