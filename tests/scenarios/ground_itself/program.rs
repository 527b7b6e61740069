//! The ground as a program, for tests in other languages.

use crate::support::{SESSION, SOON};
use ground::until;
use ground::wire::{Connection, Mode};
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
    let address = ask("start standalone tick=200 tls");
    let address: SocketAddr =
        address.strip_prefix("ok ").expect("it has started").parse().expect("an address");
    let through: SocketAddr =
        ask("proxy 1").strip_prefix("ok 1 ").expect("a proxy").parse().expect("an address");
    assert_eq!(ask("create /a some data"), "ok /a");
    assert_eq!(ask("sequence 1 /a 41"), "ok");
    assert_eq!(ask("sequence 1 /b 41").split_once("it has").map(|(_, node)| node), Some(" no node /b"));
    let home = ask("home 1").strip_prefix("ok ").map(std::path::PathBuf::from).expect("a folder");
    assert!(home.join("zoo.cfg").exists());
    let tls = ask("tls");
    let files = tls.split(' ').skip(2).filter(|file| std::fs::exists(file).is_ok_and(|exists| exists));
    assert_eq!(files.count(), 6, "{tls}");
    assert_eq!(ask("data /a"), "ok some data");
    assert_eq!(ask("children /"), "ok a zookeeper");
    assert_eq!(ask("wait-children /a 0 100"), "ok");
    assert_eq!(ask("drop-reply 1 create 1 /a/b"), "ok 1");
    assert_eq!(ask("fired 1"), "ok false");
    let mut client = Connection::open(through, SESSION).expect("the proxy is open");
    assert!(client.create(b"/a/b", b"", Mode::Ephemeral).is_err());
    assert_eq!(ask("wait 1 1000"), "ok true");
    assert_eq!(ask("exists /a/b"), "ok true");
    assert!(ask("expire 1").starts_with("ok 0x"));
    assert_eq!(ask("exists /a/b"), "ok false");
    assert!(ask("help").starts_with("ok start"));
    assert!(ask("cut 9").starts_with("error"));
    assert_eq!(ask("pause 1"), "ok");

    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let deserted =
        || TcpStream::connect(address).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    assert!(until(SOON, deserted), "even a paused server ends with its test process");
    assert!(until(SOON, || !home.exists()), "and so do its data");
}
