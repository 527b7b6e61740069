//! Observing who leads, without taking part.

use crate::support::strangers::{FOREIGN, put};
use crate::support::{
    A_WHILE, SOON, Waiter, acquire, client, expire_session, granted, held, operator, options, proxied_client,
    says, soon,
};
use ground::wire::Mode;
use ground::{Action, Kind, Trigger, shared, until};
use std::time::Duration;
use zklock::further::{Observer, Role};
use zklock::{Client, ErrorKind, LockSpec, QueuedContender};

#[track_caller]
fn next(observer: &mut Observer) -> impl Future<Output = Option<QueuedContender>> {
    let next = soon(observer.next());
    async move { next.await.unwrap() }
}

/// Asserts that nothing is reported for a while.
async fn is_silent(observer: &mut Observer) {
    let told = tokio::time::timeout(A_WHILE / 2, observer.next()).await;
    assert!(told.is_err(), "nothing has changed: {told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_is_told_at_once_and_then_every_change() {
    let (path, operator) = ("/observe/changes", operator());
    let first = client().await;
    let lead = held(&first.election(path).unwrap()).await;
    let watching = client().await;
    let mut observer = watching.election(path).unwrap().observe().unwrap();
    let told = next(&mut observer).await.expect("somebody leads");
    assert_eq!((told.node.as_str(), told.token), (lead.node(), lead.token()));
    assert_eq!((Some(told.session), told.holds), (first.session_id(), true));
    is_silent(&mut observer).await;
    // Another candidate changes nothing; nor does one that withdraws.
    let second = Waiter::behind(1, &operator, path, |it| it.election(path).unwrap()).await;
    let third = Waiter::behind(2, &operator, path, |it| it.election(path).unwrap()).await;
    third.task.abort();
    operator.wait_for_children(path, 2, SOON);
    is_silent(&mut observer).await;
    soon(lead.release()).await.unwrap();
    let told = next(&mut observer).await.expect("the next leads");
    let lead = granted(second.task).await;
    assert_eq!(told.token, lead.token());
    soon(lead.release()).await.unwrap();
    assert_eq!(next(&mut observer).await, None);
    is_silent(&mut observer).await;
    let lead = held(&first.election(path).unwrap()).await;
    assert_eq!(next(&mut observer).await.map(|told| told.token), Some(lead.token()));
    soon(lead.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_leads_where_there_is_no_election_yet_and_the_first_leader_is_told() {
    let (root, operator, watching) = ("/observe/none", operator(), client().await);
    let path = format!("{root}/deep/below");
    let mut observer = watching.election(&path).unwrap().observe().unwrap();
    assert_eq!(next(&mut observer).await, None);
    assert!(operator.stat(root).is_none(), "to observe creates nothing");
    is_silent(&mut observer).await;
    // The directory appears first, but that is not a leader.
    operator.create_all(&path, "");
    is_silent(&mut observer).await;
    operator.create_all(&format!("{path}/settings"), "");
    is_silent(&mut observer).await;
    let leader = client().await;
    let lead = held(&leader.election(&path).unwrap()).await;
    assert_eq!(next(&mut observer).await.map(|told| told.token), Some(lead.token()));
    // Then the directory is deleted, with everything in it.
    operator.delete_tree(&path);
    assert_eq!(next(&mut observer).await, None);
    let again = held(&client().await.election(&path).unwrap()).await;
    assert_eq!(next(&mut observer).await.map(|told| told.token), Some(again.token()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observers_wake_nobody_and_are_not_woken_by_candidates() {
    let (path, operator) = ("/observe/quiet", operator());
    let leader = client().await;
    let lead = held(&leader.election(path).unwrap()).await;
    let mut observers = Vec::new();
    for _ in 0..4 {
        let (client, proxy) = proxied_client().await;
        let mut observer = client.election(path).unwrap().observe().unwrap();
        assert!(next(&mut observer).await.is_some());
        proxy.record();
        observers.push((observer, proxy, client));
    }
    let (candidate, candidate_proxy) = proxied_client().await;
    let waits = candidate_proxy.on(Trigger::reply(Kind::GetData));
    let task = acquire(&candidate.election(path).unwrap());
    assert!(waits.wait(SOON));
    candidate_proxy.record();
    let withdraws = Waiter::behind(2, &operator, path, |it| it.election(path).unwrap()).await;
    withdraws.task.abort();
    operator.wait_for_children(path, 2, SOON);
    // A dropped observer leaves no trace either.
    drop(observers.pop());
    soon(lead.release()).await.unwrap();
    let lead = granted(task).await;
    for (observer, proxy, _) in &mut observers {
        let told = next(observer).await.expect("the next leads");
        assert_eq!(told.token, lead.token());
        assert_eq!(proxy.counts().replies(Kind::Event), 1, "woken by others than the leader");
    }
    assert_eq!(candidate_proxy.counts().replies(Kind::Event), 1);
    assert_eq!(operator.children(path).len(), 1, "who observes has no node");
    soon(lead.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_outlives_its_session_and_breaks_of_its_connection() {
    let (path, leader) = ("/observe/expired", client().await);
    let (watching, proxy) = proxied_client().await;
    let lead = held(&leader.election(path).unwrap()).await;
    let mut observer = watching.election(path).unwrap().observe().unwrap();
    assert!(next(&mut observer).await.is_some());
    expire_session(&proxy);
    // The same leader is not reported again.
    is_silent(&mut observer).await;
    assert!(until(SOON, || watching.stats().sessions == 2));
    soon(lead.release()).await.unwrap();
    assert_eq!(next(&mut observer).await, None);
    // Changes while it is disconnected.
    expire_session(&proxy);
    proxy.refuse(true);
    let lead = held(&leader.election(path).unwrap()).await;
    proxy.refuse(false);
    assert_eq!(next(&mut observer).await.map(|told| told.token), Some(lead.token()));
    // While its connection is made again, in the same session.
    proxy.reset();
    proxy.refuse(true);
    soon(lead.release()).await.unwrap();
    proxy.refuse(false);
    assert_eq!(next(&mut observer).await, None);
    for kind in [Kind::GetChildren, Kind::GetData] {
        let lost = proxy.on(Trigger::request(kind).then(Action::DropAndReset));
        let lead = held(&leader.election(path).unwrap()).await;
        assert_eq!(next(&mut observer).await.map(|told| told.token), Some(lead.token()));
        assert!(lost.fired());
        soon(lead.release()).await.unwrap();
        assert_eq!(next(&mut observer).await, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_dropped_loses_no_news() {
    let (path, leader, watching) = ("/observe/dropped", client().await, client().await);
    let mut observer = watching.election(path).unwrap().observe().unwrap();
    assert_eq!(next(&mut observer).await, None);
    for round in 0..20 {
        let lead = held(&leader.election(path).unwrap()).await;
        // The call may be dropped at any moment.
        let told = loop {
            let short = Duration::from_micros(200 * (round % 7));
            if let Ok(told) = tokio::time::timeout(short, observer.next()).await {
                break told.unwrap();
            }
        };
        assert_eq!(told.map(|told| told.token), Some(lead.token()), "round {round}");
        soon(lead.release()).await.unwrap();
        assert_eq!(next(&mut observer).await, None, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_of_other_kinds_can_be_observed_where_one_holds() {
    let (client, operator) = (client().await, operator());
    let mutex = client.mutex("/observe/mutex").unwrap();
    let mut observer = mutex.observe().unwrap();
    assert_eq!(next(&mut observer).await, None);
    let hold = held(&mutex).await;
    assert_eq!(next(&mut observer).await.map(|told| told.token), Some(hold.token()));
    soon(hold.release()).await.unwrap();
    assert_eq!(next(&mut observer).await, None);
    let kazoo = put(&operator, "/observe/mutex", FOREIGN[4]);
    assert_eq!(next(&mut observer).await.map(|told| told.node), Some(kazoo.clone()));
    operator.delete(&kazoo);
    // The same for a single-node lock, even if the next node has the same name.
    let exclusive = client.single_node("/observe/exclusive").unwrap();
    let mut observer = exclusive.observe().unwrap();
    assert_eq!(next(&mut observer).await, None);
    let hold = held(&exclusive).await;
    assert_eq!(next(&mut observer).await.map(|told| told.token), Some(hold.token()));
    soon(hold.release()).await.unwrap();
    let node = operator.create_mode("/observe/exclusive/lock", "stranger", Mode::Ephemeral);
    let told = soon(async {
        loop {
            // The observer may or may not report that nobody leads in between.
            if let Some(told) = observer.next().await.unwrap() {
                break told;
            }
        }
    });
    assert_eq!(told.await.identity, "stranger");
    operator.delete(&node);
    let write = held(&client.write_lock("/observe/write").unwrap()).await;
    let mut observer = client.read_lock("/observe/write").unwrap().observe().unwrap();
    assert_eq!(next(&mut observer).await.map(|told| told.role), Some(Role::Write));
    soon(write.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_what_has_no_one_holder_there_is_no_observer() {
    let client = client().await;
    let set = client.all(&["a", "b"].map(|it| client.mutex(&format!("/observe/set/{it}")).unwrap())).unwrap();
    says(&set.observe().unwrap_err(), ErrorKind::InvalidInput, &["one by one", "/observe/set/a"]);
    let semaphore = client.semaphore("/observe/semaphore", 2).unwrap();
    says(&semaphore.observe().unwrap_err(), ErrorKind::InvalidInput, &["contenders", "/observe/semaphore"]);
    let mutex = LockSpec::semaphore("/observe/semaphore", 1).unwrap().permits(1);
    let single = client.lock(&mutex).unwrap();
    says(&single.observe().unwrap_err(), ErrorKind::InvalidInput, &[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_of_a_closed_client_is_told_so() {
    let client = Client::connect(options(&shared().connect_string())).await.unwrap();
    let mut observer = client.election("/observe/closed").unwrap().observe().unwrap();
    assert_eq!(next(&mut observer).await, None);
    let waiting = tokio::spawn(async move { observer.next().await });
    soon(client.close()).await.unwrap();
    assert_eq!(soon(waiting).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
}
