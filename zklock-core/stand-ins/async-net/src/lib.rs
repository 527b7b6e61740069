//! The parts of async-net that zookeeper-client uses, on tokio: see `README.md` beside `async-io`.

use futures_io::{AsyncRead, AsyncWrite};
use std::io::{Error, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::{TcpSocket, lookup_host};
use zklock_frames::Inspector;

/// A connection. It must be used in the tokio runtime in which it was made.
#[derive(Debug)]
pub struct TcpStream {
    stream: Socket,
    inspector: Option<Inspector>,
    /// What has been written, until it is flushed.
    unsent: Vec<u8>,
    /// Whether a flush has let the task go on, to write more.
    has_waited: bool,
}

impl TcpStream {
    /// Connects to a host, by name or by number, and a port.
    ///
    /// # Errors
    ///
    /// Fails with the errors of the system.
    pub async fn connect(address: (&str, u16)) -> Result<Self, Error> {
        // The library tries the next server in the same poll, and checks its timeout only in the next one. If each try fails at once,
        // as on a machine that wakes before its network does, it would never leave that poll. And if one succeeded in the poll in
        // which a connection broke, as on a busy machine, the core would not see that there is another connection.
        tokio::task::yield_now().await;
        let stream = connect(address).await?;
        // A short request must not wait until what was sent before it is acknowledged.
        stream.set_nodelay(true)?;
        Ok(Self::new(Socket::new(stream)?, Some(Inspector::default())))
    }

    fn new(stream: Socket, inspector: Option<Inspector>) -> Self {
        Self { stream, inspector, unsent: Vec::new(), has_waited: false }
    }

    /// The connection below TLS, without an inspector: the decrypted bytes are checked instead.
    pub fn without_inspector(self) -> Self {
        Self { inspector: None, ..self }
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while !self.unsent.is_empty() {
            match ready!(self.stream.checked()?.poll_write(context, &self.unsent))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                count => drop(self.unsent.drain(..count)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

async fn connect(address: (&str, u16)) -> Result<tokio::net::TcpStream, Error> {
    let mut last = Error::new(ErrorKind::InvalidInput, "the host has no address");
    for address in lookup_host(address).await? {
        match new_socket(address)?.connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Makes a socket with a number above those of the standard streams. Otherwise, what a program writes to a standard stream that
/// it has closed would go to the server.
fn new_socket(address: SocketAddr) -> Result<TcpSocket, Error> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if socket.as_raw_fd() > 2 {
        return Ok(socket);
    }
    // The standard library gives a duplicate no number below 3.
    Ok(TcpSocket::from_std_stream(socket.as_fd().try_clone_to_owned()?.into()))
}

/// A socket that checks that its number is still its own. A program that closes descriptors which it does not know may use the
/// number for something else, which must not receive what is meant for the server, and must not be closed.
#[derive(Debug)]
struct Socket {
    /// `None` once the program is known to have closed it.
    stream: Option<tokio::net::TcpStream>,
    /// Its own address. No other socket has the same, unless it belongs to a server on that port.
    address: SocketAddr,
}

impl Socket {
    fn new(stream: tokio::net::TcpStream) -> Result<Self, Error> {
        let address = stream.local_addr()?;
        Ok(Self { stream: Some(stream), address })
    }

    fn get(&mut self) -> Result<Pin<&mut tokio::net::TcpStream>, Error> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| ErrorKind::NotConnected.into())
    }

    /// The same, for what must not happen to anything else.
    fn checked(&mut self) -> Result<Pin<&mut tokio::net::TcpStream>, Error> {
        let is_ours =
            |stream: &tokio::net::TcpStream| stream.local_addr().is_ok_and(|now| now == self.address);
        if self.stream.as_ref().is_some_and(|stream| !is_ours(stream)) {
            std::mem::forget(self.stream.take());
        }
        self.get()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = self.checked();
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, Error>> {
        let Self { stream, inspector, .. } = self.get_mut();
        let Some(inspector) = inspector else {
            let mut into = ReadBuf::new(into);
            ready!(stream.get()?.poll_read(context, &mut into))?;
            return Poll::Ready(Ok(into.filled().len()));
        };
        loop {
            let count = inspector.pass(into)?;
            if count > 0 || into.is_empty() {
                return Poll::Ready(Ok(count));
            }
            // Most polls find nothing, so nothing is filled with zeros for them.
            let mut chunk = [MaybeUninit::uninit(); CHUNK];
            let mut chunk = ReadBuf::uninit(&mut chunk);
            ready!(stream.get()?.poll_read(context, &mut chunk))?;
            if chunk.filled().is_empty() {
                return Poll::Ready(Ok(0));
            }
            inspector.received(chunk.filled());
        }
    }
}

/// How much is read at once.
const CHUNK: usize = 8 << 10;

/// With so much that waits for a flush, a further write waits too.
const UNSENT: usize = 64 << 10;

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<Result<usize, Error>> {
        self.poll_write_vectored(context, &[IoSlice::new(from)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        let this = self.get_mut();
        if this.unsent.len() >= UNSENT {
            ready!(this.poll_send(context))?;
        }
        let Some(inspector) = &mut this.inspector else {
            // The handshake of TLS writes, and does not flush. It has one slice. (For several, the system has no call that raises no SIGPIPE.)
            let first = from.iter().find(|slice| !slice.is_empty());
            return this.stream.checked()?.poll_write(context, first.map_or(&[], |slice| slice));
        };
        let count = from.iter().map(|slice| slice.len()).sum();
        inspector.sent_of(from, count);
        from.iter().for_each(|slice| this.unsent.extend_from_slice(slice));
        this.has_waited = false;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let this = self.get_mut();
        // zookeeper-client writes each request by itself, and flushes when it has no further one at that moment, or even before it has
        // looked. So the first flush lets it go on: what else is asked for is sent by the same call of the system.
        if !this.unsent.is_empty() && !std::mem::replace(&mut this.has_waited, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(this.poll_send(context))?;
        this.stream.get()?.poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let this = self.get_mut();
        ready!(this.poll_send(context))?;
        this.stream.checked()?.poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::{AsyncReadExt, AsyncWriteExt};
    use std::pin::pin;
    use tokio::net::TcpListener;

    /// A connection and its other end, at which nothing is looked at.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let near = TcpStream::connect(("localhost", port)).await.unwrap();
        (near, TcpStream::new(Socket::new(listener.accept().await.unwrap().0).unwrap(), None))
    }

    #[tokio::test]
    async fn nothing_is_tried_in_the_poll_in_which_another_connection_has_broken() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut connecting = pin!(TcpStream::connect(("127.0.0.1", listener.local_addr().unwrap().port())));
        let first = std::future::poll_fn(|context| Poll::Ready(connecting.as_mut().poll(context))).await;
        assert!(first.is_pending());
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        connecting.await.unwrap();
        listener.accept().unwrap();
    }

    #[tokio::test]
    async fn what_is_written_is_read_until_the_end() {
        let (mut near, mut far) = pair().await;
        assert!(near.stream.get().unwrap().nodelay().unwrap());
        near.write_all(b"ruok").await.unwrap();
        near.write_vectored(&[IoSlice::new(b"!")]).await.unwrap();
        let mut nothing = [0; 1];
        let is_sent = std::future::poll_fn(|context| {
            let is_flushed = Pin::new(&mut near).poll_flush(context).is_ready();
            Poll::Ready(is_flushed || Pin::new(&mut far).poll_read(context, &mut nothing).is_ready())
        });
        assert!(!is_sent.await, "the task may write more");
        near.flush().await.unwrap();
        near.close().await.unwrap();
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"ruok!");
        far.write_all(b"imok").await.unwrap();
        drop(far);
        read.clear();
        near.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"imok");
    }

    #[tokio::test]
    async fn a_number_that_is_used_for_something_else_is_left_alone() {
        let (mut near, mut far) = pair().await;
        // As if the program had closed the number, and had got it for another socket.
        near.stream.address.set_port(1);
        near.write_all(b"ruok").await.unwrap();
        assert_eq!(near.flush().await.unwrap_err().kind(), ErrorKind::NotConnected);
        assert_eq!(near.close().await.unwrap_err().kind(), ErrorKind::NotConnected);
        drop(near);
        // It is neither written to nor closed.
        let mut read = [0; 4];
        let nothing = std::future::poll_fn(|context| {
            Poll::Ready(Pin::new(&mut far).poll_read(context, &mut read).is_pending())
        });
        assert!(nothing.await);
    }

    /// The signals that wait for this thread, which blocks them.
    #[cfg(target_os = "linux")]
    fn pending() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigPnd:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn a_write_to_a_server_that_has_hung_up_is_an_error_and_no_signal() {
        use nix::sys::signal::{SigSet, Signal};
        let mut pipe = SigSet::empty();
        pipe.add(Signal::SIGPIPE);
        pipe.thread_block().unwrap();
        for is_encrypted in [false, true] {
            let (near, far) = pair().await;
            let mut near = if is_encrypted { near.without_inspector() } else { near };
            drop(far);
            // The first write is answered with a reset.
            let mut error = None;
            for _ in 0..1000 {
                let written = async {
                    near.write_vectored(&[IoSlice::new(b"ruok")]).await?;
                    near.flush().await
                };
                error = written.await.err();
                if error.is_some() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            let error = error.expect("it has hung up");
            assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
        }
        assert_eq!(pending() & 1 << (Signal::SIGPIPE as u32 - 1), 0);
    }

    #[tokio::test]
    async fn nobody_there_is_an_error() {
        assert!(TcpStream::connect(("127.0.0.1", 1)).await.is_err());
    }
}
