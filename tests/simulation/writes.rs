//! Guarded writes and their results: if a write was reported as not done, its data must never be seen.

use std::cell::RefCell;
use std::collections::BTreeMap;

use zklock::{ErrorKind, Hold};

/// The node that is written.
pub(crate) const STATE: &str = "/state";

/// The writes that were reported as not done, and how.
#[derive(Default)]
pub(crate) struct Writes {
    count: RefCell<u64>,
    ruled_out: RefCell<BTreeMap<String, String>>,
}

impl Writes {
    /// Writes, and writes again if the result is uncertain. `None` means that all is well.
    pub(crate) async fn write(&self, hold: &Hold) -> Option<String> {
        let before = hold.read(STATE).await.ok()??;
        if let Some(problem) = self.seen(&before.data) {
            return Some(problem);
        }
        let mut doubtful = None;
        loop {
            let value = {
                *self.count.borrow_mut() += 1;
                format!("write {} with token {}", self.count.borrow(), hold.token().value())
            };
            let written =
                hold.guarded().set_data(STATE, value.as_bytes(), Some(before.version)).commit().await;
            match written.map_err(|error| error.kind()) {
                // Of two writes that require the same version, one is done at most.
                Ok(_) => {
                    self.rule_out(doubtful, "another write of that version was done");
                    return None;
                }
                Err(ErrorKind::Uncertain) if doubtful.is_none() => {
                    let after = hold.read(STATE).await.ok()??;
                    if let Some(problem) = self.seen(&after.data) {
                        return Some(problem);
                    }
                    // The write may have been done, and others may have written since.
                    if after.version != before.version {
                        return None;
                    }
                    doubtful = Some(value);
                }
                Err(ErrorKind::Uncertain) => return None,
                Err(kind) => {
                    self.rule_out(Some(value), &format!("{kind:?}"));
                    return None;
                }
            }
        }
    }

    fn rule_out(&self, value: Option<String>, why: &str) {
        self.ruled_out.borrow_mut().extend(value.map(|value| (value, why.to_owned())));
    }

    /// The contradiction in the data that was read, if there is one.
    pub(crate) fn seen(&self, data: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(data);
        let ruled_out = self.ruled_out.borrow();
        let why = ruled_out.get(&*text)?;
        Some(format!("{text:?} was written, though it was said that it was not: {why}"))
    }
}
