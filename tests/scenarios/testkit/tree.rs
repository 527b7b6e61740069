//! The tree as a test sees it through the server's methods, and nodes that the server itself deletes.

use std::time::Duration;

use crate::support::embedded::{Raw, SOON, client, creation, manual, operation, queue_of, soon};
use zklock_testkit::Server;

const A_MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_was_used_is_reaped_when_its_time_has_come_and_is_made_again() {
    let server = Server::builder().container_check(A_MINUTE).manual_clock().start().unwrap();
    let client = client(&server).await;
    let lock = client.mutex("/locks/report").unwrap();
    for _ in 0..2 {
        let hold = soon(lock.acquire()).await.unwrap();
        server.advance(A_MINUTE);
        assert_eq!(queue_of(&server, "/locks/report", 1).len(), 1, "it is in use");
        soon(hold.release()).await.unwrap();
        queue_of(&server, "/locks/report", 0);
        server.advance(A_MINUTE - Duration::from_millis(1));
        assert_eq!(server.children("/locks/report"), Some(vec![]), "too early");
        server.advance(Duration::from_millis(1));
        assert_eq!(server.children("/locks/report"), None);
        // The next round reaps the parent, which has only now become empty.
        server.advance(A_MINUTE);
        assert_eq!(server.children("/locks"), None);
    }
}

#[test]
fn a_container_that_nobody_has_used_and_other_nodes_are_not_reaped() {
    let server = Server::builder().container_check(A_MINUTE).manual_clock().start().unwrap();
    let mut raw = Raw::open(&server);
    server.put("/persistent/child", "").unwrap();
    assert!(server.delete("/persistent/child"));
    assert_eq!(raw.ask(1, operation::CREATE_CONTAINER, &creation("/container", 4)).error, 0);
    server.advance(A_MINUTE * 2);
    assert_eq!(server.children("/"), Some(vec!["container".into(), "persistent".into(), "zookeeper".into()]));
    server.put("/container/child", "").unwrap();
    assert!(server.delete("/container/child"));
    server.advance(A_MINUTE);
    assert_eq!(server.children("/container"), None);
}

#[test]
fn containers_are_reaped_by_a_running_clock_too() {
    let server = Server::builder().container_check(Duration::from_millis(10)).start().unwrap();
    let mut raw = Raw::open(&server);
    assert_eq!(raw.ask(1, operation::CREATE_CONTAINER, &creation("/container", 4)).error, 0);
    server.put("/container/child", "").unwrap();
    assert!(server.delete("/container/child"));
    assert!(ground::until(SOON, || server.children("/container").is_none()));
}

#[test]
fn a_path_that_no_node_can_have_is_refused() {
    let server = manual();
    for path in ["", "a", "/a/", "//", "/a//b", "/a/../b", "/.", "/\0"] {
        let refused = server.put(path, "").unwrap_err().to_string();
        assert!(refused.contains(&format!("{path:?} is not a path")), "{refused}");
    }
    assert_eq!(server.children("/"), Some(vec!["zookeeper".to_owned()]));
}

#[test]
fn zookeepers_own_nodes_outlive_a_deletion_of_everything() {
    let server = manual();
    server.put("/a/b", "").unwrap();
    server.delete("/");
    assert_eq!(server.children("/"), Some(vec!["zookeeper".to_owned()]));
    Raw::open(&server).is_served();
}
