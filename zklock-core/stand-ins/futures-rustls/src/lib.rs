//! The parts of futures-rustls that zookeeper-client uses: see `README.md` beside this crate.
//!
//! rustls does the TLS. This crate connects it to a socket, and has an inspector check the decrypted bytes.

use async_net::TcpStream;
use futures_io::{AsyncRead, AsyncWrite};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::future::poll_fn;
use std::io::{Error, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use zklock_frames::Inspector;

/// The client's side of a connection.
pub mod client {
    pub use super::TlsStream;
}

/// Connects with TLS.
#[derive(Clone, Debug)]
pub struct TlsConnector(Arc<ClientConfig>);

impl From<Arc<ClientConfig>> for TlsConnector {
    fn from(config: Arc<ClientConfig>) -> Self {
        Self(config)
    }
}

impl TlsConnector {
    /// Does the handshake with a server of this name.
    ///
    /// # Errors
    ///
    /// Fails if TLS or the connection does.
    pub async fn connect(
        &self,
        server: ServerName<'static>,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, Error> {
        let tls = ClientConnection::new(self.0.clone(), server).map_err(Error::other)?;
        let mut stream = TlsStream {
            stream: stream.without_inspector(),
            tls,
            inspector: Inspector::default(),
            chunk: Box::new([0; CHUNK]),
        };
        poll_fn(|context| stream.poll_handshake(context)).await?;
        Ok(stream)
    }
}

/// A connection with TLS.
#[derive(Debug)]
pub struct TlsStream<S> {
    stream: S,
    tls: ClientConnection,
    inspector: Inspector,
    /// Not on the stack of each read, most of which find nothing, and would fill it with zeros.
    chunk: Box<[u8; CHUNK]>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            ready!(self.poll_send(context))?;
            if !self.tls.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if ready!(self.poll_receive(context))? == 0 {
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Sends everything that TLS has to send.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while self.tls.wants_write() {
            let mut stream = Waiting { stream: &mut self.stream, context };
            if ready!(poll(self.tls.write_tls(&mut stream)))? == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends as much of it as it can now. The task is woken for the rest.
    fn send_some(&mut self, context: &mut Context<'_>) -> Result<(), Error> {
        match self.poll_send(context) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Ok(()),
        }
    }

    /// Receives from the server, and returns how many bytes came; zero at the end of the connection.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        let mut stream = Waiting { stream: &mut self.stream, context };
        let count = ready!(poll(self.tls.read_tls(&mut stream)))?;
        if let Err(error) = self.tls.process_new_packets() {
            // Tells the server, if it still listens.
            let _ = self.send_some(context);
            return Poll::Ready(Err(Error::new(ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(count))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, Error>> {
        let this = self.get_mut();
        loop {
            let count = this.inspector.pass(into)?;
            if count > 0 || into.is_empty() {
                return Poll::Ready(Ok(count));
            }
            match poll(this.tls.reader().read(&mut this.chunk[..])) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(0)),
                Poll::Ready(Ok(count)) => this.inspector.received(&this.chunk[..count]),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    // Some messages need a reply, such as new keys.
                    this.send_some(context)?;
                    ready!(this.poll_receive(context))?;
                }
            }
        }
    }
}

/// How many bytes are decrypted at once.
const CHUNK: usize = 8 << 10;

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
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
        // Send what is left from before first. Otherwise there may be no room, and nobody would wake the task.
        ready!(this.poll_send(context))?;
        let count = this.tls.writer().write_vectored(from)?;
        this.inspector.sent_of(from, count);
        this.send_some(context)?;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let this = self.get_mut();
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let this = self.get_mut();
        // It says so only once.
        this.tls.send_close_notify();
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.stream).poll_close(context)
    }
}

/// A connection as rustls wants it: an operation that would have to wait fails, and the task is woken when it can go on.
struct Waiting<'a, 'b, S> {
    stream: &'a mut S,
    context: &'a mut Context<'b>,
}

impl<S: AsyncRead + Unpin> Read for Waiting<'_, '_, S> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        unless_it_waits(Pin::new(&mut *self.stream).poll_read(self.context, into))
    }
}

impl<S: AsyncWrite + Unpin> Write for Waiting<'_, '_, S> {
    fn write(&mut self, from: &[u8]) -> Result<usize, Error> {
        unless_it_waits(Pin::new(&mut *self.stream).poll_write(self.context, from))
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> Result<usize, Error> {
        unless_it_waits(Pin::new(&mut *self.stream).poll_write_vectored(self.context, from))
    }

    fn flush(&mut self) -> Result<(), Error> {
        unless_it_waits(Pin::new(&mut *self.stream).poll_flush(self.context))
    }
}

fn unless_it_waits<T>(polled: Poll<Result<T, Error>>) -> Result<T, Error> {
    match polled {
        Poll::Ready(result) => result,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

/// Turns such an error back into a wait.
fn poll<T>(result: Result<T, Error>) -> Poll<Result<T, Error>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
        result => Poll::Ready(result),
    }
}
