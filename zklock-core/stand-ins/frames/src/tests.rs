use super::requests::operation::*;
use super::*;

const EVENT: i32 = -1;
const NO_NODE: i32 = -101;

const STAT: [u8; 68] = [0; 68];

fn framed(parts: &[&[u8]]) -> Vec<u8> {
    let message = parts.concat();
    [&(message.len() as u32).to_be_bytes(), &message[..]].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as i32).to_be_bytes(), text.as_bytes()].concat()
}

fn ints(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn request(number: i32, operation: i32, body: &[u8]) -> Vec<u8> {
    framed(&[&ints(&[number, operation]), body])
}

fn watching(path: &str, watches: bool) -> Vec<u8> {
    [text(path), vec![u8::from(watches)]].concat()
}

fn reply(number: i32, error: i32, body: &[u8]) -> Vec<u8> {
    framed(&[&ints(&[number, 0, 7, error]), body])
}

fn event(path: &str) -> Vec<u8> {
    reply(EVENT, 0, &[ints(&[2, 3]), text(path)].concat())
}

/// A connection that has been greeted.
fn inspector() -> Inspector {
    let mut inspector = Inspector::default();
    inspector.sent(&framed(&[&[0; 45]]));
    inspector.look_at(&framed(&[&[0; 37]])).unwrap();
    assert_eq!(inspector.pass(&mut [0; 100]).unwrap(), 41);
    inspector
}

/// In a login by SASL, whose first word is the client's `initial`.
fn challenged(initial: &[u8], challenge: &[u8]) -> Result<(), &'static str> {
    let buffer = |bytes: &[u8]| [&(bytes.len() as i32).to_be_bytes(), bytes].concat();
    let mut inspector = inspector();
    inspector.sent(&request(1, SASL, &buffer(initial)));
    inspector.look_at(&reply(1, 0, &buffer(b"nonce=\"a\"")))?;
    inspector.sent(&request(2, SASL, &buffer(b"response")));
    inspector.look_at(&reply(2, 0, &buffer(challenge)))
}

/// What becomes of this reply to this request.
fn answered(operation: i32, body: &[u8]) -> Result<(), String> {
    let mut inspector = inspector();
    inspector.sent(&request(1, operation, &watching("/a", false)));
    let message = reply(1, 0, body);
    inspector.look_at(&message).map_err(String::from)?;
    assert_eq!(inspector.pass(&mut vec![0; message.len()]).unwrap(), message.len());
    Ok(())
}

#[test]
fn what_was_asked_for_is_passed_on_and_what_is_shorter_is_not() {
    let names = [ints(&[2]), text("one"), text("é")].concat();
    let results = [
        [ints(&[CREATE_2]), vec![0], ints(&[0]), text("/a"), STAT.to_vec()].concat(),
        [ints(&[13]), vec![0], ints(&[0])].concat(),
        [ints(&[SET_DATA]), vec![0], ints(&[0]), STAT.to_vec()].concat(),
        [ints(&[ERROR]), vec![0], ints(&[0, -2])].concat(),
        [ints(&[CREATE]), vec![0], ints(&[0]), text("/a")].concat(),
        [ints(&[-1]), vec![1], ints(&[-1])].concat(),
    ];
    let reads = [
        [ints(&[GET_DATA]), vec![0], ints(&[0]), text("data"), STAT.to_vec()].concat(),
        [ints(&[GET_CHILDREN]), vec![0], ints(&[0]), names.clone()].concat(),
        [ints(&[ERROR]), vec![0], ints(&[0, -2])].concat(),
        [ints(&[-1]), vec![1], ints(&[-1])].concat(),
    ];
    for (operation, body) in [
        (CREATE, text("/a")),
        (CREATE_2, [text("/a"), STAT.to_vec()].concat()),
        (CREATE_CONTAINER, [text("/a"), STAT.to_vec()].concat()),
        (EXISTS, STAT.to_vec()),
        (SET_DATA, STAT.to_vec()),
        (GET_DATA, [text("data"), STAT.to_vec()].concat()),
        (GET_DATA, [ints(&[-1]), STAT.to_vec()].concat()),
        (GET_CHILDREN, names.clone()),
        (GET_CHILDREN, ints(&[0])),
        (GET_CHILDREN_2, [names.clone(), STAT.to_vec()].concat()),
        (GET_ACL, [ints(&[1, 31]), text("world"), text("anyone")].concat()),
        (GET_EPHEMERALS, names.clone()),
        (WHO_AM_I, [ints(&[1]), text("sasl"), text("ann")].concat()),
        (MULTI, results.concat()),
        (MULTI_READ, reads.concat()),
    ] {
        answered(operation, &body).unwrap();
        for length in 0..body.len() {
            assert!(answered(operation, &body[..length]).is_err(), "{operation}: {length} of {}", body.len());
        }
    }
    // A delete brings nothing.
    answered(2, &[]).unwrap();
}

#[test]
fn lists_that_lie_and_paths_that_are_missing_are_refused() {
    for (operation, body) in [
        (GET_CHILDREN, ints(&[i32::MAX])),
        (GET_CHILDREN, [ints(&[1]), text("own"), text("before it")].concat()),
        (GET_CHILDREN, [ints(&[-1]), text("own")].concat()),
        (GET_CHILDREN, [ints(&[1, i32::MAX]), vec![b'x'; 100]].concat()),
        (GET_CHILDREN, ints(&[1, 0])),
        (GET_ACL, ints(&[i32::MAX, 31])),
        (GET_EPHEMERALS, ints(&[i32::MAX])),
        (WHO_AM_I, ints(&[i32::MAX])),
        (MULTI_READ, [ints(&[GET_CHILDREN]), vec![0], ints(&[0, i32::MAX])].concat()),
        (CREATE, ints(&[0])),
        (CREATE_2, [text("a"), STAT.to_vec()].concat()),
        (MULTI, [ints(&[CREATE]), vec![0], ints(&[0, -1])].concat()),
        // The end where a node's figures should stand.
        (MULTI, [ints(&[SET_DATA]), vec![0], ints(&[0, -1]), vec![1], ints(&[-1])].concat()),
        (GET_DATA, [text("data"), STAT.to_vec(), vec![0]].concat()),
    ] {
        assert!(answered(operation, &body).is_err(), "{operation} {body:?}");
    }
}

#[test]
fn a_transaction_has_no_more_results_than_a_request_has_room_for() {
    let results = |count: usize| {
        let checked = [ints(&[13]), vec![0], ints(&[0])].concat();
        [checked.repeat(count), ints(&[-1]), vec![1], ints(&[-1])].concat()
    };
    answered(MULTI, &results(100_000)).unwrap();
    assert!(answered(MULTI, &results(500_000)).is_err());
}

#[test]
fn replies_come_in_the_order_of_the_requests() {
    let both = [request(1, 2, &text("/a")), request(2, 2, &text("/b"))].concat();
    // In pieces of any size, as they go out and as they come in.
    for size in [1, 3, 7, 1000] {
        let mut inspector = inspector();
        both.chunks(size).for_each(|piece| inspector.sent(piece));
        let replies = [reply(1, 0, &[]), reply(-2, 0, &[]), reply(2, NO_NODE, &[])].concat();
        let mut passed: Vec<u8> = Vec::new();
        for piece in replies.chunks(size) {
            inspector.look_at(piece).unwrap();
            let mut into = [0; 5];
            while let count @ 1.. = inspector.pass(&mut into).unwrap() {
                passed.extend(&into[..count]);
            }
        }
        assert_eq!(passed, replies);
        assert!(inspector.look_at(&reply(2, 0, &[])).is_err(), "it has been answered");
    }
    for number in [2, 3, 0, i32::MAX] {
        let mut inspector = inspector();
        inspector.sent(&both);
        assert!(inspector.look_at(&reply(number, 0, &[])).is_err(), "{number}");
    }
}

#[test]
fn there_are_no_more_events_than_watches() {
    let mut inspector = inspector();
    inspector.sent(&request(1, GET_DATA, &watching("/a", false)));
    inspector.sent(&request(2, GET_DATA, &watching("/a", true)));
    inspector.sent(&request(3, EXISTS, &watching("/a/b", true)));
    inspector.sent(&request(4, GET_CHILDREN, &watching("/a", true)));
    for (number, error) in [(1, NO_NODE), (2, NO_NODE), (3, NO_NODE)] {
        inspector.look_at(&reply(number, error, &[])).unwrap();
    }
    // One of a node that is not there, one that is still to be answered.
    inspector.look_at(&[event("/a/b"), event("/a")].concat()).unwrap();
    assert!(inspector.look_at(&event("/a")).is_err());
}

#[test]
fn an_event_has_the_path_of_something_that_is_watched() {
    for path in ["", "a", "é", "/abcd"] {
        let mut inspector = inspector();
        inspector.sent(&request(1, GET_DATA, &watching("/abc", true)));
        assert!(inspector.look_at(&event(path)).is_err(), "{path:?}");
    }
    let mut inspector = inspector();
    inspector.sent(&request(1, ADD_WATCH, &[text("/a"), ints(&[1])].concat()));
    inspector.look_at(&[event("/a/b"), event("/a/c")].concat()).unwrap();
}

#[test]
fn a_length_that_lies_is_refused_before_anything_is_waited_for() {
    for length in [LONGEST as u32 + 1, i32::MAX as u32, u32::MAX, i32::MIN as u32] {
        assert!(inspector().look_at(&length.to_be_bytes()).is_err(), "{length}");
    }
    assert!(inspector().look_at(&[0; 4]).is_err(), "nothing is not a message");
    // One that may come takes the room of what has come.
    let mut inspector = inspector();
    inspector.look_at(&(LONGEST as u32).to_be_bytes()).unwrap();
    inspector.look_at(&[0; 1000]).unwrap();
    assert!(inspector.incoming.capacity() < 10_000 && inspector.pass(&mut [0; 10]).unwrap() == 0);
}

#[test]
fn what_was_long_is_not_kept() {
    let mut inspector = inspector();
    inspector.sent(&request(1, GET_DATA, &watching("/a", false)));
    let message = reply(1, 0, &[text(&"x".repeat(2 * KEPT)), STAT.to_vec()].concat());
    inspector.look_at(&message).unwrap();
    assert_eq!(inspector.pass(&mut vec![0; message.len()]).unwrap(), message.len());
    assert!(inspector.incoming.capacity() <= KEPT);
}

#[test]
fn what_answers_a_word_goes_by() {
    let mut inspector = Inspector::default();
    inspector.sent(b"isro");
    inspector.received(b"rw");
    let mut into = [0; 10];
    assert_eq!((inspector.pass(&mut into).unwrap(), &into[..2]), (2, &b"rw"[..]));
}

/// It could pass off what comes later as its greeting.
#[test]
fn a_server_does_not_speak_first() {
    let mut inspector = Inspector::default();
    inspector.received(&framed(&[&[0; 37]]));
    assert!(inspector.pass(&mut [0; 100]).is_err());
}

#[test]
fn a_greeting_has_all_that_belongs_to_it() {
    let greeting = [vec![0; 16], text("password"), vec![0]].concat();
    for length in 0..greeting.len() {
        let mut inspector = Inspector::default();
        inspector.sent(&framed(&[&[0; 45]]));
        // Servers before 3.4 say nothing about reading alone.
        let is_whole = length == greeting.len() - 1;
        assert_eq!(inspector.look_at(&framed(&[&greeting[..length]])).is_ok(), is_whole, "{length}");
    }
}

/// The library looks for the end of a text with two of them for ever.
#[test]
fn a_login_by_digest_has_no_escapes() {
    challenged(b"", b"rspauth=0123").unwrap();
    assert!(challenged(b"", br#"realm="a\xb\yc""#).is_err());
    // What Kerberos sends is not text.
    challenged(b"\x60\x82", b"\\\\").unwrap();
}

#[test]
fn a_breach_is_told_on_the_thread_that_finds_it() {
    let mut broken = inspector();
    broken.received(&reply(1, 0, &[]));
    let (inner, outer) = watched(|| watched(|| broken.pass(&mut [0; 10]).is_err()));
    assert_eq!((inner, outer), ((true, Some("a reply comes out of turn")), None));
    assert_eq!(watched(|| inspector().pass(&mut [0; 10]).is_ok()), (true, None));
}
