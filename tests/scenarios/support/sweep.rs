//! Promise 5, at every step: whichever message of an acquire is lost, or is the last before its caller gives up, exactly
//! the right nodes are left on the server.

use crate::support::{SOON, operator, options, settled, soon};
use ground::wire::{Admin, Mode};
use ground::{Action, Gate, Hook, Kind, Proxy, Side, Trigger, shared, until};
use std::time::Duration;
use tokio::task::JoinHandle;
use zklock_core::{Client, Error, Hold, Lock};

/// So short that a wait outlasts its heartbeat, and the grant needs a check.
const SHORT: Duration = Duration::from_secs(2);
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(200);

/// A message of an acquire: its kind, its sender, its number among those, and its directory.
pub(crate) type Step = (Kind, Side, usize, &'static str);

/// The subject of a sweep.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) lock: fn(&Client, &str) -> Lock,
    /// The directories, below the path, and how many nodes of a hold are in each.
    pub(crate) places: &'static [(&'static str, usize)],
    /// The nodes of a stranger that are in the way.
    pub(crate) blockers: &'static [&'static str],
    /// The message whose reply begins the wait.
    pub(crate) waits: (Kind, usize, &'static str),
    /// The messages up to the wait, and those after it.
    pub(crate) before: &'static [Step],
    pub(crate) after: &'static [Step],
    /// The messages after the grant, which nobody can cancel any more.
    pub(crate) granted: &'static [Step],
    /// For each request that may have created nodes although no reply came: the requests of the recovery.
    pub(crate) recoveries: &'static [(Step, &'static [Step])],
    /// The messages of an acquire if no directory exists yet.
    pub(crate) fresh: &'static [Step],
}

pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) proxy: Proxy,
    pub(crate) admin: Admin,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let proxy = Proxy::before(shared().server(0));
        let options = options(&proxy.connect_string()).session_timeout(SHORT).unwrap();
        let client = Client::connect(options).await.unwrap();
        Self { client, proxy, admin: operator() }
    }

    pub(crate) fn strike(&self, step: Step, path: &str, action: Action) -> Hook {
        strike(&self.proxy, step, path, action)
    }

    /// Drops the call while the message is held, lets the message go, and waits until nothing is owed.
    pub(crate) async fn cancel_at(
        &self,
        call: JoinHandle<Result<Hold, Error>>,
        held: &Hook,
        gate: &Gate,
        what: &str,
    ) {
        drop_at(call, held, what).await;
        // The message is held, so the client cannot know yet what became of the nodes.
        assert!(until(SOON, || self.client.stats().owed == 1), "{what}: nothing is owed");
        gate.open();
        settled(&self.client).await;
    }

    fn prepare(&self, subject: &Subject, path: &str) -> Vec<String> {
        for (place, _) in subject.places {
            self.admin.create_all(&format!("{path}{place}"), "");
        }
        let block = |node: &&str| {
            self.admin.create_mode(&format!("{path}{node}"), "stranger", Mode::EphemeralSequential)
        };
        subject.blockers.iter().map(block).collect()
    }

    fn unblock(&self, blockers: &[String]) {
        blockers.iter().for_each(|node| self.admin.delete(node));
    }

    /// Lets it wait so long that its grant needs a check.
    async fn waits(&self, subject: &Subject, path: &str, started: impl FnOnce()) {
        let (kind, nth, place) = subject.waits;
        let waits = self.strike((kind, Side::Reply, nth, place), path, Action::Pass);
        started();
        assert!(waits.wait(SOON), "{path}: it does not wait");
        tokio::time::sleep(HEARTBEAT).await;
    }

    /// Asserts that the stranger's nodes are there, and no others.
    fn has_only(&self, subject: &Subject, path: &str, blockers: &[String], what: &str) {
        let mut left: Vec<String> = Vec::new();
        for (place, _) in subject.places {
            let names = self.admin.children_or_empty(&format!("{path}{place}"));
            left.extend(names.iter().map(|name| format!("{path}{place}/{name}")));
        }
        left.sort();
        let mut expected = blockers.to_vec();
        expected.sort();
        assert_eq!(left, expected, "{what}");
    }

    /// Asserts that the hold has its nodes on the server and there are no others, and after the release there are none.
    async fn is_one(&self, subject: &Subject, path: &str, hold: Hold, what: &str) {
        for (place, count) in subject.places {
            // A holder of permits leaves the queue a moment later.
            self.admin.wait_for_children(&format!("{path}{place}"), *count, SOON);
        }
        assert_eq!(hold.nodes().count(), subject.places.iter().map(|(_, count)| count).sum::<usize>());
        for node in hold.nodes() {
            let stat = self.admin.stat(node).unwrap_or_else(|| panic!("{what}: {node} is not there"));
            assert_eq!(Some(stat.ephemeral_owner), self.client.session_id(), "{what}");
        }
        soon(hold.release()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        settled(&self.client).await;
        self.has_only(subject, path, &[], what);
    }
}

pub(crate) fn strike(proxy: &Proxy, (kind, side, nth, place): Step, path: &str, action: Action) -> Hook {
    let trigger = if side == Side::Request { Trigger::request(kind) } else { Trigger::reply(kind) };
    // A reply is matched by the path of its request, so this works for all kinds.
    proxy.on(trigger.nth(nth).path(format!("{path}{place}")).then(action))
}

/// Drops the call when the message is held.
pub(crate) async fn drop_at<T>(call: JoinHandle<Result<T, Error>>, held: &Hook, what: &str) {
    assert!(held.wait(SOON), "{what} never came");
    call.abort();
    let stopped = soon(call).await;
    assert!(stopped.is_err_and(|error| error.is_cancelled()), "{what}: the call was over");
}

/// Acquires in a task. It does not check how long the hold is valid, because the session is short.
pub(crate) fn acquire(lock: Lock) -> JoinHandle<Result<Hold, Error>> {
    tokio::spawn(async move { lock.acquire().await })
}

fn named(subject: &Subject, what: &str, (kind, side, nth, place): Step) -> String {
    let place = place.trim_start_matches('/').replace('/', "-");
    format!("/sweep-{}-{what}-{kind:?}-{side:?}-{nth}-{place}", subject.name)
}

/// A cancel at every step leaves no node.
pub(crate) async fn cancels(subject: &Subject) {
    let scene = Scene::new().await;
    for (step, late) in steps(subject) {
        let path = named(subject, "cancel", step);
        let blockers = scene.prepare(subject, &path);
        let gate = Gate::new();
        let held = scene.strike(step, &path, Action::Pause(gate.clone()));
        let lock = (subject.lock)(&scene.client, &path);
        if late {
            let mut call = None;
            scene.waits(subject, &path, || call = Some(acquire(lock))).await;
            scene.unblock(&blockers);
            scene.cancel_at(call.unwrap(), &held, &gate, &path).await;
            scene.has_only(subject, &path, &[], &path);
        } else {
            scene.cancel_at(acquire(lock), &held, &gate, &path).await;
            scene.has_only(subject, &path, &blockers, &path);
            scene.unblock(&blockers);
        }
    }
    for &step in subject.fresh {
        let path = named(subject, "cancel-fresh", step);
        let gate = Gate::new();
        let held = scene.strike(step, &path, Action::Pause(gate.clone()));
        scene.cancel_at(acquire((subject.lock)(&scene.client, &path)), &held, &gate, &path).await;
        scene.has_only(subject, &path, &[], &path);
    }
    for (lost, steps) in subject.recoveries {
        for &step in *steps {
            let path = named(subject, "cancel-lost", step);
            scene.prepare(&Subject { blockers: &[], ..*subject }, &path);
            let (gate, call) = (Gate::new(), lose(&scene, subject, *lost, &path));
            let held = scene.strike(step, &path, Action::Pause(gate.clone()));
            scene.proxy.refuse(false);
            scene.cancel_at(call, &held, &gate, &path).await;
            scene.has_only(subject, &path, &[], &path);
        }
    }
    assert_eq!(scene.client.stats().sessions, 1, "all in one session");
}

/// A reset at every step leaves exactly one hold with its nodes.
pub(crate) async fn resets(subject: &Subject) {
    let scene = Scene::new().await;
    for (step, late) in steps(subject) {
        let path = named(subject, "reset", step);
        let blockers = scene.prepare(subject, &path);
        let struck = scene.strike(step, &path, Action::DropAndReset);
        let lock = (subject.lock)(&scene.client, &path);
        let call = if late {
            let mut call = None;
            scene.waits(subject, &path, || call = Some(acquire(lock))).await;
            call.unwrap()
        } else {
            let call = acquire(lock);
            assert!(struck.wait(SOON), "{path} never came");
            call
        };
        scene.unblock(&blockers);
        granted(&scene, subject, call, &struck, &path).await;
    }
    for &step in subject.granted.iter().chain(subject.fresh) {
        let path = named(subject, "reset-free", step);
        if subject.granted.contains(&step) {
            scene.prepare(&Subject { blockers: &[], ..*subject }, &path);
        }
        let struck = scene.strike(step, &path, Action::DropAndReset);
        let call = acquire((subject.lock)(&scene.client, &path));
        granted(&scene, subject, call, &struck, &path).await;
    }
    for (lost, steps) in subject.recoveries {
        for &step in *steps {
            let path = named(subject, "reset-lost", step);
            scene.prepare(&Subject { blockers: &[], ..*subject }, &path);
            let call = lose(&scene, subject, *lost, &path);
            let struck = scene.strike(step, &path, Action::DropAndReset);
            scene.proxy.refuse(false);
            granted(&scene, subject, call, &struck, &path).await;
        }
    }
    assert_eq!(scene.client.stats().sessions, 1, "all in one session");
}

async fn granted(
    scene: &Scene,
    subject: &Subject,
    call: JoinHandle<Result<Hold, Error>>,
    struck: &Hook,
    path: &str,
) {
    let hold = soon(call).await.unwrap().unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(struck.wait(SOON), "{path} never came");
    scene.is_one(subject, path, hold, path).await;
}

/// The steps before the wait, and those after it.
fn steps(subject: &Subject) -> impl Iterator<Item = (Step, bool)> {
    let before = subject.before.iter().map(|step| (*step, false));
    before.chain(subject.after.iter().map(|step| (*step, true)))
}

/// An acquire that has lost its connection together with the reply to `lost`, and is kept from the server.
fn lose(scene: &Scene, subject: &Subject, lost: Step, path: &str) -> JoinHandle<Result<Hold, Error>> {
    let lost = scene.strike(lost, path, Action::DropReplyAndReset);
    scene.proxy.refuse(true);
    let call = acquire((subject.lock)(&scene.client, path));
    assert!(lost.wait(SOON), "{path} was never created");
    call
}
