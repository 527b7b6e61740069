//! The answers to four-letter words.

use crate::state::connection::Connection;
use crate::state::world::World;

pub(crate) fn answer(word: &str, world: &World) -> String {
    match word {
        _ if !world.settings.words.has(word) => {
            format!("{word} is not executed because it is not in the whitelist.\n")
        }
        "conf" => format!("clientPort={}\n{}", world.settings.port, lines(&configuration(world), '=')),
        "cons" => connections(world, in_full) + "\n",
        "envi" => format!("Environment:\n{}", lines(&environment(world), '=')),
        "isro" => "rw".to_owned(),
        "mntr" => figures(world).into_iter().map(|(name, value)| format!("zk_{name}\t{value}\n")).collect(),
        "ruok" => "imok".to_owned(),
        "stat" => {
            let clients = connections(world, in_short);
            format!("{}Clients:\n{clients}\n{}", greeting(world), summary(world))
        }
        "wchs" => world.watches.summary(),
        _ => greeting(world) + &summary(world),
    }
}

fn greeting(world: &World) -> String {
    let profile = world.settings.profile;
    format!("{}{}\n", profile.greeting(), profile.version())
}

fn summary(world: &World) -> String {
    format!(
        "Latency min/avg/max: 0/0.0/0\nReceived: {}\nSent: {}\nConnections: {}\n\
         Outstanding: 0\nZxid: {:#x}\nMode: standalone\nNode count: {}\n",
        world.received,
        world.sent,
        world.connections.len(),
        world.zxid,
        world.tree.count()
    )
}

fn lines(values: &[(&str, String)], between: char) -> String {
    values.iter().map(|(name, value)| format!("{name}{between}{value}\n")).collect()
}

/// The configuration of a server. It has no folder, and no limit for each client.
fn configuration(world: &World) -> Vec<(&'static str, String)> {
    let settings = &world.settings;
    let (shortest, longest) = settings.session_timeouts;
    let (nowhere, size) = ("none, in memory".to_owned(), world.tree.data_size().to_string());
    vec![
        ("secureClientPort", "-1".to_owned()),
        ("dataDir", nowhere.clone()),
        ("dataDirSize", size),
        ("dataLogDir", nowhere),
        ("dataLogSize", "0".to_owned()),
        ("tickTime", settings.tick.as_millis().to_string()),
        ("maxClientCnxns", "0".to_owned()),
        ("minSessionTimeout", shortest.as_millis().to_string()),
        ("maxSessionTimeout", longest.as_millis().to_string()),
        ("clientPortListenBacklog", "-1".to_owned()),
        ("serverId", "0".to_owned()),
    ]
}

/// The environment of a server. There is no Java, so its properties are unknown, in Java's words.
fn environment(world: &World) -> Vec<(&'static str, String)> {
    const UNKNOWN: &str = "<NA>";
    let of_kernel = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        Some(text.trim().to_owned()).filter(|text| !text.is_empty()).unwrap_or_else(|| UNKNOWN.to_owned())
    };
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| UNKNOWN.to_owned());
    let path =
        |path: Option<std::path::PathBuf>| path.map_or(UNKNOWN.to_owned(), |path| path.display().to_string());
    let unknown = || UNKNOWN.to_owned();
    vec![
        ("zookeeper.version", world.settings.profile.version()),
        ("host.name", of_kernel("hostname")),
        ("java.version", unknown()),
        ("java.vendor", unknown()),
        ("java.home", unknown()),
        ("java.class.path", unknown()),
        ("java.library.path", unknown()),
        ("java.io.tmpdir", path(Some(std::env::temp_dir()))),
        ("java.compiler", unknown()),
        ("os.name", of_kernel("ostype")),
        ("os.arch", std::env::consts::ARCH.to_owned()),
        ("os.version", of_kernel("osrelease")),
        ("user.name", variable("USER")),
        ("user.home", variable("HOME")),
        ("user.dir", path(std::env::current_dir().ok())),
        ("os.memory.free", unknown()),
        ("os.memory.max", unknown()),
        ("os.memory.total", unknown()),
    ]
}

fn connections(world: &World, line: impl Fn(&Connection, &World) -> String) -> String {
    world.connections.values().map(|connection| line(connection, world)).collect()
}

/// The session of a connection, and its statistics. A connection that sent a word is not read from any more.
fn head(connection: &Connection) -> String {
    let listens = u8::from(connection.session.is_some() || connection.received == 0);
    format!(
        " /{}[{listens}](queued=0,recved={},sent={}",
        connection.peer, connection.received, connection.sent
    )
}

fn in_short(connection: &Connection, _: &World) -> String {
    head(connection) + ")\n"
}

fn in_full(connection: &Connection, world: &World) -> String {
    let session = connection.session.and_then(|id| Some((id, world.sessions.get(&id)?)));
    let Some((id, session)) = session else { return in_short(connection, world) };
    format!(
        "{},sid={id:#x},lop={},est={},to={},lcxid={:#x},lzxid={:#x},lresp={},llat=0,minlat=0,avglat=0,maxlat=0)\n",
        head(connection),
        connection.last.operation,
        connection.since,
        session.timeout.as_millis(),
        connection.last.xid,
        connection.last.zxid,
        connection.last.answered.as_millis(),
    )
}

fn figures(world: &World) -> Vec<(&'static str, String)> {
    vec![
        ("version", world.settings.profile.version()),
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
