//! Promise 3: a waiter has its turn even if the server does not report that the contender ahead is gone.

use crate::support::kinds::{MUTEX, PERMIT, READER, SINGLE_NODE, WRITER};
use crate::support::queue::{acquire, granted, held, nodes};
use crate::support::{SOON, client, operator, proxied_client, soon};
use ground::{Action, Gate, Kind, Trigger, until};
use std::time::Duration;
use zklock::LockSpec;
use zklock::further::Foreign;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_has_its_turn_though_the_notification_is_lost() {
    let mut waiters = Vec::new();
    for kind in [MUTEX, READER, WRITER, PERMIT, SINGLE_NODE] {
        let path = format!("/silence/{}", kind.name);
        let rival = client().await;
        let hold = soon((kind.rival)(&rival, &path).acquire()).await.unwrap();
        let (waiter, proxy) = proxied_client().await;
        let waits = proxy.on((kind.waits)(&path));
        let lost = proxy.on(Trigger::reply(Kind::Event).then(Action::Swallow));
        let waiting = acquire(&(kind.lock)(&waiter, &path));
        assert!(waits.wait(SOON), "{} waits", kind.name);
        soon(hold.release()).await.unwrap();
        let connections = proxy.accepted();
        waiters.push((kind, path, waiter, proxy, connections, lost, waiting));
    }
    for (kind, path, waiter, proxy, connections, lost, waiting) in waiters {
        let hold = granted(waiting).await;
        assert!(lost.fired(), "{} has heard of it", kind.name);
        // It still has the same session on the same connection.
        assert_eq!((proxy.accepted(), waiter.stats().sessions), (connections, 1), "{}", kind.name);
        soon(hold.release()).await.unwrap();
        kind.is_gone(&operator(), &path);
    }
}

/// The quorum is asked about all of them at once, and its answer names only the first node that is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_waits_each_that_can_have_its_turn_has_it_though_the_notifications_are_lost() {
    let (rival, (waiter, proxy)) = (client().await, proxied_client().await);
    let paths: Vec<_> = (0..40).map(|number| format!("/silence/many-{number}")).collect();
    proxy.record();
    let (mut freed, mut taken) = (Vec::new(), Vec::new());
    for (number, path) in paths.iter().enumerate() {
        let hold = held(&rival.mutex(path).unwrap()).await;
        let waiting = acquire(&waiter.mutex(path).unwrap());
        if number % 3 == 0 { freed.push((path, hold, waiting)) } else { taken.push((hold, waiting)) }
    }
    assert!(until(SOON, || proxy.counts().replies(Kind::GetData) == paths.len()), "they watch");
    let mut lost = Vec::new();
    for (path, hold, _) in &freed {
        lost.push(proxy.on(Trigger::reply(Kind::Event).path(*path).then(Action::Swallow)));
        soon(hold.release()).await.unwrap();
    }
    for (_, _, waiting) in freed {
        soon(granted(waiting).await.release()).await.unwrap();
    }
    assert!(lost.iter().all(ground::Hook::fired), "no notification has come");
    assert_eq!((waiter.stats().sessions, waiter.stats().reconnects), (1, 0));
    for (hold, waiting) in taken {
        assert!(!waiting.is_finished());
        soon(hold.release()).await.unwrap();
        soon(granted(waiting).await.release()).await.unwrap();
    }
}

/// A holder that has never seen the waiter's node does not know that anybody waits, and its process may keep the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_node_is_deleted_behind_a_lingering_lock_has_its_turn() {
    let (operator, path) = (operator(), "/silence/deleted");
    operator.create_all(path, "");
    let (holder, proxy) = proxied_client().await;
    let gate = Gate::new();
    let looks = Trigger::request(Kind::GetChildren).path(path).nth(2);
    let looks = proxy.on(looks.then(Action::Pause(gate.clone())));
    let spec =
        LockSpec::mutex(path).unwrap().foreign(Foreign::IgnoreUnknown).linger(Duration::from_secs(600));
    let lock = holder.lock(&spec).unwrap();
    let hold = held(&lock).await;
    assert!(looks.wait(SOON), "it looks who waits");
    let (waiter, beside) = proxied_client().await;
    let watches = beside.on(Trigger::reply(Kind::GetData).path(path));
    let waiting = acquire(&waiter.mutex(path).unwrap());
    assert!(watches.wait(SOON));
    let gone = nodes(&operator, path).into_iter().find(|node| node != hold.node()).unwrap();
    operator.delete(&gone);
    let seen = proxy.on(Trigger::reply(Kind::GetChildren).path(path));
    gate.open();
    assert!(seen.wait(SOON) && !hold.is_wanted());
    soon(hold.release()).await.unwrap();
    let goes_on = tokio::spawn(async move {
        loop {
            drop(lock.acquire().await.unwrap());
            tokio::task::yield_now().await;
        }
    });
    let hold = granted(waiting).await;
    assert_ne!(hold.node(), gone);
    assert_eq!((waiter.stats().sessions, waiter.stats().losses), (1, 0));
    goes_on.abort();
}
