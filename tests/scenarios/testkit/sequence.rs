//! The numbers of sequential nodes: they wrap, and begin again with their parent.

use crate::common::{Raw, client, creation, manual, operation, queue_of, soon};
use tokio::sync::mpsc::unbounded_channel;
use zklock_testkit::Server;

const SEQUENTIAL: i32 = 2;

fn next(raw: &mut Raw, parent: &str) -> String {
    let answer = raw.ask(1, operation::CREATE, &creation(&format!("{parent}/n-"), SEQUENTIAL));
    assert_eq!(answer.error, 0);
    answer.text().split_off(parent.len() + 3)
}

#[test]
fn numbers_wrap_and_begin_again_with_the_parent() {
    let server = manual();
    let mut raw = Raw::open(&server);
    server.put("/p", "").unwrap();
    assert_eq!([next(&mut raw, "/p"), next(&mut raw, "/p")], ["0000000000", "0000000001"]);
    assert!(server.set_sequence("/p", i32::MAX));
    assert_eq!([next(&mut raw, "/p"), next(&mut raw, "/p")], ["2147483647", "-2147483648"]);
    assert!(server.delete("/p"));
    server.put("/p", "").unwrap();
    assert_eq!(next(&mut raw, "/p"), "0000000000");
    assert!(!server.set_sequence("/not-there", 1));
}

#[test]
fn a_deletion_gives_no_number_back() {
    let server = manual();
    let mut raw = Raw::open(&server);
    server.put("/p", "").unwrap();
    next(&mut raw, "/p");
    assert!(server.delete("/p/n-0000000000"));
    assert_eq!(next(&mut raw, "/p"), "0000000001");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_goes_on_in_its_order_where_the_numbers_wrap() {
    const PATH: &str = "/queue";
    let server = Server::start().unwrap();
    server.put(PATH, "").unwrap();
    assert!(server.set_sequence(PATH, i32::MAX - 1));
    let (granted, mut grants) = unbounded_channel();
    let mut clients = Vec::new();
    for place in 0..5 {
        let client = client(&server).await;
        let (lock, granted) = (client.mutex(PATH).unwrap(), granted.clone());
        tokio::spawn(async move { granted.send((place, lock.acquire().await.unwrap())) });
        queue_of(&server, PATH, place + 1);
        clients.push(client);
    }
    let mut tokens = Vec::new();
    let numbers = ["-2147483646", "2147483646", "2147483647", "-2147483648", "-2147483647"];
    for (place, number) in [numbers[1], numbers[2], numbers[3], numbers[4], numbers[0]].iter().enumerate() {
        let (first, hold) = soon(grants.recv()).await.unwrap();
        assert_eq!(first, place);
        assert!(hold.node().ends_with(number), "{}: {number}", hold.node());
        assert!(grants.try_recv().is_err(), "two at once");
        tokens.push(hold.token());
        soon(hold.release()).await.unwrap();
    }
    assert!(tokens.is_sorted());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_grow_though_the_numbers_begin_again_with_the_parent() {
    let server = Server::start().unwrap();
    let client = client(&server).await;
    let lock = client.mutex("/again").unwrap();
    let mut before = None;
    for _ in 0..3 {
        let hold = soon(lock.acquire()).await.unwrap();
        assert!(hold.node().ends_with("-0000000000"), "{}", hold.node());
        assert!(before < Some(hold.token()));
        before = Some(hold.token());
        soon(hold.release()).await.unwrap();
        assert!(server.delete("/again"));
    }
}
