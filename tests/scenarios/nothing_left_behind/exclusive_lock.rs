//! Promise 5 for the lock without a queue: its node has no mark, so a node that is found may be another client's. Its companion
//! has a mark.

use crate::support::queue::acquire;
use crate::support::sweep::{Scene, Step, Subject, cancels, resets};
use crate::support::{SOON, settled, soon};
use ground::wire::Mode;
use ground::{Action, Gate, Kind, Side};

const FREE: Subject = Subject {
    name: "exclusive",
    lock: |client, path| client.exclusive(path).unwrap(),
    places: &[("", 2)],
    blockers: &[],
    waits: (Kind::GetChildren, 1, ""),
    before: &[
        (Kind::Multi, Side::Request, 1, ""),
        (Kind::Multi, Side::Reply, 1, ""),
        (Kind::Exists, Side::Request, 1, ""),
        (Kind::Exists, Side::Reply, 1, ""),
    ],
    after: &[],
    granted: &[],
    recoveries: &[(
        (Kind::Multi, Side::Request, 1, ""),
        &[
            (Kind::Multi, Side::Request, 1, ""),
            (Kind::Multi, Side::Reply, 1, ""),
            (Kind::Exists, Side::Request, 1, "/lock"),
            (Kind::Exists, Side::Reply, 1, "/lock"),
            (Kind::Exists, Side::Request, 1, "/holder-"),
            (Kind::Exists, Side::Reply, 1, "/holder-"),
        ],
    )],
    fresh: &[
        (Kind::CreateContainer, Side::Request, 1, ""),
        (Kind::CreateContainer, Side::Reply, 1, ""),
        (Kind::Multi, Side::Request, 2, ""),
        (Kind::Multi, Side::Reply, 2, ""),
    ],
};

/// The steps of an acquire that finds the lock held, and is granted it later.
const BEFORE: [Step; 6] = [
    (Kind::Multi, Side::Request, 1, ""),
    (Kind::Multi, Side::Reply, 1, ""),
    (Kind::Exists, Side::Request, 1, ""),
    (Kind::Exists, Side::Reply, 1, ""),
    (Kind::GetChildren, Side::Request, 1, ""),
    (Kind::GetChildren, Side::Reply, 1, ""),
];
const AFTER: [Step; 5] = [
    (Kind::Event, Side::Reply, 1, ""),
    (Kind::Multi, Side::Request, 2, ""),
    (Kind::Multi, Side::Reply, 2, ""),
    (Kind::Exists, Side::Request, 2, ""),
    (Kind::Exists, Side::Reply, 2, ""),
];

fn path_of(what: &str, (kind, side, nth, _): Step) -> String {
    format!("/sweep-occupied-{what}-{kind:?}-{side:?}-{nth}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_every_step_leaves_no_node() {
    cancels(&FREE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_at_every_step_leaves_exactly_one_node() {
    resets(&FREE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_every_step_of_a_wait_leaves_anothers_node_and_none_of_its_own() {
    let scene = Scene::new().await;
    for (step, late) in BEFORE.map(|step| (step, false)).into_iter().chain(AFTER.map(|step| (step, true))) {
        let path = path_of("cancel", step);
        scene.admin.create_all(&path, "");
        let stranger = scene.admin.create_mode(&format!("{path}/lock"), "stranger", Mode::Ephemeral);
        let gate = Gate::new();
        let held = scene.strike(step, &path, Action::Pause(gate.clone()));
        let waits = scene.strike((Kind::GetChildren, Side::Reply, 1, ""), &path, Action::Pass);
        let call = acquire(&scene.client.exclusive(&path).unwrap());
        if late {
            assert!(waits.wait(SOON), "{path}: it does not wait");
            scene.admin.delete(&stranger);
        }
        assert!(held.wait(SOON), "{path} never came");
        call.abort();
        assert!(soon(call).await.is_err_and(|error| error.is_cancelled()), "{path}: the call was over");
        gate.open();
        settled(&scene.client).await;
        let left = scene.admin.children(&path);
        if late {
            assert_eq!(left, [""; 0], "{path}");
        } else {
            assert_eq!(scene.admin.data(&stranger), b"stranger", "{path}");
            scene.admin.delete(&stranger);
        }
    }
    assert_eq!(scene.client.stats().sessions, 1, "all in one session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_at_every_step_of_a_wait_leaves_exactly_one_node() {
    let scene = Scene::new().await;
    for (step, late) in BEFORE.map(|step| (step, false)).into_iter().chain(AFTER.map(|step| (step, true))) {
        let path = path_of("reset", step);
        scene.admin.create_all(&path, "");
        let stranger = scene.admin.create_mode(&format!("{path}/lock"), "stranger", Mode::Ephemeral);
        let struck = scene.strike(step, &path, Action::DropAndReset);
        let waits = scene.strike((Kind::GetChildren, Side::Reply, 1, ""), &path, Action::Pass);
        let call = acquire(&scene.client.exclusive(&path).unwrap());
        if late {
            assert!(waits.wait(SOON), "{path}: it does not wait");
        } else {
            assert!(struck.wait(SOON), "{path} never came");
            assert_eq!(scene.admin.data(&stranger), b"stranger", "{path}");
        }
        scene.admin.delete(&stranger);
        let hold = crate::support::queue::granted(call).await;
        assert!(struck.wait(SOON), "{path} never came");
        let stat = scene.admin.stat(hold.node()).unwrap();
        assert_eq!(Some(stat.ephemeral_owner), scene.client.session_id(), "{path}");
        assert_eq!(stat.czxid.unsigned_abs(), hold.token().value(), "{path}");
        soon(hold.release()).await.unwrap();
        assert_eq!(scene.admin.children(&path), [""; 0], "{path}");
    }
    assert_eq!(scene.client.stats().sessions, 1, "all in one session");
}
