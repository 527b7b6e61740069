//! Servers that answer late, always by the same time: a network that is slow, or servers that are busy.

use crate::support::{SESSION, operator, options, proxied_client, says, soon};
use ground::{Ensemble, Proxy, or_once_more};
use std::time::Duration;
use zklock::{Client, ErrorKind, Hold, HoldState};

const TICK: Duration = Duration::from_millis(500);
/// As long as these ticks allow, so that a busy machine's delays are small beside it.
const LONG: Duration = Duration::from_secs(10);

async fn client_with(proxy: &Proxy) -> Client {
    Client::connect(options(&proxy.connect_string()).session_timeout(LONG)).await.unwrap()
}

/// Watches a hold for a session timeout. Returns whether it could be relied on all the time.
async fn is_kept(hold: &Hold) -> bool {
    for _ in 0..1_000 {
        if hold.valid_for().is_zero() || matches!(hold.state(), HoldState::Lost(_)) {
            return false;
        }
        tokio::time::sleep(LONG / 1_000).await;
    }
    true
}

#[test]
fn holds_last_and_a_free_lock_is_granted_where_every_reply_is_late_by_more_than_a_sixth_of_the_timeout() {
    let ensemble = Ensemble::builder().tick(TICK).start();
    let proxy = Proxy::before(ensemble.server(0));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (granted, are_kept) = runtime.block_on(async {
        let (holder, other) = (client_with(&proxy).await, client_with(&proxy).await);
        let hold = soon(holder.mutex("/late/held").unwrap().acquire()).await.unwrap();
        // In both directions.
        proxy.delay(LONG * 175 / 1_000 / 2);
        let free = other.mutex("/late/free").unwrap();
        let granted = tokio::time::timeout(LONG * 3, free.acquire()).await;
        let Ok(granted) = granted else { return (false, false) };
        let granted = granted.unwrap();
        let kept = tokio::join!(is_kept(&hold), is_kept(&granted));
        proxy.delay(Duration::ZERO);
        (true, kept == (true, true))
    });
    or_once_more(granted, "the free lock was not granted");
    or_once_more(are_kept, "a hold was lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_taken_up_again_where_every_reply_is_late() {
    let (client, proxy) = proxied_client().await;
    let lock = client.mutex("/late/again").unwrap();
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
    let session = client.session_id();
    // It takes two replies, which come after more than a quarter of the timeout together.
    proxy.delay(SESSION * 3 / 40);
    proxy.reset();
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
    proxy.delay(Duration::ZERO);
    assert_eq!((client.session_id(), client.stats().sessions), (session, 1));
}

#[test]
fn a_lock_that_is_not_granted_because_replies_are_late_is_an_error_that_says_how_late() {
    operator().create_all("/late/error", "");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let error = runtime.block_on(async {
        let (client, proxy) = proxied_client().await;
        proxy.delay(SESSION * 11 / 100);
        // A grant takes two replies, and there is time for one.
        let timed_out = client.mutex("/late/error").unwrap().acquire_timeout(SESSION * 2 / 5).await;
        proxy.delay(Duration::ZERO);
        timed_out.unwrap_err()
    });
    or_once_more(!error.to_string().contains("no server answers"), "the first reply did not come");
    let within =
        "with a session timeout of 4s they must come within 800ms: use a longer session timeout, or servers";
    says(&error, ErrorKind::Unreachable, &["the servers' replies take ", within]);
}
