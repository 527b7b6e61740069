//! The ground as a program, for tests in other languages.

use crate::support::SOON;
use ground::until;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

#[test]
fn nothing_outlives_a_killed_test_process() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ground"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut orders = child.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut ask = |order: &str| {
        writeln!(orders, "{order}").expect("it listens");
        answers.next().expect("an answer").expect("text")
    };
    let address = ask("start standalone tick=200");
    let address: SocketAddr =
        address.strip_prefix("ok ").expect("it has started").parse().expect("an address");
    let home = ask("home 1").strip_prefix("ok ").map(std::path::PathBuf::from).expect("a folder");
    assert!(home.join("zoo.cfg").exists());
    assert_eq!(ask("pause 1"), "ok");

    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let deserted =
        || TcpStream::connect(address).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    assert!(until(SOON, deserted), "even a paused server ends with its test process");
    assert!(until(SOON, || !home.exists()), "and so do its data");
}
