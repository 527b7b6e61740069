//! The figures of a run, as a file for node_exporter.

use std::cell::Cell;
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;
use std::{fs, io, process};

use tokio::time::sleep;
use zklock::Client;
use zklock::further::prometheus_text;

use crate::failure::Failure;

/// How often the file is written. A file that is older than a few of these times is that of a process that was killed.
const EVERY: Duration = Duration::from_secs(5);

/// A file in the folder that node_exporter reads, for one run at a time.
pub(super) struct MetricsFile<'a> {
    path: &'a Path,
    /// The name of the lock's figures, which is that of the file.
    pub(super) name: &'a str,
    /// Whether the last try to write it failed, so that a full disk is not told again and again.
    has_failed: Cell<bool>,
}

impl<'a> MetricsFile<'a> {
    pub(super) fn new(path: &'a Path) -> Result<Self, Failure> {
        let name = path.file_stem().and_then(|name| name.to_str());
        match name.filter(|_| path.extension().is_some_and(|extension| extension == "prom")) {
            Some(name) => Ok(Self { path, name, has_failed: Cell::new(false) }),
            None => Err(Failure::usage(format!(
                "--metrics-file {}: node_exporter reads files whose names end in .prom, such as report.prom",
                path.display()
            ))),
        }
    }

    /// Writes the figures of this moment. If that fails, it warns, for the job is more important than its figures.
    pub(super) fn write(&self, client: &Client) {
        let written = self.try_write(client);
        let failed_before = self.has_failed.replace(written.is_err());
        if let Some(error) = written.err().filter(|_| !failed_before) {
            say!("warning: the metrics cannot be written to {}: {error}", self.path.display());
        }
    }

    /// Writes the figures again and again.
    pub(super) async fn keep(&self, client: &Client) -> Infallible {
        loop {
            sleep(EVERY).await;
            self.write(client);
        }
    }

    /// Replaces the file at once, because node_exporter may read it at any moment.
    fn try_write(&self, client: &Client) -> io::Result<()> {
        // It does not end in .prom, so node_exporter leaves it alone.
        let draft = self.path.with_extension(format!("prom.{}", process::id()));
        let text = prometheus_text(&[(self.name, client.stats())].into());
        let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, self.path));
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written
    }
}
