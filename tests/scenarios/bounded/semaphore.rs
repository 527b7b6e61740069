//! Promise 4: an acquire of permits with a deadline returns by then, whatever the network does.

use crate::support::deadline::times_out;
use crate::support::permits::{has, semaphore};
use crate::support::{operator, proxied_client, settled, soon};
use ground::{Action, Direction, Kind, Trigger};
use zklock::LockSpec;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_freezes_at_a_later_step_delays_nobody() {
    let ((client, proxy), path) = (proxied_client().await, "/semaphore/bounded-later");
    soon(semaphore(&client, path, 3, 1).acquire()).await.unwrap().release().await.unwrap();
    // While its permits are created.
    let taking = proxy.on(Trigger::request(Kind::Multi).then(Action::Freeze(Direction::Both)));
    times_out(&semaphore(&client, path, 3, 3)).await;
    assert!(taking.fired());
    proxy.thaw();
    settled(&client).await;
    has(&operator(), path, 0, 0);
    // A read of the limit that is never answered.
    let limited = LockSpec::semaphore(path, 3).unwrap().limit_at("/limits/bounded");
    let limited = client.lock(&limited).unwrap();
    let asked = Trigger::request(Kind::GetData).path("/limits/bounded");
    let frozen = proxy.on(asked.then(Action::Freeze(Direction::ToClient)));
    times_out(&limited).await;
    assert!(frozen.fired());
    proxy.thaw();
    settled(&client).await;
    has(&operator(), path, 0, 0);
}
