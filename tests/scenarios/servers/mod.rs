//! Real servers of the oldest supported release and of the newest. A server of 3.4 hangs up on a request that came with a later
//! version.

mod ends;
mod lists;
mod promises;
mod refusals;
mod version;
mod watches;

use crate::support::{client_of, soon};
use ground::wire::Admin;
use ground::{Ensemble, Proxy};
use std::sync::OnceLock;
use std::time::Duration;
use zklock_core::Client;

/// One server of 3.4 for all of these tests.
fn old() -> &'static Ensemble {
    static OLD: OnceLock<Ensemble> = OnceLock::new();
    OLD.get_or_init(|| of("3.4.14"))
}

/// One of the newest release.
fn new() -> &'static Ensemble {
    static NEW: OnceLock<Ensemble> = OnceLock::new();
    NEW.get_or_init(|| of("3.9.5"))
}

fn of(version: &str) -> Ensemble {
    Ensemble::builder().tick(Duration::from_millis(200)).version(version).start()
}

async fn client_at(servers: &Ensemble) -> Client {
    soon(client_of(&servers.connect_string())).await
}

async fn proxied_at(servers: &Ensemble) -> (Client, Proxy) {
    let proxy = Proxy::before(servers.server(0));
    (soon(client_of(&proxy.connect_string())).await, proxy)
}

fn operator_at(servers: &Ensemble) -> Admin {
    Admin::connect(servers.server(0).address())
}

async fn old_client() -> Client {
    client_at(old()).await
}

async fn old_proxied() -> (Client, Proxy) {
    proxied_at(old()).await
}

fn old_operator() -> Admin {
    operator_at(old())
}
