//! The words of four letters that operators type.

use crate::world::World;

const KNOWN: [&str; 18] = [
    "conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "mntr", "ruok", "srst", "srvr",
    "stat", "stmk", "wchc", "wchp", "wchs",
];

/// What clients take for the version of a ZooKeeper: the one whose behaviour is copied here.
const VERSION: &str =
    concat!("3.8.0-zklock-testkit-", env!("CARGO_PKG_VERSION"), ", in memory, for development and tests");

/// The word that a connection has begun with, if it has.
pub(crate) fn recognise(bytes: [u8; 4]) -> Option<&'static str> {
    KNOWN.into_iter().find(|word| word.as_bytes() == bytes)
}

pub(crate) fn answer(word: &str, world: &World) -> String {
    match word {
        "ruok" => "imok".to_owned(),
        "srvr" => srvr(world),
        "mntr" => figures(world).into_iter().map(|(name, value)| format!("zk_{name}\t{value}\n")).collect(),
        "isro" => "rw".to_owned(),
        "wchs" => world.watches.summary(),
        _ => format!("{word} is not executed because it is not in the whitelist.\n"),
    }
}

fn srvr(world: &World) -> String {
    format!(
        "Zookeeper version: {VERSION}\nLatency min/avg/max: 0/0.0/0\nReceived: {}\nSent: {}\nConnections: {}\n\
         Outstanding: 0\nZxid: {:#x}\nMode: standalone\nNode count: {}\n",
        world.received,
        world.sent,
        world.connections.len(),
        world.zxid,
        world.tree.count()
    )
}

fn figures(world: &World) -> Vec<(&'static str, String)> {
    vec![
        ("version", VERSION.to_owned()),
        ("server_state", "standalone".to_owned()),
        ("znode_count", world.tree.count().to_string()),
        ("watch_count", world.watches.count().to_string()),
        ("ephemerals_count", world.tree.count_of_ephemerals().to_string()),
        ("approximate_data_size", world.tree.data_size().to_string()),
        ("num_alive_connections", world.connections.len().to_string()),
        ("global_sessions", world.sessions.len().to_string()),
        ("outstanding_requests", "0".to_owned()),
        ("packets_received", world.received.to_string()),
        ("packets_sent", world.sent.to_string()),
    ]
}
