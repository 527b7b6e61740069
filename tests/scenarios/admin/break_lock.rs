//! The operator takes a lock away from all its holders.

use super::evict::Scene;
use crate::support::kinds::{ELECTION, MUTEX, PERMIT, READER, SINGLE_NODE};
use crate::support::timing::Noise;
use crate::support::{SOON, acquire, client, granted, held, nodes, operator, proxied_client, soon, told};
use ground::{Action, Gate, Kind, Trigger};
use std::time::Instant;
use zklock::{HoldState, Lock, LossReason, QueuedContender};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_holders_are_told_and_those_who_wait_go_on() {
    let operator = operator();
    for (kind, count) in [(MUTEX, 1), (READER, 5), (PERMIT, 3), (ELECTION, 1), (SINGLE_NODE, 1)] {
        let path = format!("/break/{}", kind.name);
        assert_eq!(soon((kind.lock)(&client().await, &path).break_lock()).await.unwrap(), []);
        let Scene { holders, lock, rival, .. } = &mut Scene::new(&kind, count, &path).await;
        let noise = Noise::measured();
        let broken = Instant::now();
        let named = soon(lock.break_lock()).await.unwrap();
        let named: Vec<_> = named.iter().map(|it| it.node.as_str()).collect();
        assert_eq!(named, holders.iter().map(|(hold, _)| hold.node()).collect::<Vec<_>>(), "{path}");
        for (hold, client) in holders {
            assert_eq!(told(hold, client, broken, &noise).await, LossReason::NodeDeleted, "{path}");
        }
        let next = soon(rival).await.unwrap().unwrap();
        assert_eq!(next.state(), HoldState::Held);
        soon(next.release()).await.unwrap();
        kind.is_gone(&operator, &path);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_is_taken_away_whole() {
    let (operator, holder, admin) = (operator(), client().await, client().await);
    let [theirs, ours] = [&holder, &admin]
        .map(|client| client.all(&["/break/a", "/break/b"].map(|path| client.mutex(path).unwrap())).unwrap());
    let hold = held(&theirs).await;
    // The set may delete its second node itself as soon as it notices that the first is gone.
    assert!(!soon(ours.break_lock()).await.unwrap().is_empty());
    assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::NodeDeleted)));
    for path in ["/break/a", "/break/b"] {
        operator.wait_for_children(path, 0, SOON);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_waits_elsewhere_keeps_its_place() {
    let (operator, holder, waiting, admin) = (operator(), client().await, client().await, client().await);
    let (first, second) = ("/break/waits/a", "/break/waits/b");
    let hold = held(&holder.mutex(second).unwrap()).await;
    let locks = [first, second].map(|path| waiting.mutex(path).unwrap());
    let set = acquire(&waiting.all(&locks).unwrap());
    operator.wait_for_children(second, 2, SOON);
    let places = [first, second].map(|path| nodes(&operator, path).pop());
    assert_eq!(soon(admin.mutex(first).unwrap().break_lock()).await.unwrap(), [], "nobody holds it");
    let broken = soon(admin.mutex(second).unwrap().break_lock()).await.unwrap();
    assert_eq!(broken.iter().map(|it| it.token).collect::<Vec<_>>(), [hold.token()]);
    let both = granted(set).await;
    assert_eq!([first, second].map(|path| nodes(&operator, path).pop()), places);
    // Now it holds, and is broken.
    let broken = soon(admin.mutex(first).unwrap().break_lock()).await.unwrap();
    assert_eq!(broken.iter().map(|it| it.token).collect::<Vec<_>>(), [both.token()]);
    assert_eq!(soon(both.lost()).await, Ok(Some(LossReason::NodeDeleted)));
}

/// What an operator does to the holders of a lock.
type Call = fn(&Lock) -> zklock::Call<Vec<QueuedContender>>;

/// All nodes of a single-node lock have one path.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_to_hold_a_single_node_lock_meanwhile_keeps_it_and_is_not_asked() {
    let (operator, holder, next) = (operator(), client().await, client().await);
    let (admin, proxy) = proxied_client().await;
    // The message to hold up: the last answer of the listing, or the check of the node just before it is deleted.
    let (breaks, asks): (Call, Call) = (Lock::break_lock, Lock::request_release);
    for (case, call, trigger) in [
        ("listed", breaks, Trigger::reply(Kind::GetData).path("/lock")),
        ("looks", breaks, Trigger::request(Kind::Exists).path("/lock")),
        ("looks at its companion", breaks, Trigger::request(Kind::Exists).path("-of-lock")),
        ("deletes", breaks, Trigger::request(Kind::Multi).path("-of-lock")),
        ("asks", asks, Trigger::request(Kind::Multi).path("-of-lock")),
    ] {
        let path = format!("/break/meanwhile-{case}");
        let hold = held(&holder.single_node(&path).unwrap()).await;
        let gate = Gate::new();
        let paused = proxy.on(trigger.then(Action::Pause(gate.clone())));
        let breaking = tokio::spawn(call(&admin.single_node(&path).unwrap()));
        assert!(paused.wait(SOON), "{case}");
        soon(hold.release()).await.unwrap();
        let hold = held(&next.single_node(&path).unwrap()).await;
        gate.open();
        assert_eq!(soon(breaking).await.unwrap().unwrap(), [], "{case}: the one who held it had gone");
        let stat = operator.stat(hold.node()).expect("its node is there");
        assert_eq!(stat.czxid.unsigned_abs(), hold.token().value(), "{case}");
        assert!(!operator.data(hold.node()).starts_with(b"__REVOKE__"), "{case}");
        soon(hold.release()).await.expect("it kept the lock");
    }
}
