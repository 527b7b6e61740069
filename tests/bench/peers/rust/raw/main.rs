//! Peers on the zookeeper-client crate: `peers [--one-thread] zkclient|raw-seq|raw-pipe|raw-bg|raw-relist`.

#[path = "../harness.rs"]
mod harness;
mod raw;
mod zkclient;

async fn go(peer: &str) {
    match peer {
        "zkclient" => harness::run::<zkclient::Lock>().await,
        "raw-seq" => harness::run::<raw::Seq>().await,
        "raw-pipe" => harness::run::<raw::Pipe>().await,
        "raw-relist" => harness::run::<raw::Relist>().await,
        "raw-bg" => harness::run::<raw::Bg>().await,
        _ => panic!("unknown peer: {peer}"),
    }
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let one = args.first().is_some_and(|a| a == "--one-thread");
    let mut builder = match one {
        true => tokio::runtime::Builder::new_current_thread(),
        false => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.enable_all().build().unwrap().block_on(go(&args.pop().expect("which peer?")));
}

pub async fn session(connect: &str) -> zookeeper_client::Client {
    let timeout = std::time::Duration::from_secs(30);
    zookeeper_client::Client::connector().with_session_timeout(timeout).connect(connect).await.unwrap()
}
