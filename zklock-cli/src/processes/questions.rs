//! What `zklock held` and `zklock release` ask the keeper of a hold: `held`, or `release`, which is answered when that is done. The
//! answer is `hold lock node token valid-until`, of when the question came, with why it is `lost` or `unreleased`.
//!
//! The socket has an abstract name, so that nothing is left in a file system when the keeper is dead. Any user can connect
//! to such a socket, and can take its name when the keeper is dead. So each end checks the user of the other end.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use rustix::process::getuid;
use zklock::face::Message;

use crate::exit::Exit;
use crate::failure::Failure;

/// The variable that names a hold for `held` and `release`.
pub(crate) const HOLD: &str = "ZKLOCK_HOLD";

/// Returns a listener, and the name by which it is asked. Nobody can know the name before, and no other hold gets it.
pub(crate) fn listen() -> io::Result<(UnixListener, String)> {
    let name = fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned();
    let listener = UnixListener::bind_addr(&address(&name)?)?;
    listener.set_nonblocking(true)?;
    Ok((listener, name))
}

/// Asks the keeper of this hold, whose answer takes no longer than `patience` unless it was stopped. Fails if the lock is not held any
/// more.
pub(crate) fn ask(hold: Option<&str>, question: &str, patience: Duration) -> Result<Message, Failure> {
    let hold = hold.filter(|hold| !hold.is_empty()).ok_or_else(|| {
        Failure::usage(format!(
            "no hold is named: {HOLD} is set by eval \"$(zklock acquire ...)\" || exit, in the same shell"
        ))
    })?;
    let address = address(hold).map_err(|error| Failure::usage(format!("{HOLD} is {hold:?}: {error}")))?;
    let gone = || {
        Failure::new(
            Exit::Lost,
            "the lock is not held: it was released, or the process that held it was ended (`zklock acquire` \
             acquires it again)",
        )
    };
    let mut socket = UnixStream::connect_addr(&address).map_err(|_| gone())?;
    if !is_of_this_user(&socket) {
        return Err(gone());
    }
    socket.set_read_timeout(Some(patience))?;
    let mut answer = Vec::new();
    let asked = socket
        .write_all(&Message::new(question).to_line())
        .and_then(|()| BufReader::new(&socket).read_until(b'\n', &mut answer));
    match asked {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(Failure::other("the process that holds the lock does not answer: is it stopped?"));
        }
        _ => {}
    }
    // It was ended before it could answer.
    let answer = Message::take(&mut answer)?.ok_or_else(gone)?;
    match answer.get::<String>("lost")? {
        Some(reason) => {
            let lock: String = answer.need("lock")?;
            Err(Failure::new(Exit::Lost, format!("the lock {lock} was lost: {reason}")))
        }
        None => Ok(answer),
    }
}

/// Whether the other end is a process of this user, or of root.
pub(crate) fn is_of_this_user(socket: impl AsFd) -> bool {
    socket_peercred(socket).is_ok_and(|other| other.uid.is_root() || other.uid == getuid())
}

fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("zklock-hold-{name}"))
}
