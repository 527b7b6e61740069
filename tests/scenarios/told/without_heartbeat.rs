//! Without a heartbeat nothing is written for a hold, and its holder only learns what the servers report by themselves.

use crate::support::loss::Blow;
use crate::support::{SOON, operator, proxied, soon};
use ground::{Kind, Proxy, Trigger, until};
use zklock::{Client, Hold, HoldState};

async fn held(path: &str) -> (Client, Proxy, Hold) {
    let (client, proxy) = proxied(|options| options.heartbeat(false)).await;
    let watched = proxy.on(Trigger::reply(Kind::GetData));
    let hold = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
    assert!(watched.wait(SOON), "the node is not watched");
    (client, proxy, hold)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_costs_nothing_and_is_held_though_nothing_proves_it() {
    let (client, proxy, hold) = held("/quiet/calm").await;
    proxy.record();
    assert!(until(SOON, || hold.valid_for().is_zero()), "{:?}", hold.valid_for());
    assert_eq!(hold.state(), HoldState::Held);
    let asked = proxy.requests();
    // It looks once for contenders that cannot see it.
    assert!(asked.iter().all(|request| request.kind == Kind::GetChildren), "{asked:?}");
    soon(hold.confirm()).await.unwrap();
    soon(hold.release()).await.unwrap();
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_is_told_what_the_servers_say() {
    let operator = operator();
    for blow in Blow::ALL {
        let path = format!("/quiet/{blow:?}");
        let (client, proxy, hold) = held(&path).await;
        blow.strike(&proxy, &operator, &path, hold.node());
        assert_eq!(soon(hold.lost()).await, Ok(Some(blow.reason())));
        assert!(until(SOON, || client.stats().losses == 1), "{:?}", client.stats());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_is_at_risk_while_the_client_is_disconnected_and_watched_again_after_that() {
    let (client, proxy, hold) = held("/quiet/cut").await;
    let watched = proxy.on(Trigger::reply(Kind::GetData));
    proxy.refuse(true);
    proxy.reset();
    assert!(until(SOON, || hold.state() == HoldState::AtRisk));
    proxy.refuse(false);
    assert!(until(SOON, || hold.state() == HoldState::Held));
    assert!(watched.wait(SOON), "the node is not watched again");
    operator().delete(hold.node());
    assert_eq!(soon(hold.lost()).await, Ok(Some(Blow::NodeDeleted.reason())));
    client.close().await.unwrap();
}
