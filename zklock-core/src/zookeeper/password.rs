//! The password of a session, which the library keeps to itself.
//!
//! The library tells the password only to a server, and learns it only from a server. For another process to have it, we act as
//! that server for a moment, on the loopback interface: here to be told the password, and in the other process to tell it. None
//! of this reaches the ensemble.
//!
//! Every process on the machine can connect to such a port. So the library is recognised by a random number. It sends that as
//! the timeout that it asks for, which is the only thing in its first message that we can choose.

use super::servers::{Servers, SessionInfo};
use super::spawning::{Spawned, spawning};
use crate::base::clock;
use crate::base::platform;
use crate::connect::level::ServerLevel;
use crate::connect::options::ClientOptions;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use zookeeper_client::{Client, Connector};

/// More time than a busy machine needs.
const BOUND: Duration = Duration::from_secs(5);
/// Longer than the first message of a client.
const LONGEST_MESSAGE: usize = 1024;
/// The timeout that the answer grants. It has no effect, because the connection is given up.
const GRANTED: i32 = 10_000;

/// The answer to the ping with which the library tests a new connection.
const PING: [u8; 20] = {
    let mut frame = [0; 20];
    frame[3] = 16;
    (frame[4], frame[5], frame[6], frame[7]) = (0xff, 0xff, 0xff, 0xfe);
    frame
};

/// Returns the password of a session that the library has.
pub(super) async fn password_of(session: zookeeper_client::SessionInfo) -> Option<Vec<u8>> {
    let number = session.id().0;
    clock::timeout(BOUND, async {
        let listening = Listening::new().await.ok()?;
        let asking = listening.asks().with_session(session);
        let spawned = Spawned::default();
        let connecting = spawning(&spawned, asking.connect(&listening.address));
        tokio::select! {
            biased;
            heard = listening.hear() => heard.filter(|(first, _)| first.session == number).map(|(first, _)| first.password),
            // There is no answer to wait for.
            _ = connecting => None,
        }
    })
    .await
    .ok()?
}

/// Returns the information that is needed to attach a connection to the session with this number and password. There is no
/// limit to how long it takes if nothing gets through on the loopback interface.
pub(crate) async fn session_of(options: &ClientOptions, number: i64, password: &[u8]) -> Option<SessionInfo> {
    let library = taught(number, password).await?;
    Some(SessionInfo { library, servers: Servers::new(options.server_level(), ServerLevel::V3_5) })
}

/// Returns the session in the library's form.
async fn taught(number: i64, password: &[u8]) -> Option<zookeeper_client::SessionInfo> {
    let listening = Listening::new().await.ok()?;
    let spawned = Spawned::default();
    let connecting = spawning(&spawned, listening.asks().connect(&listening.address));
    let answering = async {
        let (_, stream) = listening.hear().await?;
        write(&stream, &answer(number, password)).await.ok()?;
        // Answering a ping that was not sent yet would end the connection.
        read(&stream, &mut [0; LONGEST_MESSAGE]).await.ok()?;
        write(&stream, &PING).await.ok()?;
        // The connection stays open until the library has read that.
        std::future::pending().await
    };
    tokio::select! {
        connected = connecting => connected.ok().map(Client::into_session),
        failed = answering => failed,
    }
}

/// A port that the library will connect to.
struct Listening {
    listener: TcpListener,
    address: String,
    mark: u32,
}

/// The first message of a client.
struct First {
    timeout: u32,
    session: i64,
    password: Vec<u8>,
}

impl Listening {
    async fn new() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?.to_string();
        // Long enough that none of the library's timers, which are fractions of it, runs out meanwhile.
        let mark = platform::random_bits() as u32 >> 1 | 1 << 30;
        Ok(Self { listener, address, mark })
    }

    /// Returns the library's connector, ready to connect here.
    fn asks(&self) -> Connector {
        let mark = Duration::from_millis(self.mark.into());
        Client::connector().with_session_timeout(mark).with_fail_eagerly()
    }

    /// Waits for the first message of the library, and returns it with its connection. Others that connect are ignored.
    async fn hear(&self) -> Option<(First, TcpStream)> {
        let mut heard = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (stream, _) = accepted.ok()?;
                    heard.spawn(first(stream));
                }
                Some(next) = heard.join_next() => match next {
                    Ok(Ok((first, stream))) if first.timeout == self.mark => return Some((first, stream)),
                    _ => {}
                },
            }
        }
    }
}

async fn first(stream: TcpStream) -> io::Result<(First, TcpStream)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; LONGEST_MESSAGE];
    while bytes.len() < LONGEST_MESSAGE {
        if let Some(first) = First::parse(&bytes) {
            return Ok((first, stream));
        }
        match read(&stream, &mut chunk).await? {
            0 => break,
            count => bytes.extend(&chunk[..count]),
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

async fn read(stream: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(into) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}

impl First {
    /// Reads its length, the version of the protocol, a transaction, the timeout, the session, and the password with its
    /// length. `None` if some of that is still missing.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let int = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let length = usize::try_from(int(28)?).ok()?;
        Some(Self {
            timeout: int(16)?,
            session: i64::from_be_bytes(*bytes.get(20..)?.first_chunk()?),
            password: bytes.get(32..)?.get(..length)?.to_vec(),
        })
    }
}

/// Returns a server's first message: the version of the protocol, the timeout, the session, its password, and that it is
/// not read-only.
fn answer(number: i64, password: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| i32::try_from(bytes).unwrap_or_default().to_be_bytes();
    let mut frame = length(21 + password.len()).to_vec();
    frame.extend(0_i32.to_be_bytes());
    frame.extend(GRANTED.to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.extend(length(password.len()));
    frame.extend(password);
    frame.push(0);
    frame
}

async fn write(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.ready(Interest::WRITABLE).await?;
        match stream.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_the_library_is_told_it_tells() {
        let password = *b"sixteen letters.";
        let session = taught(0x1234_5678_9abc, &password).await.unwrap();
        assert_eq!((session.id().0, session.is_readonly()), (0x1234_5678_9abc, false));
        assert_eq!(password_of(session).await.unwrap(), password);
    }

    #[tokio::test]
    async fn others_that_connect_are_of_no_interest() {
        let listening = Listening::new().await.unwrap();
        let _silent = TcpStream::connect(&listening.address).await.unwrap();
        let say = async |mark: u32| {
            let stream = TcpStream::connect(&listening.address).await.unwrap();
            let message = [&[0; 16][..], &mark.to_be_bytes(), &[7; 8], &[0, 0, 0, 2], b"pw", &[0]].concat();
            write(&stream, &message).await.unwrap();
            stream
        };
        let _stranger = say(listening.mark - 1).await;
        let library = say(listening.mark).await;
        let (first, stream) = listening.hear().await.unwrap();
        assert_eq!((first.session, first.password), (0x0707_0707_0707_0707, b"pw".to_vec()));
        assert_eq!(stream.peer_addr().unwrap(), library.local_addr().unwrap());
    }

    #[test]
    fn a_message_is_read_when_all_of_it_is_there() {
        let message = [&[0; 20][..], &[1; 8], &[0, 0, 0, 3], b"abc"].concat();
        let parsed = |length: usize| First::parse(&message[..length]).map(|first| first.password);
        assert_eq!(parsed(message.len()), Some(b"abc".to_vec()));
        assert!((0..message.len()).all(|length| parsed(length).is_none()));
        assert!(First::parse(&[0xff; 64]).is_none());
    }
}
