//! Kinds of messages, by which a fault chooses its message.

use std::fmt;
use std::str::FromStr;

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
