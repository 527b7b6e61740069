//! The cost of a lock on the wire, counted where it passes.

use crate::support::{SESSION, SOON, acquire, operator, proxied_client, soon};
use ground::{Action, Gate, Kind, Message, Side, Trigger, or_once_more};
use std::time::Duration;
use zklock::Lock;

const FREE_LOCK: [Kind; 3] = [Kind::Create, Kind::GetChildren, Kind::Delete];

async fn round(lock: &Lock) {
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
}

/// The requests. On a busy machine, a short hold may last until its first heartbeat is due: that is not part of its cost.
fn asked(requests: &[Message]) -> Vec<Kind> {
    let mut created = None;
    let mut kinds = Vec::new();
    for message in requests {
        if message.kind == Kind::Create {
            created = Some(message.time);
        }
        let due = created.is_some_and(|created| message.time - created >= SESSION / 12);
        if message.kind != Kind::Multi || !due {
            kinds.push(message.kind);
        }
    }
    kinds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_free_lock_costs_a_creation_a_listing_and_a_deletion() {
    let (client, proxy) = proxied_client().await;
    let lock = client.mutex("/wire/free").unwrap();
    round(&lock).await;
    proxy.record();
    for _ in 0..10 {
        round(&lock).await;
        assert_eq!(asked(&proxy.requests()), FREE_LOCK);
        assert!(proxy.take_record().iter().all(|message| !message.watch && message.error == 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_listing_does_not_wait_for_the_creation() {
    let (client, proxy) = proxied_client().await;
    let lock = client.mutex("/wire/flight").unwrap();
    round(&lock).await;
    for _ in 0..5 {
        let gate = Gate::new();
        let created = proxy.on(Trigger::reply(Kind::Create).then(Action::Pause(gate.clone())));
        let listed = proxy.on(Trigger::request(Kind::GetChildren));
        let acquired = acquire(&lock);
        assert!(created.wait(SOON));
        // The reply to the creation is held back, so nobody can have waited for it.
        assert!(listed.wait(SOON), "the listing waits for the creation");
        assert!(!acquired.is_finished());
        gate.open();
        soon(acquired).await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parents_are_created_once_as_containers_and_only_where_they_are_missing() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    operator.create_all("/wire/there", "");
    let lock = client.mutex("/wire/there/a/b/c").unwrap();
    proxy.record();
    round(&lock).await;
    let requests = proxy.requests();
    let (parents, rest): (Vec<_>, Vec<_>) =
        requests.iter().cloned().partition(|request| request.kind == Kind::CreateContainer);
    // The first try finds nothing, the second is that of a free lock; no other look is needed.
    assert_eq!(asked(&rest), [&FREE_LOCK[..2], &FREE_LOCK[..]].concat());
    let mut created: Vec<_> = parents.iter().map(|message| message.path.as_str()).collect();
    created.sort_unstable();
    created.dedup();
    assert_eq!(created.last(), Some(&"/wire/there/a/b/c"), "{created:?}");
    assert!(asked(&requests)[2] == Kind::CreateContainer, "the parents come after the first try");
    let last = |message: &&Message| message.side == Side::Reply && message.kind == Kind::CreateContainer;
    let messages = proxy.messages();
    assert_eq!(messages.iter().filter(last).filter(|message| message.error == 0).count(), 3, "one a level");

    proxy.record();
    round(&client.mutex("/wire/there/a/b/c").unwrap()).await;
    assert_eq!(asked(&proxy.requests()), FREE_LOCK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_is_proved_every_heartbeat_while_it_lasts_and_disturbs_nobody() {
    let ((client, proxy), (next, waiting)) = (proxied_client().await, proxied_client().await);
    round(&client.mutex("/wire/heartbeat").unwrap()).await;
    proxy.record();
    let hold = client.mutex("/wire/heartbeat").unwrap().acquire().await.unwrap();
    let created = proxy.messages()[0].time;
    let watched = waiting.on(Trigger::reply(Kind::GetData));
    let lock = next.mutex("/wire/heartbeat").unwrap();
    waiting.record();
    let waiter = acquire(&lock);
    assert!(watched.wait(SOON));
    assert_eq!(waiting.counts().asked, [Kind::Create, Kind::GetChildren, Kind::GetData]);

    assert!(proxy.on(Trigger::reply(Kind::Multi).nth(4)).wait(SOON));
    let record = proxy.requests();
    let beats: Vec<_> = record.iter().filter(|message| message.kind == Kind::Multi).collect();
    assert!(beats.iter().all(|beat| beat.operations == [Kind::Check] && beat.path == hold.node()));
    // It also looks for contenders that cannot see it: once, and after a change, but at most once in a heartbeat.
    let looks = record.iter().filter(|message| message.kind == Kind::GetChildren && message.watch).count();
    assert!((1..=beats.len()).contains(&looks), "{looks} looks in {} heartbeats", beats.len());
    assert_eq!(record.len(), FREE_LOCK[..2].len() + beats.len() + looks, "nothing else is sent");
    let times: Vec<_> = std::iter::once(created).chain(beats.iter().map(|beat| beat.time)).collect();
    // Beats come a little more often than every T/10, because timers are late. On a busy machine one beat may be late, so that
    // the gap after it is short. So only the sum of all gaps has a lower limit.
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let longest = SESSION / 10 + Duration::from_millis(100);
    or_once_more(gaps.iter().all(|gap| *gap <= longest), &format!("{gaps:?} are longer than {longest:?}"));
    let least = SESSION / 12 * 4 - Duration::from_millis(100);
    assert!(gaps.iter().sum::<Duration>() >= least, "{gaps:?} are less than {least:?} together");
    // The waiter has heard nothing and asked nothing since it began to wait.
    assert_eq!((waiting.counts().asked.len(), waiting.counts().replies(Kind::Event)), (3, 0));

    hold.release().await.unwrap();
    let held = soon(waiter).await.unwrap().unwrap();
    // After the long wait it confirms its own node before it holds, and checks nothing else.
    assert!(waiting.counts().asked[3..].iter().all(|kind| *kind == Kind::Multi));
    assert!(waiting.counts().requests(Kind::Multi) > 0);
    assert_eq!(waiting.counts().replies(Kind::Event), 1);
    // Until the waiter's second beat, the first client has sent its delete and nothing more.
    assert!(waiting.on(Trigger::reply(Kind::Multi).nth(2)).wait(SOON));
    let record = proxy.requests();
    let end = record.iter().position(|it| it.kind == Kind::Delete).expect("it was released");
    assert!(!record[end..].iter().any(|message| message.kind == Kind::Multi), "it beats on");
    held.release().await.unwrap();
}
