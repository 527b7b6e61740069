//! `zklock tree`: the locks below a path.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use zklock::Client;

use crate::commands::contenders::{self, Entry};
use crate::connect::Connection;
use crate::failure::Failure;
use crate::output::{columns, harmless, print, print_json};

/// The number of holders that are shown by name.
const NAMED: usize = 3;

/// Show the locks below a path, with their holders and how many wait
///
/// It looks at every node below the path, one after the other. Locks that nobody holds or waits for are not shown.
#[derive(Args, Debug)]
pub(crate) struct Tree {
    /// Where to begin
    #[arg(default_value = "/")]
    path: String,

    /// Write JSON: an array of locks
    #[arg(long)]
    json: bool,
}

/// A lock as programs read it.
#[derive(Debug, Serialize)]
struct Busy {
    path: String,
    holders: Vec<Entry>,
    waiting: usize,
}

impl Tree {
    pub(crate) async fn execute(&self, connection: &Connection) -> Result<(), Failure> {
        connection.with_client(async |client| self.show(client).await).await
    }

    async fn show(&self, client: &Client) -> Result<(), Failure> {
        let locks = below(client, &self.path).await?;
        if self.json {
            return print_json(&locks);
        }
        if locks.is_empty() {
            let missing = contenders::if_missing(client, &self.path).await;
            return print(&format!("nobody holds a lock below {} or waits for one{missing}\n", self.path));
        }
        let heads = ["LOCK", "KIND", "WAITING", "HOLDERS"].map(str::to_owned).to_vec();
        let rows: Vec<_> = [heads].into_iter().chain(locks.iter().map(Busy::row)).collect();
        print(&columns(&rows))
    }
}

impl Busy {
    fn row(&self) -> Vec<String> {
        let mut holders: Vec<_> =
            self.holders.iter().take(NAMED).map(|holder| harmless(&holder.identity)).collect();
        if self.holders.len() > NAMED {
            let mut more = String::new();
            let _ = write!(more, "{} more", self.holders.len() - NAMED);
            holders.push(more);
        }
        let kind = self.holders.first().map_or("", |holder| holder.kind);
        vec![harmless(&self.path), kind.to_owned(), self.waiting.to_string(), holders.join(", ")]
    }
}

/// Lists the locks below a path, in alphabetical order. Nodes that go away meanwhile have nothing below them.
async fn below(client: &Client, path: &str) -> Result<Vec<Busy>, Failure> {
    let mut locks = Vec::new();
    let mut unseen = vec![path.to_owned()];
    while let Some(path) = unseen.pop() {
        let children = client.children(&path).await?;
        let mut of_locks: Vec<String> = Vec::new();
        if zklock::check_lock_path(&path).is_ok() && !children.is_empty() {
            let found = contenders::at(client, &path).await?;
            let entries = contenders::entries(&found);
            of_locks.extend(entries.iter().map(|entry| entry.node.clone()));
            if !entries.is_empty() {
                let (holders, waiting): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.holds);
                locks.push(Busy { path: path.clone(), holders, waiting: waiting.len() });
            }
        }
        let base = if path == "/" { "" } else { &path };
        // The last is visited first. Contenders have nothing below them, and the folders of a semaphore nothing
        // else.
        let next = children.iter().rev().map(|name| format!("{base}/{name}"));
        unseen.extend(next.filter(|node| {
            let is_folder_of_lock = of_locks.iter().any(|of_lock| of_lock.starts_with(&format!("{node}/")));
            node != "/zookeeper" && !of_locks.contains(node) && !is_folder_of_lock
        }));
    }
    Ok(locks)
}
