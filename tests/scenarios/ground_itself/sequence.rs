//! A real server whose child counter is near its end. `testkit/sequence.rs` has the same of the embedded one.

use std::net::SocketAddr;
use std::time::Duration;

use ground::Ensemble;
use ground::wire::{Admin, Connection, Failure, Mode};

use crate::support::SESSION;

fn patchable() -> Ensemble {
    Ensemble::builder().tick(Duration::from_millis(200)).real().start()
}

/// The number that the server has appended to a name.
fn number_of<'a>(path: &'a str, start: &str) -> &'a str {
    path.strip_prefix(start).expect("the name is what was asked for, and the number")
}

/// Asserts that the numbers of children stay at the largest, as they do since 3.6. `set` chooses the next one of a node.
pub(crate) fn sticks_at_the_largest(address: SocketAddr, set: impl Fn(&str, i32)) {
    let (admin, parent) = (Admin::connect(address), "/locks/report");
    admin.create_all(parent, "kept");
    admin.create("/locks/report/child", "");
    set(parent, 2_147_483_645);
    assert_eq!((admin.data(parent), admin.children(parent)), (b"kept".to_vec(), vec!["child".to_owned()]));
    let next = |start: &str| {
        let start = format!("{parent}/{start}");
        number_of(&admin.create_mode(&start, "", Mode::PersistentSequential), &start).to_owned()
    };
    assert_eq!(["n-", "n-", "n-"].map(next), ["2147483645", "2147483646", "2147483647"]);
    assert_eq!(["a-", "b-"].map(next), ["2147483647", "2147483647"]);
    let again = admin.try_create("/locks/report/b-", "", Mode::PersistentSequential);
    assert!(matches!(again, Err(Failure::Server(-110))), "there is one of that name: {again:?}");
    let told = || {
        let stat = admin.stat(parent).expect("it is there");
        assert_eq!(stat.cversion, i32::MAX.wrapping_mul(2).wrapping_sub(stat.num_children));
        stat.pzxid
    };
    let (created, before) = (admin.stat("/locks/report/a-2147483647").expect("it is there").czxid, told());
    assert!(before < created, "a create no longer counts as a change of the children");
    admin.delete("/locks/report/a-2147483647");
    assert!(told() > created, "a deletion does");
}

#[test]
fn the_child_counter_of_a_real_server_is_set_and_sticks_at_its_end() {
    let ensemble = patchable();
    sticks_at_the_largest(ensemble.server(0).address(), |path, number| {
        ensemble.server(0).set_sequence(path, number);
    });
}

#[test]
fn creates_that_are_under_way_at_once_get_negative_numbers_at_the_end_of_the_counter() {
    let ensemble = patchable();
    let server = ensemble.server(0);
    let admin = Admin::connect(server.address());
    admin.create("/p", "");
    server.set_sequence("/p", i32::MAX);
    let mut client = Connection::open(server.address(), SESSION).expect("it serves");
    let mut is_seen = false;
    // Whether the first create is done when the second arrives is a matter of luck.
    for round in 0..100 {
        let starts: Vec<_> = (0..20).map(|place| format!("/p/{round}-{place}-")).collect();
        let paths = client.create_together(&starts, Mode::EphemeralSequential).expect("created");
        let numbers = paths.iter().zip(&starts).map(|(path, start)| number_of(path, start));
        is_seen |= numbers
            .inspect(|number| assert!(is_at_the_end(number), "{number}"))
            .any(|number| number.starts_with('-'));
        if is_seen {
            break;
        }
    }
    assert!(is_seen, "never two under way at once");
    let alone = admin.create_mode("/p/alone-", "", Mode::PersistentSequential);
    assert_eq!(alone, "/p/alone-2147483647");
}

/// The last number, or one of the few after it.
fn is_at_the_end(number: &str) -> bool {
    number == "2147483647" || (-2_147_483_648..-2_147_483_600).contains(&number.parse::<i64>().unwrap_or(0))
}
