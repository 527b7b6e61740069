//! Promise 1: a writer holds alone, readers hold together.

use crate::support::contest::Contest;
use std::time::Duration;

/// More holds than there ever are.
const ALL: u32 = 1000;

/// Every third of them writes.
const CONTEST: Contest = Contest {
    path: "/rwlock/faults",
    places: &[""],
    limit: ALL,
    clients: 8,
    contenders: 32,
    lock: |client, path, number| match number % 3 {
        0 => (client.write_lock(path).unwrap(), ALL),
        _ => (client.read_lock(path).unwrap(), 1),
    },
    lasts: Duration::from_millis(2),
    meet: 2,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_end_and_connections_that_break_let_nobody_in_beside_a_writer() {
    let (register, expired) = CONTEST.under_faults(Duration::from_secs(5)).await;
    assert!(expired > 3 && register.most() > 1, "{expired} sessions ended, {} at once", register.most());
    register.assert_growing();
}
