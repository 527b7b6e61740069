//! Promise 6: a holder that loses one of its permits learns of it within one heartbeat, and keeps none of the others.

use crate::support::loss::just_after_a_heartbeat;
use crate::support::permits::{Waiter, has, semaphore};
use crate::support::timing::{Noise, Observer};
use crate::support::{HEARTBEAT, SOON, operator, proxied_client, settled, soon};
use ground::not_later;
use std::sync::Arc;
use std::time::Instant;
use zklock::{ErrorKind, HoldState, LossReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_of_three_permits_is_told_of_the_loss_of_any_and_returns_the_others() {
    let operator = operator();
    for place in 0..3 {
        let (client, proxy) = proxied_client().await;
        let path = format!("/semaphore/told-{place}");
        let hold = Arc::new(soon(semaphore(&client, &path, 4, 3).acquire()).await.unwrap());
        let other = soon(semaphore(&client, &path, 4, 1).acquire()).await.unwrap();
        let next = Waiter::new(&path, true, 4, 3).await;
        let (noise, observer) = (Noise::measured(), Observer::of(hold.clone()));
        just_after_a_heartbeat(&proxy);
        let struck = Instant::now();
        operator.delete(hold.nodes().nth(place).unwrap());
        let (told, reason) = observer.told(SOON);
        let late = told.saturating_duration_since(struck);
        not_later(late, HEARTBEAT + noise.allowance());
        assert_eq!(reason, LossReason::NodeDeleted);
        observer.finish();
        // The client returns the two remaining permits by itself.
        let (next, _client) = next.granted().await;
        has(&operator, &path, 0, 4);
        assert_eq!(other.state(), HoldState::Held, "the client's other hold");
        let error = soon(hold.release()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost(LossReason::NodeDeleted), "{error}");
        settled(&client).await;
        assert_eq!(client.stats().losses, 1);
        drop((next, other));
        has(&operator, &path, 0, 0);
    }
}
