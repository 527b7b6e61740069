//! A descriptor that becomes readable, for event loops.

use crate::failure::Failure;
use crate::status::zklock_status::ZKLOCK_REFUSED;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// Not readable before [`raise`](Self::raise), readable from then on, until it is [lowered](Self::lower).
pub(crate) struct Descriptor(EventFd);

impl Descriptor {
    pub(crate) fn new() -> Result<Self, Failure> {
        // Not inherited by what the host starts, and never a reason to wait.
        let descriptor = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
        descriptor.map(Self).map_err(|error| {
            let message = format!("the system gives no descriptor ({error}): raise the limit of open files");
            Failure::new(ZKLOCK_REFUSED, message)
        })
    }

    /// Raises it, from whatever thread, if its owner has not closed it before.
    pub(crate) fn raiser(self: &Arc<Self>) -> impl FnOnce() + Send + use<> {
        let descriptor = Arc::downgrade(self);
        move || {
            if let Some(descriptor) = descriptor.upgrade() {
                descriptor.raise();
            }
        }
    }

    pub(crate) fn raise(&self) {
        // It fails only where it is readable already.
        let _ = self.0.write(1);
    }

    /// For what can happen again.
    pub(crate) fn lower(&self) {
        // It fails only where it is not readable.
        let _ = self.0.read();
    }

    pub(crate) fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
