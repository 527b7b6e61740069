//! zklock's mutex.

#[path = "../harness.rs"]
mod harness;

use std::time::Duration;
use zklock::{Client, ClientOptions, Hold, Lock, LockSpec};

struct Zklock {
    lock: Lock,
    held: Option<Hold>,
    /// What is measured may be an acquire within this one, or a look at it.
    outer: Option<Hold>,
    look: Option<fn(&Hold) -> bool>,
}

impl harness::Peer for Zklock {
    type Session = Client;

    async fn session(connect: &str, args: &harness::Args) -> Client {
        let timeout = Duration::from_secs(args.option("timeout").unwrap_or(30).into());
        let mut options = ClientOptions::new(connect).session_timeout(timeout);
        if let Some(millis) = args.option("told") {
            options = options.loss_timeout(Duration::from_millis(millis.into()));
        }
        Client::connect(options).await.unwrap()
    }
    async fn new(client: &Client, path: &str, args: &harness::Args) -> Self {
        let mut spec = LockSpec::mutex(path).unwrap();
        if let Some(seconds) = args.option("linger") {
            spec = spec.linger(Duration::from_secs(seconds.into()));
        }
        if let Some(turns) = args.option("turns") {
            spec = spec.max_local_handoffs(turns - 1);
        }
        let is_reentrant = args.option("reentrant").is_some();
        let lock = client.lock(&spec.reentrant(is_reentrant)).unwrap();
        let look: Option<fn(&Hold) -> bool> = match (args.option("valid_for"), args.option("ensure")) {
            (Some(_), _) => Some(|hold| !hold.valid_for().is_zero()),
            (_, Some(_)) => Some(|hold| hold.ensure(Duration::from_secs(1)).is_ok()),
            _ => None,
        };
        let outer = if is_reentrant || look.is_some() { Some(lock.acquire().await.unwrap()) } else { None };
        Self { lock, held: None, outer, look }
    }
    async fn attempt(&mut self) -> bool {
        self.held = self.lock.try_acquire().await.unwrap();
        self.held.is_some()
    }
    async fn acquire(&mut self) {
        if let (Some(look), Some(outer)) = (self.look, &self.outer) {
            return assert!(std::hint::black_box(look(outer)));
        }
        self.held = Some(self.lock.acquire().await.unwrap());
    }
    async fn release(&mut self) {
        if let Some(held) = self.held.take() {
            held.release().await.unwrap();
        }
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(harness::run::<Zklock>());
}
