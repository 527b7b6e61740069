//! Asks the servers about a lock that is free for long while a client waits for it. It records the answers at once, because
//! afterwards nobody can tell whether the server had no watch or the client lost its event.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use ground::Server;

use crate::judge::{SESSION, TICK, nanoseconds};

/// Longer than the session of a client ahead can last, if no other fault follows.
const LONG: u64 = 2 * (nanoseconds(SESSION) + 2 * nanoseconds(TICK));
/// The time between two questions about a path.
const PAUSE: u64 = nanoseconds(Duration::from_secs(30));
/// The most questions in a run.
const LOOKS: usize = 30;

pub(crate) struct Stuck {
    /// The file for the answers.
    file: PathBuf,
    text: String,
    looked: HashMap<String, u64>,
    looks: usize,
}

impl Stuck {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, text: String::new(), looked: HashMap::new(), looks: 0 }
    }

    /// Asks about each path that has been free for long while somebody waits.
    pub(crate) fn look<'a>(
        &mut self,
        free: impl Iterator<Item = (&'a str, u64, &'a str)>,
        servers: &[Server],
        now: u64,
    ) -> io::Result<()> {
        for (path, since, worker) in free.filter(|(_, since, _)| now.saturating_sub(*since) > LONG) {
            let is_due = self.looked.get(path).is_none_or(|looked| now - looked > PAUSE);
            if !is_due || self.looks == LOOKS {
                continue;
            }
            self.looks += 1;
            self.looked.insert(path.to_owned(), now);
            let took = (now - since) / 1_000_000;
            let _ = writeln!(self.text, "at {now} {path} is free for {took} ms, and {worker} waits");
            for server in servers {
                let _ = writeln!(self.text, "server {}:", server.number());
                self.quote("watched", &server.word("wchp").unwrap_or_default(), path);
                self.quote("there", &server.word("dump").unwrap_or_default(), path);
            }
            std::fs::write(&self.file, &self.text)?;
        }
        Ok(())
    }

    /// Quotes the lines of an answer about nodes below the path, each with the next line above or below it that has no path.
    fn quote(&mut self, what: &str, answer: &str, path: &str) {
        let (mut session, mut is_below) = ("", false);
        for line in answer.lines().map(str::trim) {
            let names_node = line.starts_with('/');
            if names_node {
                is_below =
                    line.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            } else {
                session = line;
            }
            if is_below && (names_node || what == "watched") {
                let _ =
                    writeln!(self.text, "  {what}: {line} {}", if what == "there" { session } else { "" });
            }
        }
    }
}
