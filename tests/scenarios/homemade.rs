//! Contenders of locks that programs have made themselves: their names end with a number, and no library has them.

use crate::support::strangers::{in_naming, put};
use crate::support::warnings::{about, collect};
use crate::support::{client, comes, confirmed, held, operator, proxied_client, says, settled, soon};
use ground::Kind;
use ground::wire::Mode;
use zklock::further::{Foreign, Naming, Role};
use zklock::{ErrorKind, Lock, LockSpec};

/// A contender for one of several locks under one node, as some programs name it.
pub(crate) const SEVERAL: &str = "report_lock_";
/// What such programs put before the number. The first is what ZooKeeper's page of recipes says.
const NAMES: [&str; 9] = [
    "7ce1b6a0-1111-4222-8333-123456789abc-lock-",
    "lock-",
    "lock-144115188075855872",
    "192.168.0.1-W-",
    "192.168.0.1-R-",
    SEVERAL,
    "x-",
    "n_",
    "",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_there_is_refused_by_every_kind_and_named_or_ignored_with_a_warning() {
    collect();
    let (client, operator) = (client().await, operator());
    for (number, prefix) in NAMES.into_iter().enumerate() {
        let path = &format!("/homemade/there/{number}");
        let node = put(&operator, path, prefix);
        let name = node.rsplit_once('/').unwrap().1;
        let beside = put(&operator, &format!("{path}/s/locks"), prefix);
        let one_of_two = [client.mutex(&format!("{path}/free")).unwrap(), client.mutex(path).unwrap()];
        let locks: Vec<Lock> = vec![
            client.mutex(path).unwrap(),
            client.read_lock(path).unwrap(),
            client.write_lock(path).unwrap(),
            client.election(path).unwrap(),
            client.semaphore(path, 5).unwrap(),
            client.all(&one_of_two).unwrap(),
            in_naming(&client, path, &Naming::Kazoo, Role::Exclusive),
            in_naming(&client, path, &Naming::WriteLock, Role::Exclusive),
        ];
        for lock in &locks {
            for error in
                [soon(lock.acquire()).await.unwrap_err(), soon(lock.try_acquire()).await.unwrap_err()]
            {
                let several = if prefix == SEVERAL { "several locks under one node" } else { "" };
                let parts = [name, path, several, "of its own", "ignore-unknown"];
                says(&error, ErrorKind::ForeignContender, &parts);
            }
            settled(&client).await;
        }
        let in_the_queue = client.semaphore(&format!("{path}/s"), 5).unwrap();
        let error = soon(in_the_queue.acquire()).await.unwrap_err();
        says(&error, ErrorKind::ForeignContender, &[beside.rsplit_once('/').unwrap().1]);
        settled(&client).await;
        let left: Vec<_> =
            operator.children(path).into_iter().filter(|child| child.ends_with(char::is_numeric)).collect();
        assert_eq!(left, [name], "nothing is left");
        for (grant, spec) in [LockSpec::mutex(path), LockSpec::semaphore(path, 5)].into_iter().enumerate() {
            let lock = client.lock(&spec.unwrap().foreign(Foreign::IgnoreUnknown)).unwrap();
            soon(held(&lock).await.release()).await.unwrap();
            let mut warnings = about(path, "beside a contender that zklock ignores");
            warnings.retain(|line| line.contains(&node));
            assert_eq!(warnings.len(), grant + 1, "{warnings:?}");
        }
        operator.delete(&node);
        operator.delete(&beside);
        soon(held(&locks[0]).await.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_beside_the_locks_own_node_is_none() {
    let (client, operator) = (client().await, operator());
    let node = put(&operator, "/homemade/beside", SEVERAL);
    soon(held(&client.mutex("/homemade/beside/lock").unwrap()).await.release()).await.unwrap();
    operator.delete(&node);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_look_shows_that_what_stays_is_none() {
    let ((client, proxy), operator, path) = (proxied_client().await, operator(), "/homemade/orders");
    operator.create_all(path, "");
    let order = |mode| operator.create_mode(&format!("{path}/order-"), "", mode);
    // More than are looked at in one flight.
    let orders: Vec<_> = (0..600).map(|_| order(Mode::PersistentSequential)).collect();
    operator.create_mode(&format!("{path}/0000000123"), "", Mode::Container);
    for name in ["config", "worker-7", "worker-00000007"] {
        operator.create_mode(&format!("{path}/{name}"), "", Mode::Ephemeral);
    }
    proxy.record();
    // How many looks an acquire takes.
    let looks = async |lock: Lock| {
        let hold = held(&lock).await;
        let requests = proxy.requests();
        proxy.record();
        soon(hold.release()).await.unwrap();
        // A semaphore's attempt looks at its own place in the queue, too.
        let is_child = |path_of: &str| path_of.starts_with(path) && !path_of.contains("/locks/");
        requests.iter().filter(|it| it.kind == Kind::Exists && is_child(&it.path)).count()
    };
    assert_eq!(looks(client.mutex(path).unwrap()).await, orders.len() + 1);
    // Any lock at that path knows it from then on.
    assert_eq!(looks(client.mutex(path).unwrap()).await, 0);
    assert_eq!(looks(client.write_lock(path).unwrap()).await, 0);
    assert_eq!(looks(client.semaphore(path, 3).unwrap()).await, 0);
    // A holder looks at those that come, and goes on.
    let hold = held(&client.mutex(path).unwrap()).await;
    let more = [1, 2].map(|_| order(Mode::PersistentSequential));
    comes(async || more.iter().all(|node| proxy.messages().iter().any(|it| it.path == *node))).await;
    confirmed(&hold).await;
    soon(hold.release()).await.unwrap();
    orders.iter().for_each(|node| operator.delete(node));
    let contender = order(Mode::EphemeralSequential);
    let error = soon(client.mutex(path).unwrap().acquire()).await.unwrap_err();
    says(&error, ErrorKind::ForeignContender, &[contender.rsplit_once('/').unwrap().1]);
    operator.delete(&contender);
}
