//! Limits that keep one client from harming the server or other clients.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::embedded::{Raw, SOON, client, operation, reading, soon};
use crate::testkit::program::Program;
use ground::until;
use zklock_testkit::Server;

#[test]
fn a_connection_beyond_the_limit_is_closed_until_another_ends() {
    let server = Server::builder().max_connections(2).manual_clock().start().unwrap();
    let (mut one, other) = (Raw::open(&server), Raw::open(&server));
    assert!(Raw::silent(server.address()).is_closed(SOON));
    one.is_served();
    drop(other);
    assert!(until(SOON, || Raw::attach(&server, SOON, 0, &[0; 16]).is_ok()), "there is room again");
    one.is_served();
}

#[test]
fn a_frame_beyond_the_limit_closes_its_connection_alone() {
    let server = Server::builder().max_frame(1000).manual_clock().start().unwrap();
    let mut bystander = Raw::open(&server);
    for (length, is_taken) in [(1000, true), (1001, false), (i32::MAX as u32, false), (u32::MAX, false)] {
        let mut raw = Raw::open(&server);
        let path = format!("/{}", "x".repeat(1000 - 8 - 4 - 1 - 1));
        let head = [1_i32.to_be_bytes(), operation::EXISTS.to_be_bytes()].concat();
        let frame = [head, reading(&path, false)].concat();
        assert_eq!(frame.len(), 1000);
        raw.stream.write_all(&u32::to_be_bytes(length)).unwrap();
        // A message beyond the limit is refused because of the length that it announces.
        let _ = raw.stream.write_all(if is_taken { &frame } else { &[] });
        if is_taken {
            assert_eq!(raw.answer().error, -101);
        } else {
            assert!(raw.is_closed(SOON), "{length}");
        }
        bystander.is_served();
    }
}

#[test]
fn what_is_announced_and_does_not_come_costs_no_memory() {
    // A separate process, so that its memory can be measured.
    let mut program = Program::start(&[]);
    program.order("put /a b");
    let before = program.resident();
    let announced = [0x000f_ffff_u32, 0x7fff_ffff, u32::MAX];
    let announce = |number: usize| {
        let mut stream = TcpStream::connect(program.address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.write_all(&announced[number % announced.len()].to_be_bytes()).unwrap();
        stream
    };
    let mut connections: Vec<TcpStream> = (0..300).map(announce).collect();
    // Messages that are too long are refused. The server still waits for the rest of the others.
    for (number, stream) in connections.iter_mut().enumerate().filter(|(number, _)| number % 3 > 0) {
        assert!(matches!(stream.read(&mut [0]), Ok(0)), "{number}");
    }
    let grown = program.resident().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes for {} connections", connections.len());
    assert_eq!(program.order("data /a"), "ok b");
}

#[test]
fn who_does_not_read_is_cut_off_and_nobody_else() {
    let server = Server::start().unwrap();
    let (mut slow, mut bystander) = (Raw::open_for(&server, SOON * 4), Raw::open(&server));
    server.put("/big", vec![b'x'; 1 << 20]).unwrap();
    // More than the limit and the sockets' buffers together.
    for xid in 0..150 {
        slow.send(xid, operation::GET_DATA, &reading("/big", false));
    }
    let is_cut = |id: i64| server.sessions().iter().any(|session| session.id == id && !session.is_connected);
    assert!(until(SOON, || is_cut(slow.session)));
    bystander.is_served();
    // Its session lives on, and a client that reads gets all replies.
    let mut again = slow.again(&server).unwrap();
    for xid in 0..80 {
        assert_eq!(
            again.ask(xid, operation::GET_DATA, &reading("/big", false)).body.len(),
            (1 << 20) + 4 + 68
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_from_one_client_stops_nobody_else() {
    let server = Server::start().unwrap();
    let flooding = Raw::open(&server);
    let (mut reading, mut writing) =
        (flooding.stream.try_clone().unwrap(), flooding.stream.try_clone().unwrap());
    let drained = std::thread::spawn(move || std::io::copy(&mut reading, &mut std::io::sink()));
    let flooded = std::thread::spawn(move || {
        let ping = [8_i32.to_be_bytes(), (-2_i32).to_be_bytes(), operation::PING.to_be_bytes()].concat();
        let many = ping.repeat(1000);
        while writing.write_all(&many).is_ok() {}
    });
    let client = client(&server).await;
    let lock = client.mutex("/flood").unwrap();
    for _ in 0..20 {
        soon(lock.acquire()).await.unwrap().release().await.unwrap();
    }
    assert!(!flooded.is_finished(), "the flood has lasted");
    drop(flooding.stream.shutdown(std::net::Shutdown::Both));
    flooded.join().unwrap();
    assert!(drained.join().unwrap().unwrap_or(u64::MAX) > 1000);
}
