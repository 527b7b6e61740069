//! Every fault, as it looks on the wire, and at which message it strikes.

use std::time::Duration;

use super::console::order;
use crate::support::embedded::{
    A_WHILE, Answer, EVENT, Raw, SOON, creation, manual, operation, reading, text, transaction,
};
use ground::until;
use zklock_testkit::{Fault, Kind, Server};

const CREATE: i32 = operation::CREATE;

/// Each as the console calls it: whether the request is carried out, whether it is answered, and whether the connection ends.
#[test]
fn each_fault_strikes_a_request_in_its_own_way() {
    for (fault, is_done, is_answered, is_closed) in [
        ("lose-request", false, false, true),
        ("cut-before-reply", true, false, true),
        ("cut-after-reply", true, true, true),
        ("drop-reply", true, false, false),
        ("delay-reply=30", true, false, false),
        ("freeze", false, false, false),
    ] {
        let server = manual();
        let mut raw = Raw::open(&server);
        assert_eq!(order(&server, &format!("fault {fault} create")), "ok 1\n");
        raw.send(1, CREATE, &creation("/node", 0));
        let patience = if is_answered { SOON } else { A_WHILE };
        assert_eq!(raw.answer_within(patience).is_some(), is_answered, "{fault}");
        let is_there = || server.children("/node").is_some();
        assert!(until(SOON, || is_there() == is_done), "{fault}");
        if is_closed {
            assert!(raw.is_closed(SOON) && !server.sessions()[0].is_connected, "{fault}");
            raw.again(&server).unwrap().is_served();
            continue;
        }
        Raw::open(&server).is_served();
        raw.send(2, operation::EXISTS, &reading("/node", false));
        if fault == "freeze" {
            server.thaw();
        } else if fault != "drop-reply" {
            server.advance(Duration::from_secs(29));
            assert_eq!(raw.answer_within(A_WHILE), None, "not before its time, nor what is behind it");
            server.advance(Duration::from_secs(1));
        }
        if fault != "drop-reply" {
            assert_eq!(raw.answer().xid, 1, "{fault}");
        }
        assert_eq!(raw.answer().xid, 2, "{fault}: the connection goes on");
        assert!(is_there(), "{fault}");
    }
}

#[test]
fn a_session_that_ends_at_a_request_does_not_live_to_see_it_done() {
    let server = manual();
    let mut raw = Raw::open(&server);
    assert_eq!(raw.ask(1, CREATE, &creation("/mine", 1)).error, 0);
    let injected = server.inject(Fault::expire(Kind::Create));
    raw.send(2, CREATE, &creation("/node", 0));
    assert!(injected.wait(SOON));
    assert!(raw.is_closed(SOON));
    assert_eq!((server.children("/node"), server.children("/mine")), (None, None));
    assert_eq!(server.sessions(), []);
    assert_eq!(raw.again(&server).unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_greeting_can_be_struck_before_and_after_the_session_begins() {
    let server = manual();
    for (fault, sessions) in
        [(Fault::lose_request(Kind::Connect), 0), (Fault::cut_before_reply(Kind::Connect), 1)]
    {
        let injected = server.inject(fault);
        Raw::attach(&server, SOON, 0, &[0; 16]).unwrap_err();
        assert_eq!((injected.strikes(), server.sessions().len()), (1, sessions));
    }
}

#[test]
fn a_session_that_ends_as_it_comes_back_is_refused() {
    let server = manual();
    let raw = Raw::open(&server);
    server.cut();
    let injected = server.inject(Fault::expire(Kind::Connect).of_session(raw.session));
    assert_eq!(raw.again(&server).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    assert_eq!((injected.strikes(), server.sessions()), (1, vec![]));
}

/// A request of each kind: the number of the operation, and the fields after its header.
fn requests() -> Vec<(Kind, i32, Vec<u8>)> {
    let none = vec![0; 4];
    vec![
        (Kind::Create, CREATE, creation("/node", 0)),
        (Kind::Create, 15, creation("/more", 0)),
        (Kind::Create, 19, creation("/container", 4)),
        (Kind::Exists, 3, reading("/", false)),
        (Kind::GetData, 4, reading("/", false)),
        (Kind::SetData, 5, [text("/node"), text(""), vec![255; 4]].concat()),
        (Kind::GetChildren, 8, reading("/", false)),
        (Kind::GetChildren, 12, reading("/", false)),
        (Kind::Acl, 6, text("/")),
        (Kind::Sync, 9, text("/")),
        (Kind::Ping, 11, vec![]),
        (Kind::Multi, 14, transaction(&[(13, [text("/"), vec![255; 4]].concat())])),
        (Kind::Auth, 100, [none.clone(), text("digest"), text("me:secret")].concat()),
        (Kind::Watches, 101, [vec![0; 8], none.clone(), none.clone(), none].concat()),
        (Kind::Delete, 2, [text("/node"), vec![255; 4]].concat()),
        (Kind::Other, 107, vec![]),
        (Kind::Close, operation::CLOSE_SESSION, vec![]),
    ]
}

#[test]
fn every_kind_of_request_is_known_by_a_fault_of_its_kind_alone() {
    let mut seen = vec![Kind::Connect, Kind::Event];
    for (kind, operation, body) in requests() {
        let server = manual();
        server.put("/node", "").unwrap();
        let mut raw = Raw::open(&server);
        let faults: Vec<_> =
            Kind::ALL.iter().map(|&kind| (kind, server.inject(Fault::drop_reply(kind)))).collect();
        raw.send(7, operation, &body);
        let right = faults.iter().find(|(other, _)| *other == kind).unwrap();
        assert!(right.1.wait(SOON), "{kind} at {operation}");
        let strikes: u64 = faults.iter().map(|(_, injected)| injected.strikes()).sum();
        assert_eq!(strikes, 1, "{operation} is of one kind");
        seen.push(kind);
    }
    for kind in Kind::ALL {
        assert!(seen.contains(kind), "{kind} is not tried");
        assert_eq!(kind.word().parse(), Ok(*kind));
    }
}

#[test]
fn a_fault_waits_for_its_turn_and_for_its_path_and_strikes_as_often_as_it_is_told() {
    for (fault, paths) in [
        (Fault::drop_reply(Kind::Exists).nth(3).times(2), ["/"; 6]),
        (
            Fault::drop_reply(Kind::Exists).below("/a/b/").times(9),
            ["/a", "/a/bc", "/a/b", "/a/b/c", "/x/a/b", "/"],
        ),
    ] {
        let server = manual();
        let (mut raw, injected) = (Raw::open(&server), server.inject(fault));
        for (xid, path) in (1..).zip(paths) {
            raw.send(xid, operation::EXISTS, &reading(path, false));
        }
        let answered: Vec<i32> = (0..4).map(|_| raw.answer().xid).collect();
        assert_eq!((answered, injected.strikes()), (vec![1, 2, 5, 6], 2), "{paths:?}");
    }
}

#[test]
fn of_two_faults_at_one_message_the_first_strikes_and_the_second_waits() {
    let server = manual();
    let mut raw = Raw::open(&server);
    let first = server.inject(Fault::drop_reply(Kind::Exists));
    let second = server.inject(Fault::cut_before_reply(Kind::Exists));
    raw.send(1, operation::EXISTS, &reading("/", false));
    assert!(first.wait(SOON));
    raw.is_served();
    assert_eq!(second.strikes(), 0);
    raw.send(2, operation::EXISTS, &reading("/", false));
    assert!(raw.is_closed(SOON));
    assert_eq!((first.strikes(), second.strikes()), (1, 1));
}

#[test]
fn a_fault_of_a_session_leaves_others_alone() {
    let server = manual();
    let (mut one, mut other) = (Raw::open(&server), Raw::open(&server));
    let injected = server.inject(Fault::cut_before_reply(Kind::Ping).of_session(other.session));
    one.is_served();
    assert_eq!(injected.strikes(), 0);
    other.send(-2, operation::PING, &[]);
    assert!(other.is_closed(SOON));
    one.is_served();
}

/// A connection that watches `/watched`, and one that can create it.
fn watched(server: &Server) -> (Raw, Raw) {
    let (mut watcher, maker) = (Raw::open(server), Raw::open(server));
    assert_eq!(watcher.ask(1, operation::EXISTS, &reading("/watched", true)).error, -101);
    (watcher, maker)
}

fn is_event(answer: &Answer) -> bool {
    answer.xid == EVENT && answer.body.ends_with(&text("/watched"))
}

#[test]
fn an_event_can_be_lost_late_or_the_last_thing_that_comes() {
    let server = manual();
    for fault in [Fault::drop_reply, Fault::cut_before_reply, Fault::cut_after_reply, Fault::lose_request] {
        let (mut watcher, mut maker) = watched(&server);
        let injected = server.inject(fault(Kind::Event).below("/watched").of_session(watcher.session));
        assert_eq!(maker.ask(1, CREATE, &creation("/watched", 0)).error, 0);
        assert_eq!(injected.strikes(), 1);
        let fault = format!("{:?}", fault(Kind::Event));
        if fault.contains("CutAfterReply") {
            assert!(is_event(&watcher.answer()));
        }
        if fault.contains("DropReply") {
            watcher.is_served();
        } else {
            assert!(watcher.is_closed(SOON), "{fault}");
        }
        assert!(server.delete("/watched"));
    }

    let (mut watcher, mut maker) = watched(&server);
    let _ = server.inject(Fault::delay_reply(Kind::Event, Duration::from_secs(5)));
    assert_eq!(maker.ask(1, CREATE, &creation("/watched", 0)).error, 0);
    watcher.send(2, operation::EXISTS, &reading("/watched", false));
    assert_eq!(watcher.answer_within(A_WHILE), None);
    server.advance(Duration::from_secs(5));
    assert!(is_event(&watcher.answer()));
    assert_eq!(watcher.answer().xid, 2);
}
