//! The election: one candidate leads, and the others are ready to take over. (What happens to a leader: `admin/evict`,
//! `admin/observe`.)

use crate::support::{SOON, Waiter, granted, operator, soon};

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
