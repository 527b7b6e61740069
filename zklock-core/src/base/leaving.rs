//! What a call that fails leaves at the servers.
//!
//! A program may end as soon as its call has returned. A deletion that is not sent by then is never sent: the node stays in
//! the queue, and the dead program is granted the lock. So the call waits until the servers have confirmed the deletion. To
//! wait until it is written to the socket would be less: a server that was stopped first answers what it was asked before,
//! and if nobody is there any more to take that, it drops the connection with what it has not read.

use crate::base::debt::Debt;
use crate::base::wait::moment;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

/// How long a call waits. It may be late by 50 ms, so this leaves its thread some time to wake.
const PATIENCE: Duration = Duration::from_millis(30);

/// What the attempts of a call owe, once the call does not want them any more.
#[derive(Default)]
pub(crate) struct Leaving(Vec<Arc<Debt>>);

impl Leaving {
    /// Adds what an attempt owes, if it has begun.
    pub(crate) fn add(&mut self, debt: Option<Arc<Debt>>) {
        self.0.extend(debt);
    }

    /// Waits until nothing is left of them, but not for long.
    pub(crate) async fn seen_through(self) {
        let settled = async {
            for debt in &self.0 {
                poll_fn(|context| debt.poll_settled(context)).await;
            }
        };
        tokio::select! {
            biased;
            () = settled => {}
            () = moment(PATIENCE) => {}
        }
    }
}
