//! A wait with a deadline is over by then, whatever the network does.

use crate::support::members::{barrier, enters, is_empty, there, within};
use crate::support::{GRACE, client, operator, proxied, proxied_client, says, settled, soon};
use ground::{Direction, not_later, or_once_more};
use std::time::{Duration, Instant};
use zklock::further::{Barrier, DoubleBarrier, Member};
use zklock::{Error, ErrorKind};

const A_WHILE: Duration = Duration::from_millis(400);

/// Returns the error of a call, which must come at the deadline: not before, and hardly after.
async fn late<T>(timeout: Duration, call: impl Future<Output = Result<T, Error>>) -> Error {
    let start = Instant::now();
    let error = soon(call).await.map(drop).unwrap_err();
    let took = start.elapsed();
    // The machine itself may be late, and a connection slow.
    or_once_more(error.kind() == ErrorKind::Timeout, &error.to_string());
    assert!(took >= timeout, "{took:?}: {error}");
    not_later(took, timeout + GRACE * 3);
    error
}

/// The errors of a waiter, of one who enters and of one who leaves, all at the same time.
async fn all_three(
    single: &Barrier,
    double: &DoubleBarrier,
    member: &Member,
    timeout: Duration,
) -> [Error; 3] {
    let entering = async { double.enter_timeout(timeout).await.map(drop) };
    let results = tokio::join!(single.wait_timeout(timeout), entering, member.leave_timeout(timeout));
    [results.0, results.1, results.2].map(Result::unwrap_err)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_says_what_was_missing_and_leaves_nothing() {
    let (client, operator, path) = (client().await, operator(), "/bounded/missing");
    let error = late(A_WHILE, barrier(&client, path, 2).enter_timeout(A_WHILE)).await;
    assert!(error.to_string().contains("did not open within 400ms: it takes 2 members"), "{error}");
    settled(&client).await;
    is_empty(&operator, path);

    let mut members = within(path, 2).await;
    let error = late(A_WHILE, members[0].0.leave_timeout(A_WHILE)).await;
    says(&error, ErrorKind::Timeout, &["not all have left the barrier /bounded/missing within 400ms"]);
    // It has left all the same.
    settled(&members[0].1).await;
    there(&operator, path, 1);
    let (last, _client) = members.pop().unwrap();
    soon(last.leave_timeout(A_WHILE)).await.unwrap();
    is_empty(&operator, path);

    let single = client.barrier("/bounded/single").unwrap();
    assert!(soon(single.set()).await.unwrap());
    let error = late(A_WHILE, single.wait_timeout(A_WHILE)).await;
    assert!(error.to_string().contains("is still set after 400ms: nobody removed it"), "{error}");
    assert!(soon(single.remove()).await.unwrap());
    soon(single.wait_timeout(A_WHILE)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_of_zero_looks_once() {
    let (client, operator, path) = (client().await, operator(), "/bounded/zero");
    let barrier = barrier(&client, path, 2);
    let error = soon(barrier.enter_timeout(Duration::ZERO)).await.unwrap_err();
    says(&error, ErrorKind::Timeout, &["is not open"]);
    settled(&client).await;
    is_empty(&operator, path);
    let a = enters(&client, path, 2);
    there(&operator, path, 1);
    let b = soon(barrier.enter_timeout(Duration::ZERO)).await.unwrap();
    let a = soon(a).await.unwrap().unwrap();
    let error = soon(a.leave_timeout(Duration::ZERO)).await.unwrap_err();
    says(&error, ErrorKind::Timeout, &["others are still within"]);
    there(&operator, path, 1);
    soon(b.leave_timeout(Duration::ZERO)).await.unwrap();
    is_empty(&operator, path);

    let single = client.barrier("/bounded/zero-single").unwrap();
    soon(single.wait_timeout(Duration::ZERO)).await.unwrap();
    assert!(soon(single.set()).await.unwrap());
    assert_eq!(soon(single.wait_timeout(Duration::ZERO)).await.unwrap_err().kind(), ErrorKind::Timeout);
    assert!(soon(single.remove()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_network_delays_nobody_whichever_way() {
    let operator = operator();
    for direction in [Direction::ToServer, Direction::ToClient, Direction::Both] {
        let path = format!("/bounded/frozen-{direction:?}");
        let (client, proxy) = proxied_client().await;
        let (single, double) = (client.barrier(&path).unwrap(), barrier(&client, &path, 1));
        let member = soon(double.enter()).await.unwrap();
        proxy.freeze(direction);
        tokio::join!(
            late(A_WHILE, single.wait_timeout(A_WHILE)),
            late(A_WHILE, double.enter_timeout(A_WHILE)),
            late(A_WHILE, member.leave_timeout(A_WHILE)),
        );
        proxy.thaw();
        settled(&client).await;
        there(&operator, &path, 0);
    }
}

/// In an outage it is unknown what the other members do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_not_called_a_barrier() {
    let (client, proxy) = proxied_client().await;
    let (single, double) =
        (client.barrier("/bounded/outage").unwrap(), barrier(&client, "/bounded/doors", 1));
    let member = soon(double.enter()).await.unwrap();
    proxy.refuse(true);
    proxy.reset();
    for error in soon(all_three(&single, &double, &member, A_WHILE)).await {
        says(&error, ErrorKind::Unreachable, &["no server answers"]);
    }
    proxy.refuse(false);
    settled(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_answer_the_connect_timeout_ends_a_question() {
    let patience = Duration::from_millis(500);
    let (client, proxy) = proxied(|options| options.connect_timeout(patience)).await;
    let single = client.barrier("/bounded/asked").unwrap();
    proxy.freeze(Direction::Both);
    let start = Instant::now();
    let errors = tokio::join!(
        async { single.set().await.unwrap_err() },
        async { single.remove().await.unwrap_err() },
        async { single.is_set().await.unwrap_err() },
    );
    not_later(start.elapsed(), patience + GRACE * 3);
    for error in [errors.0, errors.1, errors.2] {
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    }
    proxy.thaw();
    // Once there are answers, it works.
    soon(single.set()).await.unwrap();
    soon(single.remove()).await.unwrap();
    assert!(operator().stat("/bounded/asked").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_answer_the_try_timeout_ends_what_does_not_wait() {
    let (connecting, trying) = (Duration::from_secs(3600), Duration::from_millis(300));
    let (client, proxy) = proxied(|options| options.connect_timeout(connecting).try_timeout(trying)).await;
    let single = client.barrier("/bounded/silent").unwrap();
    let double = barrier(&client, "/bounded/silent-double", 1);
    let member = soon(double.enter()).await.unwrap();
    proxy.freeze(Direction::Both);
    for error in soon(all_three(&single, &double, &member, Duration::ZERO)).await {
        assert_eq!(error.kind(), ErrorKind::Unreachable);
    }
    proxy.thaw();
    settled(&client).await;
    there(&operator(), "/bounded/silent-double", 0);
    // Once there are answers, it works.
    soon(single.wait_timeout(Duration::ZERO)).await.unwrap();
    let member = soon(double.enter_timeout(Duration::ZERO)).await.unwrap();
    soon(member.leave_timeout(Duration::ZERO)).await.unwrap();
}
