//! A node that another has deleted: it is passed on to nobody, as soon as the client can know.
//!
//! No client here has a heartbeat that would find out as well.

use crate::support::{SOON, client, held, operator, proxied, soon};
use ground::{Action, Hook, Kind, Proxy, Trigger};
use std::time::Duration;
use zklock::{Client, HoldState, Lock, LockSpec, LossReason};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);

const DELETED: HoldState = HoldState::Lost(LossReason::NodeDeleted);

async fn without_heartbeat() -> (Client, Proxy) {
    proxied(|options| options.heartbeat(false)).await
}

fn lingering(client: &Client, path: &str) -> Lock {
    client.lock(&LockSpec::mutex(path).unwrap().linger(LONG)).unwrap()
}

/// Reports that the first holder of a lock watches its node and its queue. Of its listings the first finds no directory, the
/// second is for its turn, and the third watches.
fn watches(proxy: &Proxy, path: &str) -> [Hook; 2] {
    let replies = [Trigger::reply(Kind::GetData), Trigger::reply(Kind::GetChildren).nth(3)];
    replies.map(|reply| proxy.on(reply.path(path)))
}

/// Keeps from the client what its watches in this queue report next.
fn deafen(proxy: &Proxy, path: &str) -> [Hook; 2] {
    [1, 2].map(|nth| proxy.on(Trigger::reply(Kind::Event).path(path).nth(nth).then(Action::Swallow)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_if_any_listing_of_its_client_does_not_show_it() {
    let ((ours, proxy), theirs) = (without_heartbeat().await, client().await);
    for is_held in [false, true] {
        for look in ["contenders", "children", "observe"] {
            let path = format!("/deleted/{look}-{is_held}");
            let lock = lingering(&ours, &path);
            let watches = watches(&proxy, &path);
            let hold = held(&lock).await;
            if !is_held {
                soon(hold.release()).await.unwrap();
            }
            watches.iter().for_each(|hook| assert!(hook.wait(SOON)));
            let deaf = deafen(&proxy, &path);
            let rival = theirs.mutex(&path).unwrap();
            assert_eq!(soon(rival.break_lock()).await.unwrap().len(), 1);
            let usurper = held(&rival).await;
            deaf.iter().for_each(|hook| assert!(hook.wait(SOON)));
            match look {
                "contenders" => assert_eq!(soon(lock.contenders()).await.unwrap().len(), 1),
                "children" => assert_eq!(soon(ours.children(&path)).await.unwrap().len(), 1),
                _ => assert!(soon(lock.observe().unwrap().next()).await.unwrap().is_some()),
            }
            if is_held {
                assert_eq!((hold.state(), hold.valid_for()), (DELETED, Duration::ZERO), "{look}");
            }
            assert!(soon(lock.try_acquire()).await.unwrap().is_none(), "{look}: granted from memory");
            soon(usurper.release()).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_away_its_own_lock_knows_it_at_once() {
    let ((ours, proxy), path) = (without_heartbeat().await, "/deleted/own");
    let lock = lingering(&ours, path);
    let ready = watches(&proxy, path);
    let first = held(&lock).await;
    ready.iter().for_each(|hook| assert!(hook.wait(SOON)));
    let _deaf = deafen(&proxy, path);
    assert_eq!(soon(lock.break_lock()).await.unwrap().len(), 1);
    assert_eq!((first.state(), first.valid_for()), (DELETED, Duration::ZERO));
    let second = held(&lock).await;
    let token = second.token();
    soon(second.release()).await.unwrap();
    let node = format!("{path}/{}", operator().children(path)[0]);
    let _deaf = deafen(&proxy, path);
    assert!(soon(lock.evict(&node)).await.unwrap());
    assert!(soon(lock.try_acquire()).await.unwrap().expect("free").token() > token);
    let exclusive = ours.single_node("/deleted/exclusive").unwrap();
    let hold = held(&exclusive).await;
    assert_eq!(soon(exclusive.break_lock()).await.unwrap().len(), 1);
    assert_eq!(hold.state(), DELETED);
}
