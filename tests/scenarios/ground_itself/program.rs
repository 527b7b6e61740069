//! The ground as a program, for tests in other languages.

use crate::support::SOON;
use crate::support::child::Process;
use ground::until;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

#[test]
fn nothing_outlives_a_killed_test_process() {
    let mut program = Process::start(&mut Command::new(env!("CARGO_BIN_EXE_ground")), Stdio::piped());
    let address = program.ask("start standalone tick=200");
    let address: SocketAddr =
        address.strip_prefix("ok ").expect("it has started").parse().expect("an address");
    let home = program.ask("home 1").strip_prefix("ok ").map(std::path::PathBuf::from).expect("a folder");
    assert!(home.join("zoo.cfg").exists());
    assert_eq!(program.ask("pause 1"), "ok");

    drop(program);
    let deserted =
        || TcpStream::connect(address).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    assert!(until(SOON, deserted), "even a paused server ends with its test process");
    assert!(until(SOON, || !home.exists()), "and so do its data");
}
