//! Promise 1: a writer holds alone, readers hold together.

use crate::support::contest::Contest;
use ground::or_once_more;
use std::time::Duration;

/// More holds than there ever are.
const ALL: u32 = 1000;

/// Every third of them writes.
const fn contest(path: &'static str) -> Contest {
    Contest {
        path,
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
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_readers_and_writers_of_eight_clients_keep_to_the_rule_in_order() {
    let register = contest("/rwlock/32").in_peace(Duration::from_secs(2)).await;
    let (grants, most) = (register.grants(), register.most());
    let writers = grants.iter().filter(|(_, weight)| *weight == ALL).count();
    println!("{writers} grants to writers");
    // On a busy machine few come at the same time.
    or_once_more(most > 4, &format!("only {most} readers at once"));
    assert!(writers > 20 && grants.len() > 2 * writers, "{writers} writers of {}", grants.len());
    register.assert_growing();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_end_and_connections_that_break_let_nobody_in_beside_a_writer() {
    let (register, expired) = contest("/rwlock/faults").under_faults(Duration::from_secs(5)).await;
    assert!(expired > 3 && register.most() > 1, "{expired} sessions ended, {} at once", register.most());
    register.assert_growing();
}
