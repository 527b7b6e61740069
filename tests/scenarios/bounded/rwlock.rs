//! Promise 4: an acquire of either side with a deadline returns by then, whatever the network does.

use crate::support::deadline::{DIRECTIONS, times_out};
use crate::support::queue::reentrant_write;
use crate::support::{SOON, client, operator, proxied_client, settled, soon};
use ground::{Direction, Kind, Trigger};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_network_delays_neither_side() {
    for direction in DIRECTIONS {
        let (client, proxy) = proxied_client().await;
        let path = format!("/rwlock/bounded-{direction:?}");
        let (read, write) = (client.read(&path).unwrap(), client.write(&path).unwrap());
        proxy.freeze(direction);
        tokio::join!(times_out(&read), times_out(&write));
        proxy.thaw();
        for lock in [read, write] {
            soon(lock.acquire()).await.unwrap().release().await.unwrap();
        }
        settled(&client).await;
        operator().wait_for_children(&path, 0, SOON);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_for_the_other_side_ends_in_time_when_the_network_freezes_under_it() {
    let (holder, operator) = (client().await, operator());
    for reads in [true, false] {
        let path = format!("/rwlock/bounded-wait-{reads}");
        let (mine, (waiter, proxy)) = (holder.clone(), proxied_client().await);
        let (ours, theirs) = if reads {
            (mine.write(&path).unwrap(), waiter.read(&path).unwrap())
        } else {
            (mine.read(&path).unwrap(), waiter.write(&path).unwrap())
        };
        let hold = soon(ours.acquire()).await.unwrap();
        let error = times_out(&theirs).await;
        assert!(error.to_string().contains("others are before us in the queue"), "{error}");
        settled(&waiter).await;
        let watches = proxy.on(Trigger::reply(Kind::GetData));
        let wait = tokio::spawn(async move { times_out(&theirs).await });
        assert!(watches.wait(SOON));
        proxy.freeze(Direction::Both);
        soon(wait).await.unwrap();
        proxy.thaw();
        settled(&waiter).await;
        operator.wait_for_children(&path, 1, SOON);
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_downgrade_in_a_frozen_network_ends_in_time_and_the_writer_stays_what_it_is() {
    for direction in DIRECTIONS {
        let (client, proxy) = proxied_client().await;
        let path = format!("/rwlock/bounded-downgrade-{direction:?}");
        let write = soon(reentrant_write(&client, &path).acquire()).await.unwrap();
        let read = client.read(&path).unwrap();
        proxy.freeze(direction);
        times_out(&read).await;
        proxy.thaw();
        settled(&client).await;
        assert!(soon(write.confirm()).await.is_ok());
        assert_eq!(operator().children(&path).len(), 1);
        soon(write.release()).await.unwrap();
    }
}
