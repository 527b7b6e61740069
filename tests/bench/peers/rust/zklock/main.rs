//! zklock's mutex: `zklock_peer [--one-thread]`.

#[path = "../harness.rs"]
mod harness;

use std::time::Duration;
use zklock_core::{Client, ClientOptions, Hold, Lock};

struct Zklock {
    lock: Lock,
    held: Option<Hold>,
}

impl harness::Peer for Zklock {
    type Session = Client;

    async fn session(connect: &str) -> Client {
        let options = ClientOptions::new(connect).unwrap().session_timeout(Duration::from_secs(30)).unwrap();
        Client::connect(options).await.unwrap()
    }
    async fn new(client: &Client, path: &str) -> Self {
        Self { lock: client.mutex(path).unwrap(), held: None }
    }
    async fn acquire(&mut self) {
        self.held = Some(self.lock.acquire().await.unwrap());
    }
    async fn release(&mut self) {
        self.held.take().unwrap().release().await.unwrap();
    }
}

fn main() {
    let mut builder = match std::env::args().any(|word| word == "--one-thread") {
        true => tokio::runtime::Builder::new_current_thread(),
        false => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.enable_all().build().unwrap().block_on(harness::run::<Zklock>());
}
