//! Random bits, which the machine takes as parameters, and the identity of this process.

use crate::base::clock;
use crate::machine::Moment;
use crate::machine::name::Uuid;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns a mark that no other attempt has.
pub(crate) fn uuid() -> Uuid {
    Uuid::from_random(random_bits())
}

/// Returns random bits from the kernel. A generator of our own would repeat itself in a forked
/// child.
pub(crate) fn random_bits() -> u128 {
    let mut bytes = [0; 16];
    loop {
        match getrandom(&mut bytes, GetRandomFlags::empty()) {
            Ok(16) => return u128::from_ne_bytes(bytes),
            Ok(_) | Err(Errno::INTR) => {}
            // There is no random device at all. All that matters is that a mark is ours alone.
            Err(_) => return fallback_bits(),
        }
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
