//! What systems do in different ways: random bits, which the machine takes as parameters, descriptors, and the identity of
//! this process. All but Linux is for development alone: a guardian needs Linux.

use crate::base::clock;
use crate::machine::Moment;
use crate::machine::name::Uuid;
use rustix::net::SendFlags;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// How to send without a signal if nobody receives. Elsewhere std's sockets have that as an option.
#[cfg(target_os = "linux")]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// Opens some descriptor, of no use: of a kind that every process may have.
#[cfg(target_os = "linux")]
pub(crate) fn descriptor() -> io::Result<OwnedFd> {
    use nix::sys::eventfd::{EfdFlags, EventFd};
    Ok(EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?.into())
}
#[cfg(not(target_os = "linux"))]
pub(crate) fn descriptor() -> io::Result<OwnedFd> {
    unique_descriptor()
}

/// Opens a descriptor, of no use, whose inode nothing else has.
#[cfg(target_os = "linux")]
pub(crate) fn unique_descriptor() -> io::Result<OwnedFd> {
    use rustix::pipe::{PipeFlags, pipe_with};
    // The other end is not needed: nothing is sent.
    Ok(pipe_with(PipeFlags::CLOEXEC)?.0)
}
#[cfg(not(target_os = "linux"))]
pub(crate) fn unique_descriptor() -> io::Result<OwnedFd> {
    use rustix::io::{FdFlags, fcntl_setfd};
    let (descriptor, _) = rustix::pipe::pipe()?;
    fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
    Ok(descriptor)
}

/// Opens a descriptor that is readable when this process is dead, and never stands for another process.
#[cfg(target_os = "linux")]
pub(crate) fn own_process() -> io::Result<OwnedFd> {
    use rustix::process::{PidfdFlags, getpid, pidfd_open};
    Ok(pidfd_open(getpid(), PidfdFlags::empty())?)
}
#[cfg(not(target_os = "linux"))]
pub(crate) fn own_process() -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fills it with random bytes.
#[cfg(target_os = "linux")]
fn fill(bytes: &mut [u8]) -> io::Result<()> {
    use rustix::rand::{GetRandomFlags, getrandom};
    let filled = rustix::io::retry_on_intr(|| getrandom(&mut *bytes, GetRandomFlags::empty()))?;
    if filled == bytes.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
#[cfg(not(target_os = "linux"))]
fn fill(bytes: &mut [u8]) -> io::Result<()> {
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, bytes)
}

/// Returns a mark that no other attempt has.
pub(crate) fn uuid() -> Uuid {
    Uuid::from_random(random_bits())
}

/// Returns random bits from the kernel. A generator of our own would repeat itself in a forked
/// child.
pub(crate) fn random_bits() -> u128 {
    let mut bytes = [0; 16];
    match fill(&mut bytes) {
        Ok(()) => u128::from_ne_bytes(bytes),
        // There is no random device at all. All that matters is that a mark is ours alone.
        Err(_) => fallback_bits(),
    }
}

fn fallback_bits() -> u128 {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let nanos = clock::now().since(Moment::default()).as_nanos();
    let count = u128::from(COUNTER.fetch_add(1, Ordering::Relaxed));
    nanos << 64 | u128::from(std::process::id()) << 32 | count
}

/// Returns the contender's default identity, for people who look at the queue: `host/pid`.
pub(crate) fn identity() -> String {
    let name = rustix::system::uname();
    format!("{}/{}", name.nodename().to_string_lossy(), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_differ() {
        let marks: std::collections::BTreeSet<Uuid> = (0..1000).map(|_| uuid()).collect();
        assert_eq!(marks.len(), 1000);
        assert_ne!(fallback_bits(), fallback_bits());
    }
}
