//! One connection to a server: frames out, frames in, and the end of it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The next item on a connection.
#[derive(Debug)]
pub(crate) enum Received {
    Frame(Vec<u8>),
    Closed,
    Silence,
}

#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    incoming: Vec<u8>,
    is_closed: bool,
}

impl Wire {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server accepts connections");
        stream.set_nodelay(true).expect("a socket without delay");
        Self { stream, incoming: Vec::new(), is_closed: false }
    }

    /// Writes. If the other end is gone, the next read shows that.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// The next frame, whole.
    pub(crate) fn receive(&mut self, patience: Duration) -> Received {
        let end = Instant::now() + patience;
        loop {
            if let Some(frame) = self.cut_frame() {
                return Received::Frame(frame);
            }
            if self.is_closed {
                return Received::Closed;
            }
            if !self.read_more(end) {
                return Received::Silence;
            }
        }
    }

    /// Ends the sending side, and reads to the end. Then the server has forgotten the connection.
    pub(crate) fn hang_up(mut self, patience: Duration) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let end = Instant::now() + patience;
        while !self.is_closed && self.read_more(end) {}
    }

    /// Everything that comes until the server closes the connection, as text.
    pub(crate) fn text(mut self, patience: Duration) -> String {
        let end = Instant::now() + patience;
        while !self.is_closed && self.read_more(end) {}
        String::from_utf8_lossy(&self.incoming).into_owned()
    }

    fn cut_frame(&mut self) -> Option<Vec<u8>> {
        let length = self.incoming.first_chunk::<4>()?;
        let end = 4 + usize::try_from(i32::from_be_bytes(*length)).expect("a server's frame has a length");
        if self.incoming.len() < end {
            return None;
        }
        let frame = self.incoming[4..end].to_vec();
        self.incoming.drain(..end);
        Some(frame)
    }

    /// `false` when nothing came by `end`.
    fn read_more(&mut self, end: Instant) -> bool {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        self.stream.set_read_timeout(Some(left)).expect("a socket with a bound");
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => self.is_closed = true,
            Ok(count) => self.incoming.extend(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return false;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A reset is an end like any other.
            Err(_) => self.is_closed = true,
        }
        true
    }
}
