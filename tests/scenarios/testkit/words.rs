//! The four-letter words that operators send.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::embedded::{Raw, SOON, creation, manual, operation};
use ground::until;
use zklock_testkit::Server;

/// Sends a word, and returns the whole answer.
pub(crate) fn ask(server: &Server, typed: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(typed).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The value in the line that begins with this name.
#[track_caller]
fn figure(text: &str, name: &str) -> String {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap_or_else(|| panic!("no {name:?} in {text:?}")).to_owned()
}

#[test]
fn a_server_says_that_it_is_well_however_it_is_typed() {
    let server = manual();
    for _ in 0..20 {
        for typed in ["ruok", "ruok\n", "ruok\r\n"] {
            assert_eq!(ask(&server, typed.as_bytes()), "imok", "{typed:?}");
        }
    }
    // Letter by letter.
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    for letter in b"ruok" {
        stream.write_all(&[*letter]).unwrap();
        Raw::open(&server).is_served();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "imok");
}

const KNOWN: [&str; 9] = ["conf", "cons", "envi", "isro", "mntr", "ruok", "srvr", "stat", "wchs"];

#[track_caller]
fn is_refused(server: &Server, word: &str) {
    let refusal = format!("{word} is not executed because it is not in the whitelist.\n");
    assert_eq!(ask(server, word.as_bytes()), refusal);
}

#[test]
fn a_word_that_is_not_answered_is_said_to_be_so() {
    let server = manual();
    for word in ["crst", "dump", "wchc"] {
        is_refused(&server, word);
    }
    for (allowed, answered) in [("srvr", &["srvr"][..]), (" stat, envi,dump", &["stat", "envi"]), ("", &[])] {
        let server = Server::builder().words(allowed).manual_clock().start().unwrap();
        for word in KNOWN.into_iter().filter(|word| !answered.contains(word)) {
            is_refused(&server, word);
        }
        for word in answered {
            assert!(!ask(&server, word.as_bytes()).contains("not executed"), "{word} in {allowed:?}");
        }
        is_refused(&server, "dump");
    }
}

#[test]
fn where_it_runs_and_how_it_was_made_is_told_in_pairs() {
    let server = Server::builder().tick(Duration::from_millis(500)).manual_clock().start().unwrap();
    let port = server.address().port().to_string();
    let configuration = ask(&server, b"conf");
    for (name, value) in [
        ("clientPort=", port.as_str()),
        ("tickTime=", "500"),
        ("minSessionTimeout=", "1000"),
        ("maxSessionTimeout=", "10000"),
    ] {
        assert_eq!(figure(&configuration, name), value, "{name}");
    }
    let environment = ask(&server, b"envi");
    let version = "Environment:\nzookeeper.version=3.8.0-zklock-testkit-";
    assert!(environment.starts_with(version), "{environment}");
    assert_eq!(figure(&environment, "os.name="), "Linux");
    let version = figure(&ask(&server, b"mntr"), "zk_version\t");
    assert!(version.contains("zklock-testkit"), "nobody takes it for a real one: {version}");
    for line in environment.lines().skip(1).chain(configuration.lines()) {
        assert!(line.split_once('=').is_some_and(|(_, value)| !value.is_empty()), "{line:?}");
    }
}

#[test]
fn a_connection_is_told_of_with_its_session_and_its_last_request() {
    let server = manual();
    let mut one = Raw::open(&server);
    let me = one.stream.local_addr().unwrap();
    let told = |word: &[u8]| figure(&ask(&server, word), &format!(" /{me}"));
    let session = format!("sid={:#x}", one.session);
    let greeted = told(b"cons");
    assert!(greeted.starts_with("[1](queued=0,recved=1,sent=1,sid="), "{greeted}");
    assert!(greeted.contains(&session) && greeted.contains(",lop=SESS,"), "{greeted}");
    assert!(greeted.contains(",to=4000,lcxid=0x0,lzxid=0x1,"), "{greeted}");

    assert_eq!(one.ask(7, operation::CREATE, &creation("/mine", 1)).error, 0);
    assert!(told(b"cons").contains(",lop=CREA,") && told(b"cons").contains(",lcxid=0x7,lzxid=0x2,"));
    assert_eq!(one.ask(8, operation::CREATE, &creation("/mine", 1)).error, -110);
    assert!(told(b"cons").contains(",lop=NA,") && told(b"cons").contains(",lcxid=0x8,lzxid=0x3,"));
    one.is_served();
    assert!(told(b"cons").contains(",lop=PING,") && told(b"cons").contains(",lcxid=0x8,lzxid=0x3,"));
    assert_eq!(told(b"stat"), "[1](queued=0,recved=4,sent=4)");

    assert_eq!(figure(&ask(&server, b"mntr"), "zk_global_sessions\t"), "1");

    // The list also has the connection that asks, and one that has sent nothing.
    let silent = Raw::silent(server.address());
    let silent = format!(" /{}[1](queued=0,recved=0,sent=0)", silent.stream.local_addr().unwrap());
    assert!(until(SOON, || ask(&server, b"stat").contains(&silent)));
    assert!(ask(&server, b"stat").contains("[0](queued=0,recved=1,sent=0)\n"));
}
