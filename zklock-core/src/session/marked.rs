//! The marks of one attempt, for as long as it may have nodes.

use crate::machine::name::Uuid;
use crate::session::attempt_marks::AttemptMarks;
use std::sync::Arc;

/// The marks of an attempt in its session. They end when this is dropped, if not earlier.
pub(crate) struct Marked {
    attempts: Arc<AttemptMarks>,
    mark: Uuid,
    /// The directories of its nodes.
    directories: Vec<Arc<str>>,
    /// Whether it has sent anything.
    has_begun: bool,
    has_ended: bool,
}

impl Marked {
    /// Begins an attempt with nodes in these directories.
    pub(super) fn begin(attempts: Arc<AttemptMarks>, directories: Vec<Arc<str>>) -> Self {
        let mark = attempts.begin();
        Self { attempts, mark, directories, has_begun: false, has_ended: false }
    }

    pub(crate) fn mark(&self) -> Uuid {
        self.mark
    }

    /// Notes that the attempt is about to send something, with this mark.
    pub(crate) fn use_mark(&mut self, mark: Uuid) {
        self.has_begun = true;
        if mark != self.mark {
            self.attempts.renew(self.mark, mark);
            self.mark = mark;
        }
    }

    /// Notes that the nodes of the attempt are gone. If they are seen again, they belong to nobody.
    pub(crate) fn end(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        self.attempts.end(self.mark);
        self.leave();
    }

    /// Notes that it may have left something to heal.
    fn leave(&mut self) {
        if self.has_begun {
            self.attempts.leave(self.directories.drain(..));
        }
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        if !self.has_begun {
            self.end();
        }
        if !self.has_ended {
            // Its node may exist, and a hold that depends on it.
            self.attempts.abandon(self.mark);
            self.leave();
        }
    }
}
