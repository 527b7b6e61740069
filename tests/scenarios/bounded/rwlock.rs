//! Promise 4: an acquire of either side with a deadline returns by then, whatever the network does.

use crate::support::deadline::{DIRECTIONS, times_out};
use crate::support::{
    confirmed, confirmed_or_lost, operator, proxied_client, reentrant_write, settled, soon,
};
use ground::Direction;
use zklock::{ErrorKind, LossReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_downgrade_in_a_frozen_network_ends_in_time_and_the_writer_stays_what_it_is() {
    for direction in DIRECTIONS {
        let mut tries = 1..=10;
        while !stays_what_it_is(direction, tries.next().expect("a lease that lasts")).await {}
    }
}

/// Returns false if the lease has lapsed, which a busy machine can do.
async fn stays_what_it_is(direction: Direction, number: u32) -> bool {
    let (client, proxy) = proxied_client().await;
    let path = format!("/rwlock/bounded-downgrade-{direction:?}-{number}");
    let write = soon(reentrant_write(&client, &path).acquire()).await.unwrap();
    let read = client.read_lock(&path).unwrap();
    proxy.freeze(direction);
    times_out(&read).await;
    proxy.thaw();
    settled(&client).await;
    if confirmed_or_lost(&write).await == Err(ErrorKind::Lost(LossReason::LeaseLapsed)) {
        return false;
    }
    confirmed(&write).await;
    assert_eq!(operator().children(&path).len(), 1);
    soon(write.release()).await.unwrap();
    true
}
