//! The requests of a conversation, and their encoding.
//!
//! The first `@` in a path stands for the conversation's own tree, whose name differs from run to run.

use ground::wire::codec::Writer;

/// A path, or a text of an access list, that is sent as null.
pub(crate) const NULL: &str = "<null>";
/// A path that is not UTF-8.
pub(crate) const BROKEN: &str = "<broken>";

/// Which of the four create operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    Create,
    Create2,
    Container,
    Ttl(i64),
}

/// An operation whose request is a path, and what follows it. The numbers are ZooKeeper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Delete = 2,
    Exists = 3,
    GetData = 4,
    GetAcl = 6,
    GetChildren = 8,
    Sync = 9,
    GetChildren2 = 12,
    Check = 13,
    CheckWatches = 17,
    RemoveWatches = 18,
    Ephemerals = 103,
    Count = 104,
    AddWatch = 106,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    /// A read: whether it sets a watch.
    Watch(bool),
    /// A version, a mode or a kind.
    Number(i32),
}

/// The access list for a node: permissions, schemes, and whom they name; or null.
pub(crate) type Acl = Option<&'static [(i32, &'static str, &'static str)]>;
pub(crate) const OPEN: Acl = Some(&[(31, "world", "anyone")]);
pub(crate) const EMPTY: Acl = Some(&[]);

/// The length of a node's data; or null.
pub(crate) type Data = Option<usize>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    Create {
        maker: Maker,
        path: String,
        data: Data,
        acl: Acl,
        flags: i32,
    },
    At(Op, String, Then),
    /// With a version.
    SetData(String, Data, i32),
    SetAcl(String, Acl, i32),
    Ping,
    WhoAmI,
    Multi(Vec<Request>),
    MultiRead(Vec<Request>),
    /// `ago` counts back from the last transaction that this connection's owner knows of.
    SetWatches {
        second: bool,
        ago: i64,
        lists: Vec<Vec<String>>,
    },
    /// A scheme, and credentials.
    Auth(&'static str, &'static str),
    Sasl,
    Close,
    /// Any number, with a path for a body.
    Other(i32),
    /// Only so many bytes of a request's body.
    Truncated(Box<Request>, usize),
    /// A frame without room for a header.
    NoHeader,
    /// A frame's length, without a frame.
    Length(i32),
}

/// Values in requests that differ between the servers.
#[derive(Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) root: &'a str,
    pub(crate) last_zxid: i64,
}

impl Terms<'_> {
    fn path(&self, to: Writer, path: &str) -> Writer {
        match path {
            BROKEN => to.buffer(b"/\xff\xed\xa0\x80"),
            _ => text(to, &path.replacen('@', self.root, 1)),
        }
    }
}

impl Request {
    /// The whole frame.
    pub(crate) fn frame(&self, xid: i32, terms: &Terms<'_>) -> Vec<u8> {
        match self {
            Self::NoHeader => return Writer::default().int(xid).framed(),
            Self::Length(length) => return length.to_be_bytes().to_vec(),
            _ => {}
        }
        let header = Writer::default().int(self.xid(xid)).int(self.opcode());
        let mut message = self.body(header, terms);
        if let Self::Truncated(_, keep) = self {
            // Not the whole body, unless there is nothing to cut.
            let body = message.0.len() - 8;
            message.0.truncate(8 + (*keep).min(body.saturating_sub(1)));
        }
        message.framed()
    }

    /// Some requests have an id of their own.
    pub(crate) fn xid(&self, xid: i32) -> i32 {
        match self {
            Self::Ping => -2,
            Self::Auth(..) => -4,
            Self::SetWatches { .. } => -8,
            Self::Truncated(request, _) => request.xid(xid),
            _ => xid,
        }
    }

    pub(crate) fn opcode(&self) -> i32 {
        match self {
            Self::At(op, ..) => *op as i32,
            Self::Create { maker, .. } => match maker {
                Maker::Create => 1,
                Maker::Create2 => 15,
                Maker::Container => 19,
                Maker::Ttl(_) => 21,
            },
            Self::SetData(..) => 5,
            Self::SetAcl(..) => 7,
            Self::Ping => 11,
            Self::Multi(_) => 14,
            Self::MultiRead(_) => 22,
            Self::Auth(..) => 100,
            Self::SetWatches { second: false, .. } => 101,
            Self::Sasl => 102,
            Self::SetWatches { second: true, .. } => 105,
            Self::WhoAmI => 107,
            Self::Close => -11,
            Self::Other(opcode) => *opcode,
            Self::Truncated(request, _) => request.opcode(),
            Self::NoHeader | Self::Length(_) => 0,
        }
    }

    /// Whether it most likely ends the connection.
    pub(crate) fn is_fatal(&self) -> bool {
        match self {
            Self::Auth(scheme, _) => !matches!(*scheme, "digest" | "ip"),
            Self::Sasl => false,
            Self::Other(opcode) => !matches!(opcode, 16 | 20),
            _ => self.may_close(),
        }
    }

    /// Whether a server may close the connection because of it.
    pub(crate) fn may_close(&self) -> bool {
        match self {
            Self::Truncated(request, _) => request.may_close(),
            _ => matches!(self, Self::Close) || self.is_out_of_order(),
        }
    }

    /// Whether a watch may fire because of it.
    pub(crate) fn may_write(&self) -> bool {
        match self {
            Self::Truncated(..) | Self::Other(_) => true,
            _ => matches!(self.opcode(), 1 | 2 | 5 | 7 | 13 | 14 | 15 | 19 | 20 | 21 | -11),
        }
    }

    /// Whether it may leave a watch, or make one fire at once.
    pub(crate) fn may_watch(&self) -> bool {
        match self {
            Self::At(_, _, Then::Watch(watch)) => *watch,
            Self::Truncated(..) => true,
            _ => matches!(self.opcode(), 101 | 105 | 106),
        }
    }

    /// Whether a server closes the connection after that answer.
    pub(crate) fn closes(&self, error: i32) -> bool {
        match self {
            Self::Close => true,
            Self::Auth(..) | Self::Other(_) => matches!(error, -6 | -115),
            _ => false,
        }
    }

    fn body(&self, to: Writer, terms: &Terms<'_>) -> Writer {
        match self {
            Self::Create { maker, path, data, acl, flags } => {
                let to = list(content(terms.path(to, path), *data), *acl).int(*flags);
                if let Maker::Ttl(ttl) = maker { to.long(*ttl) } else { to }
            }
            Self::At(_, path, then) => {
                let to = terms.path(to, path);
                match then {
                    Then::Nothing => to,
                    Then::Watch(watch) => to.boolean(*watch),
                    Then::Number(number) => to.int(*number),
                }
            }
            Self::SetData(path, data, version) => content(terms.path(to, path), *data).int(*version),
            Self::SetAcl(path, acl, version) => list(terms.path(to, path), *acl).int(*version),
            Self::Multi(parts) | Self::MultiRead(parts) => {
                let part =
                    |to: Writer, part: &Self| part.body(to.int(part.opcode()).boolean(false).int(-1), terms);
                parts.iter().fold(to, part).int(-1).boolean(true).int(-1)
            }
            Self::SetWatches { ago, lists, .. } => {
                let paths = |to: Writer, list: &Vec<String>| {
                    list.iter().fold(to.count(list.len()), |to, path| terms.path(to, path))
                };
                lists.iter().fold(to.long(terms.last_zxid - ago), paths)
            }
            Self::Auth(scheme, credentials) => text(text(to.int(0), scheme), credentials),
            Self::Sasl => text(to, "token"),
            Self::Other(_) => terms.path(to, "@"),
            Self::Truncated(request, _) => request.body(to, terms),
            Self::Ping | Self::WhoAmI | Self::Close | Self::NoHeader | Self::Length(_) => to,
        }
    }

    /// Whether nothing can follow on the connection without a race inside a real server. It answers some requests ahead of
    /// those that wait in its pipeline, and does not apply a new access list to the requests right after it.
    pub(crate) fn is_alone(&self) -> bool {
        match self {
            Self::SetAcl(..) => true,
            Self::Truncated(request, _) => request.is_alone(),
            Self::Create { maker, flags, .. } => match maker {
                Maker::Create | Maker::Create2 => *flags > 3,
                Maker::Container => *flags != 4,
                Maker::Ttl(_) => true,
            },
            Self::Multi(parts) => parts.iter().any(Self::is_alone),
            _ => self.is_out_of_order(),
        }
    }

    /// Whether a server answers it, or gives up the connection because of it, outside of its pipeline.
    fn is_out_of_order(&self) -> bool {
        matches!(self, Self::Auth(..) | Self::Sasl | Self::Other(_) | Self::NoHeader | Self::Length(_))
    }
}

fn text(to: Writer, text: &str) -> Writer {
    to.nullable(Some(text.as_bytes()).filter(|_| text != NULL))
}

/// Bytes that depend on the length, so that data of different length always differs.
fn content(to: Writer, data: Data) -> Writer {
    let bytes = data.map(|count| vec![u8::try_from(count % 251).unwrap_or(0); count]);
    to.nullable(bytes.as_deref())
}

fn list(to: Writer, acl: Acl) -> Writer {
    let Some(entries) = acl else { return to.int(-1) };
    let entry = |to: Writer, (permissions, scheme, id): &(i32, &str, &str)| {
        text(text(to.int(*permissions), scheme), id)
    };
    entries.iter().fold(to.count(entries.len()), entry)
}
