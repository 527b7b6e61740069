//! Promise 3: a waiter has its turn even if the server does not report that the contender ahead is gone.

use crate::support::kinds::{MUTEX, PERMIT, READER, SINGLE_NODE, WRITER};
use crate::support::{SOON, acquire, client, granted, held, operator, proxied_client, soon};
use ground::{Action, Kind, Trigger, until};

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
