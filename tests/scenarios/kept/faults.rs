//! Nodes that stay for the next, while connections break and sessions end.

use crate::support::contest::Contest;
use std::time::Duration;
use zklock::LockSpec;

/// More than there ever are.
const ALL: u32 = 1000;
/// Long enough for the node to be used again, and so short that the end of the test need not wait for it.
const LINGER: Duration = Duration::from_millis(300);

/// Every third of them writes. Some linger, some pass the lock on, some do neither.
const CONTEST: Contest = Contest {
    path: "/kept/faults",
    places: &[""],
    limit: ALL,
    clients: 6,
    contenders: 24,
    lock: |client, path, number| {
        let (spec, weight) = match number % 3 {
            0 => (LockSpec::write_lock(path).unwrap(), ALL),
            _ => (LockSpec::read_lock(path).unwrap(), 1),
        };
        let spec = match number % 4 {
            0 => spec,
            1 => spec.linger(LINGER),
            2 => spec.max_local_handoffs(4),
            _ => spec.linger(LINGER).max_local_handoffs(2),
        };
        (client.lock(&spec).unwrap(), weight)
    },
    lasts: Duration::from_millis(2),
    meet: 2,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_end_and_connections_that_break_let_nobody_in_beside_a_writer() {
    let (register, expired) = CONTEST.under_faults(Duration::from_secs(5)).await;
    assert!(expired > 3 && register.most() > 1, "{expired} sessions ended, {} at once", register.most());
    register.assert_never_smaller();
}
