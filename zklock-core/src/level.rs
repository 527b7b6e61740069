//! What the servers know: the requests of ZooKeeper 3.4, or those that came with 3.5 as well.
//!
//! A server answers a request that it does not know with an error and hangs up. So it has to be known before the first one
//! is sent.

/// What servers of a version know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ServerLevel {
    /// No container nodes, no stat of a created node, and a watch stays until it fires. The client library sends no
    /// transaction with a creation that these servers know.
    V3_4,
    V3_5,
}

/// How the answer to the word `srvr` begins.
const GREETING: &str = "Zookeeper version: ";
/// How that of ClickHouse Keeper does. For long it knew no container nodes and no stat of a created node, and on what it does
/// not know it hangs up without a word: so it is asked for no more than a server of 3.4.
const KEEPER: &str = "ClickHouse Keeper version: ";

impl ServerLevel {
    /// `None` for what is older than all levels.
    pub(crate) fn of(major: u32, minor: u32) -> Option<Self> {
        match (major, minor) {
            version if version >= (3, 5) => Some(Self::V3_5),
            (3, 4) => Some(Self::V3_4),
            _ => None,
        }
    }

    /// What a server says of its version. What cannot be read says nothing against the present version: a server may be
    /// told not to answer, and others speak the protocol as well.
    pub(crate) fn of_answer(answer: &str) -> Self {
        if answer.starts_with(KEEPER) {
            return Self::V3_4;
        }
        let mut numbers = answer.strip_prefix(GREETING).unwrap_or_default().split('.').map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Self::of(major, minor).unwrap_or(Self::V3_4),
            _ => Self::V3_5,
        }
    }
}

/// What needs a creation in a transaction, and what to do instead.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Newer {
    Set,
    Permits,
    Downgrade,
    DoubleBarrier,
    GuardedCreation,
}

impl Newer {
    /// Why a server of 3.4 is not asked for it.
    pub(crate) fn refusal(self) -> String {
        let (what, instead) = match self {
            Self::Set => ("a set of locks", "acquire them one by one, in the same order everywhere"),
            Self::Permits => ("acquiring several permits at once", "acquire them one by one"),
            Self::Downgrade => ("the read side within the write side", "release the write side first"),
            Self::DoubleBarrier => ("a double barrier", "use two barriers"),
            Self::GuardedCreation => {
                ("a guarded write that creates a node", "create it before, and guard set_data")
            }
        };
        format!(
            "{what} needs ZooKeeper 3.5 or later, and the servers are of version 3.4, or know no more than that: {instead}, or \
             upgrade them"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_version_before_3_5_is_taken_for_one() {
        let level =
            |version: &str| ServerLevel::of_answer(&format!("{GREETING}{version}, built on 03/06/2019"));
        for old in ["3.4.14-4c25d480e66aadd371de8bd2fd8da255ac140bcf", "3.4.5-1392090", "3.3.6"] {
            assert_eq!(level(old), ServerLevel::V3_4, "{old}");
        }
        for new in ["3.5.10-abc", "3.8.0", "3.10.1", "4.0.0", "3.x", "3", ""] {
            assert_eq!(level(new), ServerLevel::V3_5, "{new}");
        }
        for other in
            ["", "srvr is not executed because it is not in the whitelist.\n", "Zookeeper version: ", "\0\0"]
        {
            assert_eq!(ServerLevel::of_answer(other), ServerLevel::V3_5, "{other:?}");
        }
        assert_eq!(
            ServerLevel::of_answer("ClickHouse Keeper version: v25.8.1.1-stable\n"),
            ServerLevel::V3_4
        );
    }
}
