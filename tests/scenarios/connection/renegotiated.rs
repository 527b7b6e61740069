//! A session whose timeout changes on a reconnect, because servers are restarted with other limits. The holder must know at once,
//! because the leader acts on the new timeout at once.

use crate::support::{options, soon};
use ground::{Direction, Ensemble, Proxy};
use std::time::{Duration, Instant};
use zklock::Client;

const TICK: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(4);

async fn client_with(hosts: &str) -> Client {
    soon(Client::connect(options(hosts).session_timeout(LONG))).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_restarted_with_a_lower_limit_never_leaves_two_holds_valid() {
    let ensemble = Ensemble::builder().tick(TICK).max_session_timeout(LONG).start();
    let proxy = Proxy::before(ensemble.server(0));
    let holder = client_with(&proxy.connect_string()).await;
    let before = holder.session_id();
    assert_eq!(holder.session_timeout(), Some(LONG));
    ensemble.server(0).restart_with(&format!("maxSessionTimeout={}", SHORT.as_millis()));
    let next = client_with(&ensemble.connect_string()).await;
    assert_eq!(next.session_timeout(), Some(SHORT));
    let hold = soon(holder.mutex("/renegotiated/restarted").unwrap().acquire()).await.unwrap();
    assert_eq!(holder.session_id(), before, "another session: this tests nothing");
    assert!(!hold.valid_for().is_zero(), "it is lost already: this tests nothing");
    // The holder is cut off. When the next is granted, the lease of this hold must be over.
    proxy.freeze(Direction::Both);
    let cut = Instant::now();
    let lock = next.mutex(hold.path()).unwrap();
    let next = tokio::time::timeout(LONG * 2, lock.acquire()).await.expect("the session expires").unwrap();
    let left = hold.valid_for();
    let both = format!("two hold at once, {:?} after the cut: the first for {left:?} more", cut.elapsed());
    assert!(left.is_zero(), "{both}");
    assert!(next.token() > hold.token() && !next.valid_for().is_zero());
}
