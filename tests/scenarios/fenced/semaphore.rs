//! Promise 2: if two holds of permits exclude each other, the later one has the greater token.

use crate::support::SOON;
use crate::support::permits::semaphore;
use crate::support::register::{Register, clients};
use ground::shared;
use std::time::Duration;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_grow_between_permits_that_exclude_each_other_in_a_contest() {
    const ROUNDS: u32 = 30;
    const LIMIT: u32 = 4;
    let (path, register) = ("/semaphore/tokens-contest", Register::of(LIMIT));
    let mut contenders = JoinSet::new();
    for (number, client) in (0..).zip(clients(&shared().connect_string(), 6).await) {
        let register = register.clone();
        contenders.spawn(async move {
            for round in 0..ROUNDS {
                let permits = 1 + (number + round) % LIMIT;
                let lock = semaphore(&client, path, LIMIT, permits);
                register.turn(&lock, permits, Duration::from_millis(1)).await;
            }
        });
    }
    tokio::time::timeout(SOON * 3, contenders.join_all()).await.expect("all have their turns");
    let grants = register.grants();
    let smaller = grants.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
    println!("{smaller} of {} had a smaller token than the one before", grants.len());
    assert!(grants.len() > 90, "{} grants", grants.len());
    register.assert_growing();
}
