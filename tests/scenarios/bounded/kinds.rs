//! Promise 4, as every kind keeps it: an acquire with a deadline returns by then, whatever the network does.

use crate::support::deadline::{frozen_from_the_start, frozen_in_the_queue};
use crate::support::kinds::{MUTEX, PERMITS, READER, WRITER, of_each};

of_each! {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    a_frozen_network_delays_nobody: frozen_from_the_start(MUTEX, READER, WRITER, PERMITS);
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    a_wait_ends_in_time_when_the_network_freezes_under_it: frozen_in_the_queue(MUTEX, READER, WRITER, PERMITS);
}
