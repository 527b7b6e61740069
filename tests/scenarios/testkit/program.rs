//! The server as a program: it starts, takes orders, and ends with the program that started it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::support::child::Process;
use crate::support::embedded::SOON;
use ground::{embedded_program, until};

/// The program, running.
pub(crate) struct Program {
    pub(crate) address: SocketAddr,
    process: Process,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(embedded_program().unwrap_or_else(|reason| panic!("{reason}")));
    command.args(arguments);
    command
}

impl Program {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, Stdio::piped())
    }

    fn start_with(arguments: &[&str], input: Stdio) -> Self {
        let process = Process::start(&mut command(arguments), input);
        Self { address: process.line().parse().expect("it says where it listens"), process }
    }

    /// The last line of the answer to an order.
    #[track_caller]
    pub(crate) fn order(&mut self, order: &str) -> String {
        self.process.ask(order)
    }

    /// The memory that it uses, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

fn is_well(address: SocketAddr) -> bool {
    let mut answer = String::new();
    TcpStream::connect(address)
        .and_then(|mut stream| {
            stream.set_read_timeout(Some(SOON))?;
            stream.write_all(b"ruok")?;
            stream.read_to_string(&mut answer)
        })
        .is_ok()
        && answer == "imok"
}

#[test]
fn it_ends_with_the_pipe_that_is_its_input() {
    let mut program = Program::start(&[]);
    assert_eq!(program.order("put /a b"), "ok");
    assert!(is_well(program.address));
    program.process.hang_up();
    assert_eq!(program.process.ends().code(), Some(0));
    assert!(TcpStream::connect(program.address).is_err());
}

#[test]
fn without_a_pipe_it_goes_on() {
    let mut program = Program::start_with(&["--tick", "0.1"], Stdio::null());
    std::thread::sleep(Duration::from_millis(100));
    assert!(is_well(program.address));
    assert!(program.process.is_running());
}

#[test]
fn it_listens_where_it_is_told() {
    let mut first = Program::start(&["--listen", "127.0.0.1:0"]);
    let address = first.address;
    assert!(address.ip().is_loopback() && address.port() != 0);
    assert_eq!((first.order("quit"), first.process.ends().code()), ("ok".to_owned(), Some(0)));
    let second = Program::start(&["--listen", &address.to_string()]);
    assert_eq!(second.address, address);
    let taken = command(&["--listen", &address.to_string()]).stdin(Stdio::null()).output().unwrap();
    fails(&taken, &[&address.to_string(), "in use"]);
    assert!(is_well(address));
}

#[track_caller]
fn fails(output: &Output, says: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(output.stdout.is_empty(), "nobody is to read an address");
    assert_eq!(error.lines().count(), 1, "a sentence, no trace: {error}");
    for part in says {
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
}

#[test]
fn what_it_does_not_understand_ends_it_with_a_sentence() {
    let run = |words: &[&str]| command(words).stdin(Stdio::null()).output().unwrap();
    fails(&run(&["--nonsense"]), &["--nonsense", "--help"]);
    fails(&run(&["--tick", "x"]), &["\"x\""]);
    fails(&run(&["--listen", "nonsense"]), &["nonsense"]);
    let help = run(&["--help"]);
    assert_eq!((help.status.code(), help.stdout), (Some(0), zklock_testkit::console::USAGE.into()));
}

#[test]
fn an_answer_that_nobody_reads_ends_it_without_a_trace() {
    let mut command = command(&[]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut orders = child.stdin.take().unwrap();
    // The program may be gone before it has read this.
    let _ = writeln!(orders, "help");
    assert!(until(SOON, || child.try_wait().unwrap().is_some()), "it goes on");
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert!(!error.contains("panicked"), "{error}");
}
