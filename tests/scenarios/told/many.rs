//! If a client has many holds, a heartbeat checks a few nodes, and the others are watched. Every loss is still reported.

use crate::support::loss::just_after_a_heartbeat;
use crate::support::timing::{Noise, Observer};
use crate::support::{HEARTBEAT, SOON, all_held, operator, proxied_client, soon};
use ground::{Action, Kind, Message, Proxy, Trigger, not_later, or_once_more, until};
use std::sync::Arc;
use std::time::Instant;
use zklock::{Client, Hold, HoldState, LossReason};

const HOLDS: usize = 60;
const STOOD_STILL: &str = "the machine stood still for longer than the lease";
const OVER: [LossReason; 2] = [LossReason::LeaseLapsed, LossReason::SessionExpired];

/// Whether the machine has taken one of these away.
fn any_is_over(holds: &[Arc<Hold>]) -> bool {
    holds.iter().any(|hold| OVER.map(HoldState::Lost).contains(&hold.state()))
}

async fn held(client: &Client, directory: &str) -> Vec<Arc<Hold>> {
    let paths: Vec<_> = (0..HOLDS).map(|number| format!("{directory}/{number}")).collect();
    all_held(client, &paths).await.into_iter().map(Arc::new).collect()
}

/// Waits until a heartbeat checks only a few nodes, and the client sets no more watches.
fn settle(proxy: &Proxy) {
    let is_small = || {
        proxy.record();
        just_after_a_heartbeat(proxy);
        let asked = proxy.requests();
        asked.iter().all(|request| request.operations.len() <= 10 && request.kind != Kind::GetData)
    };
    assert!(until(SOON, is_small), "the heartbeat goes on naming all nodes");
    just_after_a_heartbeat(proxy);
}

/// Asserts that all these holders learn within a heartbeat that their nodes were deleted.
fn told_in_time(proxy: &Proxy, holds: &[Arc<Hold>], delete: impl FnOnce()) {
    let noise = Noise::measured();
    let observers: Vec<_> = holds.iter().map(|hold| Observer::of(hold.clone())).collect();
    just_after_a_heartbeat(proxy);
    delete();
    let struck = Instant::now();
    for observer in observers {
        let (told, reason) = observer.told(SOON);
        if OVER.contains(&reason) {
            return or_once_more(false, STOOD_STILL);
        }
        assert_eq!(reason, LossReason::NodeDeleted);
        not_later(told.saturating_duration_since(struck), HEARTBEAT + noise.allowance());
        observer.finish();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_of_many_holds_names_few_and_all_are_told() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let holds = held(&client, "/told-many").await;
    settle(&proxy);
    assert!(holds.iter().all(|hold| hold.state() == HoldState::Held && !hold.valid_for().is_zero()));

    told_in_time(&proxy, &holds, || operator.delete_tree("/told-many"));
    assert!(until(SOON, || client.stats().losses == HOLDS as u64), "{:?}", client.stats());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_takes_no_watch_back_before_it_says_good_bye() {
    let (client, proxy) = proxied_client().await;
    proxy.record();
    let holds = held(&client, "/told-closed").await;
    // Each holder also watches its queue, for contenders that cannot see it.
    let is_watched = |message: &&Message| message.watch && message.kind == Kind::GetChildren;
    assert!(until(SOON, || proxy.messages().iter().filter(is_watched).count() == HOLDS));
    settle(&proxy);
    proxy.record();
    client.close().await.unwrap();
    let mut others = proxy.requests();
    assert_eq!(proxy.counts().requests(Kind::Close), 1);
    others.retain(|request| !matches!(request.kind, Kind::Close | Kind::Multi));
    assert!(others.len() <= 8, "{} requests, such as {:?}", others.len(), others.first());
    assert!(holds.iter().all(|hold| matches!(hold.state(), HoldState::Lost(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_is_watched_is_asked_in_its_node_and_goes_on() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let holds = held(&client, "/told-asked").await;
    settle(&proxy);
    assert!(!holds.iter().any(|hold| hold.is_wanted()));
    for hold in &holds {
        operator.set(hold.node(), "__REVOKE__");
    }
    for hold in &holds {
        assert!(soon(hold.wanted()).await.unwrap());
    }
    settle(&proxy);
    if any_is_over(&holds) {
        return or_once_more(false, STOOD_STILL);
    }
    assert!(holds.iter().all(|hold| hold.state() == HoldState::Held && !hold.valid_for().is_zero()));
    assert_eq!(client.stats().losses, 0);
    // They are watched again.
    operator.delete(holds[0].node());
    assert_eq!(soon(holds[0].lost()).await, Ok(Some(LossReason::NodeDeleted)));
    for hold in &holds[1..] {
        soon(hold.release()).await.unwrap();
    }
}

/// A watch fires once, for the write. The deletion right after it must be noticed in another way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_to_and_deleted_in_the_same_moment_is_told() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let holds = held(&client, "/told-written").await;
    settle(&proxy);
    let (kept, lost) = holds.split_at(HOLDS / 2);
    told_in_time(&proxy, lost, || {
        for hold in lost {
            operator.set(hold.node(), "anything");
            operator.delete(hold.node());
        }
    });
    if any_is_over(kept) {
        return or_once_more(false, STOOD_STILL);
    }
    assert!(kept.iter().all(|hold| hold.state() == HoldState::Held), "{:?}", client.stats());
}

/// Newer servers send no event to clients that may no longer read the node. So each heartbeat also checks two watched nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_server_tells_is_found_out_in_turn() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    // Each heartbeat checks eight nodes, and two of the watched ones.
    let mut holds = held(&client, "/told-withheld").await;
    for hold in holds.split_off(HOLDS / 3) {
        let released = soon(hold.release()).await;
        if any_is_over(&[hold]) {
            return or_once_more(false, STOOD_STILL);
        }
        released.unwrap();
    }
    settle(&proxy);
    let withheld = |hold: &Arc<Hold>| {
        let event = Trigger::reply(Kind::Event).path(hold.node());
        let withheld = proxy.on(event.then(Action::Swallow));
        operator.delete(hold.node());
        withheld
    };
    let (kept, lost) = holds.split_at(holds.len() / 2);
    let withheld: Vec<_> = lost.iter().map(withheld).collect();
    for hold in lost {
        assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::NodeDeleted)));
    }
    assert!(withheld.iter().any(ground::Hook::fired), "some are watched");
    assert!(kept.iter().all(|hold| hold.state() == HoldState::Held), "{:?}", client.stats());
}
