//! Ports for servers that must be able to come back on the same one.
//!
//! "Bind to 0 and release" gives ports that any outgoing connection may take while a server is down, and a client
//! that dials a dead port of that range can even end up connected to itself. So ours lie below the system's
//! ephemeral range, and are claimed against other test processes for as long as they are used.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as LocalAddress, UnixListener};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const FIRST: u16 = 14_000;
const COUNT: u16 = 18_000;

/// A free TCP port on loopback. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    /// A name in the abstract namespace: it is gone with the process, whatever ends it.
    _claim: UnixListener,
}

impl Port {
    pub(crate) fn claim() -> Self {
        static NEXT: OnceLock<AtomicU64> = OnceLock::new();
        // Test processes start at different places, so that they seldom meet.
        let next = NEXT.get_or_init(|| AtomicU64::new(RandomState::new().hash_one("port") >> 1));
        let free = (0..COUNT).find_map(|_| {
            let offset = next.fetch_add(1, Ordering::Relaxed) % u64::from(COUNT);
            Self::try_claim(FIRST + u16::try_from(offset).ok()?).ok()
        });
        free.expect("one of 18,000 ports is free")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }

    fn try_claim(number: u16) -> io::Result<Self> {
        let name = LocalAddress::from_abstract_name(format!("zklock-ground-port-{number}"))?;
        let claim = UnixListener::bind_addr(&name)?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number))?;
        Ok(Self { number, _claim: claim })
    }
}
