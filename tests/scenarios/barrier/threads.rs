//! Both barriers, for threads that block.

use crate::support::members::{is_empty, there};
use crate::support::threads::{bell, client, done, result};
use crate::support::{SOON, on_a_thread, operator, says, soon};
use std::time::{Duration, Instant};
use zklock::further::Interrupt;
use zklock::{ErrorKind, LossReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_barrier_stops_threads() {
    let client = soon(on_a_thread(client)).await;
    soon(on_a_thread(move || {
        let barrier = client.barrier("/threads/single").unwrap();
        assert_eq!(barrier.path(), "/threads/single");
        assert!(
            barrier.set().wait().unwrap()
                && !barrier.set().wait().unwrap()
                && barrier.is_set().wait().unwrap()
        );
        let waiting = barrier.clone();
        let waiter = std::thread::spawn(move || waiting.wait().wait());
        let (ready, rung) = bell();
        let call = barrier.wait().detach(ready).unwrap();
        let start = Instant::now();
        let error = barrier.wait_timeout(Duration::from_millis(200)).wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(error.to_string().contains("still set after 200ms"), "{error}");
        assert!(start.elapsed() >= Duration::from_millis(200) && start.elapsed() < SOON);
        assert_eq!(barrier.wait_timeout(Duration::ZERO).wait().unwrap_err().kind(), ErrorKind::Timeout);
        let interrupt = Interrupt::new();
        interrupt.trigger();
        assert_eq!(barrier.wait().wait_unless(&interrupt).unwrap_err().kind(), ErrorKind::Interrupted);
        assert!(!waiter.is_finished() && call.fetch().is_none());
        assert!(barrier.remove().wait().unwrap() && !barrier.remove().wait().unwrap());
        waiter.join().unwrap().unwrap();
        result(&call, &rung).unwrap();
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_begin_together_and_end_together() {
    let (client, path) = (soon(on_a_thread(client)).await, "/threads/double");
    soon(on_a_thread(move || {
        let barrier = client.double_barrier(path, 3).unwrap();
        assert_eq!((barrier.path(), barrier.members()), (path, 3));
        for _ in 0..3 {
            let members: Vec<_> = (0..2)
                .map(|_| {
                    let barrier = barrier.clone();
                    std::thread::spawn(move || {
                        let member = barrier.enter().wait().unwrap();
                        assert!(member.node().starts_with(path) && member.path() == path);
                        assert_eq!(member.loss(), None);
                        member.leave().wait().unwrap();
                        assert_eq!(member.leave().wait().unwrap_err().kind(), ErrorKind::NotHeld);
                    })
                })
                .collect();
            let member = done(barrier.enter()).unwrap();
            done(member.leave()).unwrap();
            members.into_iter().for_each(|member| member.join().unwrap());
        }
    }))
    .await;
    is_empty(&operator(), path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_is_ended_leaves_nothing() {
    let (client, path) = (soon(on_a_thread(client)).await, "/threads/ended");
    soon(on_a_thread(move || {
        let operator = operator();
        let barrier = client.double_barrier(path, 2).unwrap();
        let error = barrier.enter_timeout(Duration::from_millis(100)).wait().unwrap_err();
        says(&error, ErrorKind::Timeout, &["within 100ms", "2 members"]);
        is_empty(&operator, path);

        let (interrupt, waiting) = (Interrupt::new(), barrier.clone());
        let elsewhere = interrupt.clone();
        let waiter = std::thread::spawn(move || waiting.enter().wait_unless(&elsewhere).map(drop));
        there(&operator, path, 1);
        interrupt.trigger();
        assert_eq!(waiter.join().unwrap().unwrap_err().kind(), ErrorKind::Interrupted);
        is_empty(&operator, path);

        let (ready, _rung) = bell();
        let call = barrier.enter().detach(ready).unwrap();
        there(&operator, path, 1);
        call.cancel();
        assert_eq!(call.fetch().unwrap().unwrap_err().kind(), ErrorKind::Interrupted);
        is_empty(&operator, path);

        // A member that was not fetched has left once its call is dropped.
        let one = client.double_barrier(path, 1).unwrap();
        let (ready, rung) = bell();
        let call = one.enter().detach(ready).unwrap();
        rung.recv_timeout(SOON).unwrap();
        there(&operator, path, 1);
        drop(call);
        is_empty(&operator, path);

        // A member whose leave is interrupted or dropped has left.
        let (member, other) = (one.enter().wait().unwrap(), one.enter().wait().unwrap());
        interrupt.reset();
        let elsewhere = interrupt.clone();
        let leaver = std::thread::spawn(move || member.leave().wait_unless(&elsewhere));
        std::thread::sleep(Duration::from_millis(100));
        interrupt.trigger();
        assert_eq!(leaver.join().unwrap().unwrap_err().kind(), ErrorKind::Interrupted);
        there(&operator, path, 1);
        let third = one.enter().wait().unwrap();
        let (ready, _rung) = bell();
        drop(other.leave().detach(ready).unwrap());
        there(&operator, path, 1);
        drop(third);
        is_empty(&operator, path);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_is_told_when_its_client_is_closed() {
    let client = soon(on_a_thread(client)).await;
    soon(on_a_thread(move || {
        let member = client.double_barrier("/threads/closed", 1).unwrap().enter().wait().unwrap();
        let none = Duration::from_millis(50);
        assert_eq!(member.lost().wait_timeout(none).unwrap_err().kind(), ErrorKind::Timeout);
        let (ready, rung) = bell();
        let call = member.lost().detach(ready).unwrap();
        client.close().wait().unwrap();
        assert_eq!(result(&call, &rung).unwrap(), LossReason::ClientClosed);
        assert_eq!(member.loss(), Some(LossReason::ClientClosed));
        let error = member.leave_timeout(Duration::from_secs(1)).wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost(LossReason::ClientClosed));
    }))
    .await;
}
