//! Ensembles whose servers keep sessions to themselves (`localSessionsEnabled`) until something needs more.

use crate::support::{client_of, says, soon};
use ground::Ensemble;
use std::time::Duration;
use zklock::ErrorKind;

/// An ensemble that upgrades such sessions, or not.
fn ensemble(upgrades: bool) -> Ensemble {
    let builder = Ensemble::builder().servers(3).tick(Duration::from_millis(500));
    let builder = builder
        .configure("localSessionsEnabled=true")
        .configure(&format!("localSessionsUpgradingEnabled={upgrades}"));
    let ensemble = builder.start();
    ensemble.wait_until_whole(Duration::from_secs(60));
    ensemble
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_not_upgraded_can_have_no_lock_and_the_reason_is_named() {
    let ensemble = ensemble(false);
    for server in ensemble.servers() {
        let client = client_of(&server.address().to_string()).await;
        let error = soon(client.mutex("/locks/report").unwrap().acquire()).await.unwrap_err();
        says(&error, ErrorKind::Refused, &["localSessionsUpgradingEnabled", "/locks/report"]);
        assert_eq!(soon(client.mutex("/locks/report").unwrap().contenders()).await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_upgraded_has_locks_as_any_other() {
    let ensemble = ensemble(true);
    for server in ensemble.servers() {
        let client = client_of(&server.address().to_string()).await;
        for _ in 0..3 {
            let hold = soon(client.mutex("/locks/report").unwrap().acquire()).await.unwrap();
            assert!(!soon(hold.confirm()).await.unwrap().is_zero());
            soon(hold.release()).await.unwrap();
        }
    }
}
