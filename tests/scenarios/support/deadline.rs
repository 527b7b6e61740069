//! What is over when its time is.

use crate::support::{GRACE, soon};
use ground::{Direction, not_later};
use std::time::{Duration, Instant};
use zklock_core::{Error, ErrorKind, Lock};

/// A deadline, and how long what does not happen is waited for.
pub(crate) const A_WHILE: Duration = Duration::from_millis(300);
pub(crate) const DIRECTIONS: [Direction; 3] = [Direction::ToServer, Direction::ToClient, Direction::Both];

/// It times out in time. A sleep beside it tells how late the machine is.
pub(crate) async fn times_out(lock: &Lock) -> Error {
    let start = Instant::now();
    let sleep = tokio::spawn(async move {
        tokio::time::sleep(A_WHILE).await;
        start.elapsed()
    });
    let error = soon(lock.acquire_timeout(A_WHILE)).await.unwrap_err();
    let took = start.elapsed();
    let noise = soon(sleep).await.unwrap().saturating_sub(A_WHILE);
    assert!(took >= A_WHILE, "{took:?}");
    not_later(took, A_WHILE + GRACE + noise);
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    error
}
