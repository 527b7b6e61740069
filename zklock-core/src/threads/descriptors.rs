//! Whether our descriptors are still ours.
//!
//! Some programs close all descriptors that they do not know, for example to become a daemon, and then reuse the numbers. The
//! runtime of the I/O thread would panic on a closed descriptor. On one whose number belongs to the program by then, it would
//! write into a file of the program, or take the events of another event loop. Its descriptors cannot be looked at from
//! outside. So a witness is opened just before them: a program that closes what it does not know closes this one too. Nothing
//! else has its inode, so the witness shows when its number is used for something else.
//!
//! The witness is checked when a call begins, after each sleep of a thread, and before anything is dropped. In the moments
//! between such a check and what follows there is no protection. Connections check themselves (see `async-net`).

use super::fork::Process;
use super::park::Signal;
use super::thread::start_thread;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::base::platform;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

/// How often the program has closed our descriptors, in this process and in those from which it was forked.
static CLOSED: AtomicU32 = AtomicU32::new(0);

/// When descriptors of ours were opened. They are not to be used, nor closed, in a forked child, nor after the program has
/// closed our descriptors.
///
/// # Examples
///
/// ```
/// assert!(zklock::face::Opened::now().are_ours());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened {
    process: Process,
    closed: u32,
}

impl Opened {
    /// Returns the mark for descriptors that are opened now.
    pub fn now() -> Self {
        Self { process: Process::current(), closed: CLOSED.load(Ordering::Relaxed) }
    }

    /// Returns whether they still are what they were, as far as is known. See [`check_descriptors`](super::io::check_descriptors).
    pub fn are_ours(self) -> bool {
        self == Self::now()
    }

    pub(crate) fn process(self) -> Process {
        self.process
    }

    /// Returns why a hold is lost that depends on them.
    pub(crate) fn loss(self) -> LossReason {
        if self.process.is_forked() { LossReason::Forked } else { LossReason::ClientClosed }
    }

    pub(crate) fn check(self) -> Result<(), Error> {
        if self.are_ours() {
            return Ok(());
        }
        self.process.refuse_forked()?;
        Err(closed())
    }

    /// The program has closed them. Returns whether that is news.
    fn end(self) -> bool {
        let Self { process, closed } = self;
        let relaxed = Ordering::Relaxed;
        !process.is_forked() && CLOSED.compare_exchange(closed, closed + 1, relaxed, relaxed).is_ok()
    }
}

fn closed() -> Error {
    let message = "the program has closed descriptors of zklock, and with them all clients: make a new client, and close only \
                   descriptors that you opened, or connect after that";
    Error::new(ErrorKind::Closed, message)
}

/// The descriptors of one I/O thread.
pub(crate) struct Descriptors {
    opened: Opened,
    /// With its device and inode. Those of a runtime of the program have none.
    witness: Option<(File, (u64, u64))>,
    listeners: Mutex<Vec<Weak<dyn OnClosed>>>,
}

/// Something that must learn that the program has closed our descriptors.
pub(crate) trait OnClosed: Send + Sync {
    /// The program has closed our descriptors. Any thread may call it.
    fn end(&self);
}

impl Descriptors {
    /// Opens the witness, before the others are opened.
    pub(super) fn new() -> io::Result<Self> {
        let witness = File::from(platform::unique_descriptor()?);
        let opened = witness.metadata()?;
        let identity = (opened.dev(), opened.ino());
        Ok(Self { opened: Opened::now(), witness: Some((witness, identity)), listeners: Mutex::default() })
    }

    /// Those of a runtime of the program, which closes them itself.
    pub(super) fn of_host() -> Self {
        Self { opened: Opened::now(), witness: None, listeners: Mutex::default() }
    }

    pub(super) fn are_of_host(&self) -> bool {
        self.witness.is_none()
    }

    pub(super) fn opened(&self) -> Opened {
        self.opened
    }

    /// Whether the program has left them alone.
    pub(super) fn are_ours(&self) -> bool {
        self.witness.as_ref().is_none_or(|(witness, identity)| {
            witness.metadata().is_ok_and(|now| (now.dev(), now.ino()) == *identity)
        })
    }

    /// Fails in a forked child, and if the program has closed them.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.opened.check()?;
        if self.are_ours() {
            return Ok(());
        }
        self.end();
        self.opened.check()
    }

    /// The program has closed them, so nothing works any more that depends on them.
    pub(super) fn end(&self) {
        if self.opened.end() {
            tracing::error!(
                "the program has closed descriptors of zklock: all clients are closed, and their holds are lost"
            );
            let listeners = std::mem::take(&mut *lock_ignoring_poison(&self.listeners));
            // On a thread of its own, because the caller may have locked something that they need.
            let tell = move || listeners.iter().filter_map(Weak::upgrade).for_each(|listener| listener.end());
            let _ = start_thread("zklock-end", tell);
        }
    }

    /// Lets `listener` know when the program has closed them, unless it is dropped before.
    pub(super) fn tell(&self, listener: Weak<dyn OnClosed>) {
        let mut all = lock_ignoring_poison(&self.listeners);
        if all.len() == all.capacity() {
            all.retain(|listener| listener.strong_count() > 0);
        }
        all.push(listener);
    }
}

/// A thread that waits looks again.
impl OnClosed for Signal {
    fn end(&self) {
        self.raise();
    }
}

/// A function that the I/O thread calls with news, until this is dropped. If the program closes our descriptors, it gets the
/// last news from another thread.
pub(crate) struct Listener<V> {
    function: Mutex<Box<dyn FnMut(V) + Send>>,
    last: V,
}

impl<V: Clone + Send + Sync + 'static> Listener<V> {
    pub(crate) fn new(last: V, function: impl FnMut(V) + Send + 'static) -> Arc<Self> {
        Arc::new(Self { function: Mutex::new(Box::new(function)), last })
    }

    /// Makes one that is called at most once.
    pub(crate) fn once(last: V, function: impl FnOnce(V) + Send + 'static) -> Arc<Self> {
        let mut function = Some(function);
        Self::new(last, move |news| {
            if let Some(function) = function.take() {
                function(news);
            }
        })
    }

    pub(crate) fn call(listener: &Weak<Self>, news: V) {
        if let Some(listener) = listener.upgrade() {
            lock_ignoring_poison(&listener.function)(news);
        }
    }

    /// Drops the function, and with it what the program has given along: no more news will come.
    pub(crate) fn finish(listener: &Weak<Self>) {
        if let Some(listener) = listener.upgrade() {
            let mut function: Box<dyn FnMut(V) + Send> = Box::new(|_| {});
            std::mem::swap(&mut *lock_ignoring_poison(&listener.function), &mut function);
        }
    }
}

impl<V: Clone + Send + Sync + 'static> OnClosed for Listener<V> {
    fn end(&self) {
        lock_ignoring_poison(&self.function)(self.last.clone());
    }
}

impl std::fmt::Debug for Descriptors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Descriptors").field("opened", &self.opened).finish_non_exhaustive()
    }
}
