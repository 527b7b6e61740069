//! Sockets and threads.

use std::io::{self, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use crate::frame::{self, Incoming};
use crate::hub::Hub;

/// Accepts connections until the server ends.
pub(crate) fn accept(hub: &Arc<Hub>, listener: &TcpListener) {
    for stream in listener.incoming() {
        if hub.is_ending() {
            return;
        }
        if let Ok(stream) = stream {
            // Whoever is refused sees a connection that is closed at once, as there.
            let _ = serve(hub, &stream);
        }
    }
}

fn serve(hub: &Arc<Hub>, stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (reading, writing) = (stream.try_clone()?, stream.try_clone()?);
    let Some(link) = hub.admit(stream.try_clone()?) else { return Ok(()) };
    let spawn = |name: &str, work: Box<dyn FnOnce(&Hub) + Send>| {
        let hub = Arc::clone(hub);
        let thread = thread::Builder::new().name(name.to_owned()).stack_size(256 << 10);
        let run = move || {
            work(&hub);
            hub.release(link);
            hub.thread_ends();
        };
        thread.spawn(run).map(drop)
    };
    let started = [
        spawn("zk-read", Box::new(move |hub| drop(read(hub, link, &reading)))),
        spawn("zk-write", Box::new(move |hub| drop(write(hub, link, &writing)))),
    ];
    for started in started {
        if started.is_err() {
            // There are no more threads: this client has to come again.
            hub.release(link);
            hub.thread_ends();
        }
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
