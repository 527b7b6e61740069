//! Where the ways from the other servers to one part.
//!
//! An etcd server has one address for all the others, so a proxy there would cut it off from all of them. A crossing looks who dials, and
//! leads each over the proxy of that pair. Not all that servers send says who they are, so it looks to which process the other end of the connection belongs.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Weak;
use std::thread;

use super::member::Member;

#[derive(Debug)]
pub(super) struct Crossing {
    listener: TcpListener,
    address: SocketAddr,
}

impl Crossing {
    pub(super) fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// What the others dial.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Leads them on: who has this index, to that address. Its threads end with their connections; the one that listens, with the process.
    pub(super) fn serve(self, members: Weak<Vec<Member>>, ways: Vec<(usize, SocketAddr)>) {
        thread::spawn(move || {
            for dialled in self.listener.incoming().map_while(Result::ok) {
                let from = members.upgrade().and_then(|members| who(&dialled, self.address, &members));
                let way = ways.iter().find(|(at, _)| Some(*at) == from);
                // One that has ended meanwhile is nobody's.
                let Some((_, way)) = way else { continue };
                if let Ok(on) = TcpStream::connect(way) {
                    let _ = lead(dialled, on);
                }
            }
        });
    }
}

/// The index of the server to whose process the other end belongs.
fn who(dialled: &TcpStream, own: SocketAddr, members: &[Member]) -> Option<usize> {
    let socket = format!("socket:[{}]", inode(dialled.peer_addr().ok()?, own)?);
    let has = |member: &&Member| {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{}/fd", member.pid())) else { return false };
        let mut links = descriptors.flatten().filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
        links.any(|link| link.as_os_str() == socket.as_str())
    };
    members.iter().find(has).map(Member::index)
}

/// The number of the socket that has these ends.
fn inode(local: SocketAddr, remote: SocketAddr) -> Option<String> {
    let (local, remote) = (hexadecimal(local)?, hexadecimal(remote)?);
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let is_it = words.next()? == local && words.next()? == remote;
        is_it.then(|| words.nth(6).map(str::to_owned))?
    })
}

/// An address as the kernel's table has it.
fn hexadecimal(address: SocketAddr) -> Option<String> {
    let SocketAddr::V4(address) = address else { return None };
    let bytes = u32::from_ne_bytes(SocketAddrV4::ip(&address).octets());
    Some(format!("{bytes:08X}:{:04X}", address.port()))
}

/// Carries bytes both ways, and the end.
fn lead(one: TcpStream, other: TcpStream) -> io::Result<()> {
    one.set_nodelay(true)?;
    other.set_nodelay(true)?;
    let back = (other.try_clone()?, one.try_clone()?);
    for (mut from, mut to) in [(one, other), back] {
        thread::spawn(move || {
            // After an error the way back is of no use either.
            let how = if io::copy(&mut from, &mut to).is_ok() { Shutdown::Write } else { Shutdown::Both };
            let _ = to.shutdown(how);
            if how == Shutdown::Both {
                let _ = from.shutdown(how);
            }
        });
    }
    Ok(())
}
