//! Wrong arguments are reported where they come in, with advice, and leave nothing on the server.

use crate::support::strangers::restricted;
use crate::support::{SOON, client, on_a_thread, operator, options, proxied_client, says, settled, soon};
use ground::wire::{Failure, Mode};
use ground::{Action, Direction, Kind, Trigger, shared, until};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use zklock_core::{Client, ClientOptions, Error, ErrorKind, blocking};
use zookeeper_client::Permission;

/// All nodes on the shared server at this path and below.
fn tree(below: &str) -> BTreeSet<String> {
    operator().tree(below)
}

async fn connecting(options: ClientOptions) -> Error {
    soon(Client::connect(options)).await.map(drop).unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_path_is_refused_before_anything_is_sent() {
    let (client, proxy) = proxied_client().await;
    let threads = on_a_thread(|| blocking::Client::connect(options(&shared().connect_string())).unwrap());
    let threads = soon(threads).await;
    let long = format!("/bad{}", "x".repeat(2048));
    proxy.record();
    for (path, telling) in [
        ("", "is empty: a path begins with /"),
        ("bad/relative", "is relative: a path begins with /"),
        ("/bad//double", "contains //: leave one out"),
        ("/bad/", "ends with /: leave that out"),
        ("/bad\0nul", "NUL"),
        ("/bad\u{7f}delete", "ZooKeeper forbids"),
        ("/bad/../up", "no relative paths"),
        ("/bad/.", "no relative paths"),
        ("/", "is the root: name a node below it"),
        ("//", "ends with /"),
        ("/zookeeper", "belongs to ZooKeeper itself"),
        ("/zookeeper/config", "belongs to ZooKeeper itself"),
        (&long, "longer than 2048 bytes: shorten it"),
    ] {
        let shown = path.escape_debug().to_string().chars().take(100).collect::<String>();
        says(&client.mutex(path).unwrap_err(), ErrorKind::InvalidInput, &[telling, &shown]);
        says(&threads.mutex(path).unwrap_err(), ErrorKind::InvalidInput, &[telling]);
    }
    assert_eq!(proxy.counts().requests(Kind::Any), 0);
    assert!(!tree("/").iter().any(|path| path == "/bad" || path.starts_with("/bad/")));
    assert!(!tree("/zookeeper").iter().any(|path| path.contains("lock-")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_that_is_long_or_foreign_but_allowed_works() {
    let client = client().await;
    let long = format!("/bad-not-{}", "x".repeat(2000));
    for path in ["/bad-not/Länge/路径 mit Raum", "/zookeeper-not", &long] {
        soon(soon(client.mutex(path).unwrap().acquire()).await.unwrap().release()).await.unwrap();
        assert!(operator().children(path).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_options_are_named_one_by_one() {
    for hosts in [
        "",
        ",",
        "zk1:0",
        "zk1:x",
        "zk1:70000",
        "zk1:-1",
        ":2181",
        "zk 1:2181",
        "[::1",
        "zk1,,zk2",
        "zk\u{0}1",
    ] {
        let error = ClientOptions::new(hosts).unwrap_err();
        says(&error, ErrorKind::InvalidInput, &["write host:port,host:port", &format!("{hosts:?}")]);
    }
    says(
        &ClientOptions::new("zk1:2181/a//b").unwrap_err(),
        ErrorKind::InvalidInput,
        &["chroot", "contains //"],
    );
    let good = || ClientOptions::new("zk1:2181").unwrap();
    says(&good().chroot("apps").unwrap_err(), ErrorKind::InvalidInput, &["chroot", "is relative"]);
    for timeout in
        [Duration::ZERO, Duration::from_millis(99), Duration::from_secs(25 * 86_400), Duration::MAX]
    {
        let error = good().session_timeout(timeout).unwrap_err();
        says(&error, ErrorKind::InvalidInput, &[&format!("{timeout:?}"), "choose 100 ms to 24 days"]);
    }
    let error = good().identity(&"x".repeat(1025)).unwrap_err();
    says(&error, ErrorKind::InvalidInput, &["identity", "1025", "at most 1024"]);
    // The limits themselves are accepted, and the server grants the nearest timeout that it allows.
    let hosts = shared().connect_string();
    for (asked, granted) in
        [(Duration::from_millis(100), 400), (Duration::from_millis(i32::MAX as u64), 4000)]
    {
        let options = options(&hosts).session_timeout(asked).unwrap().identity(&"x".repeat(1024)).unwrap();
        let client = soon(Client::connect(options)).await.unwrap();
        assert_eq!(client.session_timeout(), Some(Duration::from_millis(granted)));
        let hold = soon(client.mutex("/bad-limits").unwrap().acquire()).await.unwrap();
        assert_eq!(operator().data(hold.node()).len(), 1024);
        soon(hold.release()).await.unwrap();
    }
}

/// A server that accepts connections, and answers every message with `answer`.
fn impostor(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answers(stream, answer));
        }
    });
    address.to_string()
}

fn answers(mut stream: TcpStream, answer: &[u8]) {
    let mut buffer = [0; 1024];
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) && stream.write_all(answer).is_ok() {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_that_are_no_zookeeper_are_told_from_those_that_are_not_there() {
    let quick = |hosts: &str| options(hosts).connect_timeout(Duration::from_millis(600));
    let error = connecting(options("no-such-host.invalid:2181")).await;
    says(
        &error,
        ErrorKind::Unreachable,
        &["none of the hosts is known", "no-such-host.invalid", "check the names"],
    );
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let error = connecting(quick(&closed)).await;
    says(&error, ErrorKind::Unreachable, &[&closed, "refused", "within 600ms"]);
    let error = connecting(quick(&format!("no-such-host.invalid:1,{closed}"))).await;
    says(&error, ErrorKind::Unreachable, &[&closed, "refused", "no-such-host.invalid:1"]);
    let silent = "accepts connections but opens no session: is it ZooKeeper";
    for (answer, telling) in [
        (&b""[..], silent),
        (
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
            "not ZooKeeper's protocol (a message is too long)",
        ),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff", "not ZooKeeper's protocol (a message is too long)"),
        (b"\x00\x00\x00\x00", "not ZooKeeper's protocol (a message is shorter than it says)"),
        (b"\x00\x00\x00\x04\xff\xff\xff\xff", "not ZooKeeper's protocol (a message is shorter than it says)"),
        (&[0; 64], "not ZooKeeper's protocol (a message is shorter than it says)"),
    ] {
        let hosts = impostor(answer);
        let error = connecting(options(&hosts).connect_timeout(Duration::from_secs(2))).await;
        says(&error, ErrorKind::Unreachable, &[hosts.as_str(), telling]);
    }
    // One good server is enough.
    let hosts = format!("{closed},{}", shared().connect_string());
    soon(Client::connect(options(&hosts))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chroot_that_is_missing_is_named_and_not_made() {
    let hosts = shared().connect_string();
    let error = connecting(options(&format!("{hosts}/bad-chroot/none"))).await;
    says(&error, ErrorKind::Refused, &["/bad-chroot/none does not exist", "create it"]);
    let error = connecting(options(&hosts).chroot("/bad-chroot").unwrap()).await;
    says(&error, ErrorKind::Refused, &["/bad-chroot does not exist"]);
    assert!(tree("/bad-chroot").is_empty());

    // If it is deleted later, an acquire does not create it.
    let admin = operator();
    admin.create("/bad-chroot-gone", "");
    let client = soon(Client::connect(options(&hosts).chroot("/bad-chroot-gone").unwrap())).await.unwrap();
    let lock = client.mutex("/a/b").unwrap();
    soon(soon(lock.acquire()).await.unwrap().release()).await.unwrap();
    admin.delete_tree("/bad-chroot-gone");
    says(
        &soon(lock.acquire()).await.unwrap_err(),
        ErrorKind::Refused,
        &["/a/b", "the chroot does not exist"],
    );
    settled(&client).await;
    assert!(tree("/bad-chroot-gone").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_client_says_so_and_does_nothing() {
    let (client, proxy) = proxied_client().await;
    let lock = client.mutex("/bad-closed").unwrap();
    let again = client.clone();
    soon(client.close()).await;
    soon(again.close()).await;
    proxy.record();
    let telling = ["the client is closed: make a new one"];
    says(&soon(lock.acquire()).await.unwrap_err(), ErrorKind::Closed, &telling);
    says(&soon(lock.acquire_timeout(SOON)).await.unwrap_err(), ErrorKind::Closed, &telling);
    says(&soon(lock.acquire_timeout(Duration::ZERO)).await.unwrap_err(), ErrorKind::Closed, &telling);
    says(&soon(lock.try_acquire()).await.unwrap_err(), ErrorKind::Closed, &telling);
    says(&soon(lock.contenders()).await.unwrap_err(), ErrorKind::Closed, &telling);
    let other = again.mutex("/bad-closed/other").unwrap();
    says(&soon(other.acquire()).await.unwrap_err(), ErrorKind::Closed, &telling);
    assert_eq!((client.session_id(), client.session_timeout(), client.stats().owed), (None, None, 0));
    assert_eq!(proxy.counts().requests(Kind::Any), 0);
    assert!(tree("/bad-closed").is_empty());
}

#[test]
fn a_connect_outside_of_a_runtime_is_an_error_and_no_panic() {
    let mut connect = std::pin::pin!(Client::connect(options(&shared().connect_string())));
    let polled = connect.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    let std::task::Poll::Ready(Err(error)) = polled else { panic!("it waits") };
    says(&error, ErrorKind::InvalidInput, &["within a tokio runtime", "zklock_core::blocking"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_whose_name_is_not_utf8_is_refused_and_the_directory_named() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/bad-utf8");
    let refused = admin.create_raw(b"/bad-utf8-\xff\xfe", "");
    assert!(matches!(refused, Err(Failure::Server(-8))), "no real server has one: {refused:?}");
    let lock = client.mutex(path).unwrap();
    for patient in [true, false] {
        let broken = Trigger::reply(Kind::GetChildren).path(path).nth(if patient { 2 } else { 1 });
        let broken = proxy.on(broken.then(Action::Rewrite(Box::new(|body| {
            // The header, the count, the length of the first name; then the name.
            if let Some(name) = body.get_mut(24..26) {
                name.copy_from_slice(b"\xff\xfe");
            }
        }))));
        let error = match patient {
            true => soon(lock.acquire()).await.map(drop).unwrap_err(),
            false => soon(lock.try_acquire()).await.map(drop).unwrap_err(),
        };
        assert!(broken.fired());
        says(&error, ErrorKind::Refused, &[path, "children", "delete the child whose name is not UTF-8"]);
        admin.wait_for_children(path, 0, SOON);
        settled(&client).await;
    }
    let hold = soon(lock.acquire()).await.unwrap();
    let broken =
        proxy.on(Trigger::reply(Kind::GetChildren).path(path).then(Action::Rewrite(Box::new(|body| {
            body[24] = 0xff;
        }))));
    let error = soon(lock.contenders()).await.unwrap_err();
    assert!(broken.fired());
    says(&error, ErrorKind::Refused, &[path, "not UTF-8"]);
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_access_list_that_forbids_it_is_named() {
    let (client, admin) = (client().await, operator());
    restricted("/bad-acl", Permission::READ).await;
    for path in ["/bad-acl", "/bad-acl/below/it"] {
        let error = soon(client.mutex(path).unwrap().acquire()).await.unwrap_err();
        says(&error, ErrorKind::Refused, &[path, "the right CREATE in the access list of /bad-acl"]);
    }
    settled(&client).await;
    assert_eq!(admin.tree("/bad-acl").len(), 1);

    // A client that may create and delete but not list must leave no node behind.
    restricted("/bad-acl-list", Permission::CREATE | Permission::DELETE).await;
    let error = soon(client.mutex("/bad-acl-list").unwrap().acquire()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["the right READ in the access list of /bad-acl-list"]);
    // The directory cannot be listed, but its children can be counted.
    assert!(until(SOON, || admin.stat("/bad-acl-list").unwrap().num_children == 0));
    settled(&client).await;
    let error = soon(client.mutex("/bad-acl-list").unwrap().contenders()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["access list", "/bad-acl-list"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_that_may_not_be_read_is_waited_for_all_the_same() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/bad-acl-neighbour");
    admin.create(path, "");
    let neighbours = ["0000000000", "0000000001"].map(|number| format!("{path}/_c_other-lock-{number}"));
    // Our node is behind both.
    for neighbour in &neighbours {
        restricted(neighbour, Permission::DELETE).await;
    }
    let lock = client.mutex(path).unwrap();
    let refused = proxy.on(Trigger::reply(Kind::GetData).path(path));
    let watches = proxy.on(Trigger::reply(Kind::GetChildren).path(path).nth(2));
    let waiting = tokio::spawn(async move { lock.acquire().await });
    assert!(refused.wait(SOON) && watches.wait(SOON), "it watches the directory in its place");
    for neighbour in neighbours.iter().rev() {
        assert!(!waiting.is_finished(), "one is before it");
        admin.delete(neighbour);
    }
    let hold = soon(waiting).await.unwrap().unwrap();
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parent_that_is_ephemeral_is_named() {
    let (client, admin) = (client().await, operator());
    admin.create_mode("/bad-ephemeral", "", Mode::Ephemeral);
    for path in ["/bad-ephemeral", "/bad-ephemeral/below"] {
        let error = soon(client.mutex(path).unwrap().acquire()).await.unwrap_err();
        says(&error, ErrorKind::Refused, &[path, "ephemeral", "can have no children"]);
    }
    settled(&client).await;
    assert_eq!(admin.tree("/bad-ephemeral").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_at_the_queue_is_bounded_too_and_names_the_trouble() {
    let ((_, proxy), path) = (proxied_client().await, "/bad-contenders");
    let patience = Duration::from_secs(1);
    let options = options(&proxy.connect_string()).connect_timeout(patience);
    let client = soon(Client::connect(options)).await.unwrap();
    let lock = client.mutex(path).unwrap();
    assert!(soon(lock.contenders()).await.unwrap().is_empty(), "nobody, where there is no node");
    proxy.freeze(Direction::Both);
    let error = soon(lock.contenders()).await.unwrap_err();
    says(&error, ErrorKind::Unreachable, &[path, "could not be read"]);
    proxy.thaw();
    assert!(tree(path).is_empty());
}
