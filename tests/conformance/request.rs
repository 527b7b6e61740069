//! The requests of a conversation, and their encoding.
//!
//! The first `@` in a path stands for the conversation's own tree, whose name differs from run to run.

use crate::codec::{Writer, framed, length};

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

/// The access list for a node: permissions, schemes, and whom they name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acl {
    Null,
    Of(&'static [(i32, &'static str, &'static str)]),
}

/// The data of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Data {
    Null,
    Bytes(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    Create {
        maker: Maker,
        path: String,
        data: Data,
        acl: Acl,
        flags: i32,
    },
    Delete {
        path: String,
        version: i32,
    },
    SetData {
        path: String,
        data: Data,
        version: i32,
    },
    Check {
        path: String,
        version: i32,
    },
    Exists {
        path: String,
        watch: bool,
    },
    GetData {
        path: String,
        watch: bool,
    },
    GetChildren {
        path: String,
        watch: bool,
    },
    GetChildren2 {
        path: String,
        watch: bool,
    },
    GetAcl {
        path: String,
    },
    SetAcl {
        path: String,
        acl: Acl,
        version: i32,
    },
    Count {
        path: String,
    },
    Ephemerals {
        prefix: String,
    },
    Sync {
        path: String,
    },
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
    Auth {
        scheme: String,
        credentials: String,
    },
    Sasl,
    Close,
    /// Any number, with a path for a body.
    Other {
        opcode: i32,
    },
    /// Only the first bytes of a request's body.
    Truncated {
        request: Box<Request>,
        keep: usize,
    },
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
    fn path(&self, writer: &mut Writer, path: &str) {
        match path {
            NULL => writer.buffer(None),
            BROKEN => writer.buffer(Some(b"/\xff\xed\xa0\x80")),
            _ => writer.text(&path.replacen('@', self.root, 1)),
        };
    }
}

impl Request {
    /// The whole frame.
    pub(crate) fn frame(&self, xid: i32, terms: &Terms<'_>) -> Vec<u8> {
        match self {
            Self::NoHeader => return framed(&xid.to_be_bytes()),
            Self::Length(length) => return length.to_be_bytes().to_vec(),
            _ => {}
        }
        let mut message = Writer::default();
        message.int(self.xid(xid)).int(self.opcode());
        self.body(&mut message, terms);
        if let Self::Truncated { keep, .. } = self {
            // Not the whole body, unless there is nothing to cut.
            let body = message.0.len() - 8;
            message.0.truncate(8 + (*keep).min(body.saturating_sub(1)));
        }
        framed(&message.0)
    }

    /// Some requests have an id of their own.
    pub(crate) fn xid(&self, xid: i32) -> i32 {
        match self {
            Self::Ping => -2,
            Self::Auth { .. } => -4,
            Self::SetWatches { .. } => -8,
            Self::Truncated { request, .. } => request.xid(xid),
            _ => xid,
        }
    }

    pub(crate) fn opcode(&self) -> i32 {
        match self {
            Self::Create { maker, .. } => match maker {
                Maker::Create => 1,
                Maker::Create2 => 15,
                Maker::Container => 19,
                Maker::Ttl(_) => 21,
            },
            Self::Delete { .. } => 2,
            Self::Exists { .. } => 3,
            Self::GetData { .. } => 4,
            Self::SetData { .. } => 5,
            Self::GetAcl { .. } => 6,
            Self::SetAcl { .. } => 7,
            Self::GetChildren { .. } => 8,
            Self::Sync { .. } => 9,
            Self::Ping => 11,
            Self::GetChildren2 { .. } => 12,
            Self::Check { .. } => 13,
            Self::Multi(_) => 14,
            Self::CheckWatches { .. } => 17,
            Self::RemoveWatches { .. } => 18,
            Self::MultiRead(_) => 22,
            Self::Auth { .. } => 100,
            Self::SetWatches { second: false, .. } => 101,
            Self::Sasl => 102,
            Self::Ephemerals { .. } => 103,
            Self::Count { .. } => 104,
            Self::SetWatches { second: true, .. } => 105,
            Self::AddWatch { .. } => 106,
            Self::WhoAmI => 107,
            Self::Close => -11,
            Self::Other { opcode } => *opcode,
            Self::Truncated { request, .. } => request.opcode(),
            Self::NoHeader | Self::Length(_) => 0,
        }
    }

    /// Whether it most likely ends the connection.
    pub(crate) fn is_fatal(&self) -> bool {
        match self {
            Self::Auth { scheme, .. } => !matches!(scheme.as_str(), "digest" | "ip"),
            Self::Sasl => false,
            Self::Other { opcode } => !matches!(opcode, 16 | 20),
            _ => self.may_close(),
        }
    }

    /// Whether a server may close the connection because of it.
    pub(crate) fn may_close(&self) -> bool {
        match self {
            Self::Auth { .. }
            | Self::Sasl
            | Self::Close
            | Self::Other { .. }
            | Self::NoHeader
            | Self::Length(_) => true,
            Self::Truncated { request, .. } => request.may_close(),
            _ => false,
        }
    }

    /// Whether a watch may fire because of it.
    pub(crate) fn may_write(&self) -> bool {
        match self {
            Self::Truncated { .. } | Self::Other { .. } => true,
            _ => matches!(self.opcode(), 1 | 2 | 5 | 7 | 13 | 14 | 15 | 19 | 20 | 21 | -11),
        }
    }

    /// Whether it may leave a watch, or make one fire at once.
    pub(crate) fn may_watch(&self) -> bool {
        match self {
            Self::Exists { watch, .. }
            | Self::GetData { watch, .. }
            | Self::GetChildren { watch, .. }
            | Self::GetChildren2 { watch, .. } => *watch,
            Self::Truncated { .. } => true,
            _ => matches!(self.opcode(), 101 | 105 | 106),
        }
    }

    /// Whether a server closes the connection after that answer.
    pub(crate) fn closes(&self, error: i32) -> bool {
        match self {
            Self::Close => true,
            Self::Auth { .. } | Self::Other { .. } => matches!(error, -6 | -115),
            _ => false,
        }
    }

    fn body(&self, to: &mut Writer, terms: &Terms<'_>) {
        match self {
            Self::Create { maker, path, data, acl, flags } => {
                terms.path(to, path);
                data.write(to);
                acl.write(to);
                to.int(*flags);
                if let Maker::Ttl(ttl) = maker {
                    to.long(*ttl);
                }
            }
            Self::Delete { path, version } | Self::Check { path, version } => {
                terms.path(to, path);
                to.int(*version);
            }
            Self::SetData { path, data, version } => {
                terms.path(to, path);
                data.write(to);
                to.int(*version);
            }
            Self::SetAcl { path, acl, version } => {
                terms.path(to, path);
                acl.write(to);
                to.int(*version);
            }
            Self::Exists { path, watch }
            | Self::GetData { path, watch }
            | Self::GetChildren { path, watch }
            | Self::GetChildren2 { path, watch } => {
                terms.path(to, path);
                to.boolean(*watch);
            }
            Self::GetAcl { path }
            | Self::Count { path }
            | Self::Sync { path }
            | Self::Ephemerals { prefix: path } => {
                terms.path(to, path);
            }
            Self::AddWatch { path, mode: number }
            | Self::RemoveWatches { path, kind: number }
            | Self::CheckWatches { path, kind: number } => {
                terms.path(to, path);
                to.int(*number);
            }
            Self::Multi(parts) | Self::MultiRead(parts) => {
                for part in parts {
                    to.int(part.opcode()).boolean(false).int(-1);
                    part.body(to, terms);
                }
                to.int(-1).boolean(true).int(-1);
            }
            Self::SetWatches { ago, lists, .. } => {
                to.long(terms.last_zxid - ago);
                for list in lists {
                    to.int(length(list.len()));
                    list.iter().for_each(|path| terms.path(to, path));
                }
            }
            Self::Auth { scheme, credentials } => {
                to.int(0).text(scheme).text(credentials);
            }
            Self::Sasl => {
                to.text("token");
            }
            Self::Other { .. } => terms.path(to, "@"),
            Self::Truncated { request, .. } => request.body(to, terms),
            Self::Ping | Self::WhoAmI | Self::Close | Self::NoHeader | Self::Length(_) => {}
        }
    }

    /// Whether nothing can follow on the connection without a race inside a real server. It answers some requests ahead of
    /// those that wait in its pipeline, and does not apply a new access list to the requests right after it.
    pub(crate) fn is_alone(&self) -> bool {
        match self {
            Self::Auth { .. } | Self::Sasl | Self::Other { .. } | Self::NoHeader | Self::Length(_) => true,
            Self::SetAcl { .. } => true,
            Self::Truncated { request, .. } => request.is_alone(),
            Self::Create { maker, flags, .. } => match maker {
                Maker::Create | Maker::Create2 => *flags > 3,
                Maker::Container => *flags != 4,
                Maker::Ttl(_) => true,
            },
            Self::Multi(parts) => parts.iter().any(Self::is_alone),
            _ => false,
        }
    }
}

impl Data {
    fn write(self, to: &mut Writer) {
        match self {
            Self::Null => to.buffer(None),
            // Bytes that depend on the length, so that data of different length always differs.
            Self::Bytes(count) => to.buffer(Some(&vec![u8::try_from(count % 251).unwrap_or(0); count])),
        };
    }
}

impl Acl {
    pub(crate) const OPEN: Self = Self::Of(&[(31, "world", "anyone")]);
    pub(crate) const EMPTY: Self = Self::Of(&[]);

    fn write(self, to: &mut Writer) {
        let Self::Of(entries) = self else {
            to.int(-1);
            return;
        };
        to.int(length(entries.len()));
        for (permissions, scheme, id) in entries {
            to.int(*permissions);
            for text in [scheme, id] {
                to.buffer(Some(text.as_bytes()).filter(|_| *text != NULL));
            }
        }
    }
}
