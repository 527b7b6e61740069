//! The server as a separate program: for tests in C and other languages, and to look at it by hand.
//!
//! It prints the address that it listens on, reads one order per line, and answers each with a line that begins with `ok`
//! or `error`.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::FileTypeExt;
use std::str::FromStr;
use std::time::Duration;
use std::{fmt, fs, thread};

use crate::fault::{Fault, Injected};
use crate::server::{Builder, Server};

/// The text of `--help`.
pub const USAGE: &str = "\
An in-memory ZooKeeper server for development and tests. It keeps nothing: when it ends, everything is gone.

  --listen HOST:PORT   where to listen; by default a free port of 127.0.0.1
  --tick SECONDS       ZooKeeper's unit of time, 2 by default; sessions last 2 to 20 of them
  --session-timeouts SHORTEST-LONGEST
                       in seconds, in place of that
  --container-check SECONDS
                       how often empty containers are reaped, 60 by default
  --manual-clock       time stands still, but for `advance`
  --local-sessions     no session can have ephemeral nodes
  --like SERVER        which server is copied: 3.8 (by default), 3.4 or keeper-25
  --words LIST         the words of four letters that are answered, such as srvr,ruok; by default all that it knows
  --help               this text

It prints where it listens, HOST:PORT, in a line of its own. Then it takes orders, one a line, and answers each with a
line that begins with 'ok' or 'error'. When its input is a pipe, it ends with it, and so with the test that has
started it.

  sessions                      the open sessions, one a line, then 'ok'
  expire ID|all                 ends a session, or all, at once, with its nodes
  owner PATH                    the session that a node ends with
  advance SECONDS               puts the server's clock forward
  date SECONDS                  sets the date of what is written from now on, in seconds since 1970; sessions do not notice
  cut [ID]                      cuts all connections, or that of a session
  freeze [ID] / thaw            stops answering all, or one session / goes on
  refuse on|off                 closes new connections at once, or no longer
  fault WHAT KIND [nth=N] [times=N] [below=PATH] [session=ID]
                                at the next message of a kind (create, delete, multi, event, ...):
                                lose-request, cut-before-reply, cut-after-reply, drop-reply, delay-reply=SECONDS,
                                freeze, expire, bring-back
  strikes N                     how often the n-th fault has struck; `fault` answers its number
  clear                         forgets all faults that have not struck
  children PATH / data PATH     looks at a node; data is printed with escapes
  put PATH [DATA]               makes a node, and its parents, or gives it other data
  delete PATH                   deletes a node and all below it
  bring-back PATH               puts back the node that was deleted last there, as it was
  sequence PATH N               sets the number of a node's next sequential child
  wait PATH COUNT SECONDS       waits until a node has so many children
  dump [PATH]                   all nodes, one a line, then 'ok'
  quit                          ends the server
";

/// The line that was typed is not a valid order, or the order cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadOrder(String);

fn bad(reason: impl fmt::Display) -> BadOrder {
    BadOrder(reason.to_string())
}

/// Runs the program with these arguments, and returns its status.
pub fn program(arguments: &[String]) -> u8 {
    let Err(error) = serve(arguments) else { return 0 };
    let problem = error.downcast_ref().map(io::Error::kind);
    // Otherwise nobody reads its answers any longer.
    if problem != Some(io::ErrorKind::BrokenPipe) {
        eprintln!("{error}");
    }
    1
}

fn serve(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let mut output = io::stdout();
    let Some(settings) = settings(arguments)? else {
        return Ok(write!(output, "{USAGE}")?);
    };
    let server = settings.start()?;
    writeln!(output, "{}", server.connect_string())?;
    output.flush()?;
    // A pipe ends when the test at its other end does. A terminal or /dev/null says nothing about a test.
    let is_pipe = fs::metadata("/dev/stdin").is_ok_and(|input| {
        let kind = input.file_type();
        kind.is_fifo() || kind.is_socket()
    });
    if !Console::default().run(&server, io::stdin().lock(), output)? && !is_pipe {
        loop {
            thread::park();
        }
    }
    Ok(())
}

/// Parses the program's arguments; `None` if they ask for help.
///
/// # Errors
///
/// If the arguments are wrong.
pub fn settings(arguments: &[String]) -> Result<Option<Builder>, BadOrder> {
    let mut builder = Server::builder();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let mut value =
            || words.next().ok_or_else(|| bad(format!("{word} needs a value; --help tells more")));
        builder = match word {
            "--listen" => builder.address(value()?),
            "--tick" => builder.tick(seconds(value()?)?),
            "--session-timeouts" => {
                let (shortest, longest) = value()?
                    .split_once('-')
                    .ok_or_else(|| bad("--session-timeouts takes two numbers of seconds, such as 4-40"))?;
                builder.session_timeouts(seconds(shortest)?, seconds(longest)?)
            }
            "--container-check" => builder.container_check(seconds(value()?)?),
            "--manual-clock" => builder.manual_clock(),
            "--local-sessions" => builder.local_sessions(true),
            "--like" => builder.like(value()?).map_err(bad)?,
            "--words" => builder.words(value()?),
            "--help" | "-h" => return Ok(None),
            _ => return Err(bad(format!("there is no option {word:?}; --help tells which there are"))),
        };
    }
    Ok(Some(builder))
}

/// Carries out orders, and numbers the faults that were ordered.
///
/// ```
/// let server = zklock_testkit::Server::start()?;
/// let mut answers = Vec::new();
/// zklock_testkit::console::Console::default().run(&server, &b"put /a b\ndata /a\n"[..], &mut answers)?;
/// assert_eq!(answers, b"ok\nok b\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Console {
    faults: Vec<Injected>,
}

impl Console {
    /// Carries out orders until there are no more, or until one is `quit`; `true` if it was `quit`.
    ///
    /// # Errors
    ///
    /// If orders can no longer be read, or answers can no longer be written.
    pub fn run(
        &mut self,
        server: &Server,
        orders: impl BufRead,
        mut answers: impl Write,
    ) -> io::Result<bool> {
        for order in orders.split(b'\n') {
            let order = order?;
            let answer = match std::str::from_utf8(&order).map(str::trim) {
                Ok("") => continue,
                Ok("quit") => {
                    writeln!(answers, "ok")?;
                    return Ok(true);
                }
                Ok("help") => Ok(USAGE.to_owned()),
                Ok(order) => obey(server, &mut self.faults, order),
                Err(_) => Err(bad("an order is in UTF-8, and this is not")),
            };
            match answer {
                // Output of more than one line comes before the answer.
                Ok(text) if text.ends_with('\n') => writeln!(answers, "{text}ok")?,
                Ok(text) => writeln!(answers, "{}", format!("ok {text}").trim_end())?,
                Err(error) => writeln!(answers, "error {error}")?,
            }
            answers.flush()?;
        }
        Ok(false)
    }
}

fn obey(server: &Server, faults: &mut Vec<Injected>, order: &str) -> Result<String, BadOrder> {
    let words: Vec<&str> = order.split_whitespace().collect();
    let or = |is_done: bool, problem: &str| if is_done { Ok(()) } else { Err(bad(problem)) };
    let (no_node, no_session) = ("there is no such node", "there is no such session");
    match words[..] {
        ["expire", "all"] => {
            for session in server.sessions() {
                server.expire(session.id);
            }
        }
        ["expire", id] => or(server.expire(session_id(id)?), no_session)?,
        ["cut"] => server.cut(),
        ["cut", id] => or(server.cut_session(session_id(id)?), no_session)?,
        ["freeze"] => server.freeze(),
        ["freeze", id] => or(server.freeze_session(session_id(id)?), no_session)?,
        ["thaw"] => server.thaw(),
        ["refuse", word @ ("on" | "off")] => server.refuse(word == "on"),
        ["advance", by] => server.advance(seconds(by)?),
        ["date", since_1970] => server.set_date(seconds(since_1970)?),
        ["clear"] => server.clear_faults(),
        ["put", path, ..] => {
            // Everything after the path, including spaces.
            let data = order.split_once(path).map_or("", |(_, data)| data.strip_prefix(' ').unwrap_or(data));
            server.put(path, data).map_err(bad)?;
        }
        ["delete", path] => or(server.delete(path), no_node)?,
        ["bring-back", path] => or(server.bring_back(path), "no node can come back there")?,
        ["sequence", path, next] => or(server.set_sequence(path, number(next)?), no_node)?,
        ["fault", what, kind, ref rest @ ..] => {
            faults.push(server.inject(fault(what, kind, rest)?));
            return Ok(faults.len().to_string());
        }
        ["strikes", number] => {
            let index = self::number::<usize>(number)?.checked_sub(1);
            let fault = index.and_then(|index| faults.get(index));
            return fault
                .map(|fault| fault.strikes().to_string())
                .ok_or_else(|| bad("there is no such fault"));
        }
        ["sessions"] => return Ok(server.sessions().iter().map(|session| format!("{session}\n")).collect()),
        ["owner", path] => {
            let owner = server.owner(path).map(|session| format!("{session:#x}"));
            return owner.ok_or_else(|| bad("there is no such node, or it ends with no session"));
        }
        ["children", path] => {
            return server.children(path).map(|names| names.join(" ")).ok_or_else(|| bad(no_node));
        }
        ["data", path] => {
            let data = server.data(path).ok_or_else(|| bad(no_node))?;
            return Ok(String::from_utf8_lossy(&data).escape_debug().to_string());
        }
        ["wait", path, count, bound] => {
            let names = server.wait_for_children(path, number(count)?, seconds(bound)?);
            let count = || server.children(path).map_or(0, |names| names.len());
            return names.map(|names| names.join(" ")).ok_or_else(|| bad(format!("there are {}", count())));
        }
        ["dump"] => return Ok(server.dump("/")),
        ["dump", path] => return Ok(server.dump(path)),
        _ => return Err(bad(format!("no such order: {}; 'help' tells which there are", words.join(" ")))),
    }
    Ok(String::new())
}

fn fault(what: &str, kind: &str, rest: &[&str]) -> Result<Fault, BadOrder> {
    let (what, delay) = what.split_once('=').map_or((what, None), |(what, delay)| (what, Some(delay)));
    let mut fault =
        Fault::named(what, kind.parse().map_err(bad)?, delay.map(seconds).transpose()?).map_err(bad)?;
    for word in rest {
        fault = match word.split_once('=') {
            Some(("nth", value)) => fault.nth(number(value)?),
            Some(("times", value)) => fault.times(number(value)?),
            Some(("below", path)) => fault.below(path),
            Some(("session", id)) => fault.of_session(session_id(id)?),
            _ => return Err(bad(format!("{word} is not nth=N, times=N, below=PATH or session=ID"))),
        };
    }
    Ok(fault)
}

fn number<T: FromStr>(text: &str) -> Result<T, BadOrder> {
    text.parse().map_err(|_| bad(format!("{text:?} is not a number")))
}

fn seconds(text: &str) -> Result<Duration, BadOrder> {
    let seconds: f64 = number(text)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| bad(format!("{text:?} is not a number of seconds")))
}

/// A session's number: hexadecimal with 0x, as it is printed, or decimal.
fn session_id(text: &str) -> Result<i64, BadOrder> {
    match text.strip_prefix("0x") {
        Some(digits) => {
            u64::from_str_radix(digits, 16).map(|bits| i64::from_ne_bytes(bits.to_ne_bytes())).ok()
        }
        None => text.parse().ok(),
    }
    .ok_or_else(|| bad(format!("{text:?} is not the number of a session")))
}
