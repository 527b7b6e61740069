//! What zookeeper-client uses of async-net, on tokio: see `README.md` beside `async-io`.

use futures_io::{AsyncRead, AsyncWrite};
use std::io::{Error, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

/// A connection. It must be used in the tokio runtime in which it was made.
#[derive(Debug)]
pub struct TcpStream(tokio::net::TcpStream);

impl TcpStream {
    /// Connects to a host, by name or by number, and a port.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub async fn connect(address: (&str, u16)) -> Result<Self, Error> {
        let stream = tokio::net::TcpStream::connect(address).await?;
        // A short request must not wait until what was sent before it is acknowledged.
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    fn inner(self: Pin<&mut Self>) -> Pin<&mut tokio::net::TcpStream> {
        Pin::new(&mut self.get_mut().0)
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, Error>> {
        let mut into = ReadBuf::new(into);
        ready!(self.inner().poll_read(context, &mut into))?;
        Poll::Ready(Ok(into.filled().len()))
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<Result<usize, Error>> {
        self.inner().poll_write(context, from)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        self.inner().poll_write_vectored(context, from)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner().poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner().poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn what_is_written_is_read_until_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut near = TcpStream::connect(("localhost", port)).await.unwrap();
        assert!(near.0.nodelay().unwrap());
        let mut far = TcpStream(listener.accept().await.unwrap().0);
        near.write_all(b"ruok").await.unwrap();
        near.write_vectored(&[IoSlice::new(b"!")]).await.unwrap();
        near.flush().await.unwrap();
        near.close().await.unwrap();
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"ruok!");
    }

    #[tokio::test]
    async fn nobody_there_is_an_error() {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    }
}
