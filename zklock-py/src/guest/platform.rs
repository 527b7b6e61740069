//! What systems do in different ways. All but Linux is for development alone.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use zklock::face::above_streams;

/// Whether this is the thread in which Python runs signal handlers.
#[cfg(target_os = "linux")]
pub(crate) fn is_main_thread() -> bool {
    rustix::thread::gettid() == rustix::process::getpid()
}
/// Elsewhere it is the thread that asks first: while the package is being imported.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_main_thread() -> bool {
    static MAIN: std::sync::OnceLock<std::thread::ThreadId> = std::sync::OnceLock::new();
    let this = std::thread::current().id();
    *MAIN.get_or_init(|| this) == this
}

/// Opens a descriptor that becomes readable, and one to write eight bytes into for that. Neither makes anybody wait.
#[cfg(target_os = "linux")]
pub(crate) fn doorbell() -> std::io::Result<(Arc<OwnedFd>, Arc<OwnedFd>)> {
    use rustix::event::{EventfdFlags, eventfd};
    let made = Arc::new(above_streams(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)?);
    Ok((made.clone(), made))
}
#[cfg(not(target_os = "linux"))]
pub(crate) fn doorbell() -> std::io::Result<(Arc<OwnedFd>, Arc<OwnedFd>)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    Ok((Arc::new(above_streams(ours.into())?), Arc::new(above_streams(theirs.into())?)))
}
