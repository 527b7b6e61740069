//! The election: one candidate leads, and the others are ready to take over, whatever happens to the leader.

use crate::support::leader::Leader;
use crate::support::queue::{A_WHILE, Waiter, acquire, granted, held, nodes, told};
use crate::support::timing::Noise;
use crate::support::{SOON, client, expire_session, operator, proxied_client, says, soon};
use ground::{Direction, not_later, shared, until};
use std::time::Instant;
use zklock_core::{ErrorKind, HoldState, LossReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_campaign_lead_one_after_the_other_as_they_came() {
    let (path, operator) = ("/election/order", operator());
    let mut campaigns = Vec::new();
    for ahead in 0..5 {
        campaigns.push(Waiter::behind(ahead, &operator, path, |it| it.election(path).unwrap()).await);
    }
    let mut last = None;
    for campaign in campaigns {
        let lead = granted(campaign.task).await;
        assert!(last < Some(lead.token()));
        last = Some(lead.token());
        assert!(lead.node().contains("-latch-"));
        soon(lead.release()).await.unwrap();
    }
    operator.wait_for_children(path, 0, SOON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_campaign_twice_is_to_wait_for_oneself() {
    let (path, client) = ("/election/twice", client().await);
    let lock = client.election(path).unwrap();
    let lead = soon(lock.acquire()).await.unwrap();
    says(&soon(lock.acquire_timeout(A_WHILE)).await.unwrap_err(), ErrorKind::Timeout, &[path, "itself"]);
    assert!(soon(lock.try_acquire()).await.unwrap().is_none());
    soon(lead.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_that_withdraws_is_passed_over() {
    let (path, operator) = ("/election/withdraws", operator());
    let mut campaigns = Vec::new();
    for ahead in 0..3 {
        campaigns.push(Waiter::behind(ahead, &operator, path, |it| it.election(path).unwrap()).await);
    }
    let third = campaigns.pop().unwrap();
    let second = campaigns.pop().unwrap();
    second.task.abort();
    operator.wait_for_children(path, 2, SOON);
    let lead = granted(campaigns.pop().unwrap().task).await;
    assert!(!until(A_WHILE / 5, || third.task.is_finished()));
    soon(lead.release()).await.unwrap();
    soon(granted(third.task).await.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_is_told_when_an_operator_ends_its_lead_and_the_next_leads() {
    let (path, operator) = ("/election/operator", operator());
    let leader = client().await;
    let lead = held(&leader.election(path).unwrap()).await;
    let next = Waiter::behind(1, &operator, path, |it| it.election(path).unwrap()).await;
    let noise = Noise::measured();
    let deleted = Instant::now();
    operator.delete(lead.node());
    assert_eq!(told(&lead, &leader, deleted, &noise).await, LossReason::NodeDeleted);
    let next = granted(next.task).await;
    assert!(next.token() > lead.token());
    // A former leader may campaign again, and is last in the queue.
    drop(lead);
    let again = acquire(&leader.election(path).unwrap());
    operator.wait_for_children(path, 2, SOON);
    assert!(!again.is_finished());
    soon(next.release()).await.unwrap();
    soon(granted(again).await.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_leads_within_a_session_timeout_and_two_ticks_of_a_crash() {
    let (path, operator) = ("/election/crash", operator());
    let mut process = Leader::start(&shared().connect_string(), path);
    let token = process.leads();
    let next = Waiter::behind(1, &operator, path, |it| it.election(path).unwrap()).await;
    let noise = Noise::measured();
    let killed = Instant::now();
    process.kill();
    let lead = granted(next.task).await;
    let took = killed.elapsed();
    not_later(took, Leader::SESSION + shared().tick() * 2 + noise.allowance());
    assert!(lead.token().value() > token);
    soon(lead.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_knows_it_before_another_leads() {
    let (path, operator) = ("/election/partition", operator());
    let (leader, proxy) = proxied_client().await;
    let lead = held(&leader.election(path).unwrap()).await;
    let next = Waiter::behind(1, &operator, path, |it| it.election(path).unwrap()).await;
    // Two heartbeats, so that the lease is a full one.
    tokio::time::sleep(A_WHILE).await;
    proxy.freeze(Direction::Both);
    let mut task = next.task;
    let first = loop {
        tokio::select! {
            biased;
            granted = soon(&mut task) => {
                let granted = granted.unwrap().unwrap();
                assert!(lead.valid_for().is_zero(), "two lead at once");
                break granted;
            }
            () = tokio::time::sleep(std::time::Duration::from_millis(2)) => {
                // The other cannot have led while this was valid.
                let (other, this) = (task.is_finished(), lead.valid_for());
                assert!(!other || this.is_zero(), "two lead at once");
            }
        }
    };
    proxy.thaw();
    soon(lead.lost()).await.expect("told");
    assert_eq!(first.state(), HoldState::Held);
    soon(first.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_whose_session_ends_campaigns_again() {
    let (path, operator) = ("/election/candidate", operator());
    let leader = client().await;
    let lead = held(&leader.election(path).unwrap()).await;
    let (candidate, proxy) = proxied_client().await;
    let task = acquire(&candidate.election(path).unwrap());
    operator.wait_for_children(path, 2, SOON);
    let before = nodes(&operator, path).pop().unwrap();
    expire_session(&proxy);
    let is_back = || {
        let now = nodes(&operator, path);
        now.len() == 2 && !now.contains(&before)
    };
    assert!(until(SOON, is_back));
    soon(lead.release()).await.unwrap();
    soon(granted(task).await.release()).await.unwrap();
}
