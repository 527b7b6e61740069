//! `zklock doctor` where there are several servers: each is asked by itself.

use std::time::Duration;

use ground::wire::Admin;
use ground::{Direction, Ensemble, until};
use serde_json::Value;

use crate::support::{SOON, operator, output, path, zklock_at};

/// The findings about each server by itself: the verdict, what was found, and what to do.
fn each(hosts: &str, path: &str) -> (Option<i32>, Vec<(String, String, String)>) {
    findings(hosts, path, "each server")
}

/// The exit code, and the findings of this kind.
fn findings(hosts: &str, path: &str, about: &str) -> (Option<i32>, Vec<(String, String, String)>) {
    let ended = output(zklock_at(hosts).args(["doctor", "--json", path]));
    let found = ended.json();
    let all = found.as_array().unwrap().iter().filter(|finding| finding["about"] == about);
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let all = all.map(|found| (text(found, "verdict"), text(found, "finding"), text(found, "advice")));
    (ended.code, all.collect())
}

#[test]
fn servers_of_one_ensemble_show_the_same() {
    let ensemble = Ensemble::builder().servers(3).start();
    let _talk = ensemble.keep_talking();
    let hosts = ensemble.connect_string();
    let (code, found) = each(&hosts, &path());
    assert_eq!(code, Some(0), "{found:?}");
    assert_eq!(found.len(), 3);
    for (server, (_, finding, _)) in hosts.split(',').zip(&found) {
        let expected = format!("{server} by itself shows what the others show, in ");
        assert!(finding.starts_with(&expected), "{expected}: {finding}");
    }
    // Below a chroot as well.
    Admin::connect(ensemble.server(0).address()).create("/apps", "");
    let (code, found) = each(&format!("{hosts}/apps"), "/below");
    assert_eq!((code, found.len()), (Some(0), 3));
    // What was made on the way is gone.
    let operator = Admin::connect(ensemble.server(0).address());
    assert_eq!(operator.children_or_empty("/apps/below"), [""; 0]);
}

/// Each would grant the same lock.
#[test]
fn servers_of_two_ensembles_are_found_out() {
    let (one, other) = (Ensemble::standalone(), Ensemble::standalone());
    let path = path();
    let (hosts, stranger) = (one.connect_string(), other.connect_string());
    // It is by chance to which of them the doctor connects: so that the same one is odd, there is something on the other.
    let operator = Admin::connect(one.server(0).address());
    for number in 0..5 {
        operator.create_all(&format!("{path}/here-{number}"), "");
    }
    let (code, found) = each(&format!("{hosts},{stranger}"), &path);
    assert_eq!(code, Some(1), "{found:?}");
    let (verdict, finding, advice) =
        found.iter().find(|(_, finding, _)| finding.starts_with(&stranger)).expect("a line for each");
    assert_eq!(verdict, "bad");
    let expected = format!("{stranger} by itself does not show nodes below {path} that others do: ");
    assert!(finding.starts_with(&expected) && finding.contains("here-0, here-1, "), "{finding}");
    assert!(finding.contains(" more"), "{finding}");
    assert!(advice.contains("take it out of --hosts"), "{advice}");
}

/// After a reconnect to it, a hold that was valid before could be over already.
#[test]
fn a_server_that_grants_less_than_half_is_found_out() {
    let ensemble = Ensemble::builder().servers(3).start();
    let _talk = ensemble.keep_talking();
    let (hosts, odd) = (ensemble.connect_string(), ensemble.followers()[0]);
    let (code, found) = findings(&hosts, &path(), "session timeouts");
    assert_eq!((code, found.len(), &*found[0].0), (Some(0), 1, "good"), "{found:?}");
    odd.restart_with("minSessionTimeout=1000\nmaxSessionTimeout=4000");
    assert!(until(SOON, || odd.is_serving()));
    let (code, found) = findings(&hosts, &path(), "session timeouts");
    let [(verdict, finding, advice)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((code, &**verdict), (Some(1), "bad"), "{finding}");
    assert!(
        finding.starts_with(&format!("{} grants 4.0s, less than half of the 10s", odd.address())),
        "{finding}"
    );
    assert!(advice.contains("maxSessionTimeout"), "{advice}");
}

#[test]
fn a_server_that_is_behind_the_leader_is_found_out() {
    let ensemble = Ensemble::builder().servers(3).quorum_proxies(true).start();
    let _talk = ensemble.keep_talking();
    let (leader, follower) = (ensemble.leader(), ensemble.followers()[0]);
    ensemble.quorum_link(follower, leader).delay(Duration::from_millis(200));
    let (code, found) = each(&ensemble.connect_string(), &path());
    assert_eq!(code, Some(0), "{found:?}");
    let of_follower = |found: &[(String, String, String)]| {
        let address = follower.address().to_string();
        found.iter().find(|(_, finding, _)| finding.contains(&address)).cloned().unwrap_or_default()
    };
    let (verdict, finding, advice) = of_follower(&found);
    assert_eq!(
        (&*verdict, advice.contains("lags behind the leader")),
        ("warning", true),
        "{finding} {advice}"
    );

    ensemble.quorum_link(follower, leader).delay(Duration::ZERO);
    ensemble.quorum_link(follower, leader).freeze(Direction::Both);
    // For some time it thinks that all is well, and lets in whom it need not ask the leader about.
    let hosts = ensemble.connect_string();
    let ended = output(zklock_at(&hosts).args(["--connect-timeout", "3s", "doctor", &path()]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let address = follower.address().to_string();
    let told = ended.out.lines().any(|line| line.starts_with("BAD") && line.contains(&address));
    assert!(told, "{}", ended.out);
    ensemble.quorum_link(follower, leader).thaw();
    assert!(until(SOON, || follower.is_serving()));
}

#[test]
fn a_right_that_is_missing_is_found_out() {
    let hosts = crate::support::servers().connect_string();
    // So that these rights are not those of the node above all tests' paths.
    operator().create_all("/cli", "");
    let doctor = |access: &str| {
        let path = path();
        output(zklock_at(&hosts).args(["--access", access, "run", "--mutex", &path, "--", "true"]));
        let ended = output(zklock_at(&hosts).args(["doctor", &path]));
        assert_eq!(ended.code, Some(1), "{ended:?}");
        (ended.out, path)
    };
    let (found, _) = doctor("world:anyone:r");
    assert!(found.contains("docs/securing.md"), "{found}");
    let (found, path) = doctor("world:anyone:cr");
    let left = found.lines().find(|line| line.contains(&format!("{path}/zklock-doctor-")));
    assert!(left.is_some_and(|line| line.starts_with("warning") && line.contains("is left")), "{found}");
    assert!(found.contains("-> give this user the right to delete (d) there"), "{found}");
}
