//! The holders and the waiters at a path, for a lock of any kind.

use std::time::{Duration, SystemTime};

use clap::Args;
use serde::Serialize;
use zklock::further::{Naming, Role};
use zklock::{Client, Lock, LockSpec, QueuedContender};

use crate::duration;
use crate::failure::Failure;
use crate::output::harmless;

/// The heads of the cells of an [`Entry`]. The first six fit into 80 characters, unless an identity is long.
pub(crate) const HEADS: [&str; 8] = ["", "IDENTITY", "AGE", "KIND", "SESSION", "TOKEN", "NAMING", "NAME"];

/// A limit that no semaphore exceeds: every permit that exists was granted.
const NO_LIMIT: u32 = u32::MAX;

/// The lock that a command is about.
#[derive(Args, Debug)]
pub(crate) struct Subject {
    /// The lock
    #[arg(value_parser = lock_path)]
    pub(crate) path: String,

    /// How the contenders of a custom lock are named, as for `zklock run`
    #[arg(long, value_name = "PATTERN")]
    naming: Option<Naming>,
}

impl Subject {
    /// Finds the locks at the path that anybody holds or waits for. With a pattern, it is the custom one.
    pub(crate) async fn find(&self, client: &Client) -> Result<Vec<Found>, Failure> {
        let path = &self.path;
        match &self.naming {
            Some(naming @ Naming::Pattern(pattern)) => {
                let spec =
                    if pattern.has_sides() { LockSpec::read_lock(path) } else { LockSpec::mutex(path) };
                let found = found(client, Way::Queue, &spec?.naming(naming.clone())).await?;
                Ok(found.into_iter().collect())
            }
            // The others are all recognised.
            _ => at(client, path).await,
        }
    }
}

pub(crate) fn lock_path(text: &str) -> Result<String, zklock::Error> {
    zklock::further::check_lock_path(text).map(|()| text.to_owned())
}

/// Looks at each node below a path where a lock may be, in alphabetical order: at its path and the names of its children.
/// `look` returns nodes of the lock there, which are not looked at. Nodes that go away meanwhile have nothing below them.
pub(crate) async fn walk(
    client: &Client,
    path: &str,
    mut look: impl AsyncFnMut(&str, &[String]) -> Result<Vec<String>, Failure>,
) -> Result<(), Failure> {
    let mut unseen = vec![path.to_owned()];
    while let Some(path) = unseen.pop() {
        let children = client.children(&path).await?;
        let may_be_lock = !children.is_empty() && zklock::further::check_lock_path(&path).is_ok();
        let of_lock = if may_be_lock { look(&path, &children).await? } else { Vec::new() };
        // Contenders have nothing below them, and the folders of a semaphore nothing else.
        let is_of_lock = |node: &str| {
            of_lock.iter().any(|of_lock| of_lock == node || of_lock.starts_with(&format!("{node}/")))
        };
        let base = if path == "/" { "" } else { &path };
        // The last is visited first.
        let next = children.iter().rev().map(|name| format!("{base}/{name}"));
        unseen.extend(next.filter(|node| node != "/zookeeper" && !is_of_lock(node)));
    }
    Ok(())
}

/// Returns the rest of a sentence that says that nobody is at a path: whether that may be because its name is mistyped.
pub(crate) async fn if_missing(client: &Client, path: &str) -> String {
    let (parent, name) = path.rsplit_once('/').unwrap_or_default();
    // If its parent may not be read, this is not known.
    let names = client.children(if parent.is_empty() { "/" } else { parent }).await;
    let is_missing = !name.is_empty() && names.is_ok_and(|names| !names.iter().any(|other| other == name));
    if is_missing { format!(": the node {path} does not exist") } else { String::new() }
}

/// A lock at a path, in one of the ways to store it, and its contenders.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) lock: Lock,
    pub(crate) way: Way,
    pub(crate) contenders: Vec<QueuedContender>,
}

/// The ways in which kinds of locks are stored. Kinds that are stored in the same way look alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Way {
    /// A mutex, a read/write lock or an election.
    Queue,
    Semaphore,
    SingleNode,
}

/// Finds the locks at a path that anybody holds or waits for. There is at most one, unless programs disagree on its kind.
pub(crate) async fn at(client: &Client, path: &str) -> Result<Vec<Found>, Failure> {
    let ways = [
        (Way::Queue, LockSpec::mutex(path)?),
        (Way::Semaphore, LockSpec::semaphore(path, NO_LIMIT)?),
        (Way::SingleNode, LockSpec::single_node(path)?),
    ];
    let mut locks = Vec::new();
    for (way, spec) in ways {
        locks.extend(found(client, way, &spec).await?);
    }
    Ok(locks)
}

async fn found(client: &Client, way: Way, spec: &LockSpec) -> Result<Option<Found>, Failure> {
    let lock = client.lock(spec)?;
    let mut contenders = lock.contenders().await?;
    // A node that no session owns is not a contender, but may have the name of one.
    contenders.retain(|contender| contender.session != 0);
    Ok((!contenders.is_empty()).then_some(Found { lock, way, contenders }))
}

/// A contender as programs read it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) holds: bool,
    pub(crate) identity: String,
    pub(crate) name: String,
    pub(crate) node: String,
    pub(crate) session: String,
    pub(crate) token: u64,
    pub(crate) lock: Way,
    pub(crate) kind: &'static str,
    pub(crate) role: String,
    pub(crate) naming: String,
    /// When its node was created, on the servers' clock, in seconds since 1970.
    pub(crate) since: f64,
}

impl Entry {
    pub(crate) fn of(way: Way, contender: &QueuedContender) -> Self {
        let since = contender.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            holds: contender.holds,
            identity: contender.identity.clone(),
            name: contender.name.clone(),
            node: contender.node.clone(),
            session: format!("{:#x}", contender.session),
            token: contender.token.value(),
            lock: way,
            kind: kind(way, contender),
            role: contender.role.to_string(),
            naming: contender.naming.to_string(),
            since: since.as_secs_f64(),
        }
    }

    /// Returns how old it is, if the servers' clock agrees with ours.
    fn age(&self) -> Duration {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Duration::try_from_secs_f64(now.as_secs_f64() - self.since).unwrap_or_default()
    }

    /// Returns `holds` or `waits`.
    pub(crate) fn state(&self) -> &'static str {
        if self.holds { "holds" } else { "waits" }
    }

    /// Returns the cells of its row.
    pub(crate) fn row(&self) -> [String; HEADS.len()] {
        [
            self.state().to_owned(),
            harmless(&self.identity),
            duration::short(self.age()),
            self.kind.to_owned(),
            self.session.clone(),
            self.token.to_string(),
            self.naming.clone(),
            harmless(&self.name),
        ]
    }

    /// Describes it in a sentence, by its identity and age.
    pub(crate) fn description(&self) -> String {
        let (identity, session) = (harmless(&self.identity), &self.session);
        format!("{identity} (session {session}, since {})", duration::short(self.age()))
    }
}

/// Returns the kind of lock that it wants, in a word. Its role would not do: the role of a mutex is "exclusive", which is
/// another kind.
fn kind(way: Way, contender: &QueuedContender) -> &'static str {
    match (way, contender.role) {
        (Way::Semaphore, _) => "semaphore",
        (Way::SingleNode, _) => "single-node",
        (Way::Queue, Role::Read) => "read",
        (Way::Queue, Role::Write) => "write",
        // A mutex and the lead of an election differ only in names. kazoo names a writer like its mutex.
        (Way::Queue, Role::Exclusive)
            if contender.naming == Naming::Curator && contender.name.contains("-latch-") =>
        {
            "election"
        }
        (Way::Queue, _) => "mutex",
    }
}

/// Lists all contenders, the holders first.
pub(crate) fn entries(found: &[Found]) -> Vec<Entry> {
    let of = |found: &Found| {
        let way = found.way;
        found.contenders.iter().map(move |contender| Entry::of(way, contender)).collect::<Vec<_>>()
    };
    found.iter().flat_map(of).collect()
}
