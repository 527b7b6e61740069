//! Promise 5: a program that ends as soon as its call has failed leaves no node either. Each way to fail is a process, which
//! kills itself when the call returns: see `support/child.rs`.

use crate::support::child::{self, Process};
use crate::support::threads::done;
use crate::support::{client_of, soon};
use ground::wire::Admin;
use ground::{Ensemble, or_once_more, until};
use rustix::process::{Signal, getpid, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use zklock::further::{Interrupt, Owner, Wait};
use zklock::{Client, ErrorKind, Hold, LockSpec};

/// How long a child waits: long enough for its node to be created.
const WAITS: Duration = Duration::from_secs(2);
/// Longer than this test waits for anything, so no node is gone because its session is.
const SESSION: Duration = Duration::from_secs(60);
const WAY: &str = "ZKLOCK_CHILD_WAY";

/// A way in which a call fails.
struct Way {
    name: &'static str,
    /// What another client holds.
    held: fn(&str) -> Vec<LockSpec>,
    /// Directories below the path, and how many nodes are left in each.
    left: &'static [(&'static str, usize)],
}

const MUTEX: Way = Way { name: "thread", held: |path| vec![mutex(path, "")], left: &[("", 1)] };

const WAYS: &[Way] = &[
    MUTEX,
    Way { name: "task", ..MUTEX },
    Way { name: "ticket", ..MUTEX },
    Way { name: "try", ..MUTEX },
    Way { name: "zero", ..MUTEX },
    Way { name: "interrupt", ..MUTEX },
    Way { name: "two callers", ..MUTEX },
    Way { name: "reader", held: |path| vec![LockSpec::write_lock(path).unwrap()], ..MUTEX },
    Way { name: "writer", held: |path| vec![LockSpec::read_lock(path).unwrap()], ..MUTEX },
    Way { name: "permits", held: |path| vec![permits(path)], left: &[("/locks", 0), ("/leases", 3)] },
    Way { name: "set", held: |path| vec![mutex(path, "/b")], left: &[("/a", 0), ("/b", 1)] },
    Way {
        name: "any",
        held: |path| vec![mutex(path, "/a"), mutex(path, "/b")],
        left: &[("/a", 1), ("/b", 1)],
    },
    Way { name: "member", held: |_| vec![], left: &[("", 0)] },
];

fn mutex(path: &str, below: &str) -> LockSpec {
    LockSpec::mutex(&format!("{path}{below}")).unwrap()
}

fn permits(path: &str) -> LockSpec {
    LockSpec::semaphore(path, 3).unwrap().permits(3)
}

/// The child: fails in its way, and is dead at once.
#[test]
#[ignore = "the child of the tests in this file"]
fn fails_and_dies() {
    let Some((options, path)) = child::orders() else { return };
    let way = std::env::var(WAY).unwrap();
    let client = Client::connect(options.clone()).wait().unwrap();
    let lock = |spec: LockSpec| client.lock(&spec).unwrap();
    let both = || [mutex(&path, "/a"), mutex(&path, "/b")];
    let times_out = |spec: LockSpec| lock(spec).acquire_timeout(WAITS).wait().map(drop).unwrap_err().kind();
    let kind = match &*way {
        "task" => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let client = Client::connect(options).await.unwrap();
                let acquired = client.mutex(&path).unwrap().acquire_timeout(WAITS).await;
                let kind = acquired.map(drop).unwrap_err().kind();
                dies(kind);
                kind
            })
        }
        "ticket" => {
            done(lock(mutex(&path, "")).acquire_as(Owner::once(), WAITS)).map(drop).unwrap_err().kind()
        }
        "try" => {
            assert!(lock(mutex(&path, "")).try_acquire().wait().unwrap().is_none());
            ErrorKind::Timeout
        }
        "zero" => lock(mutex(&path, "")).acquire_timeout(Duration::ZERO).wait().map(drop).unwrap_err().kind(),
        "interrupt" => {
            let (lock, interrupt) = (lock(mutex(&path, "")), Interrupt::new());
            let (queue, ends) = (lock.clone(), interrupt.clone());
            std::thread::spawn(move || {
                while queue.contenders().wait().unwrap().len() < 2 {}
                ends.trigger();
            });
            lock.acquire_as(Owner::current(), Wait::Forever)
                .wait_unless(&interrupt)
                .map(drop)
                .unwrap_err()
                .kind()
        }
        "two callers" => {
            let (first, second) = (lock(mutex(&path, "")), lock(mutex(&path, "")));
            let first = std::thread::spawn(move || first.acquire_timeout(WAITS / 2).wait().map(drop));
            let failed = second.acquire_timeout(WAITS).wait().map(drop);
            assert_eq!(first.join().unwrap().unwrap_err().kind(), ErrorKind::Timeout);
            failed.unwrap_err().kind()
        }
        "reader" => times_out(LockSpec::read_lock(&path).unwrap()),
        "writer" => times_out(LockSpec::write_lock(&path).unwrap()),
        "permits" => times_out(permits(&path)),
        "set" => times_out(LockSpec::all(both()).unwrap()),
        "any" => times_out(LockSpec::any(both()).unwrap()),
        "member" => {
            let barrier = client.double_barrier(&path, 2).unwrap();
            barrier.enter_timeout(WAITS).wait().map(drop).unwrap_err().kind()
        }
        _ => MUTEX.name.eq(&way).then(|| times_out(mutex(&path, ""))).unwrap(),
    };
    dies(kind);
}

/// Without another word, so that nothing has time to be sent after the call.
fn dies(kind: ErrorKind) {
    if matches!(kind, ErrorKind::Timeout | ErrorKind::Interrupted) {
        kill_process(getpid(), Signal::KILL).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_ends_when_its_call_has_failed_leaves_no_node() {
    let own = Ensemble::builder().max_session_timeout(SESSION).start();
    let (hosts, admin) = (own.connect_string(), Admin::connect(own.server(0).address()));
    let holder = client_of(&hosts).await;
    let mut children = Vec::new();
    for way in WAYS {
        let path = format!("/exits-{}", way.name.replace(' ', "-"));
        let mut holds: Vec<Hold> = Vec::new();
        for spec in (way.held)(&path) {
            holds.push(soon(holder.lock(&spec).unwrap().acquire()).await.unwrap());
        }
        let name = concat!(module_path!(), "::fails_and_dies");
        let child = Process::start_with(name, &hosts, &path, SESSION, &[(WAY, way.name)]);
        children.push((way, path, child, holds));
    }
    for (way, _, child, _) in &mut children {
        assert_eq!(child.ends().signal(), Some(Signal::KILL.as_raw()), "{} has not failed", way.name);
    }
    let mut left = Vec::new();
    // All is deleted, or the server is about to read that.
    until(Duration::from_secs(3), || {
        let is_left = |(way, path, ..): &&(&Way, String, _, _)| {
            way.left.iter().any(|(below, count)| admin.children(&format!("{path}{below}")).len() != *count)
        };
        left = children.iter().filter(is_left).map(|(way, ..)| way.name).collect();
        left.is_empty()
    });
    or_once_more(left.is_empty(), &format!("left by {left:?}"));
}
