//! One connection to a server: frames out, frames in, and the end of it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use ground::wire::read_frame;

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
}

impl Wire {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server accepts connections");
        stream.set_nodelay(true).expect("a socket without delay");
        Self { stream, incoming: Vec::new() }
    }

    /// Writes. If the other end is gone, the next read shows that.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// The next frame, whole.
    pub(crate) fn receive(&mut self, patience: Duration) -> Received {
        match read_frame(&mut self.stream, &mut self.incoming, Instant::now() + patience) {
            Ok(Some(frame)) => Received::Frame(frame),
            Ok(None) => Received::Silence,
            // A reset is an end like any other.
            Err(_) => Received::Closed,
        }
    }

    /// Ends the sending side, and reads to the end. Then the server has forgotten the connection.
    pub(crate) fn hang_up(self, patience: Duration) {
        let _ = self.stream.shutdown(Shutdown::Write);
        self.text(patience);
    }

    /// Everything that comes until the server closes the connection, as text.
    pub(crate) fn text(mut self, patience: Duration) -> String {
        self.stream.set_read_timeout(Some(patience)).expect("a socket with a bound");
        let _ = self.stream.read_to_end(&mut self.incoming);
        String::from_utf8_lossy(&self.incoming).into_owned()
    }
}
