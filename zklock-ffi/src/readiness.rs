//! Descriptors that event loops wait for.

use crate::failure::Failure;
use crate::status::zklock_status::ZKLOCK_REFUSED;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zklock::face::{Opened, above_streams, check_descriptors};

/// Whether something is ready, with a descriptor that is readable then. The descriptor is created
/// when it is first asked for, because a process has few descriptors and may have thousands of
/// waits.
#[derive(Default)]
pub(crate) struct Readiness(Mutex<State>);

#[derive(Default)]
struct State {
    is_ready: bool,
    descriptor: Option<Bell>,
}

/// A descriptor. If the program closes it, its number may be that of something else, which must not be touched.
struct Bell {
    file: Arc<File>,
    opened: Opened,
}

impl Bell {
    fn new() -> io::Result<Self> {
        // Not inherited by programs that the host starts, and non-blocking.
        let made = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self { file: Arc::new(above_streams(made.into())?.into()), opened: Opened::now() })
    }

    fn ring(&self) {
        if self.opened.are_ours() {
            // This only fails if it is already readable.
            let _ = (&*self.file).write(&1_u64.to_ne_bytes());
        }
    }

    fn hush(&self) {
        if self.opened.are_ours() {
            // This only fails if it is not readable.
            let _ = (&*self.file).read(&mut [0; 8]);
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        check_descriptors();
        if !self.opened.are_ours() {
            std::mem::forget(self.file.clone());
        }
    }
}

impl Readiness {
    pub(crate) fn raise(&self) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_ready, true) {
            state.descriptor.as_ref().map(Bell::ring);
        }
    }

    /// For events that can happen again.
    pub(crate) fn lower(&self) {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_ready, false) {
            state.descriptor.as_ref().map(Bell::hush);
        }
    }

    /// Returns the number of the descriptor. It stays the same.
    pub(crate) fn number(&self) -> Result<RawFd, Failure> {
        let mut state = self.state();
        if let Some(made) = &state.descriptor {
            return Ok(made.file.as_raw_fd());
        }
        let made = Bell::new().map_err(|error| {
            let message =
                format!("the system has no descriptor left ({error}): raise the limit of open files");
            Failure::new(ZKLOCK_REFUSED, message)
        })?;
        if state.is_ready {
            made.ring();
        }
        Ok(state.descriptor.insert(made).file.as_raw_fd())
    }

    /// Closes the descriptor.
    pub(crate) fn close(&self) {
        self.state().descriptor = None;
    }

    /// Locks the state. The I/O thread may wait for this lock. It is never held for longer than a
    /// system call that does not block.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
