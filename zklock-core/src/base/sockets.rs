//! Descriptors with numbers above those of the standard streams. A program that was started without these may open them at any
//! time, with `dup2`, which closes whatever has their numbers. And what it writes to one that is closed must not go to a server.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use tokio::net::{TcpSocket, TcpStream, lookup_host};

/// Returns the descriptor, or a duplicate with a number above those of the standard streams.
///
/// # Errors
///
/// Those of the system.
///
/// # Examples
///
/// ```
/// use std::os::fd::AsRawFd;
///
/// let null = std::fs::File::open("/dev/null")?;
/// assert!(zklock::face::above_streams(null.into())?.as_raw_fd() > 2);
/// # std::io::Result::Ok(())
/// ```
pub fn above_streams(made: OwnedFd) -> Result<OwnedFd> {
    // The standard library gives a duplicate no number below 3.
    if made.as_raw_fd() > 2 { Ok(made) } else { made.try_clone() }
}

/// Connects to a host and a port.
pub(crate) async fn connect(address: (&str, u16)) -> Result<TcpStream> {
    let mut last = Error::new(ErrorKind::InvalidInput, "the host has no address");
    for address in lookup_host(address).await? {
        match new_socket(address)?.connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn new_socket(address: SocketAddr) -> Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if socket.as_raw_fd() > 2 {
        return Ok(socket);
    }
    Ok(TcpSocket::from_std_stream(socket.as_fd().try_clone_to_owned()?.into()))
}
