//! What the servers know about a lock that is free for long while a client waits for it. It is written down at once,
//! because afterwards nobody can tell whether a watch was missing there, or its event was lost here.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use ground::Server;

use crate::judge::{SESSION, TICK, nanoseconds};

/// Longer than it takes until the session of one that was ahead has ended, if nothing else comes.
const LONG: u64 = 2 * (nanoseconds(SESSION) + 2 * nanoseconds(TICK));
/// From one look at a path to the next.
const PAUSE: u64 = nanoseconds(Duration::from_secs(30));
/// How often it is looked at, at most.
const LOOKS: usize = 30;

pub(crate) struct Stuck {
    /// The file in which it is written.
    file: PathBuf,
    text: String,
    looked: HashMap<String, u64>,
    looks: usize,
}

impl Stuck {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, text: String::new(), looked: HashMap::new(), looks: 0 }
    }

    /// Looks at each path that is free since then while somebody waits, if that is long ago.
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

    /// The lines of an answer that are about nodes below the path, each with the line that stands over it or below it and has no path.
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
