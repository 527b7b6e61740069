//! Promise 7: permits are granted only to who has them, in a session that is alive.

use crate::support::permits::{Waiter, has, semaphore};
use crate::support::{SESSION, SOON, client, expire_session, operator, options, soon};
use ground::{Action, Gate, Kind, Trigger, shared};
use std::task::Poll;
use std::time::Duration;
use zklock_core::{Client, HoldState};

/// Longer than a write proves where only one went before it (T/4), shorter than the client library waits for a sign of
/// life (2/5 T).
const BEYOND_A_LEASE: Duration = Duration::from_millis(SESSION.as_millis() as u64 / 3);
const HEARTBEAT: Duration = Duration::from_millis(SESSION.as_millis() as u64 / 10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_whose_session_ended_before_it_heard_of_its_turn_gets_no_dead_hold() {
    for permits in [1, 3] {
        let (holder, operator) = (client().await, operator());
        let path = format!("/semaphore/late-{permits}");
        let hold = soon(semaphore(&holder, &path, 3, 3).acquire()).await.unwrap();
        let waiter = Waiter::new(&path, true, 3, permits).await;
        let gate = Gate::new();
        let event = Trigger::reply(Kind::Event).path(format!("{path}/leases"));
        let told = waiter.proxy.on(event.then(Action::Pause(gate.clone())));
        soon(hold.release()).await.unwrap();
        assert!(told.wait(SOON));
        expire_session(&waiter.proxy);
        let second = soon(semaphore(&holder, &path, 3, 3).acquire()).await.unwrap();
        tokio::time::sleep(BEYOND_A_LEASE).await;
        gate.open();
        has(&operator, &path, 1, 3 + permits as usize);
        assert!(!waiter.task.is_finished(), "beside {second:?}");
        soon(second.release()).await.unwrap();
        let (hold, ground) = waiter.granted().await;
        for node in hold.nodes() {
            let stat = operator.stat(node).expect("a permit without a node was delivered");
            assert_eq!(Some(stat.ephemeral_owner), ground.client.session_id(), "the node of another session");
        }
        let stats = ground.client.stats();
        assert_eq!((stats.sessions, stats.losses), (2, 0));
        soon(hold.release()).await.unwrap();
    }
}

/// The operator deletes a permit between the count and the grant, where only a check can tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_that_was_deleted_long_ago_is_not_granted() {
    let (holder, operator, path) = (client().await, operator(), "/semaphore/deleted");
    let hold = soon(semaphore(&holder, path, 3, 3).acquire()).await.unwrap();
    let waiter = Waiter::new(path, true, 3, 3).await;
    tokio::time::sleep(HEARTBEAT + Duration::from_millis(50)).await;
    let own: Vec<_> = crate::support::queue::nodes(&operator, &format!("{path}/leases"));
    let checked = Trigger::request(Kind::Multi).path(&own[4]);
    let gate = Gate::new();
    let checked = waiter.proxy.on(checked.then(Action::Pause(gate.clone())));
    soon(hold.release()).await.unwrap();
    assert!(checked.wait(SOON), "a grant after such a time needs a check");
    operator.delete(&own[4]);
    gate.open();
    let (hold, _client) = waiter.granted().await;
    assert!(hold.nodes().all(|node| operator.stat(node).is_some() && node != own[4]));
    has(&operator, path, 0, 3);
    soon(hold.release()).await.unwrap();
}

/// All on one thread, so that the process can be made to stand still between the grant and its delivery.
#[tokio::test]
async fn a_grant_that_the_process_slept_through_is_not_delivered() {
    let session = Duration::from_secs(1);
    for (number, stall) in [session * 11 / 16, session * 7 / 4].into_iter().enumerate() {
        for tries in [false, true] {
            let path = format!("/semaphore/slept-{number}-{tries}");
            let hosts = shared().connect_string();
            // A try has one deadline, and is to have time left after the stall for another session.
            let options = options(&hosts).session_timeout(session).unwrap().try_timeout(SOON).unwrap();
            let client = Client::connect(options).await.unwrap();
            let (lock, counted) = (semaphore(&client, &path, 3, 2), client.clone());
            let stalled = tokio::spawn(async move {
                // It is always in the run queue, so it comes between the task that counts the grant and the one
                // that gets it.
                std::future::poll_fn(|context| {
                    context.waker().wake_by_ref();
                    if counted.stats().grants == 0 { Poll::Pending } else { Poll::Ready(()) }
                })
                .await;
                std::thread::sleep(stall);
            });
            let acquired = tokio::spawn(async move {
                let hold = if tries { lock.try_acquire().await } else { lock.acquire().await.map(Some) };
                hold.unwrap().map(|hold| (hold.valid_for(), hold))
            });
            let granted = soon(acquired).await.unwrap();
            assert!(stalled.is_finished(), "the grant was delivered before the stall: this tests nothing");
            if let Some((valid_for, hold)) = granted {
                assert!(!valid_for.is_zero(), "{path}: a dead hold was delivered");
                assert_eq!(hold.state(), HoldState::Held);
                assert!(hold.nodes().all(|node| operator().stat(node).is_some()));
                soon(hold.release()).await.unwrap();
            }
            client.close().await;
            has(&operator(), &path, 0, 0);
        }
    }
}
