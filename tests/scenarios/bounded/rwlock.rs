//! Promise 4: an acquire of either side with a deadline returns by then, whatever the network does.

use crate::support::deadline::{DIRECTIONS, frozen_from_the_start, frozen_in_the_queue, times_out};
use crate::support::kinds::{READER, WRITER};
use crate::support::queue::reentrant_write;
use crate::support::{confirmed, confirmed_or_lost, operator, proxied_client, settled, soon};
use ground::Direction;
use zklock::{ErrorKind, LossReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_network_delays_neither_side() {
    frozen_from_the_start(&READER).await;
    frozen_from_the_start(&WRITER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_of_either_side_ends_in_time_when_the_network_freezes_under_it() {
    frozen_in_the_queue(&READER).await;
    frozen_in_the_queue(&WRITER).await;
}

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
