//! The servers that this one can imitate, and all the differences between them.

use std::str::FromStr;

use crate::wire::code::{Code, opcode};

/// The name that is added to the version of the imitated server.
const OURS: &str =
    concat!("-zklock-testkit-", env!("CARGO_PKG_VERSION"), ", in memory, for development and tests");

/// Nodes that always exist.
pub(crate) const SPECIAL: [&str; 4] = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Profile {
    #[default]
    V3_8,
    /// ZooKeeper 3.4.14.
    V3_4,
    /// ClickHouse Keeper 25, which does not know the newer create requests, and cannot move a session to another
    /// connection.
    Keeper25,
}

/// There is no server with this name to imitate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no server that is called {name:?}: known are {known}", known = known())]
pub struct UnknownProfile {
    name: String,
}

impl Profile {
    const ALL: [(Self, &str); 3] = [(Self::V3_8, "3.8"), (Self::V3_4, "3.4"), (Self::Keeper25, "keeper-25")];

    /// How its answer to `srvr` begins.
    pub(crate) fn greeting(self) -> &'static str {
        match self {
            Self::V3_8 | Self::V3_4 => "Zookeeper version: ",
            Self::Keeper25 => "ClickHouse Keeper version: ",
        }
    }

    /// The version that clients take it for.
    pub(crate) fn version(self) -> String {
        let version = match self {
            Self::V3_8 => "3.8.0",
            Self::V3_4 => "3.4.14",
            Self::Keeper25 => "v25.8.1.1",
        };
        format!("{version}{OURS}")
    }

    /// Whether it knows a request of this kind at all.
    pub(crate) fn knows(self, operation: i32) -> bool {
        let is_between = |from, to| (from..=to).contains(&operation);
        let is_oldest = is_between(opcode::CREATE, opcode::SYNC)
            || is_between(opcode::PING, opcode::MULTI)
            || operation == opcode::CLOSE_SESSION;
        match self {
            Self::V3_8 => {
                is_oldest
                    || is_between(opcode::CREATE_2, opcode::MULTI_READ)
                    || is_between(opcode::SET_WATCHES, opcode::WHO_AM_I) && operation != opcode::SASL
            }
            Self::V3_4 => is_oldest || operation == opcode::SET_WATCHES,
            Self::Keeper25 => is_oldest || matches!(operation, opcode::RECONFIG | opcode::MULTI_READ),
        }
    }

    /// Whether a multi may contain this request.
    pub(crate) fn knows_in_multi(self, operation: i32) -> bool {
        self == Self::V3_8
            || matches!(operation, opcode::CREATE | opcode::DELETE | opcode::SET_DATA | opcode::CHECK)
            || self == Self::Keeper25 && matches!(operation, opcode::GET_DATA | opcode::GET_CHILDREN)
    }

    /// Whether it answers a request that it cannot read. Otherwise it just closes the connection.
    pub(crate) fn answers_the_unknown(self) -> bool {
        self != Self::Keeper25
    }

    /// Whether a session can continue on another connection.
    pub(crate) fn resumes_sessions(self) -> bool {
        self != Self::Keeper25
    }

    /// Whether it checks the flags of a create before everything else.
    pub(crate) fn judges_flags_first(self) -> bool {
        self != Self::V3_4
    }

    /// Whether an access list can name a network, not only an address.
    pub(crate) fn lists_networks(self) -> bool {
        self != Self::V3_4
    }

    /// Whether a client that may not delete a node is first told that the node does not exist.
    pub(crate) fn misses_before_it_denies(self) -> bool {
        self == Self::V3_4
    }

    /// Whether a client gets no events about a node that it may not read.
    pub(crate) fn hides_events(self) -> bool {
        self == Self::V3_8
    }

    /// Whether the first and the last character of each forbidden range are allowed in a path.
    pub(crate) fn allows_edges(self) -> bool {
        self == Self::V3_4
    }

    /// The error for an entry of an access list that has no scheme.
    pub(crate) fn code_of_no_scheme(self) -> Code {
        if self == Self::V3_4 { Code::MarshallingError } else { Code::InvalidAcl }
    }

    /// The highest create flags that it knows.
    pub(crate) fn highest_flags(self) -> i32 {
        if self == Self::V3_8 { 6 } else { 3 }
    }

    /// Whether the number of the next sequential child sticks at the largest number. Otherwise it continues with the
    /// smallest.
    pub(crate) fn numbers_stick(self) -> bool {
        self != Self::V3_4
    }

    /// The nodes of a new server.
    pub(crate) fn first_nodes(self) -> &'static [&'static str] {
        match self {
            Self::V3_8 => &SPECIAL,
            Self::V3_4 => &["/", "/zookeeper", "/zookeeper/quota"],
            Self::Keeper25 => &["/"],
        }
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(profile, _)| *profile).ok_or_else(|| UnknownProfile { name: name.to_owned() })
    }
}

fn known() -> String {
    Profile::ALL.map(|(_, name)| name).join(", ")
}
