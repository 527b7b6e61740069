//! A single address for an etcd server, which separates connections from different servers.
//!
//! An etcd server has one address for all other servers, so a proxy at that address would cut it off from all of them.
//! A crossing finds out which server dials, and forwards the connection to the proxy of that pair. Not everything that
//! servers send identifies the sender, so it looks up the process that owns the other end of the connection.

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

    /// The address that the other servers dial.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forwards connections: those of the server with this index go to that address. Its threads end with their
    /// connections; the thread that listens ends with the process.
    pub(super) fn serve(self, members: Weak<Vec<Member>>, ways: Vec<(usize, SocketAddr)>) {
        thread::spawn(move || {
            for dialled in self.listener.incoming().map_while(Result::ok) {
                let from = members.upgrade().and_then(|members| who(&dialled, self.address, &members));
                let way = ways.iter().find(|(at, _)| Some(*at) == from);
                // The process has ended meanwhile, so the connection belongs to no server.
                let Some((_, way)) = way else { continue };
                if let Ok(on) = TcpStream::connect(way) {
                    let _ = lead(dialled, on);
                }
            }
        });
    }
}

/// The index of the server whose process owns the other end.
fn who(dialled: &TcpStream, own: SocketAddr, members: &[Member]) -> Option<usize> {
    let socket = format!("socket:[{}]", inode(dialled.peer_addr().ok()?, own)?);
    let has = |member: &&Member| {
        let Some(pid) = member.pid() else { return false };
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        let mut links = descriptors.flatten().filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
        links.any(|link| link.as_os_str() == socket.as_str())
    };
    members.iter().find(has).map(Member::index)
}

/// The number of the socket with these two ends.
fn inode(local: SocketAddr, remote: SocketAddr) -> Option<String> {
    let (local, remote) = (hexadecimal(local)?, hexadecimal(remote)?);
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let is_it = words.next()? == local && words.next()? == remote;
        is_it.then(|| words.nth(6).map(str::to_owned))?
    })
}

/// An address in the format of the kernel's table.
fn hexadecimal(address: SocketAddr) -> Option<String> {
    let SocketAddr::V4(address) = address else { return None };
    let bytes = u32::from_ne_bytes(SocketAddrV4::ip(&address).octets());
    Some(format!("{bytes:08X}:{:04X}", address.port()))
}

/// Copies bytes both ways, and the end of the stream.
fn lead(one: TcpStream, other: TcpStream) -> io::Result<()> {
    one.set_nodelay(true)?;
    other.set_nodelay(true)?;
    let back = (other.try_clone()?, one.try_clone()?);
    for (mut from, mut to) in [(one, other), back] {
        thread::spawn(move || {
            // After an error, the other direction is of no use either.
            let how = if io::copy(&mut from, &mut to).is_ok() { Shutdown::Write } else { Shutdown::Both };
            let _ = to.shutdown(how);
            if how == Shutdown::Both {
                let _ = from.shutdown(how);
            }
        });
    }
    Ok(())
}
