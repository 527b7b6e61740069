//! A peer with zklock's Rust face: `zklock-peer CONNECT KIND PATH SESSION_MS REGISTER NAME [--naming=D] [--foreign=F]
//! [--linger=SECONDS] [--rest=SECONDS]`.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use zklock::further::Foreign;
use zklock::{Client, ClientOptions, Error, ErrorKind, Hold, Lock, LockSpec};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The connection to the register: see ../register.py. The peer ends when the register does.
struct Line {
    name: String,
    socket: BufReader<TcpStream>,
}

impl Line {
    fn open(address: &str, name: &str) -> Outcome<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        Ok(Self { name: name.to_owned(), socket: BufReader::new(socket) })
    }

    fn tell(&mut self, word: &str, rest: &str) -> Outcome<()> {
        let text = format!("{word} {} {rest}", self.name).trim_end().replace('\n', " ");
        Ok(self.socket.get_mut().write_all(format!("{text}\n").as_bytes())?)
    }

    /// Sends a line. Returns whether to go on.
    fn ask(&mut self, word: &str, rest: &str) -> Outcome<bool> {
        self.tell(word, rest)?;
        let mut answer = String::new();
        match self.socket.read_line(&mut answer)? {
            0 => Err("the register has ended".into()),
            _ => Ok(answer == "go\n"),
        }
    }
}

/// How a peer acquires and releases the lock, and the mode with which it enters.
enum Turn {
    Simple(&'static str, Lock),
    Permits(u32, Lock),
    /// Acquires the write side, then the read side, and keeps that.
    Downgrade(Lock, Lock),
}

/// The turns of a peer of this kind.
fn turns(client: &Client, kind: &str, path: &str, options: &[String]) -> Outcome<Vec<Turn>> {
    let mut words = kind.split(':');
    let name = words.next().unwrap_or_default();
    let numbers = words.map(str::parse).collect::<Result<Vec<u32>, _>>()?;
    let permits = numbers.get(1).copied().unwrap_or(1);
    let lock = |spec: LockSpec| -> Outcome<Lock> { Ok(client.lock(&with_options(spec, options)?)?) };
    let read = || lock(LockSpec::read_lock(path)?);
    let write = || lock(LockSpec::write_lock(path)?);
    Ok(match name {
        "mutex" => vec![Turn::Simple("x", lock(LockSpec::mutex(path)?)?)],
        "election" => vec![Turn::Simple("x", lock(LockSpec::election(path)?)?)],
        "semaphore-mutex" => vec![Turn::Simple("x", lock(LockSpec::semaphore(path, 1)?)?)],
        "semaphore" => {
            let limit = *numbers.first().ok_or("semaphore:LIMIT:PERMITS")?;
            vec![Turn::Permits(permits, lock(LockSpec::semaphore(path, limit)?.permits(permits))?)]
        }
        "rw" => vec![
            Turn::Simple("x", write()?),
            Turn::Simple("r", read()?),
            Turn::Simple("r", read()?),
            Turn::Simple("r", read()?),
        ],
        "downgrade" => {
            let write = lock(LockSpec::write_lock(path)?.reentrant(true))?;
            vec![Turn::Downgrade(write, read()?), Turn::Simple("r", read()?)]
        }
        _ => return Err(format!("no kind: {kind}").into()),
    })
}

fn take(turn: &Turn, line: &mut Line) -> Outcome<bool> {
    let (mode, lock) = match turn {
        Turn::Simple(mode, lock) => ((*mode).to_owned(), lock),
        Turn::Permits(permits, lock) => (format!("s:{permits}"), lock),
        Turn::Downgrade(write, _) => ("x".to_owned(), write),
    };
    let hold = lock.acquire().wait()?;
    line.ask("enter", &format!("{mode} {} {}", name_of(hold.node()), hold.token().value()))?;
    let Turn::Downgrade(_, read) = turn else { return leave(line, &hold) };
    match read.acquire().wait() {
        Ok(reading) => {
            line.ask("down", name_of(reading.node()))?;
            release(line, &hold)?;
            leave(line, &reading)
        }
        Err(_) => leave(line, &hold),
    }
}

fn name_of(node: &str) -> &str {
    node.rsplit('/').next().unwrap_or_default()
}

/// Reports that it was inside all the time, if that is certain.
fn leave(line: &mut Line, hold: &Hold) -> Outcome<bool> {
    let goes_on =
        if hold.valid_for().is_zero() { line.ask("lost", "lease")? } else { line.ask("leave", "")? };
    release(line, hold)?;
    Ok(goes_on)
}

fn release(line: &mut Line, hold: &Hold) -> Outcome<()> {
    match hold.release().wait() {
        Err(error) => line.tell("note", &error.to_string()),
        Ok(()) => Ok(()),
    }
}

fn with_options(spec: LockSpec, words: &[String]) -> Outcome<LockSpec> {
    words.iter().try_fold(spec, |spec, word| {
        Ok(match word.as_str() {
            "--foreign=ignore-unknown" => spec.foreign(Foreign::IgnoreUnknown),
            _ if word.starts_with("--naming=") => spec.naming(word["--naming=".len()..].parse()?),
            _ => match (seconds(word, "--linger=")?, seconds(word, "--rest=")?) {
                (Some(linger), _) => spec.linger(linger),
                (None, Some(_)) => spec,
                (None, None) => return Err(format!("no option: {word}").into()),
            },
        })
    })
}

/// The time in an option, if the word is the option with this beginning.
fn seconds(word: &str, option: &str) -> Outcome<Option<Duration>> {
    Ok(word.strip_prefix(option).map(str::parse).transpose()?.map(Duration::from_secs_f64))
}

/// Rests between two turns, for at most the time of the option. Without a rest somebody always waits.
fn take_rest(options: &[String]) -> Outcome<()> {
    let random = std::time::SystemTime::UNIX_EPOCH.elapsed()?.subsec_micros() % 1000;
    for word in options {
        sleep(seconds(word, "--rest=")?.unwrap_or_default() * random / 1000);
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().collect();
    let [_, connect, kind, path, session, register, name, more @ ..] = words.as_slice() else {
        return Err("CONNECT KIND PATH SESSION_MS REGISTER NAME".into());
    };
    let mut line = Line::open(register, name)?;
    let session = Duration::from_millis(session.parse()?);
    let client_options = ClientOptions::new(connect).session_timeout(session).identity(name);
    let client = Client::connect(client_options).wait()?;
    let turns = turns(&client, kind, path, more)?;
    let mut goes_on = line.ask("hello", "")?;
    for turn in turns.iter().cycle() {
        if !goes_on {
            break;
        }
        goes_on = match take(turn, &mut line) {
            Err(failed) => match failed.downcast::<Error>() {
                Ok(error) if error.kind() != ErrorKind::ForeignContender => {
                    line.tell("note", &error.to_string())?;
                    sleep(Duration::from_millis(50));
                    true
                }
                Ok(error) => return Err(error),
                Err(other) => return Err(other),
            },
            goes_on => goes_on?,
        };
        take_rest(more)?;
    }
    client.close().wait()?;
    Ok(())
}
