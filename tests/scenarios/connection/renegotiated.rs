//! A session whose timeout changes on a reconnect: servers are restarted with other limits, or have different limits.
//! The holder must know at once, because the leader acts on the new timeout at once.

use crate::support::{SOON, options, soon};
use ground::{Direction, Ensemble, Proxy, until};
use std::time::{Duration, Instant};
use zklock_core::{Client, Hold};

const TICK: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(4);

fn limit(timeout: Duration) -> String {
    format!("maxSessionTimeout={}", timeout.as_millis())
}

async fn client_with(hosts: &str) -> Client {
    soon(Client::connect(options(hosts).session_timeout(LONG).unwrap())).await.unwrap()
}

/// Waits until the client is connected again and has this timeout.
async fn connected_with(client: &Client, timeout: Duration) {
    let told = async {
        // A request of its own: the servers answer on the new connection.
        client.mutex("/renegotiated/other").unwrap().acquire().await.unwrap().release().await.unwrap();
        while client.session_timeout() != Some(timeout) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let told = tokio::time::timeout(SOON, told).await;
    assert!(told.is_ok(), "{:?} and not {timeout:?}", client.session_timeout());
}

/// Cuts the holder off. When the next is granted, the lease of this hold must be over.
async fn cut_off(proxy: &Proxy, hold: &Hold, next: &Client) {
    assert!(!hold.valid_for().is_zero(), "it is lost already: this tests nothing");
    proxy.freeze(Direction::Both);
    let cut = Instant::now();
    let lock = next.mutex(hold.path()).unwrap();
    let next = tokio::time::timeout(LONG * 2, lock.acquire()).await.expect("the session expires").unwrap();
    let left = hold.valid_for();
    assert!(
        left.is_zero(),
        "two hold at once, {:?} after the cut: the first for {left:?} more",
        cut.elapsed()
    );
    assert!(next.token() > hold.token() && !next.valid_for().is_zero());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_restarted_with_a_lower_limit_never_leaves_two_holds_valid() {
    let ensemble = Ensemble::builder().tick(TICK).max_session_timeout(LONG).start();
    let proxy = Proxy::before(ensemble.server(0));
    let holder = client_with(&proxy.connect_string()).await;
    let before = holder.session_id();
    assert_eq!(holder.session_timeout(), Some(LONG));
    ensemble.server(0).restart_with(&limit(SHORT));
    let next = client_with(&ensemble.connect_string()).await;
    assert_eq!(next.session_timeout(), Some(SHORT));
    let hold = soon(holder.mutex("/renegotiated/restarted").unwrap().acquire()).await.unwrap();
    assert_eq!(holder.session_id(), before, "another session: this tests nothing");
    cut_off(&proxy, &hold, &next).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_smallest_timeout_of_servers_whose_limits_differ_holds_from_then_on() {
    let ensemble = Ensemble::builder().servers(3).tick(TICK).max_session_timeout(LONG).start();
    let _talk = ensemble.keep_talking();
    let (strict, lax) = (ensemble.followers()[0], ensemble.leader());
    strict.restart_with(&limit(SHORT));
    ensemble.wait_until_whole(SOON * 4);
    let (to_strict, to_lax) = (Proxy::before(strict), Proxy::before(lax));
    to_strict.refuse(true);
    let hosts = format!("{},{}", to_strict.connect_string(), to_lax.connect_string());
    let holder = client_with(&hosts).await;
    assert_eq!(holder.session_timeout(), Some(LONG));
    for (away, here) in [(&to_lax, &to_strict), (&to_strict, &to_lax)] {
        here.refuse(false);
        away.refuse(true);
        away.reset();
        connected_with(&holder, SHORT).await;
        assert!(until(SOON, || here.connections() > 0));
    }
    let hold = soon(holder.mutex("/renegotiated/differ").unwrap().acquire()).await.unwrap();
    assert!(hold.valid_for() <= SHORT, "{:?}", hold.valid_for());
    let next = client_with(&ensemble.connect_string()).await;
    cut_off(&to_lax, &hold, &next).await;
}
