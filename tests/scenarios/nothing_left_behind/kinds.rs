//! Promise 5, as every kind keeps it: all of its nodes, or none. (The node of a single-node lock has no mark, so one that is found
//! may be another client's. Its companion has a mark.)

use crate::support::kinds::{MUTEX, PERMIT, PERMITS, READER, SET, SINGLE_NODE, WRITER, of_each};
use crate::support::sweep::{given_up, not_heard_of};

of_each! {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    one_that_gives_up_leaves_no_node: given_up(MUTEX, READER, WRITER, PERMIT, PERMITS, SET, SINGLE_NODE);
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    one_that_is_not_heard_of_has_exactly_its_nodes:
        not_heard_of(MUTEX, READER, WRITER, PERMIT, PERMITS, SET, SINGLE_NODE);
}
