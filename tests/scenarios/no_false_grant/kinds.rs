//! Promise 7, as every kind keeps it: nothing is granted if the session is over, or the process slept through its lease.

use crate::support::delivery::{
    is_told_too_late, queues_again, slept_through, slept_through_a_try, slept_through_the_end_of_a_try,
};
use crate::support::kinds::{MUTEX, PERMIT, PERMITS, READER, WRITER, of_each};

of_each! {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    a_waiter_without_its_node_queues_again_and_gets_no_hold_without_one: queues_again(MUTEX);
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    one_that_is_told_of_its_turn_after_its_session_gets_no_dead_hold:
        is_told_too_late(MUTEX, READER, WRITER, PERMIT, PERMITS);
    #[tokio::test]
    a_grant_that_the_process_slept_through_is_not_delivered: slept_through(MUTEX, READER, WRITER, PERMITS);
    #[tokio::test]
    a_grant_to_a_try_that_the_process_slept_through_is_not_delivered: slept_through_a_try(MUTEX, PERMITS);
    #[tokio::test]
    a_try_that_slept_through_its_time_is_given_nothing: slept_through_the_end_of_a_try(MUTEX);
}
