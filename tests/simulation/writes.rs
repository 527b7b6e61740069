//! Guarded writes and their results: if a write was reported as not done, its data must never be seen.

use std::cell::RefCell;
use std::collections::BTreeSet;

use zklock::{ErrorKind, Hold};

/// The node that is written.
pub(crate) const STATE: &str = "/state";

/// The writes that were reported as not done.
#[derive(Default)]
pub(crate) struct Writes {
    count: RefCell<u64>,
    ruled_out: RefCell<BTreeSet<String>>,
}

impl Writes {
    /// Writes once, and finds out the result if it is uncertain. `None` means that all is well.
    pub(crate) async fn write(&self, hold: &Hold) -> Option<String> {
        let before = hold.read(STATE).await.ok()??;
        if let Some(problem) = self.seen(&before.data) {
            return Some(problem);
        }
        let value = {
            *self.count.borrow_mut() += 1;
            format!("write {} with token {}", self.count.borrow(), hold.token().value())
        };
        let written = hold.guarded().set_data(STATE, value.as_bytes(), Some(before.version)).commit().await;
        match written.map_err(|error| error.kind()) {
            Ok(_) => return None,
            Err(ErrorKind::Uncertain) => {
                let after = hold.read(STATE).await.ok()??;
                if let Some(problem) = self.seen(&after.data) {
                    return Some(problem);
                }
                // The write may have been done, and others may have written since.
                if after.version != before.version {
                    return None;
                }
            }
            Err(_) => {}
        }
        self.ruled_out.borrow_mut().insert(value);
        None
    }

    /// The contradiction in the data that was read, if there is one.
    pub(crate) fn seen(&self, data: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(data);
        self.ruled_out
            .borrow()
            .contains(&*text)
            .then(|| format!("{text:?} was written, though it was said that it was not"))
    }
}
