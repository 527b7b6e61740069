//! Promise 1: holds never have more permits than there are. Promise 2: if two of them exclude each other, the later one has
//! the greater token.

use crate::support::contest::Contest;
use crate::support::permits::semaphore;
use std::time::Duration;

const LIMIT: u32 = 5;

/// Contenders that want one to three permits each.
const CONTEST: Contest = Contest {
    path: "/semaphore/faults",
    places: &["/locks", "/leases"],
    limit: LIMIT,
    clients: 8,
    contenders: 32,
    lock: |client, path, number| {
        let permits = 1 + number as u32 / 8 % 3;
        (semaphore(client, path, LIMIT, permits), permits)
    },
    lasts: Duration::from_millis(30),
    meet: 3,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_end_and_connections_that_break_give_away_no_permit_twice() {
    let (register, expired) = CONTEST.under_faults(Duration::from_secs(5)).await;
    assert!(expired > 3 && register.most() > 2, "{expired} sessions ended, {} at once", register.most());
    register.assert_growing();
}
