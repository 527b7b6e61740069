//! The election: one candidate leads, and the others are ready to take over, whatever happens to the leader.

use crate::support::leader::Leader;
use crate::support::queue::{Waiter, acquire, granted, held, told};
use crate::support::timing::Noise;
use crate::support::{SOON, client, operator, soon};
use ground::{not_later, shared};
use std::time::Instant;
use zklock_core::LossReason;

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
