//! `zklock ls`: who holds a lock, and who waits.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use zklock::Client;

use crate::commands::contenders::{self, Entry, HEADS, Subject};
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
    pub(crate) async fn execute(&self, client: &Client) -> Result<(), Failure> {
        let redraws = self.watch && !self.json && std::io::stdout().is_terminal();
        let mut before: Option<Vec<Entry>> = None;
        loop {
            let entries = contenders::entries(&self.subject.find(client).await?);
            if redraws {
                print(&screen(&format!("{}\n\n{}", self.subject.path, self.table(client, &entries).await)))?;
            } else if before.as_ref() != Some(&entries) {
                match (self.json, self.watch) {
                    (true, _) => print_json(&entries)?,
                    (_, true) => print(&changes(before.as_deref(), &entries))?,
                    _ => print(&self.table(client, &entries).await)?,
                }
            }
            if !self.watch {
                return Ok(());
            }
            before = Some(entries);
            tokio::time::sleep(self.interval).await;
        }
    }

    async fn table(&self, client: &Client, entries: &[Entry]) -> String {
        if entries.is_empty() {
            let path = &self.subject.path;
            let missing = contenders::if_missing(client, path).await;
            return format!("nobody holds {path} or waits for it{missing}\n");
        }
        let shown = if self.long { HEADS.len() } else { 6 };
        columns(&HEADS[..shown], entries.iter().map(|entry| entry.row()[..shown].to_vec()))
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
        let (identity, name) = (harmless(&entry.identity), harmless(&entry.name));
        let _ = writeln!(text, "{word} {identity} token {} {name}", entry.token);
    };
    let same = |all: &[Entry], entry: &Entry| {
        all.iter().find(|other| other.token == entry.token && other.name == entry.name).map(|same| same.holds)
    };
    let old = before.unwrap_or_default();
    old.iter().filter(|entry| same(now, entry).is_none()).for_each(|entry| line("gone", entry));
    now.iter()
        .filter(|entry| same(old, entry) != Some(entry.holds))
        .for_each(|entry| line(entry.state(), entry));
    if before.is_none() && now.is_empty() {
        text.push_str("nobody\n");
    }
    text
}
