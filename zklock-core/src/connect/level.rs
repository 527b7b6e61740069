//! The level of the servers: whether they know only the requests of ZooKeeper 3.4, or also those of 3.5.
//!
//! A server answers a request that it does not know with an error, and closes the connection. So its level must be known
//! before the first such request is sent.

/// The requests that a server knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ServerLevel {
    /// No container nodes, no stat of a created node, and a watch stays until it fires. The client library cannot send a
    /// transaction with a creation in the form that these servers know.
    V3_4,
    V3_5,
}

/// How the answer to the command `srvr` begins.
const GREETING: &str = "Zookeeper version: ";
/// How the answer of ClickHouse Keeper begins. For a long time it had no container nodes and no stat of a created node, and
/// it silently closes the connection on requests that it does not know. So it is only asked for what a server of 3.4 knows.
const KEEPER: &str = "ClickHouse Keeper version: ";

impl ServerLevel {
    /// `None` for versions that are older than all levels.
    pub(crate) fn of(major: u32, minor: u32) -> Option<Self> {
        match (major, minor) {
            version if version >= (3, 5) => Some(Self::V3_5),
            (3, 4) => Some(Self::V3_4),
            _ => None,
        }
    }

    /// Returns the level that a server's answer stands for. An answer that cannot be parsed counts as a current version: a
    /// server may be told not to answer, and other products use the same protocol.
    pub(crate) fn of_answer(answer: &str) -> Self {
        if answer.starts_with(KEEPER) {
            return Self::V3_4;
        }
        version(answer).map_or(Self::V3_5, |(major, minor)| Self::of(major, minor).unwrap_or(Self::V3_4))
    }
}

/// Whether a server that gave this answer closes the connection after a failed login, without saying that it failed.
pub(crate) fn refuses_in_silence(answer: &str) -> bool {
    version(answer).is_some_and(|version| version < (3, 6))
}

fn version(answer: &str) -> Option<(u32, u32)> {
    parse(answer.strip_prefix(GREETING)?)
}

/// Parses `3.4`, or `3.4.14`.
pub(crate) fn parse(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// A feature that needs a creation in a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Newer {
    Set,
    Permits,
    Downgrade,
    DoubleBarrier,
    GuardedCreation,
}

impl Newer {
    /// Returns why a server of 3.4 is not asked for it.
    pub(crate) fn refusal(self) -> String {
        let (what, instead) = match self {
            Self::Set => ("a set of locks", "acquire them one by one, in the same order everywhere"),
            Self::Permits => ("acquiring several permits at once", "acquire them one by one"),
            Self::Downgrade => ("the read side within the write side", "release the write side first"),
            Self::DoubleBarrier => ("a double barrier", "use two barriers"),
            Self::GuardedCreation => {
                ("a guarded write that creates a node", "create it before, and guard its data")
            }
        };
        format!(
            "{what} needs ZooKeeper 3.5 or later, and the servers are of version 3.4, or support no more \
             than that: {instead}, or upgrade them"
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
