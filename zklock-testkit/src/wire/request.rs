//! Requests of clients, parsed from the wire: those of several forms. [`world`](crate::state::world) reads the others itself.

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

/// An operation that changes the tree, alone or in a multi. An unfit one makes the whole multi fail when its turn comes.
#[derive(Debug, Clone)]
pub(crate) enum Write {
    Create(Create),
    Delete { path: String, version: i32 },
    SetData { path: String, data: Option<Vec<u8>>, version: i32 },
    SetAcl { path: String, access: Vec<Wanted>, version: i32 },
    Check { path: String, version: i32 },
    Unfit,
}

/// An operation that reads the tree, alone or in a multi.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(crate) operation: i32,
    pub(crate) path: String,
    pub(crate) watch: bool,
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

impl Write {
    pub(crate) fn read(operation: i32, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let path = reader.text()?;
        Self::at(path, operation, reader)
    }

    /// An operation that may be in a multi. For those that check the path before everything else, a missing path counts as
    /// an invalid one.
    fn at(path: Option<String>, operation: i32, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match operation {
            opcode::CREATE | opcode::CREATE_2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => {
                Self::Create(Create {
                    opcode: operation,
                    path,
                    data: reader.buffer()?.map(<[u8]>::to_vec),
                    access: reader.list(Wanted::read)?,
                    flags: reader.int()?,
                    ttl: if operation == opcode::CREATE_TTL { reader.long()? } else { -1 },
                })
            }
            opcode::DELETE => Self::Delete { path: path.ok_or(Malformed)?, version: reader.int()? },
            opcode::SET_DATA => Self::SetData {
                path: path.unwrap_or_default(),
                data: reader.buffer()?.map(<[u8]>::to_vec),
                version: reader.int()?,
            },
            opcode::CHECK => Self::Check { path: path.unwrap_or_default(), version: reader.int()? },
            _ => return Err(Malformed),
        })
    }

    pub(crate) fn read_set_acl(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (path, access) = (reader.text()?.unwrap_or_default(), reader.list(Wanted::read)?);
        Ok(Self::SetAcl { path, access, version: reader.int()? })
    }

    /// The operations of a multi; `None` if a path is missing.
    pub(crate) fn read_multi(
        profile: Profile,
        reader: &mut Reader<'_>,
    ) -> Result<Option<Vec<Self>>, Malformed> {
        let parts =
            multi(profile, reader, |operation, reader| Self::part_of_multi(profile, operation, reader))?;
        if parts.windows(2).any(|pair| pair[0].0 != pair[1].0) {
            return Err(Malformed); // it both reads and writes
        }
        Ok(parts.into_iter().map(|(_, write)| write).collect())
    }

    /// In a multi, only the flags decide what is created, and how that is answered. ZooKeeper before 3.8.2 does it like that,
    /// and the answer has no metadata of the created node (ZOOKEEPER-4026, 4667). Returns whether it writes, and the
    /// operation; `None` if it has no path.
    fn part_of_multi(
        profile: Profile,
        operation: i32,
        reader: &mut Reader<'_>,
    ) -> Result<(bool, Option<Self>), Malformed> {
        let path = reader.text()?;
        let is_nameless = path.is_none();
        if matches!(operation, opcode::GET_DATA | opcode::GET_CHILDREN) {
            let _watch = reader.boolean()?;
            return Ok((false, path.map(|_| Self::Unfit)));
        }
        let write = match Self::at(Some(path.unwrap_or_default()), operation, reader)? {
            Self::Create(create) => match create.flags {
                flags if flags > profile.highest_flags() => Self::Create(create),
                4 => Self::Create(Create { opcode: opcode::CREATE_CONTAINER, ttl: -1, ..create }),
                5 | 6 if create.opcode == opcode::CREATE_TTL => Self::Create(create),
                5 | 6 => Self::Unfit,
                _ => Self::Create(Create { opcode: opcode::CREATE, ttl: -1, ..create }),
            },
            other => other,
        };
        Ok((true, (!is_nameless).then_some(write)))
    }
}

impl Look {
    pub(crate) fn read(operation: i32, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match operation {
            opcode::GET_DATA | opcode::GET_CHILDREN | opcode::GET_CHILDREN_2 => {
                Ok(Self { operation, path: reader.some_text()?, watch: reader.boolean()? })
            }
            _ => Err(Malformed),
        }
    }

    /// The operations of a multi of reads. There they set no watch, and no answer has metadata of children.
    pub(crate) fn read_multi(profile: Profile, reader: &mut Reader<'_>) -> Result<Vec<Self>, Malformed> {
        multi(profile, reader, |operation, reader| {
            let look = Self::read(operation, reader)?;
            let is_data = operation == opcode::GET_DATA;
            let operation = if is_data { operation } else { opcode::GET_CHILDREN };
            Ok(Self { operation, watch: false, ..look })
        })
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
