//! The register, to which workers report what they hold. It is outside ZooKeeper, and writes each line to disk before it is
//! judged.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::record::Book;
use crate::report::since_1970;

/// Events of a connection.
enum Heard {
    Open(TcpStream),
    Line(String, String),
}

/// Its threads end with their connections. The thread that listens ends with the process.
pub(crate) struct Register {
    pub(crate) address: SocketAddr,
    heard: Receiver<Heard>,
    connections: Vec<TcpStream>,
    log: File,
    pub(crate) book: Book,
}

impl Register {
    pub(crate) fn open(log: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (sender, heard) = channel();
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                thread::spawn(move || read(connection, &sender));
            }
        });
        let log = File::create(log)?;
        Ok(Self { address, heard, connections: Vec::new(), log, book: Book::new(since_1970()) })
    }

    /// Writes down and judges the lines received so far. Returns how long the disk has taken.
    pub(crate) fn judge(&mut self) -> io::Result<Duration> {
        let (mut lines, mut text) = (Vec::new(), Vec::new());
        loop {
            match self.heard.try_recv() {
                Ok(Heard::Open(connection)) => self.connections.push(connection),
                Ok(Heard::Line(worker, line)) => {
                    writeln!(text, "{worker} {line}")?;
                    lines.push((worker, line));
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        let begun = Instant::now();
        self.log.write_all(&text)?;
        self.log.sync_data()?;
        let took = begun.elapsed();
        for (worker, line) in lines {
            self.book.hear(&worker, &line);
        }
        Ok(took)
    }

    /// Writes a remark to the log.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.log, "# {text}")
    }

    /// Tells all workers that the run is over.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.judge()?;
        for connection in self.connections.drain(..) {
            // A worker that has already ended is no longer there.
            let _ = connection.shutdown(Shutdown::Write);
        }
        Ok(())
    }
}

/// Reads a connection to its end. Its first line names the worker.
fn read(connection: TcpStream, sender: &Sender<Heard>) {
    let Ok(copy) = connection.try_clone() else { return };
    let mut lines = BufReader::new(connection).lines().map_while(Result::ok);
    let Some(hello) = lines.next() else { return };
    let Some(name) = hello.split(' ').nth(1).map(str::to_owned) else { return };
    if sender.send(Heard::Open(copy)).is_err() {
        return;
    }
    for line in lines {
        if sender.send(Heard::Line(name.clone(), line)).is_err() {
            return;
        }
    }
}
