//! `zklock tree`: the locks below a path.

use clap::Args;
use serde::Serialize;
use zklock::Client;

use crate::commands::contenders::{self, Entry};
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
    pub(crate) async fn execute(&self, client: &Client) -> Result<(), Failure> {
        let mut locks = Vec::new();
        let look = async |path: &str, _: &[String]| {
            let entries = contenders::entries(&contenders::at(client, path).await?);
            let of_lock = entries.iter().map(|entry| entry.node.clone()).collect();
            if !entries.is_empty() {
                let (holders, waiting): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.holds);
                locks.push(Busy { path: path.to_owned(), holders, waiting: waiting.len() });
            }
            Ok(of_lock)
        };
        contenders::walk(client, &self.path, look).await?;
        if self.json {
            return print_json(&locks);
        }
        if locks.is_empty() {
            let missing = contenders::if_missing(client, &self.path).await;
            return print(&format!("nobody holds a lock below {} or waits for one{missing}\n", self.path));
        }
        print(&columns(&["LOCK", "KIND", "WAITING", "HOLDERS"], locks.iter().map(Busy::row)))
    }
}

impl Busy {
    fn row(&self) -> Vec<String> {
        let named = self.holders.iter().take(NAMED).map(|holder| harmless(&holder.identity));
        let more = self.holders.len().checked_sub(NAMED + 1).map(|more| format!("{} more", more + 1));
        let holders: Vec<_> = named.chain(more).collect();
        let kind = self.holders.first().map_or("", |holder| holder.kind);
        vec![harmless(&self.path), kind.to_owned(), self.waiting.to_string(), holders.join(", ")]
    }
}
