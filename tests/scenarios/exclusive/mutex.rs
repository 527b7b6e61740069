//! Promise 1: two holds of one mutex never both have `valid_for() > 0`.

use crate::support::register::{Register, clients};
use crate::support::{SOON, soon};
use ground::{Ensemble, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_and_comes_back_lets_nobody_in_beside_the_holder() {
    // The data of a real one survive a restart.
    let ensemble = Ensemble::builder().tick(Duration::from_millis(200)).real().start();
    let register = Register::of(1);
    let ended = Arc::new(AtomicBool::new(false));
    let clients = clients(&ensemble.connect_string(), 8).await;
    let mut contenders = JoinSet::new();
    for client in &clients {
        let lock = client.mutex("/exclusive/restart").unwrap();
        let (register, ended) = (register.clone(), ended.clone());
        contenders.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                register.turn(&lock, 1, Duration::from_millis(1)).await;
            }
        });
    }
    assert!(until(SOON, || register.count() > 40));
    ensemble.server(0).kill();
    ensemble.server(0).restart();
    let before = register.count();
    // The sessions may have outlived the restart, or new ones were opened.
    assert!(until(SOON * 2, || register.count() > before + 40), "nobody gets the lock any more");
    ended.store(true, Ordering::Relaxed);
    soon(contenders.join_all()).await;
    register.assert_ordered(u64::lt);
}
