//! Kinds of messages, by which faults are aimed.

use std::fmt;
use std::str::FromStr;

use crate::code::opcode;
use crate::jute::Reader;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal,)+) => {
        /// What a message is about. A fault is aimed at the messages of one kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The kind in a word, as the command line and Python know it.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

kinds! {
    /// The first message of a connection: a session begins, or goes on here.
    Connect = "connect",
    /// A node is created, in whatever form.
    Create = "create",
    /// A node is deleted.
    Delete = "delete",
    /// Is there a node?
    Exists = "exists",
    /// A node's data.
    GetData = "get-data",
    /// A node gets other data.
    SetData = "set-data",
    /// A node's children.
    GetChildren = "get-children",
    /// A node's access list, asked for or set.
    Acl = "acl",
    /// The server catches up with the leader.
    Sync = "sync",
    /// A sign of life.
    Ping = "ping",
    /// Several operations in one transaction. The heartbeat of a zklock client is one.
    Multi = "multi",
    /// A proof of identity.
    Auth = "auth",
    /// Watches are set again, added, looked at or removed.
    Watches = "watches",
    /// The session is closed by its client.
    Close = "close",
    /// A watch has fired. This one the server sends unasked.
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

/// The kind and the path of a request, from its number and what follows its header. Of a multi, the first path.
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
