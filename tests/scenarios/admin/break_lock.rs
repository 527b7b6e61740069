//! The operator takes a lock away from all its holders.

use crate::support::queue::{acquire, granted, held, nodes, told};
use crate::support::timing::Noise;
use crate::support::{SOON, client, operator, proxied_client, soon};
use ground::{Action, Gate, Kind, Trigger};
use std::time::Instant;
use zklock_core::{HoldState, LossReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_mutex_the_holder_is_told_and_those_who_wait_go_on() {
    let (path, operator) = ("/break/mutex", operator());
    let (holder, waiting, admin) = (client().await, client().await, client().await);
    let lock = admin.mutex(path).unwrap();
    assert_eq!(soon(lock.break_lock()).await.unwrap(), []);
    let hold = held(&holder.mutex(path).unwrap()).await;
    let task = acquire(&waiting.mutex(path).unwrap());
    operator.wait_for_children(path, 2, SOON);
    let noise = Noise::measured();
    let broken = Instant::now();
    let holders = soon(lock.break_lock()).await.unwrap();
    assert_eq!(holders.len(), 1);
    assert_eq!((holders[0].node.as_str(), holders[0].token), (hold.node(), hold.token()));
    assert_eq!(told(&hold, &holder, broken, &noise).await, LossReason::NodeDeleted);
    let next = granted(task).await;
    assert_eq!(next.state(), HoldState::Held);
    soon(next.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_read_side_all_readers_are_told_and_the_writer_gets_it() {
    let (path, operator, admin) = ("/break/read", operator(), client().await);
    let mut readers = Vec::new();
    for _ in 0..5 {
        let client = client().await;
        readers.push((held(&client.read(path).unwrap()).await, client));
    }
    let waiting = client().await;
    let writer = acquire(&waiting.write(path).unwrap());
    operator.wait_for_children(path, 6, SOON);
    let behind = client().await;
    let reader = acquire(&behind.read(path).unwrap());
    operator.wait_for_children(path, 7, SOON);
    let noise = Noise::measured();
    let broken = Instant::now();
    let holders = soon(admin.read(path).unwrap().break_lock()).await.unwrap();
    let mut expected: Vec<_> = readers.iter().map(|(hold, _)| hold.node()).collect();
    expected.sort_by_key(|node| node[node.len() - 10..].to_owned());
    assert_eq!(holders.iter().map(|it| it.node.as_str()).collect::<Vec<_>>(), expected);
    for (hold, client) in &readers {
        assert_eq!(told(hold, client, broken, &noise).await, LossReason::NodeDeleted);
    }
    let writer = granted(writer).await;
    assert!(!reader.is_finished());
    soon(writer.release()).await.unwrap();
    soon(granted(reader).await.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_semaphore_all_permits_are_free_again() {
    let (path, operator, admin) = ("/break/semaphore", operator(), client().await);
    let mut holders = Vec::new();
    for _ in 0..3 {
        let client = client().await;
        holders.push((held(&client.semaphore(path, 3).unwrap()).await, client));
    }
    let waiting = client().await;
    let waiter = acquire(&waiting.semaphore(path, 3).unwrap());
    operator.wait_for_children(&format!("{path}/leases"), 4, SOON);
    let noise = Noise::measured();
    let broken = Instant::now();
    let told_of = soon(admin.semaphore(path, 3).unwrap().break_lock()).await.unwrap();
    assert_eq!(told_of.len(), 3);
    for (hold, client) in &holders {
        assert!(told_of.iter().any(|it| it.node == hold.node()));
        assert_eq!(told(hold, client, broken, &noise).await, LossReason::NodeDeleted);
    }
    let next = granted(waiter).await;
    assert_eq!(next.state(), HoldState::Held);
    soon(next.release()).await.unwrap();
    operator.wait_for_children(&format!("{path}/leases"), 0, SOON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_election_a_set_and_an_exclusive_lock() {
    let (operator, holder, admin) = (operator(), client().await, client().await);
    let lead = held(&holder.election("/break/election").unwrap()).await;
    let single = held(&holder.exclusive("/break/single").unwrap()).await;
    let locks = ["/break/a", "/break/b"].map(|path| holder.mutex(path).unwrap());
    let both = held(&holder.all(&locks).unwrap()).await;
    assert_eq!(soon(admin.election("/break/election").unwrap().break_lock()).await.unwrap().len(), 1);
    assert_eq!(soon(admin.exclusive("/break/single").unwrap().break_lock()).await.unwrap().len(), 1);
    let locks = ["/break/a", "/break/b"].map(|path| admin.mutex(path).unwrap());
    let broken = soon(admin.all(&locks).unwrap().break_lock()).await.unwrap();
    // The set may delete its second node itself as soon as it notices that the first is gone.
    assert!(!broken.is_empty());
    for hold in [&lead, &single, &both] {
        assert_eq!(soon(hold.lost()).await, Some(LossReason::NodeDeleted));
    }
    for path in ["/break/election", "/break/single", "/break/a", "/break/b"] {
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
    assert_eq!(soon(both.lost()).await, Some(LossReason::NodeDeleted));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_to_hold_an_exclusive_lock_meanwhile_keeps_it() {
    let (operator, holder, next) = (operator(), client().await, client().await);
    let (admin, proxy) = proxied_client().await;
    // The message to hold up: the last answer of the listing, or the check of the node just before it is deleted.
    for (case, trigger) in [
        ("listed", Trigger::reply(Kind::GetData).path("/lock")),
        ("looks", Trigger::request(Kind::Exists).path("/lock")),
        ("looks at its companion", Trigger::request(Kind::Exists).path("-of-lock")),
        ("deletes", Trigger::request(Kind::Multi).path("-of-lock")),
    ] {
        let path = format!("/break/meanwhile-{case}");
        let hold = held(&holder.exclusive(&path).unwrap()).await;
        let gate = Gate::new();
        let paused = proxy.on(trigger.then(Action::Pause(gate.clone())));
        let lock = admin.exclusive(&path).unwrap();
        let breaking = tokio::spawn(async move { lock.break_lock().await });
        assert!(paused.wait(SOON), "{case}");
        soon(hold.release()).await.unwrap();
        let hold = held(&next.exclusive(&path).unwrap()).await;
        gate.open();
        assert_eq!(soon(breaking).await.unwrap().unwrap(), [], "{case}: the one who held it had gone");
        let stat = operator.stat(hold.node()).expect("its node is there");
        assert_eq!(stat.czxid.unsigned_abs(), hold.token().value(), "{case}");
        soon(hold.release()).await.expect("it kept the lock");
    }
}
