//! Kinds of messages, by which a fault chooses its message.

use std::fmt;
use std::str::FromStr;

use crate::wire::code::opcode;
use crate::wire::jute::Reader;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal,)+) => {
        /// The kind of a message. A fault strikes at messages of one kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The name of the kind, on the command line and in Python.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

kinds! {
    /// The first message of a connection, with which a session begins or moves here.
    Connect = "connect",
    /// Creates a node, in any form.
    Create = "create",
    /// Deletes a node.
    Delete = "delete",
    /// Asks whether a node exists.
    Exists = "exists",
    /// Reads the data of a node.
    GetData = "get-data",
    /// Sets the data of a node.
    SetData = "set-data",
    /// Lists the children of a node.
    GetChildren = "get-children",
    /// Reads or sets the access list of a node.
    Acl = "acl",
    /// Makes the server catch up with the leader.
    Sync = "sync",
    /// A ping, which keeps the session alive.
    Ping = "ping",
    /// Several operations in one transaction. The heartbeat of a zklock client is one.
    Multi = "multi",
    /// Logs in.
    Auth = "auth",
    /// Sets, adds, checks or removes watches.
    Watches = "watches",
    /// The client closes its session.
    Close = "close",
    /// A watch has fired. The server sends this without a request.
    Event = "event",
    /// Anything else.
    Other = "other",
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

/// There is no such kind of message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no kind of message that is called {0:?}: known are {all}", all = words())]
pub struct UnknownKind(String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(word: &str) -> Result<Self, UnknownKind> {
        let word = word.replace('_', "-");
        Self::ALL.iter().copied().find(|kind| kind.word() == word).ok_or(UnknownKind(word))
    }
}

fn words() -> String {
    Kind::ALL.iter().map(|kind| kind.word()).collect::<Vec<_>>().join(", ")
}

/// The kind and the path of a request, from its number and what follows its header. For a multi, the first path.
pub(crate) fn of_request(operation: i32, mut body: Reader<'_>) -> (Kind, Option<String>) {
    let kind = match operation {
        opcode::CREATE | opcode::CREATE_2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => Kind::Create,
        opcode::DELETE | opcode::DELETE_CONTAINER => Kind::Delete,
        opcode::EXISTS => Kind::Exists,
        opcode::GET_DATA => Kind::GetData,
        opcode::SET_DATA => Kind::SetData,
        opcode::GET_CHILDREN | opcode::GET_CHILDREN_2 => Kind::GetChildren,
        opcode::GET_ACL | opcode::SET_ACL => Kind::Acl,
        opcode::SYNC => Kind::Sync,
        opcode::PING => Kind::Ping,
        opcode::MULTI | opcode::MULTI_READ => Kind::Multi,
        opcode::AUTH => Kind::Auth,
        opcode::SET_WATCHES
        | opcode::SET_WATCHES_2
        | opcode::ADD_WATCH
        | opcode::REMOVE_WATCHES
        | opcode::CHECK_WATCHES => Kind::Watches,
        opcode::CLOSE_SESSION => Kind::Close,
        _ => Kind::Other,
    };
    let path = match kind {
        Kind::Multi => {
            body.int().and_then(|_| body.boolean()).and_then(|_| body.int()).and_then(|_| body.text())
        }
        Kind::Ping | Kind::Auth | Kind::Watches | Kind::Close | Kind::Other => Ok(None),
        _ => body.text(),
    };
    (kind, path.ok().flatten())
}
