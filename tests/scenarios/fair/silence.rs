//! Promise 3: a waiter has its turn also where the server does not tell that the one ahead is gone.

use crate::support::kinds::{LockKind, MUTEX, PERMIT, READER, WRITER};
use crate::support::queue::{acquire, granted};
use crate::support::{SOON, client, operator, proxied_client, soon};
use ground::{Action, Kind, Trigger};
use zklock_core::{Client, Lock};

/// A lock without a queue.
const EXCLUSIVE: LockKind = LockKind {
    name: "exclusive",
    lock: exclusive,
    rival: exclusive,
    waits: |path| Trigger::reply(Kind::GetChildren).path(path),
    ..MUTEX
};

fn exclusive(client: &Client, path: &str) -> Lock {
    client.exclusive(path).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_has_its_turn_though_the_notification_is_lost() {
    let mut waiters = Vec::new();
    for kind in [MUTEX, READER, WRITER, PERMIT, EXCLUSIVE] {
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
        // It is the same session on the same connection.
        assert_eq!((proxy.accepted(), waiter.stats().sessions), (connections, 1), "{}", kind.name);
        soon(hold.release()).await.unwrap();
        kind.is_gone(&operator(), &path);
    }
}
