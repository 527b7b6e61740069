//! Sockets and threads.

use std::io::{self, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::hub::Hub;
use crate::wire::frame::{self, Incoming};

/// A client that has not read anything for this long is taken to be gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Accepts connections until the server ends.
pub(crate) fn accept(hub: &Arc<Hub>, listener: &TcpListener) {
    for stream in listener.incoming() {
        if hub.is_ending() {
            return;
        }
        match stream {
            // A client that is refused sees its connection closed at once, as with ZooKeeper.
            Ok(stream) => drop(serve(hub, &Arc::new(stream))),
            // This is usually a lack of descriptors, which does not pass at once.
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// A thread of a connection. When one thread ends, for whatever reason, so do the connection and its other thread.
struct Thread {
    hub: Arc<Hub>,
    link: u64,
    is_reader: bool,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.hub.thread_ends(self.link, self.is_reader);
    }
}

fn serve(hub: &Arc<Hub>, stream: &Arc<TcpStream>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let Some(link) = hub.admit(Arc::clone(stream)) else { return Ok(()) };
    for (name, work) in
        [("zk-read", read as fn(&Hub, u64, &TcpStream) -> io::Result<()>), ("zk-write", write)]
    {
        let this = Thread { hub: Arc::clone(hub), link, is_reader: name == "zk-read" };
        let stream = Arc::clone(stream);
        // If no thread can be started, the connection ends here, and the client has to connect again.
        let thread = thread::Builder::new().name(name.to_owned()).stack_size(256 << 10);
        let _ = thread.spawn(move || drop(work(&this.hub, this.link, &stream)));
    }
    Ok(())
}

fn read(hub: &Hub, link: u64, mut stream: &TcpStream) -> io::Result<()> {
    let longest = hub.lock().world.settings.max_frame;
    let mut is_first = true;
    loop {
        match frame::next(&mut stream, is_first, longest)? {
            Incoming::Word(word) => {
                let answer = hub.word(link, word).unwrap_or_default();
                return stream.write_all(answer.as_bytes());
            }
            Incoming::Message(message) if hub.receive(link, &message) => is_first = false,
            Incoming::Message(_) => return Ok(()),
        }
    }
}

fn write(hub: &Hub, link: u64, mut stream: &TcpStream) -> io::Result<()> {
    while let Some(frame) = hub.next_frame(link) {
        stream.write_all(&frame)?;
    }
    stream.shutdown(Shutdown::Both)
}
