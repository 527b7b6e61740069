//! The raw limit on the zookeeper-client crate; ../../../README.md describes it.

#[path = "../harness.rs"]
mod harness;

use std::time::Duration;
use zookeeper_client::{Acls, Client, CreateMode, Error};

struct Pipe {
    client: Client,
    dir: String,
    prefix: String,
    node: String,
}

impl harness::Peer for Pipe {
    type Session = Client;

    async fn session(connect: &str, _: &harness::Args) -> Client {
        Client::connector().with_session_timeout(Duration::from_secs(30)).connect(connect).await.unwrap()
    }
    async fn new(client: &Client, path: &str, _: &harness::Args) -> Self {
        match client.create(path, b"", &CreateMode::Persistent.with_acls(Acls::anyone_all())).await {
            Ok(_) | Err(Error::NodeExists) => {}
            Err(e) => panic!("{e}"),
        }
        Pipe { client: client.clone(), dir: path.into(), prefix: format!("{path}/n-"), node: String::new() }
    }
    async fn acquire(&mut self) {
        let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let create = self.client.create(&self.prefix, b"", &options); // sent now, in order
        let list = self.client.list_children(&self.dir);
        let name = format!("n-{}", create.await.unwrap().1);
        let children = list.await.unwrap();
        self.node = format!("{}/{name}", self.dir);
        if let Some(before) = children.into_iter().filter(|c| *c < name).max() {
            let (stat, gone) =
                self.client.check_and_watch_stat(&format!("{}/{before}", self.dir)).await.unwrap();
            if stat.is_some() {
                gone.changed().await;
            }
        }
    }
    async fn release(&mut self) {
        self.client.delete(&self.node, None).await.unwrap();
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(harness::run::<Pipe>());
}
