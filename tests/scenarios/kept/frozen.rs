//! A node that lingers, while its client is cut off for longer than its session lives.

use crate::support::queue::{granted, held};
use crate::support::{SOON, client, operator, options, settled, soon};
use ground::{Direction, Proxy, shared};
use std::time::{Duration, Instant};
use zklock_core::{Client, Error, ErrorKind, Hold, Lock, LockSpec};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);
const BRIEF: Duration = Duration::from_secs(1);
const A_MOMENT: Duration = Duration::from_millis(20);

async fn lingering(beats: bool, path: &str) -> (Client, Proxy, Lock) {
    let proxy = Proxy::before(shared().server(0));
    let options = options(&proxy.connect_string()).session_timeout(BRIEF).unwrap().heartbeat(beats);
    let client = soon(Client::connect(options)).await.unwrap();
    let lock = client.lock(&LockSpec::mutex(path).unwrap().linger(LONG)).unwrap();
    soon(held(&lock).await.release()).await.unwrap();
    (client, proxy, lock)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_taken_by_nobody_here_when_another_may_have_the_lock() {
    for beats in [true, false] {
        let path = format!("/linger/frozen/{beats}");
        let (theirs, (ours, proxy, lock)) = (client().await, lingering(beats, &path).await);
        proxy.freeze(Direction::Both);
        let rival = theirs.mutex(&path).unwrap();
        let rival = tokio::spawn(async move { (rival.acquire().await.unwrap(), Instant::now()) });
        let mut good_until = Instant::now();
        let mut dead = 0;
        soon(async {
            while !rival.is_finished() {
                match lock.acquire_timeout(A_MOMENT).await {
                    Ok(hold) => {
                        let now = Instant::now();
                        match hold.valid_for() {
                            Duration::ZERO => dead += 1,
                            lease => good_until = now + lease,
                        }
                        // The release fails if the hold is lost by now.
                        let _ = hold.release().await;
                    }
                    Err(error) => assert!(is_not_in_time(&error), "{error}"),
                }
            }
        })
        .await;
        let (rival, since) = soon(rival).await.unwrap();
        assert!(good_until < since, "until {:?} later", good_until - since);
        // The lease may have lapsed just after the last grant.
        assert!(dead <= 1, "{dead} dead holds");
        proxy.thaw();
        let error = soon(lock.acquire_timeout(BRIEF / 5)).await.unwrap_err();
        assert!(is_not_in_time(&error), "{error}");
        let lock = lock.clone();
        let next = tokio::spawn(async move { lock.acquire().await });
        operator().wait_for_children(&path, 2, SOON);
        soon(rival.release()).await.unwrap();
        let next = granted(next).await;
        assert!(next.token() > rival.token());
        drop(next);
        soon(ours.close()).await;
        settled(&theirs).await;
        assert_eq!(operator().children(&path), [""; 0]);
    }
}

/// Whether the lock was not granted in time, with or without a session.
fn is_not_in_time(error: &Error) -> bool {
    [ErrorKind::Timeout, ErrorKind::Unreachable].contains(&error.kind())
}

/// Acquires until the lease of a hold is still valid: on a busy machine it may lapse before the hold is delivered.
async fn proven(lock: &Lock) -> Hold {
    soon(async {
        loop {
            let hold = held(lock).await;
            if !hold.valid_for().is_zero() {
                return hold;
            }
            soon(hold.release()).await.unwrap();
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_heartbeat_it_is_taken_after_the_quorum_has_answered_for_it() {
    let (client, proxy, lock) = lingering(false, "/linger/unproven").await;
    let first = held(&lock).await;
    assert!(ground::until(SOON, || first.valid_for().is_zero()));
    soon(first.release()).await.unwrap();
    let second = proven(&lock).await;
    assert_eq!(second.token(), first.token());
    assert!(ground::until(SOON, || second.valid_for().is_zero()));
    soon(second.release()).await.unwrap();
    // The client is not told of this deletion.
    let swallowed = proxy
        .on(ground::Trigger::reply(ground::Kind::Event).path(second.node()).then(ground::Action::Swallow));
    operator().delete(second.node());
    assert!(swallowed.wait(SOON), "it is watched");
    let third = proven(&lock).await;
    assert!(third.token() > first.token());
    soon(third.release()).await.unwrap();
    soon(client.close()).await;
}
