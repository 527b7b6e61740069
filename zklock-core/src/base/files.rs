//! Files with passwords and certificates, which are read again for each connection.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Reads the text of a file. A pipe is refused: it could not be read again, and may keep the reader waiting.
pub(crate) fn text(file: &Path, longest: u64) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let kind = std::fs::metadata(file).map_err(unreadable)?;
    if kind.is_dir() {
        return Err("cannot be read: it is a directory".to_owned());
    }
    if !kind.is_file() {
        return Err("cannot be read: it is not a regular file".to_owned());
    }
    let mut text = String::new();
    // The standard library's error does not quote the content.
    File::open(file).map_err(unreadable)?.take(longest + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > longest {
        return Err("is too long: is it the right file?".to_owned());
    }
    Ok(text)
}

/// Reads files one after the other, each on a thread for blocking calls. If one read hangs, on a network file system for
/// example, later ones wait for it, and no more threads hang.
#[derive(Clone, Debug)]
pub(crate) struct Reads {
    turns: Arc<Semaphore>,
    process: u32,
}

impl Reads {
    pub(crate) fn new() -> Self {
        Self { turns: Arc::new(Semaphore::new(1)), process: std::process::id() }
    }

    /// Returns the result of `read`; `None` if the runtime ends. A read that has begun goes on even if the future is
    /// dropped.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        // A forked child would wait for a turn that one of its parent's threads had at the moment of the fork.
        let is_forked = self.process != std::process::id();
        let turn = if is_forked { None } else { Some(self.turns.clone().acquire_owned().await.ok()?) };
        let reading = move || {
            let result = read();
            drop(turn);
            result
        };
        tokio::task::spawn_blocking(reading).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    #[tokio::test]
    async fn a_read_that_hangs_keeps_the_next_waiting_and_no_thread() {
        let (reads, mut context) = (Reads::new(), Context::from_waker(Waker::noop()));
        let (go_on, hangs) = mpsc::channel();
        {
            let first = pin!(reads.read(move || hangs.recv()));
            assert!(first.poll(&mut context).is_pending());
        }
        let mut second = pin!(reads.read(|| "read"));
        assert!(second.as_mut().poll(&mut context).is_pending());
        let in_child = Reads { process: 0, ..reads.clone() };
        assert_eq!(in_child.read(|| "read at once").await, Some("read at once"));
        go_on.send(()).unwrap();
        assert_eq!(second.await, Some("read"));
    }
}
