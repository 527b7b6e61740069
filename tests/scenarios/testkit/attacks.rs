//! Attacks that would bring down a careless server, or let one client harm the others.

use std::process::{Command, Stdio};

use crate::support::child::Process;
use crate::support::embedded::{Raw, SOON, creation, manual, operation, reading, text};
use ground::embedded_program;
use zklock_testkit::{Fault, Kind};

const CREATE: i32 = operation::CREATE;
const EPHEMERAL: i32 = 1;
const MULTI_READ: i32 = 22;

#[test]
fn nothing_is_put_below_an_ephemeral_node() {
    let server = manual();
    let mut raw = Raw::open(&server);
    assert_eq!(raw.ask(1, CREATE, &creation("/e", EPHEMERAL)).error, 0);
    let refused = server.put("/e/below/it", "").unwrap_err().to_string();
    assert!(refused.contains("\"/e/below/it\"") && refused.contains("no children"), "{refused}");
    assert!(server.expire(raw.session));
    assert_eq!(server.children("/"), Some(vec!["zookeeper".to_owned()]));
}

#[test]
fn each_of_a_thousand_events_may_end_the_next_session() {
    const SESSIONS: usize = 1000;
    let server = manual();
    server.put("/n-0", "").unwrap();
    // As in a queue: each watches the node before its own.
    let mut queue = Vec::new();
    for index in 1..=SESSIONS {
        let mut raw = Raw::open(&server);
        assert_eq!(raw.ask(1, CREATE, &creation(&format!("/n-{index}"), EPHEMERAL)).error, 0);
        let before = reading(&format!("/n-{}", index - 1), true);
        assert_eq!(raw.ask(2, operation::GET_DATA, &before).error, 0);
        queue.push(raw);
    }
    let injected = server.inject(Fault::expire(Kind::Event).times(SESSIONS as u64));
    assert!(server.delete("/n-0"));
    assert_eq!(injected.strikes(), SESSIONS as u64);
    assert_eq!(server.sessions(), []);
    assert_eq!(server.children("/"), Some(vec!["zookeeper".to_owned()]));
}

#[test]
fn what_was_sent_behind_a_message_that_is_struck_does_not_count() {
    let server = manual();
    let injected = server.inject(Fault::lose_request(Kind::Create).times(2));
    let mut raw = Raw::open(&server);
    for number in 1..20 {
        raw.send(number, CREATE, &creation("/node", 0));
    }
    assert!(raw.is_closed(SOON));
    assert_eq!(injected.strikes(), 1);
    let mut other = Raw::open(&server);
    other.send(1, CREATE, &creation("/node", 0));
    assert!(other.is_closed(SOON));
    assert_eq!(injected.strikes(), 2);
}

#[test]
fn a_short_request_gets_no_endless_answer() {
    let server = manual();
    server.put("/long", vec![b'x'; 1 << 20]).unwrap();
    let head = |is_done: bool| [4_i32.to_be_bytes().as_slice(), &[u8::from(is_done)], &[0; 4]].concat();
    let one = [head(false), reading("/long", false)].concat();
    let mut raw = Raw::open(&server);
    let few = [one.repeat(3), head(true)].concat();
    assert!(raw.ask(1, MULTI_READ, &few).body.len() > 3 << 20);
    let many = [one.repeat(1000), head(true)].concat();
    let refused = raw.ask(2, MULTI_READ, &many);
    assert_eq!((refused.error, refused.body.len()), (-5, 0));
    raw.is_served();
}

#[test]
fn an_access_list_of_forty_thousand_holds_nobody_up() {
    let server = manual();
    let entry = |number: i32| [number.to_be_bytes().to_vec(), text("ip"), text("127.0.0.1")].concat();
    let entries: Vec<u8> = (1..=40_000).flat_map(entry).collect();
    let body = [text("/node"), text(""), 40_000_i32.to_be_bytes().to_vec(), entries, vec![0; 4]].concat();
    let mut raw = Raw::open(&server);
    assert_eq!(raw.ask(1, CREATE, &body).error, 0);
}

#[test]
fn a_server_ends_though_it_has_no_descriptors_left() {
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 24; exec \"$0\""]).arg(embedded_program().unwrap());
    let mut program = Process::start(&mut limited, Stdio::piped());
    let address = program.line().parse().unwrap();
    // More than the server may have; the kernel accepts the rest into the backlog.
    let clients: Vec<_> = (0..40).map(|_| Raw::silent(address)).collect();
    assert_eq!(program.ask("quit"), "ok");
    program.ends();
    drop(clients);
}
