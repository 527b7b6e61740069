//! Wrong arguments are reported where they come in, with advice, and leave nothing on the server.

use crate::support::strangers::restricted;
use crate::support::{SOON, acquire, client, operator, options, proxied_client, says, settled, soon};
use ground::wire::{Failure, Mode};
use ground::{Action, Kind, Trigger, or_once_more, shared};
use std::time::Duration;
use zklock::{Client, ClientOptions, Error, ErrorKind};
use zookeeper_client::Permission;

async fn connecting(options: ClientOptions) -> Error {
    soon(Client::connect(options)).await.map(drop).unwrap_err()
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
async fn the_limits_of_what_may_be_asked_for_are_accepted() {
    // The server grants the nearest timeout that it allows.
    let hosts = shared().connect_string();
    for (asked, granted) in
        [(Duration::from_millis(100), 400), (Duration::from_millis(i32::MAX as u64), 4000)]
    {
        let options = options(&hosts).session_timeout(asked).identity(&"x".repeat(1024));
        let client = soon(Client::connect(options)).await.unwrap();
        assert_eq!(client.session_timeout(), Some(Duration::from_millis(granted)));
        let hold = soon(client.mutex("/bad-limits").unwrap().acquire()).await.unwrap();
        assert_eq!(operator().data(hold.node()).len(), 1024);
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_that_are_not_known_are_told_from_those_where_nobody_listens() {
    let quick = |hosts: &str| options(hosts).connect_timeout(Duration::from_secs(3));
    let error = connecting(options("no-such-host.invalid:2181")).await;
    let parts = ["none of the hosts is known", "no-such-host.invalid", "check the names"];
    says(&error, ErrorKind::Unreachable, &parts);
    let closed = "127.0.0.1:1";
    let error = connecting(quick(closed)).await;
    if !error.to_string().contains("refused") {
        return or_once_more(false, &error.to_string());
    }
    says(&error, ErrorKind::Unreachable, &[closed, "within 3s"]);
    let error = connecting(quick(&format!("no-such-host.invalid:1,{closed}"))).await;
    says(&error, ErrorKind::Unreachable, &[closed, "refused", "no-such-host.invalid:1"]);
    // One good server is enough.
    let hosts = format!("{closed},{}", shared().connect_string());
    soon(Client::connect(options(&hosts))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chroot_that_is_missing_is_named_and_not_made() {
    let hosts = shared().connect_string();
    let error = connecting(options(&format!("{hosts}/bad-chroot/none"))).await;
    says(&error, ErrorKind::Refused, &["/bad-chroot/none does not exist", "create it"]);
    let error = connecting(options(&hosts).chroot("/bad-chroot")).await;
    says(&error, ErrorKind::Refused, &["/bad-chroot does not exist"]);
    assert!(operator().tree("/bad-chroot").is_empty());

    // If it is deleted later, an acquire does not create it.
    let admin = operator();
    admin.create("/bad-chroot-gone", "");
    let client = soon(Client::connect(options(&hosts).chroot("/bad-chroot-gone"))).await.unwrap();
    let lock = client.mutex("/a/b").unwrap();
    soon(soon(lock.acquire()).await.unwrap().release()).await.unwrap();
    admin.delete_tree("/bad-chroot-gone");
    let error = soon(lock.acquire()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["/a/b", "the chroot does not exist"]);
    settled(&client).await;
    assert!(operator().tree("/bad-chroot-gone").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_client_says_so_and_does_nothing() {
    let (client, proxy) = proxied_client().await;
    let lock = client.mutex("/bad-closed").unwrap();
    let again = client.clone();
    soon(client.close()).await.unwrap();
    soon(again.close()).await.unwrap();
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
    assert!(operator().tree("/bad-closed").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_whose_name_is_not_utf8_is_refused_and_the_directory_named() {
    let ((client, proxy), admin, path) = (proxied_client().await, operator(), "/bad-utf8");
    let refused = admin.create_raw(b"/bad-utf8-\xff\xfe", "");
    assert!(matches!(refused, Err(Failure::Server(-8))), "no real server has one: {refused:?}");
    let lock = client.mutex(path).unwrap();
    let broken = Trigger::reply(Kind::GetChildren).path(path).nth(2);
    let broken = proxy.on(broken.then(Action::Rewrite(Box::new(|body| {
        // The header, the count, the length of the first name; then the name.
        if let Some(name) = body.get_mut(24..26) {
            name.copy_from_slice(b"\xff\xfe");
        }
    }))));
    let error = soon(lock.acquire()).await.map(drop).unwrap_err();
    assert!(broken.fired());
    says(&error, ErrorKind::Refused, &[path, "children", "delete the child whose name is not UTF-8"]);
    admin.wait_for_children(path, 0, SOON);
    settled(&client).await;
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
    let waiting = acquire(&lock);
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
