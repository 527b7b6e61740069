//! Which process this is. A forked child has a copy of all memory, but none of the threads that work on it, and it
//! shares the parent's connections. So everything made before the fork belongs to the parent: the child leaves it
//! alone, and waits for none of its mutexes, which another thread may have locked at the moment of the fork.
//!
//! A value that each process has for itself is kept per process ([`OfProcess`]). Everything else remembers the process
//! in which it was made.

use crate::base::error::{Error, ErrorKind};
use once_cell::race::{OnceBox, OnceRef};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A process, among those that were forked from one another.
///
/// # Examples
///
/// ```
/// use zklock::face::Process;
///
/// let here = Process::current();
/// assert_eq!(here, Process::current());
/// assert!(!here.is_forked());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process(u32);

/// The last number that was given out, in this process or one of its ancestors.
static LAST: AtomicU32 = AtomicU32::new(0);
/// The system's number for this process, and ours, side by side.
static NUMBERED: AtomicU64 = AtomicU64::new(0);
/// Where [`zklock_fork_page`] keeps our number for this process.
static MARK: OnceRef<'static, AtomicU32> = OnceRef::new();

/// Call this in a process that has just been forked, if you learn of that. It is needed because a child may have the
/// same system number as its parent, each in its own namespace.
///
/// # Examples
///
/// ```
/// use zklock::face::{Process, has_forked};
///
/// let parent = Process::current();
/// has_forked(); // in a child
/// assert!(parent.is_forked());
/// ```
pub fn has_forked() {
    NUMBERED.store(0, Ordering::Relaxed);
    if let Some(mark) = MARK.get() {
        mark.store(0, Ordering::Relaxed);
    }
}

impl Process {
    /// Returns the calling process.
    pub fn current() -> Self {
        MARK.get().map_or_else(Self::first, Self::by_mark)
    }

    /// Before there is a page, or if there can be none. A child that is forked while another thread is here does without.
    #[cold]
    fn first() -> Self {
        static IS_MAPPED: AtomicBool = AtomicBool::new(false);
        let here = Self::by_number();
        if !IS_MAPPED.swap(true, Ordering::Relaxed) {
            if let Some(mark) = zklock_fork_page::map() {
                mark.store(here.0, Ordering::Relaxed);
                // Unless a signal handler has just forked, and this is the child.
                if Self::by_number() == here {
                    let _ = MARK.set(mark);
                }
            }
        }
        here
    }

    /// Returns whether the calling process was forked from that one, directly or through others.
    pub fn is_forked(self) -> bool {
        self != Self::current()
    }

    /// Returns a number that differs from those of all processes from which this one was forked.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(zklock::face::Process::current().number() > 0);
    /// ```
    pub fn number(self) -> u32 {
        self.0
    }

    pub(crate) fn refuse_forked(self) -> Result<(), Error> {
        if self.is_forked() { Err(forked()) } else { Ok(()) }
    }

    fn by_mark(mark: &AtomicU32) -> Self {
        let marked = mark.load(Ordering::Relaxed);
        if marked != 0 {
            return Self(marked);
        }
        let next = next();
        let before = mark.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
        Self(before.map_or_else(|other| other, |_| next))
    }

    fn by_number() -> Self {
        let here = u64::from(std::process::id()) << 32;
        loop {
            let numbered = NUMBERED.load(Ordering::Relaxed);
            if numbered & !u64::from(u32::MAX) == here {
                return Self(numbered as u32);
            }
            let next = here | u64::from(next());
            // Another thread may have been faster.
            let _ = NUMBERED.compare_exchange(numbered, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Counted before anybody uses the number, because a child that is forked at that moment must not give it out again.
fn next() -> u32 {
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

fn forked() -> Error {
    let message = "this was made before the process was forked, and belongs to the parent: make a client of \
                   its own in the child";
    Error::new(ErrorKind::Forked, message)
}

/// A value that each process has for itself, for a `static`. A child makes its own, and does not touch the parent's.
///
/// # Examples
///
/// ```
/// use std::sync::Mutex;
/// use zklock::face::OfProcess;
///
/// static NAMES: OfProcess<Mutex<Vec<&str>>> = OfProcess::new();
/// NAMES.here(|_| Mutex::default()).lock().unwrap().push("report");
/// assert_eq!(*NAMES.here(|_| Mutex::default()).lock().unwrap(), ["report"]);
/// ```
#[derive(Debug)]
pub struct OfProcess<T> {
    first: OnceBox<Entry<T>>,
}

/// The value of one process, and those of its descendants.
#[derive(Debug)]
struct Entry<T> {
    process: Process,
    value: T,
    next: OnceBox<Entry<T>>,
}

impl<T> OfProcess<T> {
    /// No process has a value yet.
    pub const fn new() -> Self {
        Self { first: OnceBox::new() }
    }

    /// This process's value, which is made when it is first needed. `make` gets the value of the parent process; it
    /// must not wait for a mutex there.
    pub fn here(&self, make: impl Fn(Option<&T>) -> T) -> &T {
        let process = Process::current();
        let (mut place, mut before) = (&self.first, None);
        loop {
            match place.get() {
                Some(entry) if entry.process == process => return &entry.value,
                Some(entry) => (place, before) = (&entry.next, Some(&entry.value)),
                None => {
                    let value = make(before);
                    // Another thread may have been faster.
                    let _ = place.set(Box::new(Entry { process, value, next: OnceBox::new() }));
                }
            }
        }
    }
}

impl<T> OfProcess<T> {
    /// Returns the values of the processes from which this one was forked: its copies of them. Never wait for a mutex
    /// in them.
    pub fn of_parents(&self) -> impl Iterator<Item = &T> {
        let process = Process::current();
        let entries = std::iter::successors(self.first.get(), |entry| entry.next.get());
        entries.filter(move |entry| entry.process != process).map(|entry| &entry.value)
    }
}

impl<T> Default for OfProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_is_cleared_is_another_process() {
        let mark = AtomicU32::new(Process::by_number().0);
        let parent = Process::by_mark(&mark);
        assert_eq!(parent, Process::by_mark(&mark));
        mark.store(0, Ordering::Relaxed);
        let child = Process::by_mark(&mark);
        assert_ne!(child, parent);
        assert_eq!(child, Process::by_mark(&mark));
        mark.store(0, Ordering::Relaxed);
        assert!(![parent, child].contains(&Process::by_mark(&mark)));
    }

    #[test]
    fn a_child_makes_its_own_of_what_its_parent_had() {
        let values = OfProcess { first: OnceBox::new() };
        let parent = Entry { process: Process(u32::MAX), value: 7, next: OnceBox::new() };
        assert!(values.first.set(Box::new(parent)).is_ok());
        assert_eq!(*values.here(|before| before.unwrap() + 1), 8);
        assert_eq!(*values.here(|_| panic!("there is one")), 8);
        assert_eq!(values.first.get().unwrap().value, 7);
        assert_eq!(values.of_parents().collect::<Vec<_>>(), [&7]);
    }
}
