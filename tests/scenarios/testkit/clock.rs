//! The clock that can be put forward, and the clock that stands still.

use std::time::Duration;

use crate::support::embedded::{A_WHILE, Raw, SOON, client_with, manual, operation, soon};
use ground::until;
use ground::wire::Admin;
use zklock::HoldState;
use zklock_testkit::Server;

const HALF_A_MINUTE: Duration = Duration::from_secs(30);
const PATH: &str = "/locks/report";

/// Sessions only end at full ticks.
const TICK: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_connected_and_well_outlives_any_leap_of_the_clock() {
    let server = Server::start().unwrap();
    let client = client_with(&server, HALF_A_MINUTE).await;
    let hold = soon(client.mutex(PATH).unwrap().acquire()).await.unwrap();
    for _ in 0..3 {
        server.advance(Duration::from_secs(3600));
        soon(hold.confirm()).await.unwrap();
    }
    assert_eq!((hold.state(), client.stats().sessions), (HoldState::Held, 1));
}

#[test]
fn the_date_can_be_set_back_and_forth_and_no_session_notices() {
    let server = manual();
    let admin = Admin::connect(server.address());
    admin.create("/dated", "");
    let day = Duration::from_secs(86_400);
    for days in [20_000, 3, 30_000] {
        server.set_date(day * days);
        assert_eq!(u128::try_from(admin.set("/dated", "").mtime).unwrap(), (day * days).as_millis());
        server.advance(Duration::from_secs(5));
        let later = day * days + Duration::from_secs(5);
        assert_eq!(u128::try_from(admin.set("/dated", "").mtime).unwrap(), later.as_millis());
    }
    assert_eq!(server.sessions().len(), 1);
}

#[test]
fn a_session_without_a_connection_ends_when_its_timeout_and_a_tick_have_passed_and_not_before() {
    let server = manual();
    let mut raw = Raw::open_for(&server, HALF_A_MINUTE);
    assert_eq!(raw.ask(1, operation::CREATE, &crate::support::embedded::creation("/mine", 1)).error, 0);
    assert!(server.cut_session(raw.session));
    server.advance(HALF_A_MINUTE - Duration::from_millis(1));
    assert_eq!(server.sessions().len(), 1, "too early");
    server.advance(TICK + Duration::from_millis(1));
    assert_eq!((server.sessions(), server.children("/mine")), (vec![], None));
}

fn quick() -> zklock_testkit::Builder {
    let tick = Duration::from_millis(10);
    Server::builder().tick(tick).session_timeouts(tick, SOON)
}

#[test]
fn a_manual_clock_ends_no_session_and_a_running_one_does() {
    let timeout = Duration::from_millis(20);
    let (standing, running) = (quick().manual_clock().start().unwrap(), quick().start().unwrap());
    let abandoned = Raw::open_for(&standing, timeout);
    let other = Raw::open_for(&running, timeout);
    assert_eq!((abandoned.timeout, other.timeout), (timeout, timeout));
    standing.cut();
    running.cut();
    assert!(until(SOON, || running.sessions().is_empty()));
    std::thread::sleep(A_WHILE);
    assert_eq!(standing.sessions().len(), 1);
    abandoned.again(&standing).unwrap().is_served();
    standing.cut();
    standing.advance(timeout * 2);
    assert_eq!(standing.sessions(), []);
}
