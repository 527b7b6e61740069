//! Real servers of the oldest supported release, which hang up on a request that came with a later version. (How the promises are
//! kept there and on the newest release: `on_other_releases.txt`.)

mod ends;
mod lists;
mod refusals;
mod version;
mod watches;

use crate::support::{client_of, soon};
use ground::wire::Admin;
use ground::{Ensemble, Proxy};
use std::sync::OnceLock;
use std::time::Duration;
use zklock::Client;

/// One server of 3.4 for all of these tests.
fn old() -> &'static Ensemble {
    static OLD: OnceLock<Ensemble> = OnceLock::new();
    OLD.get_or_init(|| Ensemble::builder().tick(Duration::from_millis(200)).version("3.4.14").start())
}

async fn old_client() -> Client {
    soon(client_of(&old().connect_string())).await
}

/// A client behind its own proxy, which records, and how many connections there have been.
async fn old_proxied() -> (Client, Proxy, u64) {
    let proxy = Proxy::before(old().server(0));
    let client = soon(client_of(&proxy.connect_string())).await;
    proxy.record();
    let accepted = proxy.accepted();
    (client, proxy, accepted)
}

fn old_operator() -> Admin {
    Admin::connect(old().server(0).address())
}
