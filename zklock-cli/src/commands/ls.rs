//! `zklock ls`: who holds a lock, and who waits.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use zklock::Client;

use crate::commands::contenders::{self, Entry, Subject};
use crate::connect::Connection;
use crate::duration;
use crate::failure::Failure;
use crate::output::{columns, harmless, print, print_json};

/// Show who holds a lock, and who waits, in order
///
/// It finds mutexes, read/write locks, elections, semaphores and single-node locks, of zklock, Curator, kazoo and ZooKeeper's
/// WriteLock, and with --naming those of programs with a lock of their own making. The age is counted on the servers' clock.
#[derive(Args, Debug)]
pub(crate) struct Ls {
    #[command(flatten)]
    subject: Subject,

    /// Also show the naming scheme of each contender, and the name of its node
    #[arg(short, long, conflicts_with = "json")]
    long: bool,

    /// Write JSON: an array of contenders, and with --watch one for each change
    #[arg(long)]
    json: bool,

    /// Look again and again. A terminal shows the present state; otherwise each change is a line
    #[arg(long)]
    watch: bool,

    /// How often to look
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "500ms", requires = "watch")]
    interval: Duration,
}

impl Ls {
    pub(crate) async fn execute(&self, connection: &Connection) -> Result<(), Failure> {
        zklock::check_lock_path(&self.subject.path)?;
        let work = async |client: &Client| {
            if self.watch { self.follow(client).await } else { self.show(client).await }
        };
        connection.with_client(work).await
    }

    async fn show(&self, client: &Client) -> Result<(), Failure> {
        let entries = contenders::entries(&self.subject.find(client).await?);
        if self.json { print_json(&entries) } else { print(&self.table(client, &entries).await) }
    }

    async fn table(&self, client: &Client, entries: &[Entry]) -> String {
        if entries.is_empty() {
            let path = &self.subject.path;
            let missing = contenders::if_missing(client, path).await;
            return format!("nobody holds {path} or waits for it{missing}\n");
        }
        let rows: Vec<_> = [Entry::heads(self.long)]
            .into_iter()
            .chain(entries.iter().map(|entry| entry.row(self.long)))
            .collect();
        columns(&rows)
    }

    async fn follow(&self, client: &Client) -> Result<(), Failure> {
        let redraws = std::io::stdout().is_terminal() && !self.json;
        let mut before: Option<Vec<Entry>> = None;
        loop {
            let entries = contenders::entries(&self.subject.find(client).await?);
            if redraws {
                print(&screen(&format!("{}\n\n{}", self.subject.path, self.table(client, &entries).await)))?;
            } else if before.as_ref() != Some(&entries) {
                match self.json {
                    true => print_json(&entries)?,
                    false => print(&changes(before.as_deref(), &entries))?,
                }
            }
            before = Some(entries);
            tokio::time::sleep(self.interval).await;
        }
    }
}

/// Returns the text that replaces the present one on a terminal. Nothing flickers: lines are overwritten, and the rest of
/// each is cleared.
fn screen(text: &str) -> String {
    format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
}

/// Writes a line for each contender that came, went, or began to hold.
fn changes(before: Option<&[Entry]>, now: &[Entry]) -> String {
    let mut text = String::new();
    let mut line = |word: &str, entry: &Entry| {
        let _ = writeln!(
            text,
            "{word} {} token {} {}",
            harmless(&entry.identity),
            entry.token,
            harmless(&entry.name)
        );
    };
    let old = before.unwrap_or_default();
    old.iter()
        .filter(|entry| !now.iter().any(|other| other.token == entry.token && other.name == entry.name))
        .for_each(|entry| line("gone", entry));
    now.iter()
        .filter(|entry| {
            let is_same = |other: &&Entry| other.token == entry.token && other.name == entry.name;
            old.iter().find(is_same).is_none_or(|other| other.holds != entry.holds)
        })
        .for_each(|entry| line(entry.state(), entry));
    if before.is_none() && now.is_empty() {
        text.push_str("nobody\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::contenders::Way;

    fn entry(name: &str, token: u64, holds: bool) -> Entry {
        let text = || name.to_owned();
        Entry {
            holds,
            identity: text(),
            name: text(),
            node: text(),
            session: text(),
            token,
            lock: Way::Queue,
            kind: "mutex",
            role: text(),
            naming: text(),
            since: 0.0,
        }
    }

    #[test]
    fn changes_tell_who_came_went_and_began_to_hold() {
        let (a, b) = (entry("a", 1, true), entry("b", 2, false));
        assert_eq!(changes(None, &[]), "nobody\n");
        assert_eq!(changes(None, &[a.clone(), b.clone()]), "holds a token 1 a\nwaits b token 2 b\n");
        let b = entry("b", 2, true);
        assert_eq!(
            changes(Some(&[a, entry("b", 2, false)]), std::slice::from_ref(&b)),
            "gone a token 1 a\nholds b token 2 b\n"
        );
        assert_eq!(changes(Some(std::slice::from_ref(&b)), std::slice::from_ref(&b)), "");
    }
}
