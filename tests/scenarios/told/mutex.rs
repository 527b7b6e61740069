//! Promise 6: a holder learns of a lost hold within one heartbeat, whatever the cause.

use crate::support::loss::just_after_a_heartbeat;
use crate::support::timing::{Noise, Observer};
use crate::support::{HEARTBEAT, SESSION, SOON, operator, options, proxied_client, settled, soon};
use ground::{Direction, Proxy, not_later, or_once_more, shared, until};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock::{Client, ErrorKind, Hold, HoldState, LossReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_client_tells_its_holders_and_a_release_is_no_loss() {
    let (client, _proxy) = proxied_client().await;
    let hold = soon(client.mutex("/told-release").unwrap().acquire()).await.unwrap();
    let (lost, released) = soon(async { tokio::join!(hold.lost(), hold.release()) }).await;
    assert_eq!((lost, released, hold.state()), (Ok(None), Ok(()), HoldState::Released));

    let hold = soon(client.mutex("/told-close").unwrap().acquire()).await.unwrap();
    let noise = Noise::measured();
    let start = Instant::now();
    let (lost, closed) = soon(async { tokio::join!(hold.lost(), client.close()) }).await;
    assert_eq!((lost, closed), (Ok(Some(LossReason::ClientClosed)), Ok(())));
    assert_eq!(hold.state(), HoldState::Lost(LossReason::ClientClosed));
    not_later(start.elapsed(), Duration::from_secs(1) + noise.allowance());
    assert!(until(SOON, || client.stats().losses == 1), "{:?}", client.stats());
}

/// How a holder is cut off, and how that ends.
type Cut = (fn(&Proxy), fn(&Proxy));
const FROZEN: Cut = (|proxy| proxy.freeze(Direction::Both), Proxy::thaw);
const DEAF: Cut = (|proxy| proxy.freeze(Direction::ToClient), Proxy::thaw);
const REFUSED: Cut = (refuse, |proxy| proxy.refuse(false));

fn refuse(proxy: &Proxy) {
    proxy.refuse(true);
    proxy.reset();
}

/// Cuts the holder off until its hold is lost. The hold must report each step, in time, and the loss is final. The
/// session outlives it.
async fn cut_off(path: &str, (cut, mend): Cut) {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let session = client.session_id();
    let hold = Arc::new(soon(client.mutex(path).unwrap().acquire()).await.unwrap());
    just_after_a_heartbeat(&proxy);
    just_after_a_heartbeat(&proxy);
    let (noise, observer) = (Noise::measured(), Observer::of(hold.clone()));
    // The answer may be on its way from the proxy to the client.
    observer.first(Instant::now(), SOON, |sample| sample.valid_for > SESSION / 2 - SESSION / 10);
    cut(&proxy);
    let start = Instant::now();

    let lapsed = observer.lapsed(start, SOON);
    not_later(lapsed - start, SESSION / 2);
    let (told, reason) = observer.told(SOON);
    println!("lapsed after {:?}, told {:?} later, noise {:?}", lapsed - start, told - lapsed, noise.worst());
    not_later(told - lapsed, HEARTBEAT + noise.allowance());
    assert_eq!(reason, LossReason::LeaseLapsed);
    assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::LeaseLapsed)));
    // That the session is alive still is the case that this is about.
    if operator.stat(hold.node()).is_none() {
        return or_once_more(false, "the session has ended, too");
    }

    mend(&proxy);
    operator.wait_for_node(hold.node(), false, SOON);
    settled(&client).await;
    assert_eq!(client.session_id(), session);
    // Heartbeats go on for other holds, and do not bring this one back.
    let other = soon(client.mutex(&format!("{path}-other")).unwrap().acquire()).await.unwrap();
    just_after_a_heartbeat(&proxy);
    just_after_a_heartbeat(&proxy);
    let (states, lost) = (observer.states(), HoldState::Lost(LossReason::LeaseLapsed));
    // A busy machine may put it at risk before the cut, too.
    if states != [HoldState::Held, HoldState::AtRisk, lost] {
        return or_once_more(false, &format!("{states:?}"));
    }
    let samples = observer.finish();
    let alone: Vec<_> = samples.iter().filter(|sample| sample.at > start).collect();
    assert!(alone.windows(2).all(|pair| pair[1].valid_for <= pair[0].valid_for), "it only falls");
    assert_eq!(soon(hold.release()).await.unwrap_err().kind(), ErrorKind::Lost(LossReason::LeaseLapsed));
    assert!(until(SOON, || client.stats().losses == 1), "{:?}", client.stats());
    assert_eq!(other.state(), HoldState::Held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_in_a_frozen_network_is_at_risk_then_lost_and_stays_lost() {
    cut_off("/told-frozen", FROZEN).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_who_hears_nothing_is_at_risk_then_lost_though_its_checks_arrive() {
    cut_off("/told-deaf", DEAF).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_whose_connections_are_refused_is_at_risk_then_lost_and_stays_lost() {
    cut_off("/told-refused", REFUSED).await;
}

/// Cuts the holder off so briefly that the hold is at risk for a while, but survives.
async fn short_cut(client: &Client, proxy: &Proxy, hold: &Arc<Hold>, (cut, mend): Cut) {
    let (token, node) = (hold.token(), hold.node().to_owned());
    just_after_a_heartbeat(proxy);
    just_after_a_heartbeat(proxy);
    let observer = Observer::of(hold.clone());
    observer.first(Instant::now(), SOON, |sample| sample.valid_for > SESSION / 2 - SESSION / 10);
    cut(proxy);
    let risk = observer.first(Instant::now(), SOON, |sample| sample.state == HoldState::AtRisk);
    assert!(!risk.valid_for.is_zero());
    mend(proxy);
    observer.first(risk.at, SOON, |sample| sample.state == HoldState::Held);
    // A busy machine may put it at risk before the cut, too.
    let states = observer.states();
    assert!(states.ends_with(&[HoldState::Held, HoldState::AtRisk, HoldState::Held]), "{states:?}");
    let samples = observer.finish();
    // It runs out while a process stands still.
    or_once_more(samples.iter().all(|sample| !sample.valid_for.is_zero()), "the lease ran on");
    assert_eq!((hold.token(), hold.node()), (token, &*node));
    assert!(soon(hold.confirm()).await.unwrap() > SESSION / 8);
    assert_eq!(client.stats().losses, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_shorter_than_the_lease_is_survived_with_the_same_token() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let hold = Arc::new(soon(client.mutex("/told-short").unwrap().acquire()).await.unwrap());
    for cut in [FROZEN, REFUSED] {
        short_cut(&client, &proxy, &hold, cut).await;
    }
    assert!(operator.stat(hold.node()).is_some());
    soon(hold.release()).await.unwrap();
    assert_eq!((client.stats().losses, client.stats().sessions), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_on_a_healthy_network_stays_held_and_valid_for_a_quarter_of_the_session() {
    let session = Duration::from_secs(2);
    let hosts = shared().connect_string();
    let client = Client::connect(options(&hosts).session_timeout(session)).await.unwrap();
    assert_eq!(client.session_timeout(), Some(session));
    let hold = Arc::new(soon(client.mutex("/told-healthy").unwrap().acquire()).await.unwrap());
    let (noise, observer) = (Noise::measured(), Observer::of(hold.clone()));
    let start = Instant::now();
    tokio::time::sleep(session * 5 / 2).await;
    let states = observer.states();
    if states != [HoldState::Held] {
        return or_once_more(false, &format!("{states:?}, noise {:?}", noise.worst()));
    }
    let samples = observer.finish();
    let lowest = |from: Duration| {
        samples
            .iter()
            .filter(|sample| sample.at >= start + from)
            .map(|sample| sample.valid_for)
            .min()
            .unwrap()
    };
    // From the opening of the session on, half of T is proven. A late beat shortens that by its delay.
    let (first, later) = (lowest(Duration::ZERO), lowest(session / 8));
    println!("valid for {first:?} at least, later {later:?}, noise {:?}", noise.worst());
    assert!(samples.iter().all(|sample| sample.valid_for < session / 2), "more than a write can prove");
    assert!(samples.len() > 100, "{} samples", samples.len());
    or_once_more(first + noise.allowance() > session / 8, &format!("{first:?}"));
    or_once_more(later + noise.allowance() > session / 4 && later > session / 8, &format!("{later:?}"));
    assert_eq!(client.stats().losses, 0);
}
