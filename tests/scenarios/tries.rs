//! After a try has found the lock busy, further tries send no request until the server reports a change of the node that was
//! in the way.

use crate::support::{client, comes, held, operator, proxied_client, settled, soon};
use ground::{Kind, Proxy};
use zklock::further::Naming;
use zklock::{Client, Lock, LockSpec};

/// The request that removes a watch.
const REMOVE_WATCHES: Kind = Kind::Other(18);

/// How many requests of this kind a try sends until it finds the lock busy.
async fn requests_of_a_try(lock: &Lock, proxy: &Proxy, kind: Kind) -> usize {
    proxy.record();
    assert!(soon(lock.try_acquire()).await.unwrap().is_none(), "it is held");
    proxy.counts().requests(kind)
}

/// Tries until several in a row are answered from memory. On a busy machine they may take longer than a memory lasts.
async fn until_remembered(client: &Client, lock: &Lock, proxy: &Proxy) {
    let mut in_a_row = 0;
    soon(async {
        while in_a_row < 20 {
            in_a_row += 1;
            if requests_of_a_try(lock, proxy, Kind::Any).await > 0 {
                in_a_row = 0;
                settled(client).await;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_of_a_lock_that_was_busy_sends_nothing_until_the_holder_has_gone() {
    let (other, (client, proxy)) = (client().await, proxied_client().await);
    let kazoo = |path: &str| LockSpec::mutex(path).unwrap().naming(Naming::Kazoo);
    let pairs = [
        ("a mutex", other.mutex("/tries/mutex"), client.mutex("/tries/mutex")),
        ("an election", other.election("/tries/lead"), client.election("/tries/lead")),
        ("a writer", other.read_lock("/tries/write"), client.write_lock("/tries/write")),
        ("a reader", other.write_lock("/tries/read"), client.read_lock("/tries/read")),
        ("kazoo's", other.lock(&kazoo("/tries/kazoo")), client.lock(&kazoo("/tries/kazoo"))),
    ];
    for (case, holder, tried) in pairs {
        let (hold, tried) = (held(&holder.unwrap()).await, tried.unwrap());
        until_remembered(&client, &tried, &proxy).await;
        assert_eq!(operator().children(tried.path()).len(), 1, "{case}: only the holder");
        soon(hold.release()).await.unwrap();
        // The notice may come some time after the release.
        let mut next = None;
        comes(async || {
            next = tried.try_acquire().await.unwrap();
            next.is_some()
        })
        .await;
        soon(next.unwrap().release()).await.unwrap();
    }
    settled(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_try_leaves_no_watch_and_a_lock_that_is_dropped_takes_its_own_back() {
    let (other, (client, proxy)) = (client().await, proxied_client().await);
    // Each at a path of its own, because a lock that was just dropped may live on for a moment.
    for path in ["/tries/once-1", "/tries/once-2", "/tries/once-3"] {
        let hold = held(&other.mutex(path).unwrap()).await;
        let once = client.mutex(path).unwrap();
        assert!(requests_of_a_try(&once, &proxy, Kind::Any).await > 0);
        settled(&client).await;
        let counts = proxy.counts();
        // A slow try may last until the next heartbeat, which is a transaction.
        let kinds =
            [Kind::Create, Kind::GetChildren, Kind::Delete, Kind::Exists, Kind::GetData, REMOVE_WATCHES];
        assert_eq!(kinds.map(|kind| counts.requests(kind)), [1, 1, 1, 0, 0, 0]);
        assert_eq!(counts.requests(Kind::Any) - counts.requests(Kind::Multi), 3);
        soon(hold.release()).await.unwrap();
    }
    let hold = held(&other.mutex("/tries/once").unwrap()).await;
    let tried = client.mutex("/tries/once").unwrap();
    until_remembered(&client, &tried, &proxy).await;
    proxy.record();
    drop(tried);
    comes(async || proxy.counts().requests(REMOVE_WATCHES) > 0).await;
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_one_node_does_not_say_that_the_lock_is_busy_each_try_asks() {
    let (other, (client, proxy)) = (client().await, proxied_client().await);
    let both = |client: &Client| {
        client.all(&[client.mutex("/tries/set-a").unwrap(), client.mutex("/tries/set-b").unwrap()]).unwrap()
    };
    let pairs = [
        ("a set", both(&other), both(&client)),
        (
            "a semaphore",
            other.semaphore("/tries/permits", 1).unwrap(),
            client.semaphore("/tries/permits", 1).unwrap(),
        ),
    ];
    for (case, holder, tried) in pairs {
        let hold = held(&holder).await;
        for _ in 0..4 {
            assert!(requests_of_a_try(&tried, &proxy, Kind::Any).await > 0, "{case}");
            settled(&client).await;
        }
        soon(hold.release()).await.unwrap();
        let hold = soon(tried.try_acquire()).await.unwrap().expect(case);
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_has_seen_the_lock_free_is_not_told_that_it_is_busy() {
    let (other, (client, proxy), path) = (client().await, proxied_client().await, "/tries/seen");
    let (held_by_other, tried) = (other.mutex(path).unwrap(), client.mutex(path).unwrap());
    for _ in 0..20 {
        let hold = held(&held_by_other).await;
        until_remembered(&client, &tried, &proxy).await;
        soon(hold.release()).await.unwrap();
        assert!(soon(tried.contenders()).await.unwrap().is_empty());
        let hold = soon(tried.try_acquire()).await.unwrap().expect("it has seen that nobody is there");
        soon(hold.release()).await.unwrap();
    }
}
