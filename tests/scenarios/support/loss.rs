//! Promise 6, as every kind of lock keeps it.

use crate::support::kinds::LockKind;
use crate::support::timing::{Noise, Observer};
use crate::support::{HEARTBEAT, SOON, expire_session, operator, proxied_client, soon};
use ground::wire::Admin;
use ground::{Kind, Proxy, Trigger, not_later, until};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock::{Client, ErrorKind, Lock, LossReason};

/// The event on the servers by which a hold is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blow {
    Expiry,
    NodeDeleted,
    ParentDeleted,
}

impl Blow {
    pub(crate) const ALL: [Self; 3] = [Self::Expiry, Self::NodeDeleted, Self::ParentDeleted];

    /// Causes the loss. Returns the time just before it.
    pub(crate) fn strike(self, proxy: &Proxy, operator: &Admin, path: &str, node: &str) -> Instant {
        let start = Instant::now();
        match self {
            Self::Expiry => return expire_session(proxy),
            Self::NodeDeleted => operator.delete(node),
            Self::ParentDeleted => operator.delete_tree(path),
        }
        start
    }

    pub(crate) fn reason(self) -> LossReason {
        match self {
            Self::Expiry => LossReason::SessionExpired,
            Self::NodeDeleted | Self::ParentDeleted => LossReason::NodeDeleted,
        }
    }
}

/// Waits until a heartbeat has just been answered: the worst moment for a loss.
#[track_caller]
pub(crate) fn just_after_a_heartbeat(proxy: &Proxy) {
    assert!(proxy.on(Trigger::reply(Kind::Multi)).wait(SOON), "no heartbeat");
}

/// The holder learns of it within a heartbeat, by polling and by waiting, and for good; also within an outer hold of its owner.
pub(crate) async fn told_of(kind: &LockKind, outer: Option<fn(&Client, &str) -> Lock>, blow: Blow) {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let within = if outer.is_some() { "within-" } else { "" };
    let path = &format!("/told-{within}{}-{blow:?}", kind.name);
    let outer = match outer {
        Some(outer) => Some(soon(outer(&client, path).acquire()).await.unwrap()),
        None => None,
    };
    let hold = Arc::new(soon((kind.lock)(&client, path).acquire()).await.unwrap());
    let waiter = tokio::spawn({
        let hold = hold.clone();
        async move { (hold.lost().await, Instant::now()) }
    });
    let (noise, observer) = (Noise::measured(), Observer::of(hold.clone()));
    just_after_a_heartbeat(&proxy);

    let struck = blow.strike(&proxy, &operator, path, hold.node());
    let (polled, reason) = observer.told(SOON);
    let (awaited, woken) = soon(waiter).await.unwrap();
    let (polled, woken) = (polled.saturating_duration_since(struck), woken.saturating_duration_since(struck));
    println!("{path}: told after {polled:?} by polling, {woken:?} by waiting, noise {:?}", noise.worst());
    assert_eq!((reason, awaited), (blow.reason(), Ok(Some(blow.reason()))));
    let bound = HEARTBEAT + noise.allowance();
    not_later(polled.max(woken), bound);

    // The loss is final: every further call reports it at once, and so does the release.
    assert_eq!(soon(hold.lost()).await, Ok(Some(blow.reason())));
    assert_eq!(soon(hold.confirm()).await.unwrap_err().kind(), ErrorKind::Lost(blow.reason()));
    observer.finish();
    assert_eq!(soon(hold.release()).await.unwrap_err().kind(), ErrorKind::Lost(blow.reason()));
    assert_eq!(hold.valid_for(), Duration::ZERO);
    let mut losses = 1;
    if let Some(outer) = outer {
        // A hold is only lost with its own node.
        let is_fine = soon(outer.release()).await.is_ok();
        assert_eq!(is_fine, blow == Blow::NodeDeleted, "{path}");
        losses += u64::from(!is_fine);
    }
    assert!(until(SOON, || client.stats().losses == losses), "{:?}", client.stats());
    let next = soon((kind.lock)(&client, path).acquire()).await.unwrap();
    assert!(next.token() > hold.token() && !next.valid_for().is_zero());
    assert_eq!(client.stats().losses, losses);
}
